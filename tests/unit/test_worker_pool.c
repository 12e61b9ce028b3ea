#include "base/thread.h"
#include "support/suite.h"
#include "tools/database/worker_pool.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int states;

struct state {
    char record[512];
};

static int open_state(void **out, const void *context)
{
    (void)context;
    *out = calloc(1, sizeof(struct state));
    atomic_fetch_add(&states, 1);
    return LEAT_OK;
}

static int refuse_state(void **out, const void *context)
{
    (void)out;
    (void)context;
    return leat_error(LEAT_ENOMEM, "no memory");
}

static void close_state(void *state)
{
    if (state)
        atomic_fetch_sub(&states, 1);
    free(state);
}

/* Sizes differ, every seventh record is bad, every fifth empty. */
static int make(void *argument, const void *context, int64_t number,
                struct pool_record *out)
{
    (void)context;
    struct state *state = argument;
    if (number % 7 == 6)
        return leat_error(LEAT_EDATA, "record %lld", (long long)number);
    out->size = number % 5 == 4 ? 0 : (size_t)(1 + number * 37 % 500);
    memset(state->record, (int)(number & 255), out->size);
    out->bytes = state->record;
    out->shape[0] = (int)number;
    return LEAT_OK;
}

static void check_record(const struct pool_record *record, int64_t number)
{
    ck_assert_int_eq(record->shape[0], (int)number);
    size_t size = number % 5 == 4 ? 0 : (size_t)(1 + number * 37 % 500);
    ck_assert_uint_eq(record->size, size);
    const unsigned char *bytes = record->bytes;
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(bytes[i], (int)(number & 255));
}

/* Records from `first` to `end`, in jobs of one. */
static struct pool_options numbers(int64_t first, int64_t end)
{
    return (struct pool_options){.first = first,
                                 .end = end,
                                 .job_records = 1,
                                 .most_bytes = POOL_BYTES,
                                 .open = open_state,
                                 .close = close_state,
                                 .make = make};
}

static struct worker_pool *open_pool(struct pool_options options)
{
    struct worker_pool *pool;
    ck_assert_int_eq(worker_pool_open(&pool, &options), LEAT_OK);
    return pool;
}

START_TEST(records_and_errors_come_in_order)
{
    struct worker_pool *pool = open_pool(numbers(11, 1011));
    for (int64_t number = 11; number < 1011; number++) {
        struct pool_record record;
        int status = worker_pool_take(pool, &record);
        if (number % 7 == 6) {
            char text[32];
            snprintf(text, sizeof(text), "record %lld", (long long)number);
            ck_assert_int_eq(status, LEAT_EDATA);
            ck_assert_str_eq(leat_last_error(), text);
        } else {
            ck_assert_int_eq(status, LEAT_OK);
            check_record(&record, number);
        }
    }
    struct pool_record record;
    ck_assert_int_eq(worker_pool_take(pool, &record), LEAT_END);
    ck_assert_int_eq(worker_pool_take(pool, &record), LEAT_END);
    worker_pool_close(pool);
    ck_assert_int_eq(atomic_load(&states), 0);
}
END_TEST

START_TEST(an_error_ends_its_job)
{
    struct pool_options options = numbers(0, 20);
    options.job_records = 5;
    /* Jobs 0 to 4, 5 to 9, 10 to 14, 15 to 19; 6 and 13 are bad. */
    static const int expected[] = {0,  1,  2,  3,  4,  5,  -1, 10,
                                   11, 12, -1, 15, 16, 17, 18, 19};
    struct worker_pool *pool = open_pool(options);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct pool_record record;
        int status = worker_pool_take(pool, &record);
        ck_assert_int_eq(status, expected[i] < 0 ? LEAT_EDATA : LEAT_OK);
        if (!status)
            check_record(&record, expected[i]);
    }
    struct pool_record record;
    ck_assert_int_eq(worker_pool_take(pool, &record), LEAT_END);
    worker_pool_close(pool);
}
END_TEST

START_TEST(no_records_end_at_once)
{
    struct worker_pool *pool = open_pool(numbers(5, 5));
    struct pool_record record;
    ck_assert_int_eq(worker_pool_take(pool, &record), LEAT_END);
    worker_pool_close(pool);
}
END_TEST

START_TEST(a_state_that_cannot_open_is_an_error)
{
    struct pool_options options = numbers(0, 3);
    options.open = refuse_state;
    struct worker_pool *pool = open_pool(options);
    struct pool_record record;
    ck_assert_int_eq(worker_pool_take(pool, &record), LEAT_ENOMEM);
    ck_assert_str_eq(leat_last_error(), "no memory");
    worker_pool_close(pool);
}
END_TEST

static atomic_int waiting, most_waiting;

/* Counts how much was made and not taken. */
static int make_large(void *argument, const void *context, int64_t number,
                      struct pool_record *out)
{
    (void)context;
    struct state *state = argument;
    (void)number;
    int now = atomic_fetch_add(&waiting, 1) + 1;
    int most = atomic_load(&most_waiting);
    while (now > most &&
           !atomic_compare_exchange_weak(&most_waiting, &most, now))
        ;
    out->bytes = state->record;
    out->size = sizeof(state->record);
    return LEAT_OK;
}

START_TEST(waiting_records_are_bounded)
{
    struct pool_options options = numbers(0, 2000);
    options.most_bytes = 1;
    options.make = make_large;
    atomic_store(&waiting, 0);
    atomic_store(&most_waiting, 0);
    struct worker_pool *pool = open_pool(options);
    struct pool_record record;
    while (!worker_pool_take(pool, &record)) {
        ck_assert_uint_eq(record.size, sizeof(((struct state *)0)->record));
        atomic_fetch_sub(&waiting, 1);
    }
    worker_pool_close(pool);
    ck_assert_int_eq(atomic_load(&waiting), 0);
    /* Each thread may have begun one before the first was full. */
    int workers = leat__thread_cores() < 64 ? leat__thread_cores() : 64;
    ck_assert_int_le(atomic_load(&most_waiting), 1 + workers);
}
END_TEST

START_TEST(it_may_close_at_any_moment)
{
    for (int taken = 0; taken < 40; taken++) {
        struct worker_pool *pool = open_pool(numbers(0, 100000));
        struct pool_record record;
        for (int i = 0; i < taken; i++)
            worker_pool_take(pool, &record);
        worker_pool_close(pool);
        ck_assert_int_eq(atomic_load(&states), 0);
    }
    worker_pool_close(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_pool");
    TCase *making = tcase_create("making");
    tcase_add_test(making, records_and_errors_come_in_order);
    tcase_add_test(making, an_error_ends_its_job);
    tcase_add_test(making, no_records_end_at_once);
    tcase_add_test(making, a_state_that_cannot_open_is_an_error);
    tcase_add_test(making, waiting_records_are_bounded);
    tcase_add_test(making, it_may_close_at_any_moment);
    suite_add_tcase(suite, making);
    return suite_run(suite);
}
