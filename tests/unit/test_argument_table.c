/* A type's table of arguments, as its author may get it wrong. */
#include "pipeline/argument_table.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static int open_nothing(const leat_open *open, leat_reader **out)
{
    (void)open;
    (void)out;
    return leat_error(LEAT_EUNSUPPORTED, "it is only a name");
}

static leat_reader_type type_of(const leat_argument *arguments)
{
    return (leat_reader_type){.size = sizeof(leat_reader_type),
                              .name = "mine",
                              .arguments = arguments,
                              .argument_size = sizeof(leat_argument),
                              .open = open_nothing};
}

START_TEST(a_table_that_contradicts_itself_is_refused)
{
    static const struct {
        leat_argument arguments[4];
        const char *line;
    } cases[] = {
        {{{.name = ""}}, "argument \"\": its name"},
        {{{.name = "a b"}}, "argument \"a b\": its name"},
        {{{.name = "a"}, {.name = "a"}}, "\"a\": its name is taken"},
        {{{.name = "a", .kind = (leat_argument_kind)77}}, "unknown kind"},
        {{{.name = "a", .kind = (leat_argument_kind)-1}}, "unknown kind"},
        {{{.name = "a", .kind = LEAT_ARGUMENT_NUMBER, .min = 1}},
         "min is above max"},
        {{{.name = "a", .kind = LEAT_ARGUMENT_WORD}}, "it has no words"},
        {{{.name = "a", .required = 1, .initial = "x"}},
         "cannot have a default"},
        {{{.name = "a", .kind = LEAT_ARGUMENT_LIST, .initial = "x"}},
         "cannot have a default"},
        {{{.name = "a", .kind = LEAT_ARGUMENT_PIPELINE, .initial = "x"}},
         "cannot have a default"},
        {{{.name = "a", .repeated = 1}}, "only a positional"},
        {{{.name = "a", .positional = 1},
          {.name = "b", .positional = 1, .required = 1}},
         "\"b\": it cannot follow an optional"},
        {{{.name = "a", .positional = 1, .repeated = 1},
          {.name = "b", .positional = 1}},
         "\"b\": it cannot follow an optional"},
        {{{.name = "a", .kind = LEAT_ARGUMENT_NUMBER, .initial = "x"}},
         "mine: a: expected a whole number, found 'x'"},
        {{{.name = "a",
           .kind = LEAT_ARGUMENT_NUMBER,
           .initial = "0",
           .min = 1,
           .max = 2}},
         "mine: a: expected 1 to 2, found '0'"},
        {{{.name = "a",
           .kind = LEAT_ARGUMENT_WORD,
           .initial = "C",
           .words = "A|B"}},
         "mine: a: expected A or B, found 'C'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_reader_type type = type_of(cases[i].arguments);
        leat_pipeline *none = NULL;
        ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
        ck_assert_msg(strstr(leat_last_error(), cases[i].line) != NULL, "%s",
                      leat_last_error());
        ck_assert_int_eq(
            leat_pipeline_create(&none, &type, "", NULL, NULL, NULL, 0),
            LEAT_EINVAL);
        ck_assert_ptr_null(none);
    }
}
END_TEST

START_TEST(the_size_of_an_entry_must_be_told)
{
    static const leat_argument arguments[] = {{.name = "a"}, {0}};
    leat_reader_type type = type_of(arguments);
    type.argument_size = 0;
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "argument_size is 0"));
    type.arguments = NULL;
    ck_assert_ptr_null(leat__argument_at(&type, 0));
}
END_TEST

/* An entry of a later leat, which has more members. */
typedef struct longer_argument {
    leat_argument argument;
    void *later[3];
} longer_argument;

START_TEST(entries_of_a_later_header_are_found)
{
    static const longer_argument arguments[] = {
        {{.name = "a"}, {0}}, {{.name = "b", .initial = "x"}, {0}}, {{0}, {0}}};
    leat_reader_type type = type_of(&arguments[0].argument);
    type.argument_size = sizeof(longer_argument);
    ck_assert_int_eq(leat__argument_table_check(&type), LEAT_OK);
    ck_assert_str_eq(leat__argument_at(&type, 1)->name, "b");
    ck_assert_str_eq(leat__argument_find(&type, "b")->initial, "x");
    ck_assert_ptr_null(leat__argument_at(&type, 2));
}
END_TEST

START_TEST(a_type_that_passes_on_has_one_upstream)
{
    leat_reader_type type = type_of(NULL);
    type.passes_on = 1;
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "passes_on is 1"));
    type.passes_on = 3;
    type.max_upstream = 1;
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
}
END_TEST

START_TEST(a_type_has_its_own_access_or_not)
{
    leat_reader_type type = type_of(NULL);
    type.own_access = 2;
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "own_access is 2"));
}
END_TEST

START_TEST(a_type_reads_ahead_or_not)
{
    leat_reader_type type = type_of(NULL);
    type.reads_ahead = 2;
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "reads_ahead is 2"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("argument_table");
    TCase *tcase = tcase_create("argument_table");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_table_that_contradicts_itself_is_refused);
    tcase_add_test(tcase, the_size_of_an_entry_must_be_told);
    tcase_add_test(tcase, entries_of_a_later_header_are_found);
    tcase_add_test(tcase, a_type_that_passes_on_has_one_upstream);
    tcase_add_test(tcase, a_type_has_its_own_access_or_not);
    tcase_add_test(tcase, a_type_reads_ahead_or_not);
    return suite_run(suite);
}
