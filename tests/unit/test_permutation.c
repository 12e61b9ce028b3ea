#include "decorators/shuffle/permutation.h"
#include "support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t at(int64_t count, uint64_t seed, int64_t epoch, int64_t i)
{
    leat__permutation permutation;
    leat__permutation_key key;
    leat__permutation_init(&permutation, count);
    leat__permutation_key_init(&key, &permutation, seed, epoch, 0);
    return leat__permutation_at(&permutation, &key, i);
}

static void check_permutation(int64_t count)
{
    leat__permutation permutation;
    leat__permutation_key key;
    char *seen = calloc((size_t)count + 1, 1);
    leat__permutation_init(&permutation, count);
    leat__permutation_key_init(&key, &permutation, 7, count, 0);
    for (int64_t i = 0; i < count; i++) {
        int64_t value = leat__permutation_at(&permutation, &key, i);
        ck_assert_int_ge(value, 0);
        ck_assert_int_lt(value, count);
        ck_assert_int_eq(seen[value]++, 0);
        ck_assert_int_eq(leat__permutation_find(&permutation, &key, value), i);
    }
    free(seen);
}

START_TEST(each_value_comes_once_and_is_found)
{
    for (int64_t count = 0; count < 300; count++)
        check_permutation(count);
    check_permutation(65535);
    check_permutation(65536);
    check_permutation(65537);
    check_permutation(1000003);
}
END_TEST

START_TEST(the_largest_counts_are_permuted)
{
    leat__permutation permutation;
    leat__permutation_key key;
    leat__permutation_init(&permutation, INT64_MAX);
    leat__permutation_key_init(&key, &permutation, 7, 0, 0);
    for (int i = 0; i < 1000; i++) {
        int64_t value = leat__permutation_at(&permutation, &key, i);
        ck_assert_int_ge(value, 0);
        ck_assert_int_eq(leat__permutation_find(&permutation, &key, value), i);
    }
}
END_TEST

/* Chi-square of `n` counts with this mean, in its standard deviations. */
static double deviation(const int counts[], int n, double mean)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (counts[i] - mean) * (counts[i] - mean) / mean;
    return (sum - (n - 1)) / sqrt(2.0 * (n - 1));
}

/* Its rank among the orders of `count` values. */
static int rank(int count, uint64_t seed, int64_t epoch)
{
    int value[8];
    int result = 0;
    for (int i = 0; i < count; i++)
        value[i] = (int)at(count, seed, epoch, i);
    for (int i = 0; i < count; i++) {
        int smaller = 0;
        for (int k = i + 1; k < count; k++)
            smaller += value[k] < value[i];
        result = result * (count - i) + smaller;
    }
    return result;
}

START_TEST(all_orders_of_few_values_are_as_likely)
{
    static const int orders[] = {1, 1, 2, 6, 24, 120};
    for (int count = 2; count <= 5; count++) {
        int counts[120] = {0};
        int rounds = 1000 * orders[count];
        for (int i = 0; i < rounds; i++)
            counts[rank(count, (uint64_t)i / 100, i % 100)]++;
        double off = deviation(counts, orders[count], 1000);
        ck_assert_msg(fabs(off) < 4.5, "%d: %g", count, off);
    }
}
END_TEST

/* How often value v stands at i, over many keys, and pairs of neighbors. */
START_TEST(each_value_is_anywhere_and_beside_any)
{
    static const int sizes[] = {6, 10, 16, 17, 37, 64, 100, 128};
    static int places[128 * 128], pairs[128 * 128];
    for (int k = 0; k < (int)(sizeof(sizes) / sizeof(sizes[0])); k++) {
        int n = sizes[k];
        int rounds = 200 * n;
        memset(places, 0, sizeof(places));
        memset(pairs, 0, sizeof(pairs));
        leat__permutation permutation;
        leat__permutation_init(&permutation, n);
        for (int i = 0; i < rounds; i++) {
            leat__permutation_key key;
            leat__permutation_key_init(&key, &permutation, 99, i, 0);
            int last = -1;
            for (int p = 0; p < n; p++) {
                int value = (int)leat__permutation_at(&permutation, &key, p);
                places[p * n + value]++;
                if (last >= 0)
                    pairs[last * (n - 1) + value - (value > last)]++;
                last = value;
            }
        }
        double off = deviation(places, n * n, (double)rounds / n);
        ck_assert_msg(fabs(off) < 6, "places of %d: %g", n, off);
        off = deviation(pairs, n * (n - 1), (double)rounds / n);
        ck_assert_msg(fabs(off) < 6, "pairs of %d: %g", n, off);
    }
}
END_TEST

/* Of large counts: differences of neighbors, in 64 classes. */
START_TEST(large_orders_have_no_pattern)
{
    static const int64_t sizes[] = {9984, 60032, 1281152, 100000000,
                                    (int64_t)1 << 40};
    for (int k = 0; k < (int)(sizeof(sizes) / sizeof(sizes[0])); k++) {
        leat__permutation permutation;
        leat__permutation_key key;
        int counts[64] = {0};
        int n = sizes[k] < 100000 ? (int)sizes[k] : 100000;
        int drawn = 0;
        leat__permutation_init(&permutation, sizes[k]);
        for (int epoch = 0; epoch * n < 200000; epoch++) {
            leat__permutation_key_init(&key, &permutation, 5, epoch, 0);
            int64_t last = leat__permutation_at(&permutation, &key, 0);
            for (int i = 1; i < n; i++, drawn++) {
                int64_t value = leat__permutation_at(&permutation, &key, i);
                int64_t gap = value - last + (value < last ? sizes[k] : 0);
                counts[(int)((double)gap / (double)sizes[k] * 64)]++;
                last = value;
            }
        }
        double off = deviation(counts, 64, drawn / 64.0);
        ck_assert_msg(fabs(off) < 5, "%lld: %g", (long long)sizes[k], off);
    }
}
END_TEST

START_TEST(seed_epoch_and_number_give_other_orders)
{
    leat__permutation permutation;
    leat__permutation_key key;
    int same = 0;
    leat__permutation_init(&permutation, 1000);
    leat__permutation_key_init(&key, &permutation, 1, 0, 1);
    for (int i = 0; i < 1000; i++) {
        int64_t here = at(1000, 1, 0, i);
        same += here == at(1000, 2, 0, i);
        same += here == at(1000, 1, 1, i);
        same += here == leat__permutation_at(&permutation, &key, i);
        ck_assert_int_eq(here, at(1000, 1, 0, i));
    }
    ck_assert_int_lt(same, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("permutation");
    TCase *all = tcase_create("permutation");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, each_value_comes_once_and_is_found);
    tcase_add_test(all, the_largest_counts_are_permuted);
    tcase_add_test(all, all_orders_of_few_values_are_as_likely);
    tcase_add_test(all, each_value_is_anywhere_and_beside_any);
    tcase_add_test(all, large_orders_have_no_pattern);
    tcase_add_test(all, seed_epoch_and_number_give_other_orders);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
