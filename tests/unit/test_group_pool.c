/* Groups that wait for materialize of a sample, many at a time. */
#include "decorators/group_pool.h"
#include "support/suite.h"

#include <check.h>
#include <leat/status.h>

enum { GROUPS = 5000, LONGEST = 32 };

static leat__group_pool pool;
static leat__group *group[GROUPS];
static leat_sample sample[GROUPS];

static void set_up(void)
{
    const leat_open open = {.size = sizeof(open)};
    ck_assert_int_eq(leat__group_pool_init(&pool, "batch", &open, 1), LEAT_OK);
    for (int i = 0; i < GROUPS; i++)
        leat_sample_init(&sample[i]);
}

static void tear_down(void)
{
    for (int i = 0; i < GROUPS; i++)
        leat_sample_finish(&sample[i]);
    leat__group_pool_finish(&pool);
}

static void bind(int i)
{
    ck_assert_int_eq(leat__group_pool_take(&pool, &group[i]), LEAT_OK);
    ck_assert_int_eq(leat__group_pool_bind(&pool, group[i], &sample[i]),
                     LEAT_OK);
}

/* A list that grew with them would be looked through for each. */
START_TEST(many_that_are_bound_are_in_short_lists)
{
    int listed = 0;
    for (int i = 0; i < GROUPS; i++)
        bind(i);
    for (int i = 0; i < pool.capacity; i++) {
        int length = 0;
        for (leat__group *one = pool.bound[i]; one; one = one->next)
            length++;
        ck_assert_int_le(length, LONGEST);
        listed += length;
    }
    ck_assert_int_eq(listed, GROUPS);
}
END_TEST

START_TEST(each_sample_has_its_own_once)
{
    leat__group *found;
    for (int i = 0; i < GROUPS; i++)
        bind(i);
    for (int i = GROUPS - 1; i >= 0; i--) {
        ck_assert_int_eq(leat__group_pool_unbind(&pool, &sample[i], &found),
                         LEAT_OK);
        ck_assert_ptr_eq(found, group[i]);
        ck_assert_int_eq(leat__group_pool_unbind(&pool, &sample[i], &found),
                         LEAT_ESTATE);
        leat__group_pool_give_back(&pool, group[i]);
    }
}
END_TEST

/* The first one's sample was dropped: it serves again. */
START_TEST(a_sample_that_is_bound_again_leaves_the_first)
{
    leat__group *found, *first;
    bind(0);
    first = group[0];
    const leat_sample dropped = sample[0];
    bind(0);
    ck_assert_ptr_ne(group[0], first);
    ck_assert_int_eq(leat__group_pool_unbind(&pool, &dropped, &found),
                     LEAT_ESTATE);
    ck_assert_int_eq(leat__group_pool_take(&pool, &found), LEAT_OK);
    ck_assert_ptr_eq(found, first);
    leat__group_pool_give_back(&pool, found);
    ck_assert_int_eq(leat__group_pool_unbind(&pool, &sample[0], &found),
                     LEAT_OK);
    ck_assert_ptr_eq(found, group[0]);
    leat__group_pool_give_back(&pool, found);
}
END_TEST

/* A new group, which then keeps the sample at `index`. */
static leat__group *keep(int64_t index)
{
    const leat_position at = {0, index};
    leat__group *kept;
    ck_assert_int_eq(leat__group_pool_take_kept(&pool, at, &kept), LEAT_OK);
    ck_assert_int_eq(kept->kept.index, -1);
    kept->kept = at;
    return kept;
}

START_TEST(what_is_kept_is_found_and_the_oldest_makes_way)
{
    const leat_position at = {0, 1}, next_epoch = {1, 2};
    leat__group *one = keep(1), *two = keep(2), *taken;
    leat__group_pool_give_back(&pool, one);
    leat__group_pool_give_back(&pool, two);
    ck_assert_int_eq(leat__group_pool_take_kept(&pool, at, &taken), LEAT_OK);
    ck_assert_ptr_eq(taken, one);
    ck_assert_int_eq(taken->kept.index, 1);
    leat__group_pool_give_back(&pool, taken);
    ck_assert_int_eq(leat__group_pool_take_kept(&pool, next_epoch, &taken),
                     LEAT_OK);
    ck_assert_ptr_eq(taken, two);
    ck_assert_int_eq(taken->kept.index, -1);
    leat__group_pool_give_back(&pool, taken);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group_pool");
    TCase *tcase = tcase_create("group_pool");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, many_that_are_bound_are_in_short_lists);
    tcase_add_test(tcase, each_sample_has_its_own_once);
    tcase_add_test(tcase, a_sample_that_is_bound_again_leaves_the_first);
    tcase_add_test(tcase, what_is_kept_is_found_and_the_oldest_makes_way);
    return suite_run(suite);
}
