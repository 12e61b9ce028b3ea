#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "support/empty_reader.h"
#include "support/index_decorators.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_up(void)
{
    index_decorators_register();
}

static leat_pipeline *parse(const char *text)
{
    leat_pipeline *pipeline = NULL;
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return pipeline;
}

/* A reader that only tells its argument. */
typedef struct teller {
    leat_reader reader;
    char path[256];
} teller;

static void teller_close(leat_reader *reader)
{
    free(reader);
}

static const leat_reader_ops teller_ops = {EMPTY_READER_OPS, .name = "teller",
                                           .close = teller_close};

static int teller_open(const leat_open *open, leat_reader **out)
{
    teller *self = calloc(1, sizeof(*self));
    ck_assert_ptr_nonnull(self);
    self->reader.ops = &teller_ops;
    strcpy(self->path, leat_args_at(open->args, 0));
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type teller_type = {
    .size = sizeof(leat_reader_type),
    .name = "tell",
    .min_args = 1,
    .max_args = 1,
    .min_upstream = 0,
    .max_upstream = 1,
    .may_block = 1,
    .open = teller_open,
};

/* The path that the pipeline's last reader is given. */
static void told(const leat_pipeline *pipeline, char out[256])
{
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    strcpy(out, ((teller *)reader)->path);
    leat_reader_close(reader);
}

START_TEST(a_path_of_any_letters_comes_back_from_the_text)
{
    const char *const paths[] = {"a",       "a b", "a,b",  "a|b",    "a=b",
                                 "a\\b",    "a\\", " a",   "a ",     " ",
                                 "a\\ ",    "\\",  "\\\\", "a\\\\ ", "/x y/,=|",
                                 "k=v,k=v", "a:b", "|",    "| "};
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        leat_pipeline *pipeline;
        char path[256];
        char text[256];
        ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, paths[i], NULL),
                         LEAT_OK);
        strcpy(text, leat_pipeline_text(pipeline));
        leat_pipeline_unref(pipeline);
        memcpy(text, "tell", 4);
        pipeline = parse(text);
        told(pipeline, path);
        ck_assert_str_eq(path, paths[i]);
        ck_assert_str_eq(leat_pipeline_text(pipeline), text);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(a_bar_behind_a_path_does_not_change_it)
{
    const char *const paths[] = {"a\\", "a ", "a\\\\", "a\\ ", "a|"};
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        leat_pipeline *pipeline;
        char first[256];
        char both[300];
        ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, paths[i], NULL),
                         LEAT_OK);
        strcpy(first, leat_pipeline_text(pipeline));
        leat_pipeline_unref(pipeline);
        snprintf(both, sizeof(both), " %s | test_shuffle:seed=7 ", first);
        pipeline = parse(both);
        snprintf(both, sizeof(both), "%s | test_shuffle:seed=7", first);
        ck_assert_str_eq(leat_pipeline_text(pipeline), both);
        leat_pipeline *again = parse(both);
        ck_assert_str_eq(leat_pipeline_text(again), both);
        leat_pipeline_unref(again);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(the_text_is_that_of_the_chain_in_order)
{
    leat_pipeline *pipeline =
        parse("  lmdb:a b|test_slice:skip=1,take=2  |   test_shuffle");
    ck_assert_str_eq(leat_pipeline_text(pipeline),
                     "lmdb:a b | test_slice:skip=1,take=2 | test_shuffle");
    ck_assert_int_eq(leat__pipeline_has_upstream(pipeline), 1);
    ck_assert_int_eq(leat__pipeline_may_block(pipeline), 0);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void refuse(const char *text, const char *why)
{
    leat_pipeline *pipeline = NULL;
    ck_assert_msg(leat_pipeline_parse(&pipeline, text) == LEAT_EINVAL, "%s",
                  text);
    ck_assert_msg(strstr(leat_last_error(), why) != NULL, "%s: %s", text,
                  leat_last_error());
    ck_assert_ptr_null(pipeline);
}

START_TEST(a_wrong_text_is_refused_with_its_place)
{
    refuse("", "expected the name of a reader");
    refuse("  ", "expected the name of a reader");
    refuse("|", "expected the name of a reader");
    refuse("lmdb:a|", "character 8: expected the name");
    refuse("lmdb:a || test_shuffle", "expected the name");
    refuse(":a", "expected the name");
    refuse("lmbd:a", "there is no reader \"lmbd\"");
    refuse("lmdb:a | nothing", "character 10: there is no reader \"nothing\"");
    refuse("lmbd:a", "there are: lmdb");
    refuse("/nowhere/db", "; a database is lmdb:/nowhere/db");
    refuse("../db | lmdb:b", "; a database is lmdb:../db");
    refuse("lmdb", "takes 1 argument, found 0");
    refuse("lmdb:a,b", "found 2");
    refuse("lmdb:a=b", "has no argument \"a\"");
    refuse("lmdb:a | test_shuffle:sead=7", "no argument \"sead\"");
    refuse("lmdb:a | lmdb:b", "cannot follow another");
    refuse("test_shuffle:seed=7", "reads 1 to 1 other readers");
}
END_TEST

START_TEST(the_reason_is_there_even_behind_a_long_text)
{
    char text[2000] = "lmdb:";
    memset(text + 5, 'x', sizeof(text) - 6);
    strcpy(text + sizeof(text) - 12, " | nothing");
    refuse(text, "there is no reader \"nothing\"");
}
END_TEST

START_TEST(a_chain_without_end_is_refused)
{
    size_t size = 100000 * 13 + 10;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    strcpy(text, "lmdb:a");
    for (char *to = text + 6; to < text + size - 14; to += 13)
        strcpy(to, "|test_shuffle");
    refuse(text, "more than");
    free(text);
}
END_TEST

static uint64_t hash_of(const char *text)
{
    leat_pipeline *pipeline = parse(text);
    uint64_t hash = leat__pipeline_hash(pipeline);
    leat_pipeline_unref(pipeline);
    return hash;
}

START_TEST(the_hash_is_of_what_is_done_and_not_of_where)
{
    uint64_t hash = hash_of("lmdb:a | test_shuffle:seed=7");
    ck_assert(hash == hash_of("lmdb:b/c | test_shuffle:seed=7"));
    ck_assert(hash == hash_of("lmdb:a|test_shuffle:seed=7 "));
    ck_assert(hash != hash_of("lmdb:a | test_shuffle:seed=8"));
    ck_assert(hash != hash_of("lmdb:a"));
    /* It stands in tokens, which later versions are to read. */
    ck_assert_uint_eq(hash_of("lmdb:a"), 0xe04516ad7b830ce0);
    ck_assert_uint_eq(hash, 0x906bbb4c74c3496d);
    ck_assert(hash != hash_of("lmdb:a | test_shuffle:seed=7 | test_slice"));
    ck_assert(hash_of("lmdb:a | test_slice | test_shuffle") !=
              hash_of("lmdb:a | test_shuffle | test_slice"));
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    ck_assert(hash_of("lmdb:a | tell:x\\|y") != hash_of("lmdb:a | tell:z\\|y"));
}
END_TEST

START_TEST(an_lmdb_without_a_path_is_refused)
{
    leat_pipeline *pipeline = NULL;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, NULL, NULL), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "", NULL), LEAT_EINVAL);
    ck_assert_ptr_null(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline_text");
    TCase *tcase = tcase_create("pipeline_text");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_path_of_any_letters_comes_back_from_the_text);
    tcase_add_test(tcase, a_bar_behind_a_path_does_not_change_it);
    tcase_add_test(tcase, the_text_is_that_of_the_chain_in_order);
    tcase_add_test(tcase, a_wrong_text_is_refused_with_its_place);
    tcase_add_test(tcase, the_reason_is_there_even_behind_a_long_text);
    tcase_add_test(tcase, a_chain_without_end_is_refused);
    tcase_add_test(tcase, the_hash_is_of_what_is_done_and_not_of_where);
    tcase_add_test(tcase, an_lmdb_without_a_path_is_refused);
    return suite_run(suite);
}
