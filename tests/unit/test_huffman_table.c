#include "data/jpeg/huffman_table.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

static leat__huffman_dc dc;
static leat__huffman_ac ac;
static unsigned char counts[17], values[256];

static void set_up(void)
{
    memset(&dc, 0, sizeof(dc));
    memset(&ac, 0, sizeof(ac));
    memset(counts, 0, sizeof(counts));
    memset(values, 0, sizeof(values));
}

/* Both, of the present counts and values. */
static bool makes(void)
{
    bool is_made = leat__huffman_ac_make(&ac, counts, values);
    ck_assert_int_eq(leat__huffman_dc_make(&dc, counts, values), is_made);
    return is_made;
}

START_TEST(no_code_is_all_ones)
{
    for (int length = 1; length <= 16; length++) {
        set_up();
        /* 0, 10, 110 and so on */
        for (int i = 1; i <= length; i++)
            counts[i] = 1;
        ck_assert(makes());
        counts[length] = 2;
        ck_assert_msg(!makes(), "of %d bits", length);
    }
}
END_TEST

START_TEST(codes_fit_their_length)
{
    counts[2] = 5;
    ck_assert(!makes());
    set_up();
    counts[1] = 1;
    counts[3] = 4;
    ck_assert(!makes());
    set_up();
    counts[1] = counts[16] = 255;
    ck_assert(!makes());
}
END_TEST

START_TEST(there_are_256_symbols_at_most)
{
    counts[8] = 254;
    counts[9] = 0;
    counts[16] = 2;
    ck_assert(makes());
    counts[16] = 3;
    ck_assert(!makes());
}
END_TEST

START_TEST(dc_symbols_are_categories)
{
    counts[2] = 2;
    values[1] = 16;
    ck_assert(!leat__huffman_dc_make(&dc, counts, values));
    ck_assert(leat__huffman_ac_make(&ac, counts, values));
    values[1] = 15; /* of 8-bit samples there is none: irregular */
    ck_assert(leat__huffman_dc_make(&dc, counts, values));
    ck_assert_uint_eq(leat__huffman_find(&dc.code, (uint64_t)1 << 62), 0);
    ck_assert_uint_ne(leat__huffman_find(&dc.code, 0), 0);
}
END_TEST

START_TEST(a_refused_table_is_not_kept)
{
    counts[1] = 2;
    ck_assert(!makes());
    ck_assert(!makes());
    counts[1] = 1;
    ck_assert(makes());
    ck_assert(makes());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("huffman_table");
    TCase *tcase = tcase_create("huffman_table");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, no_code_is_all_ones);
    tcase_add_test(tcase, codes_fit_their_length);
    tcase_add_test(tcase, there_are_256_symbols_at_most);
    tcase_add_test(tcase, dc_symbols_are_categories);
    tcase_add_test(tcase, a_refused_table_is_not_kept);
    return suite_run(suite);
}
