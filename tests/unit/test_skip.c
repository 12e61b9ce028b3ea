#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"random",     "counted", "seekable",
                                    "sequential", "marked",  "once"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* skip:N of 45 records, whatever the kind of source. */
static void check_skip(const char *kind, const char *options, int skip,
                       const char *text)
{
    static order_epoch epoch[2];
    char whole[200];
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        if (skip < 45)
            order_add_range(&epoch[e], skip, 45 - skip);
    }
    snprintf(whole, sizeof(whole), "plain:%s,45%s | %s", kind, options, text);
    order_check(whole, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(the_first_samples_are_left_out)
{
    check_skip(kinds[_i], "", 4, "skip:4");
    check_skip(kinds[_i], "", 0, "skip:0");
    check_skip(kinds[_i], "", 44, "skip:44");
    check_skip(kinds[_i], "", 45, "skip:45");
    check_skip(kinds[_i], "", 45, "skip:1000");
    check_skip(kinds[_i], "", 45, "skip:9223372036854775807");
}
END_TEST

START_TEST(minus_one_leaves_out_all)
{
    check_skip(kinds[_i], "", 45, "skip:-1");
}
END_TEST

START_TEST(bad_and_deferred_records_count)
{
    check_skip(kinds[_i], ",bad=1", 14, "skip:14");
    check_skip(kinds[_i], ",bad=1,defers=1", 13, "skip:13");
    check_skip(kinds[_i], ",bad=1", 20, "skip:5 | skip:15");
}
END_TEST

START_TEST(an_endless_epoch_stays_one)
{
    static order_epoch epoch = {.is_cut = 1};
    order_add_range(&epoch, 2, 8);
    order_add_range(&epoch, 0, 10);
    order_check("plain:random,10 | repeat | skip:12", &epoch, 1, 0);
    order_check("plain:marked,10 | repeat | skip:12", &epoch, 1, 0);
    leat_reader *reader = order_open("plain:random,10 | repeat | skip:12");
    int64_t count;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, LEAT_ENDLESS);
    leat_sample sample;
    leat_sample *out = &sample;
    leat_sample_init(&sample);
    const leat_position last = {0, LEAT_ENDLESS - 1};
    int got;
    ck_assert_int_eq(leat_reader_read_at(reader, &last, &out, 1, &got),
                     LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source = order_parse("plain:random,45");
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_skip(&pipeline, source, -1), LEAT_OK);
    leat_pipeline *parsed = order_parse("plain:random,45 | skip:-1");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_pipeline_skip(&pipeline, source, -2), LEAT_EINVAL);
    leat_pipeline_unref(source);
}
END_TEST

START_TEST(what_cannot_be_skipped_is_refused)
{
    order_check_refused("plain:random,45 | skip:-2", LEAT_EINVAL, "count");
    order_check_refused("plain:random,45 | skip", LEAT_EINVAL, "count");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("skip");
    TCase *all = tcase_create("skip");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, the_first_samples_are_left_out, 0, KINDS);
    tcase_add_loop_test(all, minus_one_leaves_out_all, 0, KINDS);
    tcase_add_loop_test(all, bad_and_deferred_records_count, 0, KINDS);
    tcase_add_test(all, an_endless_epoch_stays_one);
    tcase_add_test(all, code_makes_what_the_text_makes);
    tcase_add_test(all, what_cannot_be_skipped_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
