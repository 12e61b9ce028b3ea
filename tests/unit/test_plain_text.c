/* Text of outside origin does nothing to a terminal, whatever it holds. */
#include "support/suite.h"
#include "tools/cli/plain_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void becomes(const char *text, const char *plain)
{
    ck_assert_str_eq(plain_text(text), plain);
}

START_TEST(what_is_plain_stays_as_it_is)
{
    static const char *const texts[] = {"",
                                        "a b~\\x1b",
                                        "data/gr\u00f6\u00dfe",
                                        "\u00a0\u061b\u061d\u200d\u2010",
                                        "\u2027\u202f\u2065\u206a\ufffd\uffff",
                                        "\u65e5\u672c",
                                        "\U0001f600\U0010ffff"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        becomes(texts[i], texts[i]);
}
END_TEST

START_TEST(controls_become_their_bytes)
{
    becomes("\x1b[31mred\a", "\\x1b[31mred\\x07");
    becomes("two\nlines\r\tand\x7f", "two\\x0alines\\x0d\\x09and\\x7f");
    becomes("\xc2\x80\xc2\x9b"
            "2J\xc2\x9f",
            "\\xc2\\x80\\xc2\\x9b2J\\xc2\\x9f");
    becomes("\u2028\u2029", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
}
END_TEST

START_TEST(what_turns_text_round_becomes_its_bytes)
{
    becomes("a\u202egnp.exe", "a\\xe2\\x80\\xaegnp.exe");
    becomes("\u061c\u200e\u200f", "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f");
    for (int32_t code = 0; code < 0x3000; code++) {
        int turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                    (code >= 0x202a && code <= 0x202e) ||
                    (code >= 0x2066 && code <= 0x2069);
        if (turns)
            ck_assert(!plain_text_is_plain(code));
    }
}
END_TEST

/* A list that begins with one names a file that seems to be there. */
START_TEST(a_byte_order_mark_is_seen)
{
    becomes("\ufeffcat.png", "\\xef\\xbb\\xbfcat.png");
    becomes("\ufefe\uff00", "\ufefe\uff00");
}
END_TEST

START_TEST(bytes_that_are_no_utf8_become_themselves)
{
    becomes("\xff", "\\xff");
    becomes("\x80z", "\\x80z");
    becomes("\x9b", "\\x9b");
    becomes("\xc0\x80", "\\xc0\\x80");          /* too long for NUL */
    becomes("\xc1\xbf", "\\xc1\\xbf");          /* and DEL */
    becomes("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"); /* and U+07FF */
    becomes("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
    becomes("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* half a pair */
    becomes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond the last */
    becomes("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
    becomes("\xe2\x82", "\\xe2\\x82"); /* cut short */
    becomes("\xf0\x9f\x98", "\\xf0\\x9f\\x98");
    becomes("\xc3(\xa4\xc3\xa4", "\\xc3(\\xa4\xc3\xa4");
}
END_TEST

START_TEST(a_text_that_is_too_long_is_cut_between_characters)
{
    char out[8];
    plain_text_write(out, sizeof(out), "abcdefgh");
    ck_assert_str_eq(out, "abcdefg");
    plain_text_write(out, sizeof(out), "abcdef\xc3\xa4");
    ck_assert_str_eq(out, "abcdef");
    plain_text_write(out, sizeof(out), "ab\n\n");
    ck_assert_str_eq(out, "ab\\x0a");
    plain_text_write(out, 1, "a");
    ck_assert_str_eq(out, "");
    static char path[4096];
    memset(path, '\n', sizeof(path) - 1);
    ck_assert_uint_eq(strlen(plain_text(path)), 4 * (sizeof(path) - 1));
}
END_TEST

START_TEST(a_line_may_hold_several)
{
    char line[64];
    snprintf(line, sizeof(line), "%s %s %s %s", plain_text("a\n"),
             plain_text("b"), plain_text("c\n"), plain_text("d"));
    ck_assert_str_eq(line, "a\\x0a b c\\x0a d");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plain text");
    TCase *tests = tcase_create("plain text");
    tcase_add_test(tests, what_is_plain_stays_as_it_is);
    tcase_add_test(tests, controls_become_their_bytes);
    tcase_add_test(tests, what_turns_text_round_becomes_its_bytes);
    tcase_add_test(tests, a_byte_order_mark_is_seen);
    tcase_add_test(tests, bytes_that_are_no_utf8_become_themselves);
    tcase_add_test(tests, a_text_that_is_too_long_is_cut_between_characters);
    tcase_add_test(tests, a_line_may_hold_several);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
