/* What uploads ask of a device, call by call, and what a failure leaves. */
#include "support/device_copy_fixture.h"
#include "support/suite.h"

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
    assert_calls("1 waits for 52; sync stream 1; ");
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
    /* But for the offsets of ragged tops. */
    batch.shape.fixed = BYTES - sizeof(int64_t);
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls("copy 300 to the device on 1; record 53 on 1; "
                 "record 52 on 1; ");
}
END_TEST

/*
 * Nothing comes after a call that failed, but the wait for what was enqueued
 * before. Streams that were not waited for are still to be.
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
        char calls[256];
        snprintf(calls, sizeof(calls), "%ssync stream 1; ", cases[n].calls);
        assert_calls(calls);
        ck_assert_int_eq(batch.nconsumed, cases[n].nconsumed);
        ck_assert_int_eq(batch.upload.has_room, cases[n].has_room);
        ck_assert_int_eq(batch.is_transformed, cases[n].is_transformed);
    }
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
    return leat__upload_run(&device_copy, neighbours, NEIGHBOURS);
}

/* All of them in one upload. */
static void upload_neighbours(void)
{
    ck_assert_int_eq(run(), NEIGHBOURS);
    (void)recording_device_look(&device);
    ck_assert_int_eq(leat__upload_enqueue(&device_copy, neighbours, NEIGHBOURS),
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
            leat__device_copy_await_host(&device_copy, &neighbour[i].upload),
            LEAT_OK);
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
    ck_assert_int_eq(leat__upload_enqueue(&device_copy, neighbours, NEIGHBOURS),
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
        ck_assert_int_eq(leat__upload_pace(&device_copy), LEAT_OK);
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

int main(void)
{
    Suite *suite = suite_create("upload");
    TCase *tcase = tcase_create("upload");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_upload_is_a_copy_and_a_mark);
    tcase_add_test(tcase, it_comes_after_all_that_use_the_memory);
    tcase_add_test(tcase, pageable_memory_is_copied_once_it_is_free);
    tcase_add_test(tcase, a_device_transforms_after_the_copy);
    tcase_add_test(tcase, a_copy_waits_for_a_transform_that_nobody_waited_for);
    tcase_add_test(tcase, a_batch_without_rows_is_ready_at_once);
    tcase_add_test(tcase, an_upload_ends_at_the_first_call_that_fails);
    tcase_add_test(tcase, neighbours_share_a_copy_and_a_transform);
    tcase_add_loop_test(
        tcase, what_is_unlike_its_neighbours_has_an_upload_of_its_own, 0, 16);
    tcase_add_test(tcase, uses_that_are_over_are_not_waited_for);
    tcase_add_test(tcase, an_upload_of_several_has_bounded_bytes);
    tcase_add_test(tcase, so_many_uploads_are_under_way);
    return suite_run(suite);
}
