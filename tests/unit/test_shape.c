/* Shapes in texts. */
#include "base/shape.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

START_TEST(a_shape_is_read_from_what_is_written)
{
    static const struct {
        int ndim;
        int64_t shape[LEAT_MAX_DIMS];
        const char *text;
    } cases[] = {
        {0, {0}, "scalar"},
        {1, {5}, "5"},
        {1, {-1}, "-1"},
        {3, {3, -1, 0}, "3x-1x0"},
        {8,
         {1, 2, 3, 4, 5, 6, 7, INT64_MAX},
         "1x2x3x4x5x6x7x"
         "9223372036854775807"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[LEAT__SHAPE_TEXT_MAX], field[LEAT__FIELD_TEXT_MAX];
        int64_t shape[LEAT_MAX_DIMS] = {0};
        leat__shape_text(text, cases[i].ndim, cases[i].shape);
        ck_assert_str_eq(text, cases[i].text);
        ck_assert_int_eq(leat__shape_parse(text, strlen(text), shape),
                         cases[i].ndim);
        ck_assert_mem_eq(shape, cases[i].shape, sizeof(shape));
        leat__field_text(field, LEAT_INT32, cases[i].ndim, cases[i].shape);
        ck_assert(strncmp(field, "int32 ", 6) == 0);
        ck_assert_str_eq(field + 6, text);
    }
    char text[LEAT__SHAPE_TEXT_MAX];
    ck_assert_str_eq(leat__shape_text(text, -1, NULL), "of any shape");
}
END_TEST

START_TEST(only_the_given_letters_are_read)
{
    int64_t shape[LEAT_MAX_DIMS];
    ck_assert_int_eq(leat__shape_parse("3x45]", 4, shape), 2);
    ck_assert_int_eq(shape[1], 45);
    ck_assert_int_eq(leat__shape_parse("scalars", 6, shape), 0);
}
END_TEST

START_TEST(other_texts_are_no_shape)
{
    static const char *const bad[] = {
        "",       "x",    "3x",  "x3",    "3xx4",
        "3,4",    "+3",   "-2",  "3x+4",  "(3,4)",
        " 3",     "3 ",   "3x ", "scala", "scalars",
        "Scalar", "3X4",  "-",   "-1x",   "9223372036854775808",
        "-01",    "0x1g", "a",   "3.5",   "1x1x1x1x1x1x1x1x1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t shape[LEAT_MAX_DIMS];
        ck_assert_msg(leat__shape_parse(bad[i], strlen(bad[i]), shape) == -1,
                      "'%s' was taken", bad[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shape");
    TCase *tcase = tcase_create("shape");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_shape_is_read_from_what_is_written);
    tcase_add_test(tcase, only_the_given_letters_are_read);
    tcase_add_test(tcase, other_texts_are_no_shape);
    return suite_run(suite);
}
