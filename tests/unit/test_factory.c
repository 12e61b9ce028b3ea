#include "base/thread.h"
#include "support/suite.h"
#include "tools/database/factory.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int benches;

struct bench {
    char record[512];
};

static int open_bench(void **out, const void *context)
{
    (void)context;
    *out = calloc(1, sizeof(struct bench));
    atomic_fetch_add(&benches, 1);
    return LEAT_OK;
}

static int refuse_bench(void **out, const void *context)
{
    (void)out;
    (void)context;
    return leat_error(LEAT_ENOMEM, "no bench");
}

static void close_bench(void *bench)
{
    if (bench)
        atomic_fetch_sub(&benches, 1);
    free(bench);
}

/* Sizes differ, every seventh record is bad, every fifth empty. */
static int make(void *argument, int64_t number, struct factory_record *out)
{
    struct bench *bench = argument;
    if (number % 7 == 6)
        return leat_error(LEAT_EDATA, "record %lld", (long long)number);
    out->size = number % 5 == 4 ? 0 : (size_t)(1 + number * 37 % 500);
    memset(bench->record, (int)(number & 255), out->size);
    out->bytes = bench->record;
    out->shape[0] = (int)number;
    return LEAT_OK;
}

static void check_record(const struct factory_record *record, int64_t number)
{
    ck_assert_int_eq(record->shape[0], (int)number);
    size_t size = number % 5 == 4 ? 0 : (size_t)(1 + number * 37 % 500);
    ck_assert_uint_eq(record->size, size);
    const unsigned char *bytes = record->bytes;
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(bytes[i], (int)(number & 255));
}

/* Records from `first` to `end`, in runs of one. */
static struct factory_order numbers(int64_t first, int64_t end)
{
    return (struct factory_order){.first = first,
                                  .end = end,
                                  .run = 1,
                                  .bytes = FACTORY_BYTES,
                                  .open = open_bench,
                                  .close = close_bench,
                                  .make = make};
}

static struct factory *open_factory(struct factory_order order)
{
    struct factory *factory;
    ck_assert_int_eq(factory_open(&factory, &order), LEAT_OK);
    return factory;
}

START_TEST(records_and_errors_come_in_order)
{
    struct factory *factory = open_factory(numbers(11, 1011));
    for (int64_t number = 11; number < 1011; number++) {
        struct factory_record record;
        int status = factory_take(factory, &record);
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
    struct factory_record record;
    ck_assert_int_eq(factory_take(factory, &record), LEAT_END);
    ck_assert_int_eq(factory_take(factory, &record), LEAT_END);
    factory_close(factory);
    ck_assert_int_eq(atomic_load(&benches), 0);
}
END_TEST

START_TEST(an_error_ends_its_run)
{
    struct factory_order order = numbers(0, 20);
    order.run = 5;
    /* Runs 0 to 4, 5 to 9, 10 to 14, 15 to 19; 6 and 13 are bad. */
    static const int expected[] = {0,  1,  2,  3,  4,  5,  -1, 10,
                                   11, 12, -1, 15, 16, 17, 18, 19};
    struct factory *factory = open_factory(order);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct factory_record record;
        int status = factory_take(factory, &record);
        ck_assert_int_eq(status, expected[i] < 0 ? LEAT_EDATA : LEAT_OK);
        if (!status)
            check_record(&record, expected[i]);
    }
    struct factory_record record;
    ck_assert_int_eq(factory_take(factory, &record), LEAT_END);
    factory_close(factory);
}
END_TEST

START_TEST(nothing_to_make_ends_at_once)
{
    struct factory *factory = open_factory(numbers(5, 5));
    struct factory_record record;
    ck_assert_int_eq(factory_take(factory, &record), LEAT_END);
    factory_close(factory);
}
END_TEST

START_TEST(a_bench_that_cannot_be_opened_is_an_error)
{
    struct factory_order order = numbers(0, 3);
    order.open = refuse_bench;
    struct factory *factory = open_factory(order);
    struct factory_record record;
    ck_assert_int_eq(factory_take(factory, &record), LEAT_ENOMEM);
    ck_assert_str_eq(leat_last_error(), "no bench");
    factory_close(factory);
}
END_TEST

static atomic_int waiting, most_waiting;

/* Counts how much was made and not taken. */
static int make_large(void *argument, int64_t number,
                      struct factory_record *out)
{
    struct bench *bench = argument;
    (void)number;
    int now = atomic_fetch_add(&waiting, 1) + 1;
    int most = atomic_load(&most_waiting);
    while (now > most &&
           !atomic_compare_exchange_weak(&most_waiting, &most, now))
        ;
    out->bytes = bench->record;
    out->size = sizeof(bench->record);
    return LEAT_OK;
}

START_TEST(what_waits_is_bounded)
{
    struct factory_order order = numbers(0, 2000);
    order.bytes = 1;
    order.make = make_large;
    atomic_store(&waiting, 0);
    atomic_store(&most_waiting, 0);
    struct factory *factory = open_factory(order);
    struct factory_record record;
    while (!factory_take(factory, &record)) {
        ck_assert_uint_eq(record.size, sizeof(((struct bench *)0)->record));
        atomic_fetch_sub(&waiting, 1);
    }
    factory_close(factory);
    ck_assert_int_eq(atomic_load(&waiting), 0);
    /* Each thread may have begun one before the first was full. */
    int workers = leat__thread_cores() < 64 ? leat__thread_cores() : 64;
    ck_assert_int_le(atomic_load(&most_waiting), 1 + workers);
}
END_TEST

START_TEST(it_may_be_closed_at_any_moment)
{
    for (int taken = 0; taken < 40; taken++) {
        struct factory *factory = open_factory(numbers(0, 100000));
        struct factory_record record;
        for (int i = 0; i < taken; i++)
            factory_take(factory, &record);
        factory_close(factory);
        ck_assert_int_eq(atomic_load(&benches), 0);
    }
    factory_close(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("factory");
    TCase *making = tcase_create("making");
    tcase_add_test(making, records_and_errors_come_in_order);
    tcase_add_test(making, an_error_ends_its_run);
    tcase_add_test(making, nothing_to_make_ends_at_once);
    tcase_add_test(making, a_bench_that_cannot_be_opened_is_an_error);
    tcase_add_test(making, what_waits_is_bounded);
    tcase_add_test(making, it_may_be_closed_at_any_moment);
    suite_add_tcase(suite, making);
    return suite_run(suite);
}
