/* A report as lines, read back from the file that stdout is meanwhile. */
#include "support/suite.h"
#include "tools/bench/report.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char text[8192];

static int readers = 2; /* of a chain */

static void add_figures(struct report *report)
{
    report_line(report, "images_per_s", "images", REPORT_RATE, 4.43e6,
                "images/s");
    report_line(report, "share", "share", REPORT_SHARE, .5, ", about");
    report_line(report, "why", "unknown", REPORT_BYTES, NAN, NULL);
    report_line(report, NULL, "alone", REPORT_COUNT, 3, NULL);
    report_value(report, "wait_us.p50", REPORT_US, 1.5);
    report_value(report, "wait_us.max", REPORT_US, 2.5);
    report_text(report, "device.link.speed", NULL);
    for (int i = 1; i <= 2; i++) {
        report_row(report, "results");
        report_line(report, "case", "case", REPORT_TEXT, 0, "next");
        report_line(report, "threads", "threads", REPORT_COUNT, i, NULL);
        report_line(report, "ns", "time", REPORT_NS, i == 1 ? NAN : 28, NULL);
        report_value(report, "touched", REPORT_FLAG, i == 2);
        report_row_end(report);
    }
    const leat_reader_stats reader[] = {
        {.path = "map", .items = 200, .busy = 1, .blocked = 2.5},
        {.path = "map/lmdb", .items = 0, .busy = 0, .memory = 3000}};
    report_readers(report, reader, readers);
}

/* What a report prints. */
static void print(int json)
{
    struct report report;
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
    report_begin(&report, json);
    add_figures(&report);
    int status = report_end(&report);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    ck_assert_int_eq(status, 0);
}

START_TEST(lines_have_label_value_and_text)
{
    print(0);
    ck_assert_ptr_nonnull(
        strstr(text, "\nimages                  4.43 M images/s\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "\nshare                     50.0 %, about\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nalone                        3\n"));
    ck_assert_ptr_null(strstr(text, "wait_us"));
    ck_assert_ptr_null(strstr(text, "unknown  "));
}
END_TEST

START_TEST(rows_stand_below_one_line_of_labels)
{
    print(0);
    const char *labels =
        strstr(text, "\ncase                      |   threads |      time\n");
    ck_assert_ptr_nonnull(labels);
    ck_assert_ptr_nonnull(
        strstr(labels, "\nnext                      |         1 |         -\n"
                       "next                      |         2 |   28.0 ns\n"));
}
END_TEST

START_TEST(readers_of_a_chain_have_a_line_each)
{
    print(0);
    ck_assert_ptr_nonnull(strstr(text, "\nreader map: 200 items, busy 1.00 s, "
                                       "5.00 ms an item, waited 2.50 s\n"
                                       "reader map/lmdb: 0 items, busy 0.00 s, "
                                       "holds 3.00 kB\n"));
    readers = 1;
    print(0);
    ck_assert_ptr_null(strstr(text, "reader"));
    print(1);
    ck_assert_ptr_nonnull(
        strstr(text, "\"readers\": [{\"path\": \"map\", \"items\": 200, "
                     "\"bytes\": 0, \"busy\": 1.0, \"blocked\": 2.5, "
                     "\"memory\": 0}]"));
    readers = 2;
}
END_TEST

START_TEST(an_object_has_the_keys)
{
    print(1);
    json_t *object = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(object);
    double p50, max;
    int first, second, touched;
    json_t *unknown, *speed, *time;
    ck_assert_int_eq(
        json_unpack(object,
                    "{s:o, s:{s:F, s:F}, s:{s:{s:o}}, s:[{s:i, s:o}, {s:i, "
                    "s:b}]}",
                    "why", &unknown, "wait_us", "p50", &p50, "max", &max,
                    "device", "link", "speed", &speed, "results", "threads",
                    &first, "ns", &time, "threads", &second, "touched",
                    &touched),
        0);
    ck_assert(json_is_null(unknown) && json_is_null(speed));
    ck_assert(json_is_null(time) && touched);
    ck_assert_int_eq(first, 1);
    ck_assert_int_eq(second, 2);
    ck_assert_double_eq(p50 + max, 4);
    ck_assert_double_eq(
        json_real_value(json_object_get(object, "images_per_s")), 4.43e6);
    ck_assert_ptr_null(json_object_get(object, "alone"));
    ck_assert_ptr_nonnull(json_object_get(object, "version"));
    json_decref(object);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report");
    TCase *tcase = tcase_create("report");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, lines_have_label_value_and_text);
    tcase_add_test(tcase, rows_stand_below_one_line_of_labels);
    tcase_add_test(tcase, readers_of_a_chain_have_a_line_each);
    tcase_add_test(tcase, an_object_has_the_keys);
    return suite_run(suite);
}
