/* What a device copy asks of a device, call by call, and what a failure leaves.
 */
#include "base/clock.h"
#include "base/counter.h"
#include "layer/device_copy.h"
#include "support/recording_device.h"
#include "support/suite.h"

#include <check.h>
#include <leat/transform.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROOM = 51,
    READY = 52,
    COPIED = 53,
    CONSUMED = 61,
    TRANSFORMS = 5, /* the stream of transforms; that of copies is 1 */
    BYTES = 300,
    OFFSET = 100
};

static recording_device device;
static leat__device_copy device_copy;
static leat__slab slab;
static leat__batch batch;
static unsigned char host[1000], memory[1000];

static void begin_device_copy(void)
{
    static const leat__batch_shape plain;
    ck_assert_int_eq(
        leat__device_copy_init(&device_copy, &device.base, NULL, &plain),
        LEAT_OK);
    recording_device_look(&device);
}

static void end_device_copy(void)
{
    leat__device_copy_finish(&device_copy);
    memset(&device_copy, 0, sizeof(device_copy));
}

/* A batch of BYTES whose memory begins at OFFSET. */
static void set_up(void)
{
    recording_device_init(&device);
    memset(&device_copy, 0, sizeof(device_copy));
    memset(&batch, 0, sizeof(batch));
    memset(memory, 0, sizeof(memory));
    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (unsigned char)(i % 251 + 1);
    slab = (leat__slab){
        .device = &device.base, .host = host, .device_memory = memory};
    batch.slab = &slab;
    batch.offset = OFFSET;
    batch.shape.bytes = BYTES;
    batch.n = 7;
    batch.room = ROOM;
    batch.ready = READY;
    batch.copied = COPIED;
    for (int i = 0; i < LEAT__STREAMS_MAX; i++)
        batch.consumed[i] = (leat_event)CONSUMED + (leat_event)i;
    begin_device_copy();
}

static void tear_down(void)
{
    end_device_copy();
}

#define assert_calls(expected)                                                 \
    ck_assert_str_eq(recording_device_look(&device), expected)

static void use_streams(int n)
{
    batch.nconsumed = batch.events = n;
}

static int upload(void)
{
    leat__batch *const one[] = {&batch};
    return leat__device_copy_upload(&device_copy, one, 1);
}

START_TEST(an_upload_is_a_copy_and_a_mark)
{
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls(
        "copy 300 to the device on 1; record 53 on 1; record 52 on 1; ");
    ck_assert_int_eq(batch.upload.has_room, 0);
    /* Its memory and nothing beside it. */
    ck_assert_int_eq(memory[OFFSET - 1], 0);
    ck_assert_mem_eq(memory + OFFSET, host + OFFSET, BYTES);
    ck_assert_int_eq(memory[OFFSET + BYTES], 0);
    ck_assert_int_eq(device_copy.batches, 1);
    ck_assert_int_eq(device_copy.bytes, BYTES);
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_int_eq(device_copy.batches, 2);
    ck_assert_int_eq(device_copy.bytes, 2 * BYTES);
}
END_TEST

START_TEST(it_comes_after_all_that_use_the_memory)
{
    use_streams(2);
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls(
        "1 waits for 61; 1 waits for 62; record 51 on 1; "
        "copy 300 to the device on 1; record 53 on 1; record 52 on 1; ");
    ck_assert_int_eq(batch.upload.has_room, 1);
    ck_assert_int_eq(batch.nconsumed, 0);
    /* Nobody uses it any more. */
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls(
        "copy 300 to the device on 1; record 53 on 1; record 52 on 1; ");
    ck_assert_int_eq(batch.upload.has_room, 0);
}
END_TEST

/* The call that copies from it would keep the thread until they are through. */
START_TEST(pageable_memory_is_copied_once_it_is_free)
{
    slab.is_pageable = 1;
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls(
        "copy 300 to the device on 1; record 53 on 1; record 52 on 1; ");
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls(
        "1 waits for 61; record 51 on 1; sync 51; "
        "copy 300 to the device on 1; record 53 on 1; record 52 on 1; ");
}
END_TEST

/* Batches of crops, whose tops are in `memory`. */
static void transform_batches(void)
{
    static leat__slab top = {.device_memory = memory};
    batch.shape.is_cropped = 1;
    batch.top_slab = &top;
    device_copy.transforms = TRANSFORMS;
}

/* On a stream of its own, so that no later copy waits for it. */
START_TEST(a_device_transforms_after_the_copy)
{
    transform_batches();
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls("1 waits for 61; record 51 on 1; "
                 "copy 300 to the device on 1; record 53 on 1; "
                 "5 waits for 53; transform 7 on 5; record 52 on 5; ");
}
END_TEST

START_TEST(
    the_host_side_is_free_after_the_copy_and_the_tops_after_the_transform)
{
    transform_batches();
    ck_assert_int_eq(upload(), LEAT_OK);
    (void)recording_device_look(&device);
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch), 0);
    assert_calls("sync 53; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     0);
    assert_calls("sync 52; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, 7), 0);
    assert_calls("7 waits for 52; ");
    ck_assert_int_eq(upload(), LEAT_OK);
    (void)recording_device_look(&device);
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     LEAT_EDEVICE);
    assert_calls("sync 53; ");
    device.fail_at = 1;
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     LEAT_EDEVICE);
    assert_calls("sync 53; sync 52; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     0);
    assert_calls("sync 52; ");
    ck_assert_int_eq(device_copy.waiters, 0);
    /* A batch without rows has no transform. */
    batch.n = 0;
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls("record 53 on 1; record 52 on 1; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     0);
    assert_calls("sync 53; ");
}
END_TEST

/* It reads what the next copy overwrites, and no consumer has waited for it. */
START_TEST(a_copy_waits_for_a_transform_that_nobody_waited_for)
{
    transform_batches();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(upload(), LEAT_OK);
        assert_calls(i == 0 ? "copy 300 to the device on 1; record 53 on 1; "
                              "5 waits for 53; transform 7 on 5; "
                              "record 52 on 5; "
                            : "1 waits for 52; "
                              "copy 300 to the device on 1; record 53 on 1; "
                              "5 waits for 53; transform 7 on 5; "
                              "record 52 on 5; ");
    }
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, 7),
                     LEAT_EDEVICE);
    (void)recording_device_look(&device);
    device.fail_at = 0;
    ck_assert_int_eq(upload(), LEAT_EDEVICE);
    assert_calls("1 waits for 52; ");
    /* A copy that never began leaves it as it was. */
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     LEAT_OK);
    (void)recording_device_look(&device);
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls("copy 300 to the device on 1; record 53 on 1; "
                 "5 waits for 53; transform 7 on 5; record 52 on 5; ");
}
END_TEST

/* A copy of nothing, and a kernel without threads, are errors of some. */
START_TEST(a_batch_without_rows_is_ready_at_once)
{
    batch.n = 0;
    for (int is_cropped = 0; is_cropped <= 1; is_cropped++) {
        batch.shape.is_cropped = is_cropped;
        ck_assert_int_eq(upload(), LEAT_OK);
        assert_calls("record 53 on 1; record 52 on 1; ");
    }
}
END_TEST

/*
 * Nothing comes after a call that failed. Streams that were not waited for are
 * still to be.
 */
START_TEST(an_upload_ends_at_the_first_call_that_fails)
{
    static const struct {
        const char *calls;
        const char *line;
        int nconsumed;
        int has_room;
        int is_transformed; /* whether one may be under way */
    } cases[] = {
        {"1 waits for 61; ", "stream_wait failed", 2, 0, 1},
        {"1 waits for 61; 1 waits for 62; ", "stream_wait failed", 2, 0, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; ",
         "event_record failed", 2, 0, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; ",
         "event_synchronize failed", 0, 1, 0},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; ",
         "copy failed", 0, 1, 0},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; record 53 on 1; ",
         "event_record failed", 0, 1, 0},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; record 53 on 1; 5 waits for 53; ",
         "stream_wait failed", 0, 1, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; record 53 on 1; 5 waits for 53; "
         "transform 7 on 5; ",
         "transform failed", 0, 1, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; record 53 on 1; 5 waits for 53; "
         "transform 7 on 5; record 52 on 5; ",
         "event_record failed", 0, 1, 1},
    };
    slab.is_pageable = 1;
    transform_batches();
    for (int n = 0; n < (int)(sizeof(cases) / sizeof(cases[0])); n++) {
        use_streams(2);
        batch.upload.has_room = 1;
        batch.is_transformed = batch.is_awaited = 1;
        device.fail_at = n;
        ck_assert_int_eq(upload(), LEAT_EDEVICE);
        ck_assert_str_eq(leat_last_error(), cases[n].line);
        assert_calls(cases[n].calls);
        ck_assert_int_eq(batch.nconsumed, cases[n].nconsumed);
        ck_assert_int_eq(batch.upload.has_room, cases[n].has_room);
        ck_assert_int_eq(batch.is_transformed, cases[n].is_transformed);
    }
}
END_TEST

static int await_host(void)
{
    (void)recording_device_look(&device);
    return leat__device_copy_await_host(&device_copy, &batch);
}

START_TEST(a_copy_is_awaited_from_its_begin_to_its_end)
{
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("");
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("sync 53; ");
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    device.fail_at = 0;
    ck_assert_int_eq(await_host(), LEAT_EDEVICE);
    assert_calls("sync 51; ");
    device.fail_at = 1;
    ck_assert_int_eq(await_host(), LEAT_EDEVICE);
    assert_calls("sync 51; sync 53; ");
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("sync 51; sync 53; ");
    /* Now it is known. */
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("");
}
END_TEST

/* Batches of BYTES that are neighbours in memory, with events of their own. */
enum { NEIGHBOURS = 3 };
static leat__batch neighbour[NEIGHBOURS];
static leat__batch *const neighbours[] = {&neighbour[0], &neighbour[1],
                                          &neighbour[2]};
static leat__slab top_slab;

static void make_neighbours(int is_cropped)
{
    top_slab = (leat__slab){.device_memory = memory};
    if (is_cropped)
        device_copy.transforms = TRANSFORMS;
    for (int i = 0; i < NEIGHBOURS; i++) {
        neighbour[i] = batch;
        neighbour[i].capacity = BYTES;
        neighbour[i].offset = (size_t)i * BYTES;
        neighbour[i].failed = -1;
        neighbour[i].ready = (leat_event)READY + 100 * (leat_event)(i + 1);
        neighbour[i].copied = (leat_event)COPIED + 100 * (leat_event)(i + 1);
        neighbour[i].consumed[0] =
            (leat_event)CONSUMED + 100 * (leat_event)(i + 1);
        neighbour[i].shape.is_cropped = is_cropped;
        neighbour[i].top_slab = &top_slab;
        neighbour[i].top_offset = (size_t)i * 64;
        neighbour[i].top_capacity = 64;
    }
}

static int run(void)
{
    return leat__device_copy_run(&device_copy, neighbours, NEIGHBOURS);
}

/* All of them in one upload. */
static void upload_neighbours(void)
{
    ck_assert_int_eq(run(), NEIGHBOURS);
    (void)recording_device_look(&device);
    ck_assert_int_eq(
        leat__device_copy_upload(&device_copy, neighbours, NEIGHBOURS),
        LEAT_OK);
}

START_TEST(neighbours_share_a_copy_and_a_transform)
{
    make_neighbours(0);
    upload_neighbours();
    assert_calls("copy 900 to the device on 1; record 153 on 1; "
                 "record 152 on 1; record 252 on 1; record 352 on 1; ");
    ck_assert_mem_eq(memory, host, NEIGHBOURS * BYTES);
    ck_assert_int_eq(device_copy.batches, NEIGHBOURS);
    ck_assert_int_eq(device_copy.bytes, NEIGHBOURS * BYTES);
    for (int i = 0; i < NEIGHBOURS; i++) {
        ck_assert_int_eq(
            leat__device_copy_await_host(&device_copy, &neighbour[i]), LEAT_OK);
        assert_calls(i == 0 ? "sync 153; " : "");
    }
    make_neighbours(1);
    upload_neighbours();
    assert_calls("copy 900 to the device on 1; record 153 on 1; "
                 "5 waits for 153; transform 7 on 5; "
                 "record 152 on 5; record 252 on 5; record 352 on 5; ");
    ck_assert_int_eq(device.what.further, NEIGHBOURS - 1);
    ck_assert_uint_eq(device.what.stride, BYTES);
    ck_assert_uint_eq(device.what.top_stride, 64);
    for (int i = 0; i < NEIGHBOURS; i++)
        ck_assert(neighbour[i].is_transformed && !neighbour[i].is_awaited);
}
END_TEST

/* Whatever tells the last batch from the others. */
static void set_apart(int way)
{
    static leat__slab other;
    leat__batch *last = &neighbour[NEIGHBOURS - 1];
    switch (way) {
    case 0:
        last->failed = 2;
        break;
    case 1:
        last->n--;
        break;
    case 2:
        last->slab = &other;
        break;
    case 3:
        last->offset += BYTES;
        break;
    case 4:
        last->shape.bytes--;
        break;
    case 5:
        last->shape.is_cropped = 0;
        break;
    case 6:
        last->top_slab = &other;
        break;
    case 7:
        last->top_offset++;
        break;
    case 8:
        last->top_capacity++;
        break;
    case 9:
        last->shape.choices++;
        break;
    case 10:
        last->shape.pixel_layout = LEAT_NHWC;
        break;
    case 11:
        last->shape.top[0].offset++;
        break;
    case 12:
        last->shape.top[0].image[2]++;
        break;
    case 13: /* the memory of a variable batch has a gap after it */
        neighbour[1].capacity++;
        last->offset++;
        break;
    case 14: /* its consumer is not through */
        last->nconsumed = 1;
        break;
    default: /* a transform for which nobody waited */
        last->is_transformed = 1;
        last->is_awaited = 0;
    }
}

START_TEST(what_is_unlike_its_neighbours_has_an_upload_of_its_own)
{
    make_neighbours(1);
    set_apart(_i);
    ck_assert_int_eq(run(), NEIGHBOURS - 1);
}
END_TEST

/* By the copy, that is; those of its first batch alone may last. */
START_TEST(uses_that_are_over_are_not_waited_for)
{
    device.answers = 1;
    make_neighbours(1);
    for (int i = 0; i < NEIGHBOURS; i++) {
        neighbour[i].nconsumed = 1;
        neighbour[i].is_transformed = i == 1;
    }
    ck_assert_int_eq(run(), NEIGHBOURS);
    assert_calls("query 161; query 252; query 261; query 361; ");
    ck_assert_int_eq(
        leat__device_copy_upload(&device_copy, neighbours, NEIGHBOURS),
        LEAT_OK);
    assert_calls("copy 900 to the device on 1; record 153 on 1; "
                 "5 waits for 153; transform 7 on 5; "
                 "record 152 on 5; record 252 on 5; record 352 on 5; ");
    device.answers = 0;
    neighbour[0].nconsumed = neighbour[1].nconsumed = 1;
    ck_assert_int_eq(run(), 1);
    assert_calls("query 152; query 161; query 252; query 261; ");
    device.answers = 1;
    device.fail_at = 2;
    ck_assert_int_eq(run(), 1);
}
END_TEST

START_TEST(an_upload_of_several_has_bounded_bytes)
{
    make_neighbours(0);
    for (int i = 0; i < NEIGHBOURS; i++) {
        neighbour[i].capacity = neighbour[i].shape.bytes =
            LEAT__UPLOAD_BYTES / 2;
        neighbour[i].offset = (size_t)i * LEAT__UPLOAD_BYTES / 2;
    }
    ck_assert_int_eq(run(), 2);
    neighbour[0].failed = 1;
    ck_assert_int_eq(run(), 1);
    make_neighbours(0);
    for (int i = 0; i < NEIGHBOURS; i++)
        neighbour[i].n = 0;
    ck_assert_int_eq(run(), 1);
}
END_TEST

/* Uploads of so many bytes each until one has to wait; how many did not. */
static int count_under_way(size_t bytes)
{
    static const leat__upload none;
    device_copy.uploads = 0;
    device_copy.copied = 0;
    for (int i = 0; i < LEAT__UPLOADS; i++)
        device_copy.latest[i] = none;
    (void)recording_device_look(&device);
    for (int n = 1;; n++) {
        device_copy.uploads = n;
        leat__upload *latest = &device_copy.latest[n % LEAT__UPLOADS];
        *latest = (leat__upload){.number = n,
                                 .over = (leat_event)n,
                                 .batches = 1,
                                 .begin = (n - 1) * (int64_t)bytes,
                                 .end = n * (int64_t)bytes};
        ck_assert_int_eq(leat__device_copy_pace(&device_copy), LEAT_OK);
        const char *calls = recording_device_look(&device);
        if (strcmp(calls, "") == 0 && n < 40)
            continue;
        return n - 1;
    }
}

START_TEST(so_many_uploads_are_under_way)
{
    ck_assert_int_eq(count_under_way(LEAT__UPLOAD_BYTES / 4), 4);
    ck_assert_int_eq(device_copy.copied, 1);
    ck_assert_int_eq(count_under_way(LEAT__UPLOAD_BYTES / 2), 2);
    ck_assert_int_eq(count_under_way(1), LEAT__UPLOADS - 1);
    ck_assert_int_eq(device_copy.copied, 1);
    /* Batches of which no two share an upload gain nothing by it. */
    ck_assert_int_eq(count_under_way(LEAT__UPLOAD_BYTES / 2 + 1), 39);
}
END_TEST

START_TEST(the_device_copys_own_stream_is_what_is_synchronized)
{
    ck_assert_int_eq(leat__device_copy_synchronize(&device_copy), LEAT_OK);
    assert_calls("sync stream 1; ");
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_synchronize(&device_copy), LEAT_EDEVICE);
}
END_TEST

START_TEST(each_stream_that_reads_gets_an_event_which_is_used_again)
{
    static const leat_stream streams[] = {7, LEAT_HOST, 8};
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 3),
                     LEAT_OK);
    assert_calls("create event; record 101 on 7; "
                 "create event; record 102 on 8; ");
    ck_assert_int_eq(batch.nconsumed, 2);
    ck_assert_int_eq(batch.events, 2);
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 1),
                     LEAT_OK);
    assert_calls("create event; record 103 on 7; ");
    ck_assert_int_eq(batch.nconsumed, 3);
    batch.nconsumed = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 3),
                     LEAT_OK);
    assert_calls("record 101 on 7; record 102 on 8; ");
    ck_assert_int_eq(batch.events, 3);
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, NULL, 0),
                     LEAT_OK);
    assert_calls("");
}
END_TEST

/* Its end cannot be marked, so it is waited for; the others are marked. */
START_TEST(a_stream_that_cannot_be_marked_is_waited_for)
{
    static const leat_stream streams[] = {7, 8};
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 2),
                     LEAT_EDEVICE);
    ck_assert_str_eq(leat_last_error(), "event_create failed");
    assert_calls("create event; sync stream 7; "
                 "create event; record 101 on 8; ");
    ck_assert_int_eq(batch.nconsumed, 1);
    ck_assert_int_eq(batch.events, 1);
    batch.nconsumed = 0;
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 1),
                     LEAT_EDEVICE);
    ck_assert_str_eq(leat_last_error(), "event_record failed");
    assert_calls("record 101 on 7; sync stream 7; ");
    ck_assert_int_eq(batch.nconsumed, 0);
    ck_assert_int_eq(batch.events, 1);
}
END_TEST

START_TEST(a_batch_knows_nine_streams_at_most)
{
    static const leat_stream streams[] = {7, 8};
    use_streams(LEAT__STREAMS_MAX - 1);
    device.events = 8;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 2),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "more than 9 streams use a batch");
    assert_calls("create event; record 109 on 7; sync stream 8; ");
    ck_assert_int_eq(batch.nconsumed, LEAT__STREAMS_MAX);
    ck_assert_int_eq(batch.events, LEAT__STREAMS_MAX);
}
END_TEST

/* The first failure is told, though waiting for another stream failed too. */
START_TEST(the_first_of_several_failures_is_told)
{
    static const leat_stream streams[] = {7, 8, 9};
    use_streams(LEAT__STREAMS_MAX);
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 3),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "more than 9 streams use a batch");
    assert_calls("sync stream 7; sync stream 8; sync stream 9; ");
}
END_TEST

START_TEST(the_end_of_all_use_is_awaited)
{
    static leat__batch batches[2];
    memset(batches, 0, sizeof(batches));
    batches[0].nconsumed = 2;
    batches[0].consumed[0] = 61;
    batches[0].consumed[1] = 62;
    batches[1].nconsumed = 1;
    batches[1].consumed[0] = 71;
    leat__device_copy_wait(&device_copy, batches, 2);
    assert_calls("sync stream 1; sync 61; sync 62; sync 71; ");
    leat__device_copy_wait(&device_copy, batches, 1);
    assert_calls("sync stream 1; sync 61; sync 62; ");
    /* What fails hides nothing that may still be in use. */
    device.fail_at = 0;
    leat__device_copy_wait(&device_copy, batches, 2);
    assert_calls("sync stream 1; sync 61; sync 62; sync 71; ");
    device_copy.transforms = TRANSFORMS;
    device_copy.has_transforms = 1;
    leat__device_copy_wait(&device_copy, batches, 1);
    assert_calls("sync stream 1; sync stream 5; sync 61; sync 62; ");
    device_copy.has_transforms = 0;
}
END_TEST

START_TEST(a_device_in_host_memory_is_asked_for_nothing)
{
    static const leat_stream streams[] = {7};
    end_device_copy();
    device.ops.unified = 1;
    begin_device_copy();
    ck_assert_int_eq(device_copy.has_copies, 0);
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 1),
                     LEAT_OK);
    leat__device_copy_wait(&device_copy, &batch, 1);
    ck_assert_int_eq(device_copy.batches, 0);
    ck_assert_int_eq(batch.nconsumed, 1);
    end_device_copy();
    assert_calls("");
}
END_TEST

START_TEST(what_was_made_goes_when_a_call_of_the_beginning_fails)
{
    static const char *const calls[] = {
        "create stream; ",
        "create stream; create stream of high priority; destroy stream 1; ",
        "create stream; create stream of high priority; alloc 4; "
        "destroy stream 3; destroy stream 2; ",
        "create stream; create stream of high priority; alloc 4; "
        "copy 4 to the device on 4; sync stream 4; "
        "free 4; destroy stream 5; destroy stream 4; ",
        "create stream; create stream of high priority; alloc 4; "
        "copy 4 to the device on 6; sync stream 6; "
        "free 4; destroy stream 7; destroy stream 6; ",
    };
    const float mean = 3;
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_value = &mean;
    options.mean_values = 1;
    leat_transformer *transformer;
    ck_assert_int_eq(leat_transformer_create(&transformer, &options, LEAT_TRAIN,
                                             LEAT_FLOAT32, LEAT_NCHW),
                     LEAT_OK);
    const leat__batch_shape cropped = {.is_cropped = 1,
                                       .top = {{.image = {3, 4, 5}}}};
    end_device_copy();
    recording_device_look(&device);
    device.streams = 0;
    for (int n = 0; n < 5; n++) {
        device.fail_at = n;
        ck_assert_int_eq(leat__device_copy_init(&device_copy, &device.base,
                                                transformer, &cropped),
                         LEAT_EDEVICE);
        end_device_copy();
        assert_calls(calls[n]);
    }
    leat_transformer_destroy(transformer);
}
END_TEST

START_TEST(a_zeroed_device_copy_has_nothing_to_let_go)
{
    leat__device_copy none;
    memset(&none, 0, sizeof(none));
    none.device = &device.base;
    leat__device_copy_wait(&none, &batch, 1);
    leat__device_copy_finish(&none);
    assert_calls("");
}
END_TEST

/* A millisecond of work, in place of a copy. */
static void work(void)
{
    int64_t end = leat__clock_now() + 1000000;
    while (leat__clock_now() < end)
        continue;
}

static double busy_seconds(void)
{
    return leat__counter_seconds(&device_copy.busy);
}

START_TEST(the_time_of_copies_and_of_waiting_for_them_counts)
{
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_double_lt(busy_seconds(),
                        1e-9 * (double)(leat__clock_now() - begin) + 1e-9);
    device.act = work;
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 1e-3);
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch),
                     LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 2e-3);
    ck_assert_int_eq(device_copy.waiters, 0);
    /* Waiting for the slot to come free is no copying. */
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    double before = busy_seconds();
    int64_t now = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch),
                     LEAT_OK);
    ck_assert_double_le(busy_seconds() - before,
                        1e-9 * (double)(leat__clock_now() - now) - 1e-3);
}
END_TEST

/* As if another thread waited while the call that copies lasts. */
static void wait_meanwhile(void)
{
    device.act = NULL;
    ck_assert_int_eq(device_copy.waiters, 1);
    work();
    batch.upload = (leat__upload){.number = 1, .over = COPIED};
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch),
                     LEAT_OK);
    ck_assert_int_eq(device_copy.waiters, 1);
    ck_assert_double_ge(busy_seconds(), 1e-3);
    work();
}

START_TEST(time_in_which_several_wait_counts_once)
{
    device.act = wait_meanwhile;
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 2e-3);
    ck_assert_double_le(busy_seconds(),
                        1e-9 * (double)(leat__clock_now() - begin));
    ck_assert_int_eq(device_copy.waiters, 0);
    /* What lies between two uploads counts for nothing. */
    double before = busy_seconds();
    work();
    begin = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_synchronize(&device_copy), LEAT_OK);
    ck_assert_double_le(busy_seconds() - before,
                        1e-9 * (double)(leat__clock_now() - begin));
}
END_TEST

static leat_transform_options transform;
static const float mean_values[2] = {1, 2};

/* A device copy that transforms images of 2 x 3 x 4, its top in `memory`. */
static int begin_transform(void)
{
    const leat__batch_shape cropped = {.is_cropped = 1,
                                       .top = {{.image = {2, 3, 4}}}};
    leat_transformer *transformer;
    ck_assert_int_eq(leat_transformer_create(&transformer, &transform,
                                             LEAT_TRAIN, LEAT_FLOAT16,
                                             LEAT_NHWC),
                     LEAT_OK);
    end_device_copy();
    device.streams = 0;
    recording_device_look(&device);
    int status = leat__device_copy_init(&device_copy, &device.base, transformer,
                                        &cropped);
    leat_transformer_destroy(transformer);
    return status;
}

START_TEST(without_a_mean_nothing_is_uploaded)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    assert_calls("create stream; create stream of high priority; ");
    ck_assert_ptr_null(device_copy.transform.mean);
    ck_assert_ptr_null(device_copy.transform.mean_value);
}
END_TEST

START_TEST(mean_values_are_uploaded)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = mean_values;
    transform.mean_values = 2;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    assert_calls("create stream; create stream of high priority; alloc 8; "
                 "copy 8 to the device on 1; sync stream 1; ");
    ck_assert_mem_eq(device_copy.transform.mean_value, mean_values, 8);
    ck_assert_int_eq(device_copy.transform.mean_values, 2);
    ck_assert_ptr_null(device_copy.transform.mean);
    end_device_copy();
    assert_calls("free 8; destroy stream 2; destroy stream 1; ");
}
END_TEST

START_TEST(a_mean_image_is_uploaded_whole)
{
    static const float mean[2 * 3 * 4] = {1, 2, 3, 4, [23] = 24};
    char path[] = "mean.binaryproto.XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, mean), LEAT_OK);
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_file = path;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    unlink(path);
    assert_calls("create stream; create stream of high priority; alloc 96; "
                 "copy 96 to the device on 1; sync stream 1; ");
    ck_assert_mem_eq(device_copy.transform.mean, mean, sizeof(mean));
    ck_assert_ptr_null(device_copy.transform.mean_value);
    ck_assert_int_eq(device_copy.transform.mean_height, 3);
    ck_assert_int_eq(device_copy.transform.mean_width, 4);
}
END_TEST

START_TEST(a_device_without_priorities_gives_another_stream)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    device.ops.stream_create_high_priority = NULL;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    assert_calls("create stream; create stream; ");
    ck_assert_int_eq((int)device_copy.transforms, 2);
}
END_TEST

START_TEST(a_device_without_a_transform_is_refused)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    device.ops.transform = NULL;
    ck_assert_int_eq(begin_transform(), LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(),
                     "recording has no transform of its own: transform_on must "
                     "be CPU");
}
END_TEST

START_TEST(a_batch_is_described_by_its_shape_and_its_memory)
{
    static unsigned char top_memory[512];
    leat__slab top = {.device_memory = top_memory};
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = mean_values;
    transform.mean_values = 1;
    transform.scale = 0.5f;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    batch.top_slab = &top;
    batch.top_offset = 32;
    batch.n = 5;
    batch.shape =
        (leat__batch_shape){.ntop = 1,
                            .top = {{.offset = 16, .image = {2, 3, 4}}},
                            .bytes = BYTES,
                            .is_cropped = 1,
                            .pixel_layout = LEAT_NHWC,
                            .choices = 256};
    ck_assert_int_eq(upload(), LEAT_OK);
    const leat_device_transform *what = &device.what;
    ck_assert_ptr_eq(what->pixels, memory + OFFSET + 16);
    ck_assert_ptr_eq((const void *)what->choices, memory + OFFSET + 256);
    ck_assert_ptr_eq(what->top, top_memory + 32);
    ck_assert_ptr_eq(what->mean_value, device_copy.means);
    ck_assert_int_eq(what->mean_values, 1);
    ck_assert_float_eq(what->scale, 0.5f);
    ck_assert_int_eq(what->top_type, LEAT_FLOAT16);
    ck_assert_int_eq(what->pixel_layout, LEAT_NHWC);
    ck_assert_int_eq(what->layout, LEAT_NHWC);
    ck_assert_int_eq(what->images, 5);
    ck_assert_int_eq(what->channels, 2);
    ck_assert_int_eq(what->height, 3);
    ck_assert_int_eq(what->width, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_copy");
    TCase *tcase = tcase_create("device_copy");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_upload_is_a_copy_and_a_mark);
    tcase_add_test(tcase, it_comes_after_all_that_use_the_memory);
    tcase_add_test(tcase, pageable_memory_is_copied_once_it_is_free);
    tcase_add_test(tcase, a_device_transforms_after_the_copy);
    tcase_add_test(
        tcase,
        the_host_side_is_free_after_the_copy_and_the_tops_after_the_transform);
    tcase_add_test(tcase, a_copy_waits_for_a_transform_that_nobody_waited_for);
    tcase_add_test(tcase, a_batch_without_rows_is_ready_at_once);
    tcase_add_test(tcase, an_upload_ends_at_the_first_call_that_fails);
    tcase_add_test(tcase, a_copy_is_awaited_from_its_begin_to_its_end);
    tcase_add_test(tcase, neighbours_share_a_copy_and_a_transform);
    tcase_add_loop_test(
        tcase, what_is_unlike_its_neighbours_has_an_upload_of_its_own, 0, 16);
    tcase_add_test(tcase, uses_that_are_over_are_not_waited_for);
    tcase_add_test(tcase, an_upload_of_several_has_bounded_bytes);
    tcase_add_test(tcase, so_many_uploads_are_under_way);
    tcase_add_test(tcase, the_device_copys_own_stream_is_what_is_synchronized);
    tcase_add_test(tcase,
                   each_stream_that_reads_gets_an_event_which_is_used_again);
    tcase_add_test(tcase, a_stream_that_cannot_be_marked_is_waited_for);
    tcase_add_test(tcase, a_batch_knows_nine_streams_at_most);
    tcase_add_test(tcase, the_first_of_several_failures_is_told);
    tcase_add_test(tcase, the_end_of_all_use_is_awaited);
    tcase_add_test(tcase, a_device_in_host_memory_is_asked_for_nothing);
    tcase_add_test(tcase,
                   what_was_made_goes_when_a_call_of_the_beginning_fails);
    tcase_add_test(tcase, a_zeroed_device_copy_has_nothing_to_let_go);
    tcase_add_test(tcase, the_time_of_copies_and_of_waiting_for_them_counts);
    tcase_add_test(tcase, time_in_which_several_wait_counts_once);
    tcase_add_test(tcase, without_a_mean_nothing_is_uploaded);
    tcase_add_test(tcase, mean_values_are_uploaded);
    tcase_add_test(tcase, a_mean_image_is_uploaded_whole);
    tcase_add_test(tcase, a_device_without_priorities_gives_another_stream);
    tcase_add_test(tcase, a_device_without_a_transform_is_refused);
    tcase_add_test(tcase, a_batch_is_described_by_its_shape_and_its_memory);
    return suite_run(suite);
}
