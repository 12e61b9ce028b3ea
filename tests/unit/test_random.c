#include "base/random.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>

START_TEST(the_mersenne_twister_gives_its_published_numbers)
{
    leat__mt19937 generator;
    leat__mt19937_seed(&generator, 5489);
    ck_assert_uint_eq(leat__mt19937_next(&generator), 3499211612u);
    for (int i = 2; i < 10000; i++)
        leat__mt19937_next(&generator);
    ck_assert_uint_eq(leat__mt19937_next(&generator), 4123659995u);
}
END_TEST

/* What a thread of Caffe's draws first when its parent has that seed. */
static uint32_t first_of_thread(uint32_t seed)
{
    leat__mt19937 generator;
    leat__mt19937_seed(&generator, seed);
    leat__mt19937_seed(&generator, leat__mt19937_next(&generator));
    return leat__mt19937_next(&generator);
}

static void check_same(leat__mt19937 a, leat__mt19937 b)
{
    for (int i = 0; i < 2000; i++)
        ck_assert_uint_eq(leat__mt19937_next(&a), leat__mt19937_next(&b));
}

/* Beyond a million they are not drawn any more. */
START_TEST(skipping_words_is_drawing_them)
{
    static const uint64_t n[] = {
        0,       1,       623,         624,           1000,   1 << 20,
        1048577, 1048799, 1048576 + 9, 1 << 20 | 624, 3000001};
    leat__mt19937 drawn, skipped;
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        for (int before = 0; before < 1300; before += 311) {
            leat__mt19937_seed(&drawn, 5489 + (uint32_t)i);
            for (int k = 0; k < before; k++)
                leat__mt19937_next(&drawn);
            skipped = drawn;
            for (uint64_t k = 0; k < n[i]; k++)
                leat__mt19937_next(&drawn);
            leat__mt19937_skip(&skipped, n[i]);
            check_same(drawn, skipped);
        }
    }
}
END_TEST

START_TEST(two_long_skips_are_their_sum)
{
    const uint64_t far = ((uint64_t)1 << 62) + 12345;
    leat__mt19937 once, twice;
    leat__mt19937_seed(&once, 7);
    twice = once;
    leat__mt19937_skip(&once, far);
    leat__mt19937_skip(&twice, far / 3);
    leat__mt19937_skip(&twice, far - far / 3);
    check_same(once, twice);
    leat__mt19937_skip(&twice, 1);
    ck_assert_uint_ne(leat__mt19937_next(&once), leat__mt19937_next(&twice));
}
END_TEST

START_TEST(a_thread_of_caffes_is_seeded_by_its_parents_next_draw)
{
    ck_assert_uint_eq(first_of_thread(9658361), 4244559767u);
    ck_assert_uint_eq(first_of_thread(3435563), 1726478280u);
}
END_TEST

/* Known answers of Random123, the generator's own distribution. */
static const struct {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t expected[4];
} answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(philox_gives_its_published_words)
{
    uint32_t words[4];
    leat__philox(answers[_i].counter, answers[_i].key, words);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(words[i], answers[_i].expected[i]);
}
END_TEST

static int is_same(const uint32_t a[4], const uint32_t b[4])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

START_TEST(a_choice_depends_on_all_of_its_arguments)
{
    uint32_t first[4];
    uint32_t again[4];
    uint32_t other[6][4];
    leat__random_words(1, 2, 3, 4, first);
    leat__random_words(1, 2, 3, 4, again);
    ck_assert(is_same(first, again));
    leat__random_words(2, 2, 3, 4, other[0]);
    leat__random_words(1 + (1ull << 32), 2, 3, 4, other[1]);
    leat__random_words(1, 3, 3, 4, other[2]);
    leat__random_words(1, 2, 4, 4, other[3]);
    leat__random_words(1, 2, 3 + (1ll << 39), 4, other[4]);
    leat__random_words(1, 2, 3, 5, other[5]);
    for (int i = 0; i < 6; i++) {
        ck_assert(!is_same(first, other[i]));
        for (int j = 0; j < i; j++)
            ck_assert(!is_same(other[i], other[j]));
    }
}
END_TEST

START_TEST(a_word_is_mapped_below_its_bound)
{
    ck_assert_uint_eq(leat__random_below(0, 7), 0);
    ck_assert_uint_eq(leat__random_below(0xffffffff, 7), 6);
    ck_assert_uint_eq(leat__random_below(0x80000000, 2), 1);
    ck_assert_uint_eq(leat__random_below(0x7fffffff, 2), 0);
    ck_assert_uint_eq(leat__random_below(0xffffffff, 1), 0);
}
END_TEST

START_TEST(the_systems_seeds_differ)
{
    uint64_t a;
    uint64_t b;
    ck_assert_int_eq(leat__random_seed(&a), LEAT_OK);
    ck_assert_int_eq(leat__random_seed(&b), LEAT_OK);
    ck_assert(a != b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random");
    TCase *tcase = tcase_create("random");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_mersenne_twister_gives_its_published_numbers);
    tcase_add_test(tcase, skipping_words_is_drawing_them);
    tcase_add_test(tcase, two_long_skips_are_their_sum);
    tcase_add_test(tcase,
                   a_thread_of_caffes_is_seeded_by_its_parents_next_draw);
    tcase_add_loop_test(tcase, philox_gives_its_published_words, 0,
                        sizeof(answers) / sizeof(answers[0]));
    tcase_add_test(tcase, a_choice_depends_on_all_of_its_arguments);
    tcase_add_test(tcase, a_word_is_mapped_below_its_bound);
    tcase_add_test(tcase, the_systems_seeds_differ);
    return suite_run(suite);
}
