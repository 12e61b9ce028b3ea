#include "pipeline/reader_form.h"
#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"random",     "counted", "seekable",
                                    "sequential", "marked",  "once"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Shard `index` of `shards` of `n` records. */
static void check_shard(const char *kind, const char *options, int n,
                        int shards, int index)
{
    static order_epoch epoch[2];
    char text[200];
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        for (int i = index; i < n; i += shards)
            order_add(&epoch[e], i);
    }
    snprintf(text, sizeof(text), "plain:%s,%d%s | shard:%d,%d", kind, n,
             options, shards, index);
    order_check(text, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(a_shard_is_every_nth_sample)
{
    const int cases[][3] = {{10, 5, 2}, {10, 5, 0}, {10, 7, 5},
                            {10, 5, 4}, {10, 4, 3}, {10, 20, 5},
                            {1, 5, 2},  {10, 1, 0}, {100, 3, 1}};
    for (int i = 0; i < (int)(sizeof(cases) / sizeof(cases[0])); i++)
        check_shard(kinds[_i], "", cases[i][0], cases[i][1], cases[i][2]);
}
END_TEST

START_TEST(bad_and_deferred_records_count)
{
    check_shard(kinds[_i], ",bad=1", 45, 2, 1);
    check_shard(kinds[_i], ",bad=1,defers=1", 45, 5, 3);
    check_shard(kinds[_i], ",bad=1", 45, 1, 0);
}
END_TEST

START_TEST(an_empty_shard_is_refused_where_that_is_asked_for)
{
    char text[100];
    leat_sample sample;
    leat_sample_init(&sample);
    order_check_refused("plain:random,10 | shard:20,5,require_non_empty=1",
                        LEAT_EINVAL, "10 samples are too few for 20 shards");
    snprintf(text, sizeof(text),
             "plain:marked,10 | shard:20,5,require_non_empty=1");
    leat_reader *reader = order_open(text);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.from.record, 5);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "10 samples are too few for 20 shards"));
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    static order_epoch epoch;
    epoch.n = 0;
    order_add(&epoch, 7);
    order_check("plain:random,10 | shard:10,7,require_non_empty=1", &epoch, 1,
                0);
    order_check("plain:marked,10 | shard:10,7,require_non_empty=1", &epoch, 1,
                0);
}
END_TEST

START_TEST(shards_that_cannot_be_are_refused)
{
    order_check_refused("plain:random,10 | shard:5,5", LEAT_EINVAL,
                        "index 5 of 5 shards: expected 0 to 4");
    order_check_refused("plain:random,10 | shard:5,7", LEAT_EINVAL, "index 7");
    order_check_refused("plain:random,10 | shard:5,-3", LEAT_EINVAL, "index");
    order_check_refused("plain:random,10 | shard:-3,1", LEAT_EINVAL, "shards");
    order_check_refused("plain:random,10 | shard:0,1", LEAT_EINVAL, "shards");
}
END_TEST

START_TEST(shards_of_an_endless_epoch_are_endless)
{
    static order_epoch epoch = {.is_cut = 1};
    for (int i = 3; i < 200; i += 7)
        order_add(&epoch, i % 10);
    order_check("plain:random,10 | repeat | shard:7,3", &epoch, 1, 0);
    order_check("plain:sequential,10 | repeat | shard:7,3", &epoch, 1, 0);
}
END_TEST

START_TEST(no_mark_leads_out_of_it)
{
    leat_reader *reader = order_open("plain:marked,9 | shard:3,1");
    leat_token mark;
    leat_token_init(&mark);
    const int64_t at[] = {-1, 0};
    ck_assert_int_eq(leat__reader_put_form(reader, &mark), LEAT_OK);
    ck_assert_int_eq(leat_token_put(&mark, at, sizeof(at)), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 5}, &mark),
                     LEAT_EINVAL);
    leat_token_finish(&mark);
    leat_reader_close(reader);
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source = order_parse("plain:random,45");
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_shard(&pipeline, source, 5, 2, 1), LEAT_OK);
    leat_pipeline *parsed =
        order_parse("plain:random,45 | shard:5,2,require_non_empty=1");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shard");
    TCase *all = tcase_create("shard");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, a_shard_is_every_nth_sample, 0, KINDS);
    tcase_add_loop_test(all, bad_and_deferred_records_count, 0, KINDS);
    tcase_add_test(all, an_empty_shard_is_refused_where_that_is_asked_for);
    tcase_add_test(all, shards_that_cannot_be_are_refused);
    tcase_add_test(all, shards_of_an_endless_epoch_are_endless);
    tcase_add_test(all, no_mark_leads_out_of_it);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
