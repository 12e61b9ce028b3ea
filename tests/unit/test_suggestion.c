/* A mistyped word leads to the known one that is nearest, or to none. */
#include "base/suggestion.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

static const char *find(const char *word)
{
    static const char *const known[] = {
        "synth", "import",  "info", "show", "mean",
        "bench", "compare", "cat",  "json", "max-image-bytes"};
    leat__suggestion suggestion = leat__suggestion_of(word);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        leat__suggestion_consider(&suggestion, known[i]);
    return suggestion.best ? suggestion.best : "";
}

START_TEST(near_words_are_found)
{
    ck_assert_str_eq(find("impotr"), "import"); /* a swap is one mistake */
    ck_assert_str_eq(find("inf"), "info");
    ck_assert_str_eq(find("infos"), "info");
    ck_assert_str_eq(find("snyht"), ""); /* two in five letters */
    ck_assert_str_eq(find("jsom"), "json");
    ck_assert_str_eq(find("ca"), "cat");
    ck_assert_str_eq(find("max-imgae-byte"), "max-image-bytes");
    ck_assert_str_eq(find("info"), "info");
}
END_TEST

START_TEST(far_words_are_not)
{
    ck_assert_str_eq(find(""), "");
    ck_assert_str_eq(find("c"), "");
    ck_assert_str_eq(find("frobnicate"), "");
    char longest[200];
    memset(longest, 'i', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    ck_assert_str_eq(find(longest), "");
    longest[40] = 0;
    ck_assert_str_eq(find(longest), "");
}
END_TEST

START_TEST(the_first_of_equally_near_ones_stays)
{
    leat__suggestion suggestion = leat__suggestion_of("bar");
    leat__suggestion_consider(&suggestion, "baz");
    leat__suggestion_consider(&suggestion, "bat");
    ck_assert_str_eq(suggestion.best, "baz");
}
END_TEST

START_TEST(it_is_written_after_an_error)
{
    char text[32];
    leat__suggestion suggestion = leat__suggestion_of("jsno");
    ck_assert_str_eq(
        leat__suggestion_write(&suggestion, "--", text, sizeof(text)), "");
    leat__suggestion_consider(&suggestion, "json");
    ck_assert_str_eq(
        leat__suggestion_write(&suggestion, "--", text, sizeof(text)),
        "; did you mean --json?");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("suggestion");
    TCase *tests = tcase_create("suggestion");
    tcase_add_test(tests, near_words_are_found);
    tcase_add_test(tests, far_words_are_not);
    tcase_add_test(tests, the_first_of_equally_near_ones_stays);
    tcase_add_test(tests, it_is_written_after_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
