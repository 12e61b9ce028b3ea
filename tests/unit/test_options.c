#include "base/options.h"
#include "support/suite.h"

#include <leat/status.h>

#include <check.h>
#include <stdint.h>
#include <string.h>

typedef struct known_options {
    size_t size;
    int64_t first, second;
} known_options;

/* What a later version of the library has appended. */
typedef struct newer_options {
    known_options known;
    int64_t third;
} newer_options;

static const known_options defaults = {sizeof(known_options), 1, 2};

static void assert_refused(int status, const char *line)
{
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), line) != NULL, "%s",
                  leat_last_error());
}

START_TEST(fields_beyond_the_callers_size_keep_their_defaults)
{
    known_options values = defaults, given = {.first = 7, .second = 8};
    given.size = offsetof(known_options, second);
    ck_assert_int_eq(leat__options_copy(&values, &given, sizeof(values)),
                     LEAT_OK);
    ck_assert_int_eq(values.first, 7);
    ck_assert_int_eq(values.second, 2);
    ck_assert_uint_eq(values.size, sizeof(values));
    ck_assert_int_eq(leat__options_copy(&values, NULL, sizeof(values)),
                     LEAT_OK);
    ck_assert_int_eq(values.first, 7);
}
END_TEST

START_TEST(fields_of_a_newer_caller_must_be_zero)
{
    known_options values = defaults;
    newer_options given = {{sizeof(newer_options), 7, 8}, 0};
    ck_assert_int_eq(leat__options_copy(&values, &given, sizeof(values)),
                     LEAT_OK);
    ck_assert_int_eq(values.second, 8);
    given.known.second = 9;
    given.third = INT64_MIN; /* only its last byte is not 0 */
    assert_refused(leat__options_copy(&values, &given, sizeof(values)),
                   "options of 32 bytes ask for what this leat, which knows "
                   "24, does not have: the program is newer");
    ck_assert_int_eq(values.second, 8);
}
END_TEST

START_TEST(a_size_that_no_struct_has_is_refused)
{
    static const size_t wrong[] = {
        0,    1,       sizeof(size_t) - 1, offsetof(known_options, second) + 3,
        4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        known_options values = defaults, given = {wrong[i], 7, 8};
        assert_refused(leat__options_copy(&values, &given, sizeof(values)),
                       "options have size ");
        ck_assert_int_eq(values.first, 1);
        assert_refused(leat__options_init(&given, &defaults, sizeof(defaults)),
                       "options have size ");
        ck_assert_int_eq(given.first, 7);
    }
}
END_TEST

START_TEST(the_initialiser_writes_as_many_bytes_as_the_caller_has)
{
    newer_options given = {{sizeof(newer_options), 7, 8}, 9};
    ck_assert_int_eq(leat__options_init(&given, &defaults, sizeof(defaults)),
                     LEAT_OK);
    ck_assert_int_eq(given.known.first, 1);
    ck_assert_int_eq(given.known.second, 2);
    ck_assert_int_eq(given.third, 0);
    ck_assert_uint_eq(given.known.size, sizeof(given));
    given = (newer_options){{offsetof(known_options, second), 7, 8}, 9};
    ck_assert_int_eq(leat__options_init(&given, &defaults, sizeof(defaults)),
                     LEAT_OK);
    ck_assert_int_eq(given.known.first, 1);
    ck_assert_int_eq(given.known.second, 8);
    ck_assert_int_eq(given.third, 9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, fields_beyond_the_callers_size_keep_their_defaults);
    tcase_add_test(tcase, fields_of_a_newer_caller_must_be_zero);
    tcase_add_test(tcase, a_size_that_no_struct_has_is_refused);
    tcase_add_test(tcase,
                   the_initialiser_writes_as_many_bytes_as_the_caller_has);
    return suite_run(suite);
}
