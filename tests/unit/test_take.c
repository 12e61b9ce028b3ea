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

/* The first `n` of 10 records. */
static void check_take(const char *kind, const char *options, int n,
                       const char *text)
{
    static order_epoch epoch[2];
    char whole[200];
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        order_add_range(&epoch[e], 0, n);
    }
    snprintf(whole, sizeof(whole), "plain:%s,10%s | %s", kind, options, text);
    order_check(whole, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(the_first_samples_are_given)
{
    check_take(kinds[_i], "", 4, "take:4");
    check_take(kinds[_i], "", 10, "take:25");
    check_take(kinds[_i], "", 10, "take:10");
    check_take(kinds[_i], "", 10, "take:-1");
    check_take(kinds[_i], "", 0, "take:0");
    check_take(kinds[_i], "", 3, "take:7 | take:3");
}
END_TEST

START_TEST(bad_and_deferred_records_count)
{
    check_take(kinds[_i], ",bad=1", 4, "take:4");
    check_take(kinds[_i], ",bad=1", 3, "take:3");
    check_take(kinds[_i], ",bad=1,defers=1", 7, "take:7");
}
END_TEST

START_TEST(an_endless_epoch_gets_an_end)
{
    static order_epoch epoch;
    char text[100];
    epoch.n = 0;
    for (int i = 0; i < 25; i++)
        order_add(&epoch, i % 10);
    snprintf(text, sizeof(text), "plain:%s,10 | repeat | take:25", kinds[_i]);
    order_check(text, &epoch, 1, 0);
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source = order_parse("plain:random,45");
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_take(&pipeline, source, 7), LEAT_OK);
    leat_pipeline *parsed = order_parse("plain:random,45 | take:7");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(source);
    order_check_refused("plain:random,45 | take:-2", LEAT_EINVAL, "count");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("take");
    TCase *all = tcase_create("take");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, the_first_samples_are_given, 0, KINDS);
    tcase_add_loop_test(all, bad_and_deferred_records_count, 0, KINDS);
    tcase_add_loop_test(all, an_endless_epoch_gets_an_end, 0, KINDS - 1);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
