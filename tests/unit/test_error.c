#include "base/error.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(every_status_has_a_name_and_a_text)
{
    ck_assert_str_eq(leat_status_name(LEAT_EDATA), "LEAT_EDATA");
    ck_assert_str_eq(leat_status_text(LEAT_END), "end of data");
    ck_assert_str_eq(leat_status_name(99), "LEAT_?");
}
END_TEST

START_TEST(an_error_line_keeps_its_status_and_text)
{
    ck_assert_int_eq(leat_error(LEAT_EINVAL, "bad %d", 7), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "bad 7");
}
END_TEST

START_TEST(context_goes_before_the_inner_line)
{
    leat_error(LEAT_EDATA, "data is short");
    ck_assert_int_eq(leat__error_context(LEAT_EDATA, "record %d", 3),
                     LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "record 3: data is short");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut)
{
    char text[2 * LEAT__ERROR_MAX];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    leat_error(LEAT_EINVAL, "%s", text);
    ck_assert_uint_eq(strlen(leat_last_error()), LEAT__ERROR_MAX - 1);
    leat__error_context(LEAT_EINVAL, "%s", text);
    ck_assert_uint_eq(strlen(leat_last_error()), LEAT__ERROR_MAX - 1);
}
END_TEST

/* A path, or a pipeline's text, may be of any length. */
START_TEST(a_line_that_is_cut_keeps_its_reason)
{
    static char text[20 * LEAT__ERROR_MAX];
    memset(text, 'x', sizeof(text) - 1);
    for (size_t size = LEAT__ERROR_MAX; size <= 15 * LEAT__ERROR_MAX;
         size *= 2) {
        const char *from = text + sizeof(text) - size;
        const char *line = leat_last_error();
        leat_error(LEAT_EINVAL, "%s: is missing", from);
        ck_assert_uint_eq(strlen(line), LEAT__ERROR_MAX - 1);
        ck_assert(strncmp(line, "xxxx", 4) == 0 && strstr(line, "x...x"));
        ck_assert_str_eq(strchr(line, ':'), ": is missing");
        leat_error(LEAT_EINVAL, "is missing");
        leat__error_context(LEAT_EINVAL, "%s", from);
        ck_assert_str_eq(strchr(line, ':'), ": is missing");
        leat__error_system(ENOENT, "%.*s/file", 8 * LEAT__ERROR_MAX, from);
        ck_assert_str_eq(strchr(line, '/'), "/file: No such file or directory");
    }
}
END_TEST

START_TEST(a_key_is_printed_without_control_characters)
{
    char out[LEAT__KEY_TEXT_MAX];
    ck_assert_str_eq(leat__key_text(out, "a\n\\\xff", 4), "a\\x0a\\x5c\\xff");
    char key[100];
    memset(key, 0, sizeof(key));
    leat__key_text(out, key, sizeof(key));
    ck_assert_uint_eq(strlen(out), 64 * 4 + strlen("... (100 bytes)"));
}
END_TEST

START_TEST(a_key_that_is_cut_says_how_long_it_is)
{
    char out[LEAT__KEY_TEXT_MAX], expected[LEAT__KEY_TEXT_MAX];
    static char key[100000];
    memset(key, 'k', sizeof(key));
    snprintf(expected, sizeof(expected), "%.64s", key);
    ck_assert_str_eq(leat__key_text(out, key, 64), expected);
    snprintf(expected, sizeof(expected), "%.64s... (65 bytes)", key);
    ck_assert_str_eq(leat__key_text(out, key, 65), expected);
    memset(key, 0, sizeof(key));
    leat__key_text(out, key, sizeof(key));
    ck_assert_str_eq(out + 64 * 4, "... (100000 bytes)");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("error");
    TCase *tcase = tcase_create("error");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_status_has_a_name_and_a_text);
    tcase_add_test(tcase, an_error_line_keeps_its_status_and_text);
    tcase_add_test(tcase, context_goes_before_the_inner_line);
    tcase_add_test(tcase, a_line_that_is_too_long_is_cut);
    tcase_add_test(tcase, a_line_that_is_cut_keeps_its_reason);
    tcase_add_test(tcase, a_key_is_printed_without_control_characters);
    tcase_add_test(tcase, a_key_that_is_cut_says_how_long_it_is);
    return suite_run(suite);
}
