#include "base/memory.h"
#include "layer/on_error/record_set.h"

#include <check.h>
#include <leat/status.h>
#include <stdlib.h>

enum { MANY = 5000 };

static leat__record_set set;

static void tear_down(void)
{
    leat__record_set_finish(&set);
}

/* Record i of one of three sources, met at position i of epoch i mod 2. */
static leat__record_mark mark_of(int i)
{
    static const char *const name[] = {"", "a", "b"};
    int which = i % 3;
    return (leat__record_mark){
        .source = leat__record_set_source(name[which], which > 0),
        .record = i / 3,
        .epoch = i % 2,
        .position = i};
}

START_TEST(a_record_is_added_once)
{
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            leat__record_mark mark = mark_of(i);
            mark.epoch += round;
            ck_assert_int_eq(leat__record_set_has(&set, &mark), round);
            ck_assert_int_eq(leat__record_set_add(&set, &mark), !round);
        }
    ck_assert_uint_eq(set.n, MANY);
    ck_assert_int_eq(set.mark[1].epoch, 1);
}
END_TEST

/* Where a slot is the product's bits from 32 on of source XOR record alone,
 * these sources lead to one: adding them takes the square of their number. */
START_TEST(sources_cannot_be_chosen_to_share_a_slot)
{
    enum { SHARING = 20000 };
    const uint64_t inverse = UINT64_C(0xf1de83e19937733d);
    int longest = 0;
    for (uint64_t i = 0; i < SHARING; i++) {
        leat__record_mark mark = {.source = i * inverse};
        ck_assert_int_eq(leat__record_set_add(&set, &mark), 1);
    }
    int run = 0;
    for (size_t i = 0; i < set.capacity; i++) {
        run = set.slot[i] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    ck_assert_int_lt(longest, 1000);
}
END_TEST

START_TEST(what_was_met_later_is_forgotten)
{
    static const int64_t back[][2] = {
        {2, 0}, {1, 4001}, {1, 0}, {0, 100}, {0, 0}};
    for (int i = 0; i < MANY; i++) {
        leat__record_mark mark = mark_of(i);
        ck_assert_int_eq(leat__record_set_add(&set, &mark), 1);
    }
    for (int k = 0; k < 5; k++) {
        leat__record_set_rewind(&set, back[k][0], back[k][1]);
        size_t kept = 0;
        for (int i = 0; i < MANY; i++) {
            leat__record_mark mark = mark_of(i);
            int is_before =
                mark.epoch < back[k][0] ||
                (mark.epoch == back[k][0] && mark.position < back[k][1]);
            kept += (size_t)is_before;
            ck_assert_int_eq(leat__record_set_has(&set, &mark), is_before);
        }
        ck_assert_uint_eq(set.n, kept);
    }
}
END_TEST

START_TEST(short_memory_leaves_the_set_as_it_was)
{
    int n = 0;
    for (int fails = 0; n < 200; fails = !fails) {
        leat__record_mark mark = mark_of(n);
        leat__alloc_fail_at(fails);
        int status = leat__record_set_add(&set, &mark);
        leat__alloc_fail_at(-1);
        ck_assert(status == 1 || status == LEAT_ENOMEM);
        ck_assert_int_eq(leat__record_set_has(&set, &mark), status == 1);
        n += status == 1;
        if (status == 1)
            continue;
        ck_assert_int_eq(leat__record_set_add(&set, &mark), 1);
        n++;
    }
    ck_assert_uint_eq(set.n, (size_t)n);
}
END_TEST

START_TEST(a_full_set_remembers_what_it_has)
{
    enum { LIMIT = 100 };
    set.limit = LIMIT;
    for (int i = 0; i < MANY; i++) {
        leat__record_mark mark = mark_of(i);
        int status = leat__record_set_add(&set, &mark);
        ck_assert_int_eq(status, i < LIMIT ? 1 : LEAT_ELIMIT);
        ck_assert_int_eq(leat__record_set_is_full(&set), i >= LIMIT - 1);
    }
    for (int i = 0; i < MANY; i++) {
        leat__record_mark mark = mark_of(i);
        ck_assert_int_eq(leat__record_set_has(&set, &mark), i < LIMIT);
        ck_assert_int_eq(leat__record_set_add(&set, &mark),
                         i < LIMIT ? 0 : LEAT_ELIMIT);
    }
    leat__record_set_rewind(&set, 0, 0);
    leat__record_mark mark = mark_of(MANY);
    ck_assert_int_eq(leat__record_set_add(&set, &mark), 1);
}
END_TEST

START_TEST(a_set_has_a_limit_of_its_own_accord)
{
    int status = 1;
    size_t n = 0;
    for (; status == 1 && n <= LEAT__RECORD_SET_MAX; n += status == 1) {
        leat__record_mark mark = {.record = (int64_t)n};
        status = leat__record_set_add(&set, &mark);
    }
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_uint_eq(n, LEAT__RECORD_SET_MAX);
    size_t bytes = set.capacity * (sizeof(*set.slot) + sizeof(*set.mark) / 2);
    ck_assert_uint_le(bytes, (size_t)60 * LEAT__RECORD_SET_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_set");
    TCase *tcase = tcase_create("record_set");
    tcase_add_checked_fixture(tcase, NULL, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_record_is_added_once);
    tcase_add_test(tcase, sources_cannot_be_chosen_to_share_a_slot);
    tcase_add_test(tcase, what_was_met_later_is_forgotten);
    tcase_add_test(tcase, short_memory_leaves_the_set_as_it_was);
    tcase_add_test(tcase, a_full_set_remembers_what_it_has);
    tcase_add_test(tcase, a_set_has_a_limit_of_its_own_accord);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
