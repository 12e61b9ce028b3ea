/* Caffe's transitions of the head, on both kinds of device. */
#include "base/memory.h"
#include "data/syncedmem.h"
#include "support/late_device.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)100)

static const char *const names[] = {"cpu", "late:0"};
#define NAMES 2

static leat_device *device;
static leat__syncedmem mem;

static void begin(int i)
{
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, names[i]), LEAT_OK);
    mem = (leat__syncedmem){.bytes = BYTES};
    ck_assert_int_eq(leat__slab_create(&mem.slab, device, BYTES), LEAT_OK);
}

static void end(void)
{
    leat__syncedmem_clear(&mem);
    ck_assert_ptr_null(mem.slab);
    if (device->ops->unified)
        return;
    late_device_counts counts = late_device_count(device);
    ck_assert_int_eq(counts.live_bytes + counts.live_host_bytes, 0);
    ck_assert_int_eq(counts.streams + counts.destroyed_busy, 0);
}

/* The byte that the device sees. */
static int on_device(const void *memory)
{
    unsigned char byte;
    if (device->ops->unified)
        byte = *(const unsigned char *)memory;
    else
        late_device_peek(&byte, memory, 1);
    return byte;
}

static void fill_device(void *memory, int value)
{
    unsigned char bytes[BYTES];
    memset(bytes, value, BYTES);
    if (device->ops->unified)
        memcpy(memory, bytes, BYTES);
    else
        late_device_poke(memory, bytes, BYTES);
}

static int64_t copies(void)
{
    if (device->ops->unified)
        return 0;
    late_device_counts counts = late_device_count(device);
    return counts.copies[LEAT_COPY_TO_DEVICE] +
           counts.copies[LEAT_COPY_TO_HOST];
}

START_TEST(nothing_exists_before_it_is_used)
{
    begin(_i);
    ck_assert_int_eq(mem.head, LEAT_UNINITIALIZED);
    ck_assert_ptr_null(mem.slab->host);
    ck_assert_ptr_null(mem.slab->device_memory);
    end();
}
END_TEST

START_TEST(fresh_memory_is_zero_on_either_side)
{
    begin(_i);
    const unsigned char *host = leat__syncedmem_cpu(&mem, 0);
    ck_assert_int_eq(mem.head, LEAT_HEAD_AT_CPU);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_int_eq(host[i], 0);
    end();
    begin(_i);
    ck_assert_int_eq(on_device(leat__syncedmem_gpu(&mem, 0)), 0);
    ck_assert_int_eq(mem.head, LEAT_HEAD_AT_GPU);
    ck_assert_int_eq(copies(), 0);
    end();
}
END_TEST

START_TEST(the_head_moves_as_in_caffe)
{
    begin(_i);
    memset(leat__syncedmem_cpu(&mem, 1), 1, BYTES);
    ck_assert_int_eq(mem.head, LEAT_HEAD_AT_CPU);
    ck_assert_int_eq(on_device(leat__syncedmem_gpu(&mem, 0)), 1);
    ck_assert_int_eq(mem.head, LEAT_SYNCED);
    fill_device(leat__syncedmem_gpu(&mem, 1), 2);
    ck_assert_int_eq(mem.head, LEAT_HEAD_AT_GPU);
    const unsigned char *host = leat__syncedmem_cpu(&mem, 0);
    ck_assert_int_eq(mem.head, LEAT_SYNCED);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_int_eq(host[i], 2);
    memset(leat__syncedmem_cpu(&mem, 1), 3, BYTES);
    ck_assert_int_eq(mem.head, LEAT_HEAD_AT_CPU);
    ck_assert_int_eq(on_device(leat__syncedmem_gpu(&mem, 1)), 3);
    ck_assert_int_eq(mem.head, LEAT_HEAD_AT_GPU);
    ck_assert_uint_eq(mem.bytes, BYTES);
    end();
}
END_TEST

START_TEST(synced_memory_is_not_copied_again)
{
    begin(_i);
    memset(leat__syncedmem_cpu(&mem, 1), 1, BYTES);
    ck_assert_ptr_nonnull(leat__syncedmem_gpu(&mem, 0));
    int64_t before = copies();
    ck_assert_int_eq(before, device->ops->unified ? 0 : 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 0));
        ck_assert_ptr_nonnull(leat__syncedmem_gpu(&mem, 0));
    }
    ck_assert_int_eq(copies(), before);
    end();
}
END_TEST

START_TEST(a_unified_device_has_one_side)
{
    begin(0);
    ck_assert_ptr_eq(leat__syncedmem_cpu(&mem, 1),
                     leat__syncedmem_gpu(&mem, 1));
    end();
    begin(0);
    ck_assert_ptr_eq(leat__syncedmem_gpu(&mem, 1),
                     leat__syncedmem_cpu(&mem, 1));
    end();
}
END_TEST

START_TEST(push_copies_without_waiting)
{
    begin(1);
    leat_stream stream;
    ck_assert_int_eq(device->ops->stream_create(device, &stream), LEAT_OK);
    memset(leat__syncedmem_cpu(&mem, 1), 5, BYTES);
    ck_assert_int_eq(leat__syncedmem_push(&mem, stream), LEAT_OK);
    ck_assert_int_eq(mem.head, LEAT_SYNCED);
    ck_assert_int_eq(on_device(mem.slab->device_memory), 0);
    ck_assert_int_eq(device->ops->stream_synchronize(device, stream), LEAT_OK);
    ck_assert_int_eq(on_device(mem.slab->device_memory), 5);
    device->ops->stream_destroy(device, stream);
    end();
}
END_TEST

START_TEST(only_what_is_new_on_the_host_is_pushed)
{
    begin(_i);
    leat_stream stream = 0;
    ck_assert_int_eq(leat__syncedmem_push(&mem, stream), LEAT_ESTATE);
    ck_assert_ptr_nonnull(leat__syncedmem_gpu(&mem, 1));
    ck_assert_int_eq(leat__syncedmem_push(&mem, stream), LEAT_ESTATE);
    ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 0));
    ck_assert_int_eq(leat__syncedmem_push(&mem, stream), LEAT_ESTATE);
    ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 1));
    ck_assert_int_eq(leat__syncedmem_push(&mem, stream), LEAT_OK);
    ck_assert_int_eq(mem.head, LEAT_SYNCED);
    if (!device->ops->unified)
        ck_assert_int_eq(device->ops->stream_synchronize(device, stream),
                         LEAT_OK);
    end();
}
END_TEST

START_TEST(a_failing_device_leaves_the_head_where_it_was)
{
    for (int n = 0;; n++) {
        begin(1);
        memset(leat__syncedmem_cpu(&mem, 1), 1, BYTES);
        late_device_fail_at(n);
        void *memory = leat__syncedmem_gpu(&mem, 0);
        int failed = late_device_has_failed();
        ck_assert_int_eq(memory == NULL, failed);
        ck_assert_int_eq(mem.head, failed ? LEAT_HEAD_AT_CPU : LEAT_SYNCED);
        late_device_fail_at(-1);
        ck_assert_int_eq(on_device(leat__syncedmem_gpu(&mem, 0)), 1);
        leat__syncedmem_clear(&mem);
        if (!failed)
            break;
        ck_assert_int_lt(n, 10);
    }
}
END_TEST

START_TEST(short_memory_is_reported_and_can_be_tried_again)
{
    begin(0);
    leat__slab *slab = NULL;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__slab_create(&slab, device, 1), LEAT_ENOMEM);
    ck_assert_ptr_null(slab);
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__syncedmem_cpu(&mem, 1));
    ck_assert_int_eq(mem.head, LEAT_UNINITIALIZED);
    ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 1));
    end();
}
END_TEST

START_TEST(two_views_of_a_slab_have_heads_of_their_own)
{
    begin(1);
    leat__syncedmem other = {
        .slab = mem.slab, .offset = BYTES / 2, .bytes = BYTES / 2};
    leat__slab_ref(mem.slab);
    mem.bytes = BYTES / 2;
    memset(leat__syncedmem_cpu(&mem, 1), 1, BYTES / 2);
    memset(leat__syncedmem_cpu(&other, 1), 2, BYTES / 2);
    const char *memory = leat__syncedmem_gpu(&mem, 0);
    ck_assert_int_eq(other.head, LEAT_HEAD_AT_CPU);
    ck_assert_int_eq(on_device(memory + BYTES / 2 - 1), 1);
    ck_assert_int_eq(on_device(memory + BYTES / 2), 0);
    ck_assert_ptr_eq(leat__syncedmem_gpu(&other, 0), memory + BYTES / 2);
    ck_assert_int_eq(on_device(memory + BYTES / 2), 2);
    leat__syncedmem_clear(&mem);
    ck_assert_int_eq(on_device(memory + BYTES / 2), 2);
    leat__syncedmem_clear(&other);
    end();
}
END_TEST

/* On a device with memory of its own; the other one has one side. */
START_TEST(a_view_of_what_the_device_alone_has_keeps_a_host_side)
{
    begin(_i);
    leat__syncedmem other = {0};
    leat__slab_set_device_only(mem.slab);
    mem.bytes = BYTES / 4;
    char *host = leat__syncedmem_cpu(&mem, 1);
    ck_assert_int_eq(mem.slab->host == NULL, _i);
    memset(host, 1, mem.bytes);
    const char *memory = leat__syncedmem_gpu(&mem, 0);
    ck_assert_int_eq(on_device(memory), 1);
    mem.offset = BYTES / 2;
    mem.head = LEAT_HEAD_AT_GPU;
    ck_assert_int_eq(leat__syncedmem_cpu(&mem, 0) == host, _i);
    leat__syncedmem_view(&other, mem.slab);
    other.offset = BYTES / 2;
    other.bytes = BYTES / 2;
    char *apart = leat__syncedmem_cpu(&other, 1);
    ck_assert_int_eq(apart == leat__syncedmem_cpu(&mem, 0), !_i);
    /* In memory of its own it has none. */
    leat__slab *slab;
    ck_assert_int_eq(leat__slab_create(&slab, device, BYTES), LEAT_OK);
    leat__slab_set_device_only(slab);
    leat__syncedmem_view(&mem, slab);
    mem.bytes = BYTES / 4;
    ck_assert_int_eq(leat__syncedmem_cpu(&mem, 0) == host, _i);
    slab->is_device_only = false;
    leat__syncedmem_view(&mem, slab);
    ck_assert_ptr_null(mem.mirror);
    leat__slab_unref(slab);
    leat__syncedmem_clear(&other);
    end();
}
END_TEST

static int freed; /* 1; -1: while the view still had it */

static void *take(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return aligned_alloc(alignment,
                         (bytes + alignment - 1) / alignment * alignment);
}

static bool is_host_of(const leat__slab *slab, const void *memory)
{
    return slab && slab->host == memory;
}

static void give_back(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    freed =
        is_host_of(mem.slab, memory) || is_host_of(mem.mirror, memory) ? -1 : 1;
    free(memory);
}

static void destroy_event(leat_device *on, leat_event event)
{
    (void)on;
    freed = mem.written && mem.written->device == on ? -1 : 1;
    device->ops->event_destroy(device, event);
}

/* A child that is forked while it is freed would free it once more. */
START_TEST(what_is_freed_has_been_let_go_of)
{
    const leat_allocator allocator = {sizeof(allocator), take, give_back, NULL};
    leat__fence *fence, *next;
    begin(1);
    leat_device_ops ops = *device->ops;
    ops.event_destroy = destroy_event;
    leat_device watched = *device;
    watched.ops = &ops;
    leat__slab_set_allocator(mem.slab, &allocator);
    ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 1));
    ck_assert_int_eq(leat__fence_create(&fence, &watched), LEAT_OK);
    ck_assert_int_eq(leat__fence_create(&next, device), LEAT_OK);
    leat__syncedmem_set_written(&mem, fence);
    leat__fence_unref(fence);
    freed = 0;
    leat__syncedmem_set_written(&mem, next);
    ck_assert_int_eq(freed, 1);
    leat__fence_unref(next);
    freed = 0;
    leat__syncedmem_clear(&mem);
    ck_assert_int_eq(freed, 1);
    end();
}
END_TEST

/* As when a larger batch comes into a top that was read on the host. */
START_TEST(a_host_side_that_is_too_small_has_been_let_go_of)
{
    const leat_allocator allocator = {sizeof(allocator), take, give_back, NULL};
    begin(1);
    leat__slab_set_allocator(mem.slab, &allocator);
    leat__slab_set_device_only(mem.slab);
    mem.bytes = BYTES / 4;
    ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 0));
    freed = 0;
    mem.bytes = BYTES;
    ck_assert_ptr_nonnull(leat__syncedmem_cpu(&mem, 0));
    ck_assert_int_eq(freed, 1);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("syncedmem");
    TCase *tcase = tcase_create("syncedmem");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, nothing_exists_before_it_is_used, 0, NAMES);
    tcase_add_loop_test(tcase, fresh_memory_is_zero_on_either_side, 0, NAMES);
    tcase_add_loop_test(tcase, the_head_moves_as_in_caffe, 0, NAMES);
    tcase_add_loop_test(tcase, synced_memory_is_not_copied_again, 0, NAMES);
    tcase_add_test(tcase, a_unified_device_has_one_side);
    tcase_add_test(tcase, push_copies_without_waiting);
    tcase_add_loop_test(tcase, only_what_is_new_on_the_host_is_pushed, 0,
                        NAMES);
    tcase_add_test(tcase, a_failing_device_leaves_the_head_where_it_was);
    tcase_add_test(tcase, short_memory_is_reported_and_can_be_tried_again);
    tcase_add_test(tcase, two_views_of_a_slab_have_heads_of_their_own);
    tcase_add_loop_test(
        tcase, a_view_of_what_the_device_alone_has_keeps_a_host_side, 0, NAMES);
    tcase_add_test(tcase, what_is_freed_has_been_let_go_of);
    tcase_add_test(tcase, a_host_side_that_is_too_small_has_been_let_go_of);
    return suite_run(suite);
}
