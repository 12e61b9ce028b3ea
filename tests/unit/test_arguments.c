#include "base/memory.h"
#include "pipeline/arguments.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static leat_args parse(const char *text)
{
    leat_args args;
    ck_assert_msg(leat__args_parse(&args, text) == LEAT_OK, "%s", text);
    return args;
}

START_TEST(arguments_stand_by_place_and_by_key)
{
    leat_args args = parse("first,seed=7,second,path=a b");
    ck_assert_int_eq(args.n, 2);
    ck_assert_str_eq(leat_args_at(&args, 0), "first");
    ck_assert_str_eq(leat_args_at(&args, 1), "second");
    ck_assert_ptr_null(leat_args_at(&args, 2));
    ck_assert_ptr_null(leat_args_at(&args, -1));
    ck_assert_str_eq(leat_args_get(&args, "seed"), "7");
    ck_assert_str_eq(leat_args_get(&args, "path"), "a b");
    ck_assert_ptr_null(leat_args_get(&args, "first"));
    ck_assert_ptr_null(leat_args_object(&args));
    leat__args_finish(&args);
}
END_TEST

START_TEST(no_text_is_no_argument_and_a_comma_makes_two)
{
    leat_args args = parse("");
    ck_assert_int_eq(args.n + args.nkeys, 0);
    leat__args_finish(&args);
    args = parse(",");
    ck_assert_int_eq(args.n, 2);
    ck_assert_str_eq(leat_args_at(&args, 0), "");
    ck_assert_str_eq(leat_args_at(&args, 1), "");
    leat__args_finish(&args);
    args = parse("key=");
    ck_assert_str_eq(leat_args_get(&args, "key"), "");
    leat__args_finish(&args);
}
END_TEST

START_TEST(a_backslash_takes_the_next_letter_as_it_is)
{
    leat_args args = parse("a\\,b\\=c\\\\,k=x\\=y=z\\|,end\\");
    ck_assert_int_eq(args.n, 2);
    ck_assert_str_eq(leat_args_at(&args, 0), "a,b=c\\");
    ck_assert_str_eq(leat_args_get(&args, "k"), "x=y=z|");
    ck_assert_str_eq(leat_args_at(&args, 1), "end\\");
    leat__args_finish(&args);
}
END_TEST

START_TEST(what_is_escaped_is_one_argument)
{
    const char *const texts[] = {
        "plain", "a,b", "a=b", "a|b",  "a\\b",       "a\\",  "\\",        " a ",
        "  ",    " ",   "\\ ", "a\\ ", "=,|\\=,|\\", "\n\t", "\xc3\xa4 b"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *escaped = leat__args_escape(texts[i]);
        leat_args args = parse(escaped);
        ck_assert_int_eq(args.n, 1);
        ck_assert_int_eq(args.nkeys, 0);
        ck_assert_str_eq(leat_args_at(&args, 0), texts[i]);
        leat__args_finish(&args);
        leat__free(escaped);
    }
}
END_TEST

START_TEST(only_blanks_at_the_edges_are_escaped)
{
    char *escaped = leat__args_escape(" a b ");
    ck_assert_str_eq(escaped, "\\ a b\\ ");
    leat__free(escaped);
}
END_TEST

START_TEST(a_key_twice_or_too_many_arguments_are_refused)
{
    leat_args args;
    char many[2 * LEAT__ARGS_MAX + 2];
    ck_assert_int_eq(leat__args_parse(&args, "a=1,b=2,a=3"), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "\"a\" is given twice");
    memset(many, ',', sizeof(many));
    many[LEAT__ARGS_MAX] = 0;
    ck_assert_int_eq(leat__args_parse(&args, many), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "more than 32 arguments");
    many[LEAT__ARGS_MAX - 1] = 0;
    args = parse(many);
    ck_assert_int_eq(args.n, LEAT__ARGS_MAX);
    leat__args_finish(&args);
}
END_TEST

START_TEST(integers_are_whole_and_in_their_range)
{
    leat_args args =
        parse("a=7,b=-3,c=7x,d=,e=99999999999999999999,f= 5,g=0x10");
    int64_t out = 42;
    ck_assert_int_eq(leat_args_int(&args, "none", 0, 9, &out), LEAT_OK);
    ck_assert_int_eq(out, 42);
    ck_assert_int_eq(leat_args_int(&args, "a", 0, 9, &out), LEAT_OK);
    ck_assert_int_eq(out, 7);
    ck_assert_int_eq(leat_args_int(&args, "b", -3, 9, &out), LEAT_OK);
    ck_assert_int_eq(out, -3);
    ck_assert_int_eq(leat_args_int(&args, "a", 8, 9, &out), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "a=7: expected a whole number from 8 to 9");
    ck_assert_int_eq(leat_args_int(&args, "a", 0, 6, &out), LEAT_EINVAL);
    const char *const bad[] = {"c", "d", "e", "f", "g"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(
            leat_args_int(&args, bad[i], INT64_MIN, INT64_MAX, &out),
            LEAT_EINVAL);
    ck_assert_int_eq(out, -3);
    leat__args_finish(&args);
}
END_TEST

START_TEST(a_type_says_which_arguments_it_takes)
{
    const char *const keys[] = {"seed", "size", NULL};
    const leat_reader_type type = {
        .name = "t", .keys = keys, .min_args = 1, .max_args = 2};
    const leat_reader_type bare = {.name = "bare"};
    const struct {
        const char *text;
        int status;
    } cases[] = {{"a", LEAT_OK},
                 {"a,b,size=1,seed=2", LEAT_OK},
                 {"", LEAT_EINVAL},
                 {"a,b,c", LEAT_EINVAL},
                 {"a,Seed=1", LEAT_EINVAL},
                 {"a,=1", LEAT_EINVAL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_args args = parse(cases[i].text);
        ck_assert_int_eq(leat__args_check(&args, &type), cases[i].status);
        leat__args_finish(&args);
    }
    leat_args args = parse("x=1");
    ck_assert_int_eq(leat__args_check(&args, &bare), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"bare\""));
    leat__args_finish(&args);
}
END_TEST

START_TEST(short_memory_is_reported)
{
    leat_args args;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__args_parse(&args, "a"), LEAT_ENOMEM);
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__args_escape("a"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("args");
    TCase *tcase = tcase_create("args");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, arguments_stand_by_place_and_by_key);
    tcase_add_test(tcase, no_text_is_no_argument_and_a_comma_makes_two);
    tcase_add_test(tcase, a_backslash_takes_the_next_letter_as_it_is);
    tcase_add_test(tcase, what_is_escaped_is_one_argument);
    tcase_add_test(tcase, only_blanks_at_the_edges_are_escaped);
    tcase_add_test(tcase, a_key_twice_or_too_many_arguments_are_refused);
    tcase_add_test(tcase, integers_are_whole_and_in_their_range);
    tcase_add_test(tcase, a_type_says_which_arguments_it_takes);
    tcase_add_test(tcase, short_memory_is_reported);
    return suite_run(suite);
}
