/* A line of a bad_record_file: what it says, and which record is read of it. */
#include "layer/on_error/bad_record_line.h"
#include "support/suite.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char line[LEAT__BAD_RECORD_LINE_MAX + 1];

static leat__bad make_bad(int record, const char *source, const char *key,
                          const char *text)
{
    char room[LEAT__ERROR_MAX];
    leat__bad bad;
    const leat_provenance from = {.source = source,
                                  .record = record,
                                  .key = key,
                                  .key_size = key ? strlen(key) : 0};
    snprintf(room, sizeof(room), "%s", text);
    leat__bad_set(&bad, record, &from, room);
    return bad;
}

/* The line, which lists its own record when it is read. */
static void check_bad(const leat__bad *bad, const char *expected)
{
    leat__record_mark mark, read;
    size_t size = leat__bad_record_line_format(line, bad, &mark);
    line[size] = 0;
    ck_assert_str_eq(line, expected);
    ck_assert(leat__bad_record_line_read(line, line + size - 1, &read));
    ck_assert_uint_eq(read.source, mark.source);
    ck_assert_int_eq(read.record, mark.record);
}

static void check(int record, const char *source, const char *key,
                  const char *text, const char *expected)
{
    const leat__bad bad = make_bad(record, source, key, text);
    check_bad(&bad, expected);
}

START_TEST(nothing_in_a_line_breaks_it)
{
    check(3, "a\tb", "k\n\x01\\\xc3\xa4", "one\ttwo, key k\\x0a",
          "a\\x09b\t3\tk\\x0a\\x01\\x5c\xc3\xa4\t0\t0\tnone\t"
          "one\\x09two, key k\\x0a\n");
}
END_TEST

/* The letters at the ends of what is printed as it is. */
START_TEST(letters_that_print_stay_as_they_are)
{
    check(1, " ~", "\x1f\x20\x7e\x7f\x80\xff[]", "a\\b",
          " ~\t1\t\\x1f ~\\x7f\x80\xff[]\t0\t0\tnone\ta\\b\n");
}
END_TEST

START_TEST(columns_do_not_repeat_each_other)
{
    check(1, "db", "k1", "db: record 1, key k1: it is cut",
          "db\t1\tk1\t0\t0\tnone\tit is cut\n");
    check(2, "db", "k2", "db: record 2: it is cut",
          "db\t2\tk2\t0\t0\tnone\tit is cut\n");
    check(3, "db", NULL, "db: record 3 is cut",
          "db\t3\t\t0\t0\tnone\tis cut\n");
    check(4, "db", "k\\", "db: record 4, key k\\x5c: it is cut",
          "db\t4\tk\\x5c\t0\t0\tnone\tit is cut\n");
    /* Another record's number, and what only looks like a prefix, stay. */
    check(5, "db", NULL, "db: record 55: it is cut",
          "db\t5\t\t0\t0\tnone\trecord 55: it is cut\n");
    check(6, "db", NULL, "dbx: record 6: it is cut",
          "db\t6\t\t0\t0\tnone\tdbx: record 6: it is cut\n");
    check(7, NULL, NULL, "it is cut", "\t7\t\t0\t0\tnone\tit is cut\n");
}
END_TEST

START_TEST(a_replacement_is_named)
{
    static const char *const names[] = {"none", "zeros", "record"};
    for (int i = 0; i < 3; i++) {
        char expected[64];
        leat__bad bad = make_bad(1, "db", NULL, "why");
        bad.from.replacement = (leat_replacement)i;
        snprintf(expected, sizeof(expected), "db\t1\t\t0\t0\t%s\twhy\n",
                 names[i]);
        check_bad(&bad, expected);
    }
}
END_TEST

/* Of bytes that take four letters each, as many as a line may have. */
START_TEST(the_longest_line_has_room)
{
    enum { NAME = 4096 };
    static char name[NAME + 10], key[LEAT__KEY_MAX + 1], text[LEAT__ERROR_MAX];
    static char expected[sizeof(line)];
    char *at = expected;
    memset(name, 1, sizeof(name) - 1);
    memset(key, 1, LEAT__KEY_MAX);
    memset(text, 1, sizeof(text) - 1);
    leat__bad bad = make_bad(2000000000, name, key, text);
    bad.from.key_cut = 1000000;
    bad.from.epoch = bad.from.position = INT64_MAX;
    for (int i = 0; i < NAME; i++)
        at += sprintf(at, "\\x01");
    at += sprintf(at, "\t2000000000\t");
    for (int i = 0; i < LEAT__KEY_MAX; i++)
        at += sprintf(at, "\\x01");
    at += sprintf(at, "... (%d bytes)\t%lld\t%lld\tnone\t",
                  LEAT__KEY_MAX + 1000000, (long long)INT64_MAX,
                  (long long)INT64_MAX);
    for (size_t i = 0; i < strlen(bad.line); i++)
        at += sprintf(at, "\\x01");
    sprintf(at, "\n");
    check_bad(&bad, expected);
}
END_TEST

/* One without a source by its position, which is as good in one epoch. */
START_TEST(a_record_is_known_by_its_source_and_number)
{
    leat__record_mark one, other;
    leat__bad bad = make_bad(1, "a", "k", "why");
    (void)leat__bad_record_line_format(line, &bad, &one);
    bad = make_bad(1, "a", NULL, "another reason");
    bad.from.position = 7;
    (void)leat__bad_record_line_format(line, &bad, &other);
    ck_assert(one.source == other.source && one.record == other.record);
    bad = make_bad(1, "b", NULL, "why");
    (void)leat__bad_record_line_format(line, &bad, &other);
    ck_assert_uint_ne(one.source, other.source);
    bad = make_bad(1, NULL, NULL, "why");
    bad.from.position = 7;
    (void)leat__bad_record_line_format(line, &bad, &other);
    ck_assert_int_eq(other.record, 7);
}
END_TEST

START_TEST(lines_of_other_programs_list_nothing)
{
    static const char *const lines[] = {
        "",
        "# a comment",
        "a\t1\t\t0\t0\tnone",       /* no reason */
        "a\t1x\t\t0\t0\tnone\twhy", /* no number */
        "a\t\t\t0\t0\tnone\twhy",   /* likewise */
        "a\t1\t\tx\t0\tnone\twhy",  /* no epoch */
        "a\t1\t\t0\t\tnone\twhy",   /* no position */
        "a\t1\t\t0\t0\tnon\twhy",   /* no replacement */
        "a\t1\t\t0\t0\tnones\twhy", /* likewise */
        "a\t1\t\t0\t0\t\twhy",      /* likewise */
        "a\t123456789012345678901234\t\t0\t0\tnone\twhy",
    };
    leat__record_mark mark;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        ck_assert_msg(!leat__bad_record_line_read(
                          lines[i], lines[i] + strlen(lines[i]), &mark),
                      "%s", lines[i]);
    static const char ours[] = "a\t1\t\t0\t0\tnone\t";
    ck_assert(leat__bad_record_line_read(ours, ours + strlen(ours), &mark));
    ck_assert_int_eq(mark.record, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bad_record_line");
    TCase *tcase = tcase_create("bad_record_line");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, nothing_in_a_line_breaks_it);
    tcase_add_test(tcase, letters_that_print_stay_as_they_are);
    tcase_add_test(tcase, columns_do_not_repeat_each_other);
    tcase_add_test(tcase, a_replacement_is_named);
    tcase_add_test(tcase, the_longest_line_has_room);
    tcase_add_test(tcase, a_record_is_known_by_its_source_and_number);
    tcase_add_test(tcase, lines_of_other_programs_list_nothing);
    return suite_run(suite);
}
