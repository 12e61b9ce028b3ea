#include "layer/on_error/bad_list.h"
#include "support/suite.h"

#include <leat/status.h>

#include <stdio.h>
#include <string.h>

static leat__bad_list list;

static void tear_down(void)
{
    leat__bad_list_finish(&list);
}

/* Adds a record whose key and line name its place; the key does not last. */
static void add(leat__bad_list *to, int place)
{
    char key[16];
    leat_provenance from = {.record = place, .key = key};
    from.key_size = (size_t)snprintf(key, sizeof(key), "key %d", place);
    (void)leat_error(LEAT_EDATA, "line %d", place);
    ck_assert_int_eq(leat__bad_list_add(to, place, &from), LEAT_OK);
    memset(key, 'x', sizeof(key));
}

static void assert_bad(const leat__bad *bad, int place, int record)
{
    char text[16];
    leat_provenance from = leat__bad_from(bad);
    ck_assert_int_eq(bad->sample, place);
    ck_assert_int_eq(from.record, record);
    ck_assert_uint_eq(from.key_size,
                      (size_t)snprintf(text, sizeof(text), "key %d", record));
    ck_assert_mem_eq(from.key, text, from.key_size);
    snprintf(text, sizeof(text), "line %d", record);
    ck_assert_str_eq(bad->line, text);
}

START_TEST(records_outlive_their_keys_and_the_growth_of_the_list)
{
    for (int i = 0; i < 100; i++) {
        add(&list, i);
        ck_assert_int_ge(list.capacity, list.n);
    }
    ck_assert_int_eq(list.n, 100);
    for (int i = 0; i < 100; i++)
        assert_bad(&list.item[i], i, i);
}
END_TEST

START_TEST(appended_places_are_those_of_the_batch)
{
    leat__bad_list other = {0};
    for (int i = 0; i < 7; i++)
        add(&other, i);
    add(&list, 3);
    ck_assert_int_eq(leat__bad_list_append(&list, &other, 40), LEAT_OK);
    ck_assert_int_eq(list.n, 8);
    leat__bad_list_finish(&other);
    ck_assert_int_eq(other.n, 0);
    assert_bad(&list.item[0], 3, 3);
    for (int i = 0; i < 7; i++)
        assert_bad(&list.item[1 + i], 40 + i, i);
}
END_TEST

START_TEST(a_list_is_sorted_by_place)
{
    for (int i = 0; i < 20; i++)
        add(&list, 7 * i % 20);
    leat__bad_list_sort(&list);
    for (int i = 0; i < 20; i++)
        assert_bad(&list.item[i], i, i);
}
END_TEST

START_TEST(a_record_of_nowhere_has_no_key)
{
    (void)leat_error(LEAT_EDATA, "nobody knows");
    ck_assert_int_eq(leat__bad_list_add(&list, 5, NULL), LEAT_OK);
    leat_provenance from = leat__bad_from(&list.item[0]);
    ck_assert_ptr_null(from.key);
    ck_assert_ptr_null(from.source);
    ck_assert_str_eq(list.item[0].line, "nobody knows");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bad_list");
    TCase *tcase = tcase_create("bad_list");
    tcase_add_checked_fixture(tcase, NULL, tear_down);
    tcase_add_test(tcase,
                   records_outlive_their_keys_and_the_growth_of_the_list);
    tcase_add_test(tcase, appended_places_are_those_of_the_batch);
    tcase_add_test(tcase, a_list_is_sorted_by_place);
    tcase_add_test(tcase, a_record_of_nowhere_has_no_key);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
