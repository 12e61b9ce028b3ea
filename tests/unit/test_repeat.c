#include "pipeline/reader_form.h"
#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"random", "counted", "seekable",
                                    "sequential", "marked"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Epochs of `times` passes over `n` records, read with `options`. */
static void check_repeat(const char *kind, const char *options, int n,
                         int times)
{
    static order_epoch epoch[2];
    char text[200];
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        for (int pass = 0; pass < times; pass++)
            order_add_range(&epoch[e], 0, n);
    }
    snprintf(text, sizeof(text), "plain:%s,%d%s | repeat:%d", kind, n, options,
             times);
    order_check(text, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(passes_follow_each_other)
{
    check_repeat(kinds[_i], "", 2, 2);
    check_repeat(kinds[_i], "", 13, 1);
    check_repeat(kinds[_i], "", 13, 3);
    check_repeat(kinds[_i], ",defers=1", 13, 3);
    check_repeat(kinds[_i], ",bad=1", 14, 3);
    check_repeat(kinds[_i], ",bad=1,defers=1", 14, 3);
}
END_TEST

START_TEST(none_and_nothing_end_at_once)
{
    check_repeat(kinds[_i], "", 13, 0);
    check_repeat(kinds[_i], "", 0, 3);
}
END_TEST

START_TEST(without_a_number_it_is_for_ever)
{
    static const char *const texts[] = {"repeat", "repeat:-1"};
    static order_epoch epoch;
    int64_t count;
    char text[100];
    for (int i = 0; i < 2; i++) {
        epoch = (order_epoch){.is_cut = 1};
        for (int pass = 0; pass < 8; pass++)
            order_add_range(&epoch, 0, 9);
        snprintf(text, sizeof(text), "plain:%s,9 | %s", kinds[_i], texts[i]);
        order_check(text, &epoch, 1, 0);
    }
    leat_reader *reader = order_open(text);
    if (leat_reader_is_random_access(reader)) {
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
        ck_assert_int_eq(count, LEAT_ENDLESS);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(for_ever_over_nothing_ends)
{
    static order_epoch epoch[2];
    char text[100];
    snprintf(text, sizeof(text), "plain:%s,0 | repeat", kinds[_i]);
    order_check(text, epoch, 2, 0);
}
END_TEST

START_TEST(any_number_of_passes_over_nothing_end_at_once)
{
    static order_epoch epoch[2];
    order_check("plain:random,0 | repeat:9007199254740994", epoch, 2, 0);
    order_check("plain:counted,0 | repeat:9007199254740994", epoch, 2, 0);
}
END_TEST

START_TEST(a_part_of_an_endless_epoch_begins_with_the_next_pass)
{
    static order_epoch epoch[3];
    char text[100];
    for (int e = 0; e < 3; e++) {
        epoch[e].n = 0;
        for (int i = 0; i < 20; i++)
            order_add(&epoch[e], i % 9);
    }
    snprintf(text, sizeof(text), "plain:%s,9 | repeat | take:20", kinds[_i]);
    order_check(text, epoch, 3, 0);
}
END_TEST

START_TEST(repeats_nest)
{
    static order_epoch epoch[2];
    char text[100];
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        for (int pass = 0; pass < 6; pass++)
            order_add_range(&epoch[e], 0, 5);
    }
    snprintf(text, sizeof(text), "plain:%s,5 | repeat:2 | repeat:3", kinds[_i]);
    order_check(text, epoch, 2, 0);
}
END_TEST

START_TEST(a_single_pass_is_all_there_is)
{
    static order_epoch epoch;
    epoch.n = 0;
    order_add_range(&epoch, 0, 12);
    order_check("plain:once,12 | repeat:3", &epoch, 1, 0);
    order_check("plain:once,12 | repeat", &epoch, 1, 0);
}
END_TEST

START_TEST(a_count_beyond_all_numbers_is_endless)
{
    leat_reader *reader =
        order_open("plain:random,10 | repeat:9223372036854775806 | repeat:7");
    int64_t count;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, LEAT_ENDLESS);
    leat_sample sample;
    leat_sample *out = &sample;
    leat_sample_init(&sample);
    const leat_position last = {INT64_MAX, LEAT_ENDLESS - 1};
    int got;
    ck_assert_int_eq(leat_reader_read_at(reader, &last, &out, 1, &got),
                     LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(no_mark_leads_out_of_it)
{
    leat_reader *reader = order_open("plain:marked,9 | repeat:3");
    leat_token mark;
    leat_token_init(&mark);
    const int64_t passes[][3] = {{4, 0, 0}, {-1, 0, 0}, {0, -1, 0}};
    for (int i = 0; i < 3; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat__reader_put_form(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat_token_put(&mark, passes[i], sizeof(passes[i])),
                         LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 5}, &mark),
                         LEAT_EINVAL);
    }
    leat_token_finish(&mark);
    leat_reader_close(reader);
}
END_TEST

START_TEST(the_end_that_is_sought_has_the_mark_of_the_end_that_is_read)
{
    static order_epoch epoch;
    leat_reader *reader[2];
    leat_token mark[2];
    for (int i = 0; i < 2; i++) {
        reader[i] = order_open("plain:counted,9 | repeat:2");
        leat_token_init(&mark[i]);
    }
    order_read(reader[0], ORDER_MAX, &epoch);
    ck_assert_int_eq(epoch.n, 18);
    ck_assert_int_eq(leat_reader_seek(reader[1], (leat_position){0, 18}, NULL),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_reader_mark(reader[i], &mark[i]), LEAT_OK);
    ck_assert_uint_eq(mark[0].size, mark[1].size);
    ck_assert_mem_eq(mark[0].bytes, mark[1].bytes, mark[0].size);
    for (int i = 0; i < 2; i++) {
        leat_token_finish(&mark[i]);
        leat_reader_close(reader[i]);
    }
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source = order_parse("plain:random,45");
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_repeat(&pipeline, source, 3), LEAT_OK);
    leat_pipeline *parsed = order_parse("plain:random,45 | repeat:3");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(source);
    order_check_refused("plain:random,45 | repeat:-2", LEAT_EINVAL, "times");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("repeat");
    TCase *all = tcase_create("repeat");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, passes_follow_each_other, 0, KINDS);
    tcase_add_loop_test(all, none_and_nothing_end_at_once, 0, KINDS);
    tcase_add_loop_test(all, without_a_number_it_is_for_ever, 0, KINDS);
    tcase_add_test(all, any_number_of_passes_over_nothing_end_at_once);
    tcase_add_loop_test(all, for_ever_over_nothing_ends, 0, KINDS);
    tcase_add_loop_test(
        all, a_part_of_an_endless_epoch_begins_with_the_next_pass, 0, KINDS);
    tcase_add_loop_test(all, repeats_nest, 0, KINDS);
    tcase_add_test(all, a_single_pass_is_all_there_is);
    tcase_add_test(all, a_count_beyond_all_numbers_is_endless);
    tcase_add_test(all, no_mark_leads_out_of_it);
    tcase_add_test(all,
                   the_end_that_is_sought_has_the_mark_of_the_end_that_is_read);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
