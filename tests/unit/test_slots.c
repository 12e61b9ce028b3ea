/* What slots take, those that grew included. */
#include "layer/slots.h"
#include "support/suite.h"

#include <check.h>

static leat__slots slots;

static void set_up(void)
{
    static const leat__slots none;
    const leat__prefetcher_options options = {
        .shape = {.bytes = 4096},
        .assembly = {.batch_size = 1},
        .slots = 2,
        .circulating = 2,
    };
    leat_device *device;
    slots = none;
    ck_assert_int_eq(leat_device_find(&device, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat__slots_init(&slots, device, &options), LEAT_OK);
}

static void tear_down(void)
{
    leat__slots_finish(&slots);
}

static void reserve(int slot, size_t bytes)
{
    const leat__batch_shape shape = {.bytes = bytes};
    ck_assert_int_eq(leat__slots_reserve(&slots, &slots.batch[slot], &shape),
                     LEAT_OK);
}

START_TEST(what_grows_again_is_counted_once)
{
    reserve(0, 4096);
    ck_assert_int_eq(slots.grown, 0);
    ck_assert_int_eq(slots.grown_bytes, 0);
    reserve(0, 5000);
    ck_assert_int_eq(slots.grown_bytes, 5000);
    reserve(0, 9000);
    ck_assert_int_eq(slots.grown_bytes, 9000);
    reserve(1, 6000);
    reserve(1, 100);
    ck_assert_int_eq(slots.grown_bytes, 15000);
    ck_assert_int_eq(slots.grown, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *tcase = tcase_create("slots");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_grows_again_is_counted_once);
    return suite_run(suite);
}
