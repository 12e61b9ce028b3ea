#include "base/random.h"
#include "support/suite.h"

#include <leat/choice.h>

#include <check.h>
#include <stdlib.h>

START_TEST(the_words_are_those_of_the_layer)
{
    uint32_t words[4], wanted[4];
    leat_choice(7, 2, 1000, 3, words);
    leat__random_words(7, 2, 1000, 3, wanted);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(words[i], wanted[i]);
}
END_TEST

START_TEST(a_choice_below_n_is_the_upper_half_of_the_product)
{
    static const struct {
        uint64_t word, n, wanted;
    } cases[] = {
        {0, 1, 0},
        {UINT64_MAX, 1, 0},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX - 1},
        {UINT64_MAX, 10, 9},
        {UINT64_C(1) << 63, 10, 5},
        {(UINT64_C(1) << 63) - 1, 10, 4},
        {UINT64_C(0x123456789abcdef0), UINT64_C(0xfedcba9876543210),
         UINT64_C(0x121fa00ad77d7422)},
        {UINT64_C(0xffffffff00000001), UINT64_C(0x00000001ffffffff),
         UINT64_C(0x00000001fffffffd)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint32_t words[2] = {(uint32_t)cases[i].word,
                                   (uint32_t)(cases[i].word >> 32)};
        ck_assert_uint_eq(leat_choice_below(words, cases[i].n),
                          cases[i].wanted);
    }
}
END_TEST

START_TEST(each_number_is_chosen_as_often)
{
    int counts[7] = {0};
    for (int i = 0; i < 70000; i++) {
        uint32_t words[4];
        leat_choice(1, 0, i, 0, words);
        counts[leat_choice_below(words, 7)]++;
    }
    for (int i = 0; i < 7; i++)
        ck_assert_int_lt(abs(counts[i] - 10000), 500);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choice");
    TCase *tcase = tcase_create("choice");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_words_are_those_of_the_layer);
    tcase_add_test(tcase, a_choice_below_n_is_the_upper_half_of_the_product);
    tcase_add_test(tcase, each_number_is_chosen_as_often);
    return suite_run(suite);
}
