/* What slots take, those that grew included. */
#include "layer/batch_pool.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static leat__batch_pool slots;

static void make(leat__batch_shape shape, int batch_size)
{
    static const leat__batch_pool none;
    const leat__prefetcher_options options = {
        .shape = shape,
        .spec = {.batch_size = batch_size},
        .slots = 2,
        .circulating = 2,
    };
    leat_device *device;
    slots = none;
    ck_assert_int_eq(leat_device_find(&device, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat__batch_pool_init(&slots, device, &options), LEAT_OK);
}

static void set_up(void)
{
    make((leat__batch_shape){.bytes = 4096}, 1);
}

static void tear_down(void)
{
    leat__batch_pool_finish(&slots);
}

static void reserve(int slot, size_t bytes)
{
    const leat__batch_shape shape = {.bytes = bytes};
    ck_assert_int_eq(
        leat__batch_pool_reserve(&slots, &slots.batch[slot], &shape), LEAT_OK);
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

/* Pages of a slot that have memory behind them. */
static int resident(int slot)
{
    const leat__batch *batch = &slots.batch[slot];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = batch->capacity / page;
    unsigned char *is_resident = malloc(pages);
    int n = 0;
    ck_assert_ptr_nonnull(is_resident);
    ck_assert_int_eq(mincore((char *)batch->slab->host + batch->offset,
                             batch->capacity, is_resident),
                     0);
    for (size_t i = 0; i < pages; i++)
        n += is_resident[i] & 1;
    free(is_resident);
    return n;
}

START_TEST(memory_is_populated_by_the_first_batch_in_it)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const leat__batch_shape shape = {
        .ntop = 1,
        .top = {{.bytes = 8 * page}},
        .bytes = 64 * page,
    };
    const leat__chunk chunk = {.first = 2, .n = 3};
    tear_down();
    make(shape, 8);
    ck_assert_int_le(resident(0), 1);
    ck_assert_int_eq(resident(1), 0);
    leat__batch *batch = &slots.batch[1];
    leat__batch_begin(batch, 0);
    ck_assert_int_eq(batch->populates, 1);
    leat__batch_set_shape(batch, &chunk, &shape);
    ck_assert_int_eq(leat__batch_populate(batch, &chunk), LEAT_OK);
    ck_assert_int_eq(resident(1), 24);
    ck_assert_int_le(resident(0), 1);
    leat__batch_begin(batch, 2);
    ck_assert_int_eq(batch->populates, 0);
}
END_TEST

START_TEST(each_slot_has_its_part_of_the_memory)
{
    leat__batch_pool_finish(&slots);
    make((leat__batch_shape){.bytes = 4096, .top_bytes = 8192, .is_cropped = 1},
         1);
    ck_assert_int_eq(slots.slab_bytes, 2 * 4096);
    ck_assert_int_eq(slots.top_bytes, 2 * 8192);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_ptr_eq(slots.batch[i].slab, slots.batch[0].slab);
        ck_assert_uint_eq(slots.batch[i].offset, i * 4096);
        ck_assert_uint_eq(slots.batch[i].capacity, 4096);
        ck_assert_ptr_nonnull(slots.batch[i].top_slab);
        ck_assert_ptr_eq(slots.batch[i].top_slab, slots.batch[0].top_slab);
        ck_assert_uint_eq(slots.batch[i].top_offset, i * 8192);
        ck_assert_uint_eq(slots.batch[i].top_capacity, 8192);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *tcase = tcase_create("slots");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_grows_again_is_counted_once);
    tcase_add_test(tcase, memory_is_populated_by_the_first_batch_in_it);
    tcase_add_test(tcase, each_slot_has_its_part_of_the_memory);
    return suite_run(suite);
}
