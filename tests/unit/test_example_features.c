/* The features that an Example or a SequenceExample has, listed. */
#include "data/example_wire.h"
#include "support/example_message.h"
#include "support/suite.h"

#include <leat/example.h>

#include <check.h>
#include <string.h>

enum { ROOM = 8 };

static example_text message;
static leat_example_feature feature[ROOM];
static int64_t found;

static void set_up(void)
{
    message.size = 0;
    memset(feature, 0, sizeof(feature));
}

static void add(const char *key, example_text value)
{
    example_put_entry(&message, LEAT__EXAMPLE_FEATURES, key, value);
}

static int list(int n)
{
    return leat_example_features(feature, n, &found, message.at, message.size);
}

static void expect(int i, const char *name, leat_dtype dtype, int64_t values)
{
    ck_assert_uint_eq(feature[i].name_size, strlen(name));
    ck_assert_mem_eq(feature[i].name, name, strlen(name));
    ck_assert_int_eq(feature[i].dtype, dtype);
    ck_assert_int_eq(feature[i].is_sequence, 0);
    ck_assert_int_eq(feature[i].steps, 1);
    ck_assert_int_eq(feature[i].fewest, values);
    ck_assert_int_eq(feature[i].most, values);
}

START_TEST(each_kind_is_named_with_its_values)
{
    add("label", example_one_int(7));
    add("x", example_floats(3, (const float[]){1, 2, 3}));
    add("words", example_strings(2, (const char *const[]){"a", "bc"}));
    add("none", (example_text){.size = 0});
    add("empty", example_ints(0, NULL));
    ck_assert_int_eq(list(ROOM), LEAT_OK);
    ck_assert_int_eq(found, 4);
    expect(0, "label", LEAT_INT64, 1);
    expect(1, "x", LEAT_FLOAT32, 3);
    expect(2, "words", LEAT_BYTES, 2);
    expect(3, "empty", LEAT_INT64, 0);
    ck_assert(feature[0].name > (const char *)message.at);
    ck_assert(feature[0].name < (const char *)message.at + message.size);
}
END_TEST

START_TEST(a_sequence_has_the_bounds_of_its_steps)
{
    const example_text steps[] = {example_ints(3, (const int64_t[]){1, 2, 3}),
                                  example_ints(0, NULL), example_one_int(5)};
    add("label", example_one_int(7));
    example_put_steps(&message, "ids", 3, steps);
    example_put_steps(&message, "frames", 0, NULL);
    ck_assert_int_eq(list(ROOM), LEAT_OK);
    ck_assert_int_eq(found, 2);
    expect(0, "label", LEAT_INT64, 1);
    ck_assert_mem_eq(feature[1].name, "ids", 3);
    ck_assert_int_eq(feature[1].dtype, LEAT_INT64);
    ck_assert_int_eq(feature[1].is_sequence, 1);
    ck_assert_int_eq(feature[1].steps, 3);
    ck_assert_int_eq(feature[1].fewest, 0);
    ck_assert_int_eq(feature[1].most, 3);
}
END_TEST

START_TEST(those_beyond_the_room_are_counted)
{
    add("a", example_one_int(1));
    add("b", example_one_int(2));
    add("a", example_floats(2, (const float[]){1, 2}));
    ck_assert_int_eq(list(1), LEAT_OK);
    ck_assert_int_eq(found, 3);
    expect(0, "a", LEAT_INT64, 1);
    ck_assert_ptr_null(feature[1].name);
    ck_assert_int_eq(
        leat_example_features(NULL, 0, &found, message.at, message.size),
        LEAT_OK);
    ck_assert_int_eq(found, 3);
    ck_assert_int_eq(list(ROOM), LEAT_OK);
    expect(2, "a", LEAT_FLOAT32, 2);
}
END_TEST

START_TEST(what_is_cut_is_malformed_or_has_less)
{
    add("a", example_one_int(1));
    add("b", example_strings(1, (const char *const[]){"text"}));
    size_t whole = message.size, end_of_a = message.at[1] + (size_t)2;
    for (size_t size = 0; size <= whole; size++) {
        unsigned char *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, message.at, size);
        int status = leat_example_features(feature, ROOM, &found, cut, size);
        bool is_whole = size == 0 || size == end_of_a || size == whole;
        ck_assert_int_eq(status, is_whole ? LEAT_OK : LEAT_EDATA);
        if (is_whole)
            ck_assert_int_eq(found, (size > 0) + (size == whole));
        free(cut);
    }
    ck_assert_int_eq(leat_example_features(feature, ROOM, &found, NULL, 0),
                     LEAT_OK);
    ck_assert_int_eq(found, 0);
}
END_TEST

START_TEST(other_fields_of_the_message_are_passed_by)
{
    const unsigned char other[] = {0x18, 1, 0x22, 1, 'x'};
    const unsigned char wrong[] = {0x08, 1};
    example_put(&message, other, sizeof(other));
    add("a", example_one_int(1));
    ck_assert_int_eq(list(ROOM), LEAT_OK);
    ck_assert_int_eq(found, 1);
    expect(0, "a", LEAT_INT64, 1);
    example_put(&message, wrong, sizeof(wrong));
    ck_assert_int_eq(list(ROOM), LEAT_EDATA);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example_features");
    TCase *tcase = tcase_create("example_features");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, each_kind_is_named_with_its_values);
    tcase_add_test(tcase, a_sequence_has_the_bounds_of_its_steps);
    tcase_add_test(tcase, those_beyond_the_room_are_counted);
    tcase_add_test(tcase, what_is_cut_is_malformed_or_has_less);
    tcase_add_test(tcase, other_fields_of_the_message_are_passed_by);
    return suite_run(suite);
}
