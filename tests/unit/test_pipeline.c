/* How pipelines live: counted, opened, described. */
#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "support/empty_reader.h"
#include "support/index_decorators.h"
#include "support/suite.h"

#include <leat/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What became of the objects of a type that counts them. */
static atomic_int opened;
static atomic_int closed;
static atomic_int released;
static int open_status;

static void counted_close(leat_reader *reader)
{
    atomic_fetch_add(&closed, 1);
    free(reader);
}

static const leat_reader_ops counted_ops = {EMPTY_READER_OPS, .name = "counted",
                                            .close = counted_close};

static int counted_open(const leat_open *open, leat_reader **out)
{
    if (leat_args_get(open->args, "fail"))
        return leat_error(open_status, "it was told to fail");
    leat_reader *reader = calloc(1, sizeof(*reader));
    ck_assert_ptr_nonnull(reader);
    reader->ops = &counted_ops;
    atomic_fetch_add(&opened, 1);
    *out = reader;
    return LEAT_OK;
}

static const leat_argument counted_arguments[] = {
    {.name = "name", .positional = 1},
    {.name = "fail"},
    {0},
};

static const leat_argument pair_arguments[] = {{.name = "fail"}, {0}};

static const leat_reader_type counted_type = {
    .size = sizeof(leat_reader_type),
    .name = "counted",
    .arguments = counted_arguments,
    .argument_size = sizeof(leat_argument),
    .may_block = 1,
    .open = counted_open,
};

/* Reads two others, which it leaves open when it is told to fail. */
typedef struct pair_reader {
    leat_reader reader;
    leat_reader *upstream[2];
} pair_reader;

static void pair_close(leat_reader *reader)
{
    pair_reader *self = (pair_reader *)reader;
    leat_reader_close(self->upstream[0]);
    leat_reader_close(self->upstream[1]);
    free(reader);
}

static const leat_reader_ops pair_ops = {EMPTY_READER_OPS, .name = "pair",
                                         .close = pair_close};

static int pair_open(const leat_open *open, leat_reader **out)
{
    if (leat_args_get(open->args, "fail"))
        return leat_error(open_status, "it was told to fail");
    pair_reader *self = calloc(1, sizeof(*self));
    ck_assert_ptr_nonnull(self);
    ck_assert_int_eq(open->nupstream, 2);
    self->reader.ops = &pair_ops;
    self->upstream[0] = open->upstream[0];
    self->upstream[1] = open->upstream[1];
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type pair_type = {
    .size = sizeof(leat_reader_type),
    .name = "pair",
    .arguments = pair_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 2,
    .max_upstream = 2,
    .open = pair_open,
};

static void release(void *object)
{
    ck_assert_ptr_eq(object, &released);
    atomic_fetch_add(&released, 1);
}

static void set_up(void)
{
    opened = closed = released = 0;
    open_status = LEAT_EIO;
    index_decorators_register();
}

static leat_pipeline *counted(const char *text)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &counted_type, text,
                                          &released, release, NULL, 0),
                     LEAT_OK);
    return pipeline;
}

static leat_pipeline *pair(leat_pipeline *first, leat_pipeline *second,
                           const char *text)
{
    leat_pipeline *const upstream[] = {first, second};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &pair_type, text, NULL,
                                          NULL, upstream, 2),
                     LEAT_OK);
    return pipeline;
}

START_TEST(the_object_goes_with_the_last_owner)
{
    leat_pipeline *pipeline = counted(NULL);
    leat_reader *reader;
    leat_pipeline_ref(pipeline);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(released, 0);
    leat_reader_close(reader);
    ck_assert_int_eq(released, 1);
    leat_reader_close(NULL);
    leat_pipeline_unref(NULL);
}
END_TEST

START_TEST(the_object_goes_also_when_nothing_is_made)
{
    leat_pipeline *none = NULL;
    const char *const wrong[] = {"a,b", "key=1", "a,a=1,a=1"};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_pipeline_create(&none, &counted_type, wrong[i],
                                              &released, release, NULL, 0),
                         LEAT_EINVAL);
        ck_assert_int_eq(released, i + 1);
    }
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(making_one_survives_every_failing_allocation)
{
    leat_pipeline *upstream = counted(NULL);
    leat_pipeline *const two[] = {upstream, upstream};
    leat_pipeline *pipeline = NULL;
    int status;
    int n = 0;
    do {
        leat__alloc_fail_at(n++);
        status = leat_pipeline_create(&pipeline, &pair_type, "", &released,
                                      release, two, 2);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert_int_eq(released, status ? n : n - 1);
    } while (status);
    ck_assert_int_ge(n, 4);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
    ck_assert_int_eq(released, n + 1);
}
END_TEST

START_TEST(several_upstreams_are_opened_and_closed_with_their_reader)
{
    leat_pipeline *one = counted("a");
    leat_pipeline *both = pair(one, one, "");
    leat_pipeline_unref(one);
    leat_reader *reader;
    ck_assert_str_eq(leat_pipeline_text(both),
                     "(counted:a) (counted:a) | pair");
    ck_assert_int_eq(leat_pipeline_open(both, &reader), LEAT_OK);
    leat_pipeline_unref(both);
    ck_assert_int_eq(opened, 2);
    leat_reader_close(reader);
    ck_assert_int_eq(closed, 2);
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(a_failed_open_closes_what_was_opened_before_it)
{
    leat_pipeline *good = counted("a");
    leat_pipeline *bad = counted("fail=1");
    leat_pipeline *first = pair(good, bad, "");
    leat_pipeline *last = pair(good, good, "fail=1");
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_open(first, &reader), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "it was told to fail");
    ck_assert_int_eq(opened, 1);
    ck_assert_int_eq(closed, 1);
    ck_assert_int_eq(leat_pipeline_open(last, &reader), LEAT_EIO);
    ck_assert_int_eq(opened, 3);
    ck_assert_int_eq(closed, 3);
    ck_assert_ptr_null(reader);
    leat_pipeline_unref(good);
    leat_pipeline_unref(bad);
    leat_pipeline_unref(first);
    leat_pipeline_unref(last);
    ck_assert_int_eq(released, 2);
}
END_TEST

START_TEST(the_wrong_number_of_upstreams_is_refused)
{
    leat_pipeline *one = counted(NULL);
    leat_pipeline *const two[] = {one, one};
    leat_pipeline *none = NULL;
    ck_assert_int_eq(
        leat_pipeline_create(&none, &pair_type, NULL, NULL, NULL, two, 1),
        LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_create(&none, &counted_type, NULL, &released,
                                          release, two, 2),
                     LEAT_EINVAL);
    ck_assert_ptr_null(none);
    leat_pipeline_unref(one);
    ck_assert_int_eq(released, 2);
}
END_TEST

static leat_pipeline *parse(const char *text)
{
    leat_pipeline *pipeline = NULL;
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return pipeline;
}

START_TEST(whether_storage_may_block_is_known_along_the_chain)
{
    leat_pipeline *lmdb = parse("lmdb:a | test_shuffle");
    leat_pipeline *slow = counted(NULL);
    leat_pipeline *both = pair(lmdb, slow, "");
    ck_assert_int_eq(leat__pipeline_may_block(lmdb), 0);
    ck_assert_int_eq(leat__pipeline_may_block(both), 1);
    leat_pipeline *some = parse("lmdb:a | take:5 | take:3");
    ck_assert_int_eq(leat__pipeline_keeps_order(lmdb), 0);
    ck_assert_int_eq(leat__pipeline_keeps_order(both), 0);
    ck_assert_int_eq(leat__pipeline_keeps_order(slow), 1);
    ck_assert_int_eq(leat__pipeline_keeps_order(some), 1);
    leat_pipeline_unref(some);
    leat_pipeline_unref(lmdb);
    leat_pipeline_unref(slow);
    leat_pipeline_unref(both);
}
END_TEST

static void *come_and_go(void *argument)
{
    leat_pipeline *pipeline = argument;
    for (int i = 0; i < 300; i++) {
        leat_reader *reader;
        leat_pipeline_ref(pipeline);
        if (leat_pipeline_open(pipeline, &reader) == LEAT_OK)
            leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
    }
    leat_pipeline_unref(pipeline);
    return NULL;
}

START_TEST(threads_share_a_pipeline)
{
    leat_pipeline *one = counted("a");
    leat_pipeline *both = pair(one, one, "");
    leat__thread threads[4] = {{0}};
    leat_pipeline_unref(one);
    for (int i = 0; i < 4; i++) {
        leat_pipeline_ref(both);
        ck_assert_int_eq(
            leat__thread_start(&threads[i], "come-and-go", come_and_go, both),
            LEAT_OK);
    }
    leat_pipeline_unref(both);
    for (int i = 0; i < 4; i++)
        leat__thread_join(&threads[i]);
    ck_assert_int_eq(opened, 2400);
    ck_assert_int_eq(closed, 2400);
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(what_opens_leaves_an_older_line_alone)
{
    leat_pipeline *pipeline = counted(NULL);
    leat_reader *reader;
    (void)leat_error(LEAT_EIO, "an older line");
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_str_eq(leat_last_error(), "an older line");
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline");
    TCase *tcase = tcase_create("pipeline");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, the_object_goes_with_the_last_owner);
    tcase_add_test(tcase, what_opens_leaves_an_older_line_alone);
    tcase_add_test(tcase, the_object_goes_also_when_nothing_is_made);
    tcase_add_test(tcase, making_one_survives_every_failing_allocation);
    tcase_add_test(tcase,
                   several_upstreams_are_opened_and_closed_with_their_reader);
    tcase_add_test(tcase, a_failed_open_closes_what_was_opened_before_it);
    tcase_add_test(tcase, the_wrong_number_of_upstreams_is_refused);
    tcase_add_test(tcase, whether_storage_may_block_is_known_along_the_chain);
    tcase_add_test(tcase, threads_share_a_pipeline);
    return suite_run(suite);
}
