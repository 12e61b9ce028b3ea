/* The way of batches: free, completed in order, ready; and what memory they
 * take.
 */
#include "base/thread.h"
#include "layer/device_queue.h"
#include "support/condition_spy.h"
#include "support/late_device.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECONDS = 30, BATCHES = 8 };

static leat__device_queues queues;
static leat__device_queue *queue; /* the first one */
static leat__thread worker;

/* On `devices` CPUs; a batch has `size` samples. */
static void make(leat__batch_shape shape, int size, int devices,
                 int circulating)
{
    const leat__device_queue_options options = {
        .shape = shape,
        .batch_size = size,
        .batches = BATCHES,
        .circulating = circulating,
    };
    leat_device *cpu;
    ck_assert_int_eq(leat_device_find(&cpu, "cpu"), LEAT_OK);
    leat_device *const device[] = {cpu, cpu, cpu};
    ck_assert_int_eq(
        leat__device_queues_init(&queues, device, devices, &options), LEAT_OK);
    queue = queues.queue;
}

static void make_again(leat__batch_shape shape, int size, int devices,
                       int circulating)
{
    leat__device_queues_finish(&queues);
    make(shape, size, devices, circulating);
}

static void set_up(void)
{
    watchdog_start(SECONDS);
    make((leat__batch_shape){.bytes = 4096}, 1, 1, BATCHES);
    condition_spy_reset();
}

static void tear_down(void)
{
    leat__device_queues_close(&queues);
    leat__thread_join(&worker);
    leat__device_queues_finish(&queues);
    watchdog_stop();
}

static leat__batch *take(void)
{
    leat__batch *batch;
    ck_assert_int_eq(leat__device_queue_take(queue, &batch), LEAT_OK);
    return batch;
}

static void take_all(void)
{
    leat__batch *batch;
    while (leat__device_queue_take(queue, &batch) == LEAT_OK)
        continue;
}

static void give(int first, int n)
{
    for (int i = first; i < first + n; i++)
        leat__device_queue_give(&queues, queue, &queue->batch[i]);
}

static int wakes(void)
{
    return condition_spy_signals + condition_spy_broadcasts;
}

static void *await_room(void *argument)
{
    int64_t *ticket = argument;
    (void)leat__event_count_wait(&queues.room, *ticket, LEAT__FOREVER);
    return NULL;
}

/* Returns once the worker sleeps. */
static void start_worker(void)
{
    static int64_t ticket;
    int before = condition_spy_waits();
    ticket = leat__event_count_ticket(&queues.room);
    ck_assert_int_eq(leat__thread_start(&worker, "worker", await_room, &ticket),
                     LEAT_OK);
    condition_spy_await(before + 1);
}

START_TEST(the_newest_is_taken_first)
{
    leat__batch *first = take(), *second = take();
    leat__device_queue_give(&queues, queue, first);
    leat__device_queue_give(&queues, queue, second);
    ck_assert_ptr_eq(take(), second);
    ck_assert_ptr_eq(take(), first);
    take_all();
    leat__batch *batch = NULL;
    ck_assert_int_eq(leat__device_queue_take(queue, &batch), LEAT_AGAIN);
    ck_assert_ptr_null(batch);
}
END_TEST

/* Batches of a device with memory of its own. */
static void make_late(int batches)
{
    const leat__device_queue_options options = {
        .shape = {.bytes = 256},
        .batch_size = 1,
        .batches = batches,
        .circulating = batches,
    };
    leat_device *late;
    leat__device_queues_finish(&queues);
    late_device_register();
    ck_assert_int_eq(leat_device_find(&late, "late:0"), LEAT_OK);
    ck_assert_int_eq(leat__device_queues_init(&queues, &late, 1, &options),
                     LEAT_OK);
    queue = queues.queue;
}

/* Begins that many batches, from number 0 on. */
static void begin_late(leat__batch *batch[], int n)
{
    make_late(n);
    for (int i = 0; i < n; i++) {
        batch[i] = take();
        leat__batch_begin(batch[i], i);
        batch[i]->shape.bytes = 256;
    }
}

/* Finishes them, the first one last; how many uploads that made. */
static int64_t complete_all(leat__batch *const batch[], int n)
{
    const int way = LEAT_COPY_TO_DEVICE;
    int64_t before = late_device_count(queue->device).copies[way];
    for (int i = n - 1; i >= 0; i--)
        (void)leat__device_queues_complete(&queues, batch[i], 1);
    return late_device_count(queue->device).copies[way] - before;
}

static void check_ready(leat__batch *const batch[], int n)
{
    for (int i = 0; i < n; i++) {
        void *item;
        ck_assert_int_eq(leat__queue_pop(queue->ready, &item, 0), LEAT_OK);
        ck_assert_ptr_eq(item, batch[i]);
    }
}

/* To a batch that needs room. One that was taken does so until it is prepared.
 */
START_TEST(free_batches_give_back_what_they_grew_to)
{
    const leat__batch_shape large = {.bytes = 9000};
    leat__batch *batch[4];
    leat_stats stats = {.size = sizeof(stats)};
    bool is_late = _i & 1, is_taken = _i & 2;
    if (is_late)
        make_late(BATCHES);
    int sides = is_late ? 2 : 1, each = is_late ? 256 : 4096;
    queue->budget.limit = queue->budget.in_use + 20000 * (size_t)sides;
    for (int i = 0; i < 4; i++)
        batch[i] = take();
    ck_assert_int_eq(leat__batch_reserve(batch[0], &large), LEAT_OK);
    ck_assert_int_eq(leat__batch_reserve(batch[1], &large), LEAT_OK);
    ck_assert_int_eq(leat__batch_reserve(batch[2], &large), LEAT_ELIMIT);
    leat__device_queue_give(&queues, queue, batch[0]);
    while (is_taken && take() != batch[0])
        continue;
    ck_assert_int_eq(leat__batch_reserve(batch[2], &large), LEAT_OK);
    ck_assert_uint_eq(batch[0]->capacity, each);
    leat__device_queue_stats(&queues, queue, &stats);
    ck_assert_int_eq(is_late ? stats.memory.pinned : stats.memory.host,
                     BATCHES * each + 2 * 9000);
    leat__batch_begin_prepare(batch[0]);
    leat__device_queue_give(&queues, queue, batch[1]);
    leat__batch_begin_prepare(batch[1]);
    leat__batch_end_prepare(batch[1]);
    ck_assert_int_eq(leat__batch_reserve(batch[0], &large), LEAT_ELIMIT);
    ck_assert_uint_eq(batch[1]->capacity, 9000);
}
END_TEST

/* Of those that the prefetch brings into use there is one more where there is
 * room for it. */
START_TEST(a_batch_comes_into_use_where_it_has_room)
{
    const int n = 3;
    make_again((leat__batch_shape){.bytes = 4096}, 1, 1, n);
    queue->budget.limit = queue->budget.in_use + 4096;
    for (int i = 0; i < 3; i++) {
        atomic_store(&queue->was_full, true);
        leat__device_queue_press(&queues, queue);
    }
    ck_assert_int_eq(atomic_load(&queue->circulating), n + 1);
    /* As large as the largest. */
    const leat__batch_shape large = {.bytes = 9000};
    queue->budget.limit += 4096 + 9000 + 8999;
    ck_assert_int_eq(leat__batch_reserve(&queue->batch[0], &large), LEAT_OK);
    atomic_store(&queue->was_full, true);
    leat__device_queue_press(&queues, queue);
    ck_assert_int_eq(atomic_load(&queue->circulating), n + 1);
    queue->budget.limit++;
    atomic_store(&queue->was_full, true);
    leat__device_queue_press(&queues, queue);
    ck_assert_int_eq(atomic_load(&queue->circulating), n + 2);
}
END_TEST

/* Else the one that was given back first. */
START_TEST(the_next_in_memory_is_taken_first)
{
    make_late(BATCHES);
    take_all();
    static const int given[] = {3, 0, 2, 1};
    for (int i = 0; i < 4; i++)
        give(given[i], 1);
    static const int taken[] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(take()->slot, taken[i]);
    give(2, 1);
    give(1, 1);
    ck_assert_int_eq(take()->slot, 2);
    ck_assert_int_eq(take()->slot, 1);
}
END_TEST

/* A quarter of all at most, and 16. */
START_TEST(what_is_finished_together_is_uploaded_together)
{
    static const struct {
        int batches;
        int uploads;
    } cases[] = {{3, 3}, {7, 7}, {8, 4}, {40, 4}, {96, 6}};
    enum { MANY = 96 };
    leat__batch *batch[MANY];
    int n = cases[_i].batches;
    begin_late(batch, n);
    ck_assert_int_eq(complete_all(batch, n), cases[_i].uploads);
    check_ready(batch, n);
}
END_TEST

/* One that failed is delivered alone, and nothing comes after it. */
START_TEST(a_failed_batch_shares_no_upload)
{
    enum { MANY = 16, BAD = 2 };
    leat__batch *batch[MANY];
    begin_late(batch, MANY);
    static const char line[LEAT__ERROR_MAX] = "no more";
    leat__batch_fail(batch[BAD], 0, LEAT_EIO, NULL, line);
    ck_assert_int_eq(complete_all(batch, MANY), 1);
    check_ready(batch, BAD + 1);
    void *item;
    ck_assert_int_eq(leat__queue_pop(queue->ready, &item, 0), LEAT_ECANCELLED);
    ck_assert_int_eq(leat__device_queues_ended(&queues), LEAT_EIO);
}
END_TEST

/* Where a thread uploads; by workers they are through when they are finished.
 */
START_TEST(finished_batches_are_known_until_they_are_uploaded)
{
    make_late(BATCHES);
    leat__batch *first = take(), *second = take();
    leat__batch_begin(first, 0);
    leat__batch_begin(second, 1);
    (void)leat__device_queues_complete(&queues, second, 1);
    ck_assert(!leat__device_queues_has_finished(&queues));
    queues.has_thread = true;
    ck_assert(leat__device_queues_has_finished(&queues));
    queues.has_thread = false;
    (void)leat__device_queues_complete(&queues, first, 1);
    queues.has_thread = true;
    ck_assert(!leat__device_queues_has_finished(&queues));
    queues.has_thread = false;
}
END_TEST

START_TEST(half_of_them_wake_a_worker)
{
    int threshold = leat__wake_threshold(BATCHES, true);
    take_all();
    start_worker();
    give(0, threshold - 1);
    ck_assert_int_eq(wakes(), 0);
    give(threshold - 1, 1);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
}
END_TEST

START_TEST(beside_other_devices_each_one_wakes)
{
    make_again((leat__batch_shape){.bytes = 64}, 1, 3, BATCHES);
    take_all();
    start_worker();
    give(0, 1);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
}
END_TEST

START_TEST(in_inline_mode_none_wakes)
{
    take_all();
    leat__device_queue_set_inline(&queues, queue, true);
    start_worker();
    give(0, BATCHES);
    leat__device_queue_set_inline(&queues, queue, true);
    ck_assert_int_eq(wakes(), 0);
    leat__device_queue_set_inline(&queues, queue, false);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
}
END_TEST

START_TEST(a_caller_that_finds_nothing_wakes_for_a_single_one)
{
    take_all();
    start_worker();
    leat__device_queue_press(&queues, queue);
    ck_assert_int_eq(wakes(), 0);
    give(0, 1);
    ck_assert_int_eq(wakes(), 0);
    leat__device_queue_press(&queues, queue);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
}
END_TEST

START_TEST(one_more_comes_into_use_where_workers_ran_out)
{
    make_again((leat__batch_shape){.bytes = 64}, 1, 1, 4);
    take_all();
    leat__device_queue_press(&queues, queue);
    ck_assert_int_eq(atomic_load(&queue->circulating), 4);
    atomic_store(&queue->was_full, 1);
    leat__device_queue_press(&queues, queue);
    leat__device_queue_press(&queues, queue);
    ck_assert_int_eq(atomic_load(&queue->circulating), 5);
    ck_assert_ptr_eq(take(), &queue->batch[4]);
    for (int i = 5; i <= BATCHES + 1; i++) {
        atomic_store(&queue->was_full, 1);
        leat__device_queue_press(&queues, queue);
    }
    ck_assert_int_eq(atomic_load(&queue->circulating), BATCHES);
}
END_TEST

/* Opens batch `number`, of two samples, in the queue that it goes through. */
static leat__batch *open_batch(int64_t number)
{
    leat__batch *batch;
    ck_assert_int_eq(leat__device_queue_take(
                         leat__device_queues_of(&queues, number), &batch),
                     LEAT_OK);
    leat__batch_begin(batch, number);
    return batch;
}

static void expect_ready(int i, int64_t number)
{
    void *item;
    int status = leat__queue_pop(queues.queue[i].ready, &item, 0);
    ck_assert_int_eq(status, number < 0 ? LEAT_AGAIN : LEAT_OK);
    if (number >= 0)
        ck_assert_int_eq(((leat__batch *)item)->number, number);
}

START_TEST(batches_are_ready_in_sequence)
{
    leat__batch *batch[6];
    make_again((leat__batch_shape){.bytes = 64}, 2, 2, BATCHES);
    for (int i = 0; i < 6; i++)
        batch[i] = open_batch(i);
    for (int i = 5; i > 0; i--)
        leat__device_queues_complete(&queues, batch[i], 2);
    leat__device_queues_complete(&queues, batch[0], 1);
    expect_ready(0, -1);
    expect_ready(1, -1);
    leat__device_queues_complete(&queues, batch[0], 1);
    for (int i = 0; i < 6; i++)
        expect_ready(i % 2, i);
    expect_ready(0, -1);
}
END_TEST

START_TEST(a_bad_record_ends_nothing_and_another_failure_all)
{
    /* Lines are copied in their whole size. */
    static const char bad[LEAT__ERROR_MAX] = "a bad record";
    static const char gone[LEAT__ERROR_MAX] = "the disk is gone";
    static const char later[LEAT__ERROR_MAX] = "later";
    leat__batch *batch[4];
    for (int i = 0; i < 4; i++)
        batch[i] = open_batch(i);
    leat__batch_fail(batch[1], 0, LEAT_EDATA, NULL, bad);
    leat__batch_fail(batch[2], 0, LEAT_EIO, NULL, gone);
    for (int i = 3; i >= 0; i--)
        leat__device_queues_complete(&queues, batch[i], 1);
    for (int i = 0; i < 3; i++)
        expect_ready(0, i);
    void *item;
    ck_assert_int_eq(leat__queue_pop(queue->ready, &item, 0), LEAT_ECANCELLED);
    ck_assert_int_eq(leat__device_queues_ended(&queues), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), gone);
    leat__device_queues_end(&queues, LEAT_ENOMEM, later);
    ck_assert_int_eq(leat__device_queues_ended(&queues), LEAT_EIO);
}
END_TEST

START_TEST(memory_that_grows_again_is_counted_once)
{
    static const struct {
        int batch;
        size_t bytes;
        int64_t own; /* of both */
        int growths;
    } steps[] = {{0, 4096, 0, 0},
                 {0, 5000, 5000, 1},
                 {0, 9000, 9000, 2},
                 {1, 6000, 15000, 3},
                 {1, 100, 15000, 3}};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const leat__batch_shape shape = {.bytes = steps[i].bytes};
        leat_stats stats = {.size = sizeof(stats)};
        ck_assert_int_eq(
            leat__batch_reserve(&queue->batch[steps[i].batch], &shape),
            LEAT_OK);
        leat__device_queue_stats(&queues, queue, &stats);
        ck_assert_int_eq(stats.memory.host, BATCHES * 4096 + steps[i].own);
        ck_assert_int_eq(stats.grown_batches, steps[i].growths);
    }
}
END_TEST

/* Pages of a batch that have memory. */
static int resident(int i)
{
    const leat__batch *batch = &queue->batch[i];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = batch->capacity / page;
    unsigned char *is_resident = malloc(pages);
    int n = 0;
    ck_assert_ptr_nonnull(is_resident);
    ck_assert_int_eq(mincore((char *)batch->slab->host + batch->offset,
                             batch->capacity, is_resident),
                     0);
    for (size_t k = 0; k < pages; k++)
        n += is_resident[k] & 1;
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
    make_again(shape, 8, 1, BATCHES);
    ck_assert_int_le(resident(0), 1);
    ck_assert_int_eq(resident(1), 0);
    leat__batch *batch = &queue->batch[1];
    leat__batch_begin(batch, 0);
    ck_assert(batch->populates);
    leat__batch_set_shape(batch, &shape, true);
    ck_assert_int_eq(leat__batch_populate(batch, 2, 3), LEAT_OK);
    ck_assert_int_eq(resident(1), 24);
    ck_assert_int_le(resident(0), 1);
    leat__batch_begin(batch, 2);
    ck_assert(!batch->populates);
}
END_TEST

START_TEST(each_batch_has_its_part_of_the_memory)
{
    make_again((leat__batch_shape){.bytes = 4096}, 1, 1, BATCHES);
    for (size_t i = 0; i < BATCHES; i++) {
        ck_assert_ptr_eq(queue->batch[i].slab, queue->batch[0].slab);
        ck_assert_uint_eq(queue->batch[i].offset, i * 4096);
        ck_assert_uint_eq(queue->batch[i].capacity, 4096);
        ck_assert_ptr_null(queue->batch[i].top_slab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_queue");
    TCase *tcase = tcase_create("device_queue");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, the_newest_is_taken_first);
    tcase_add_loop_test(tcase, free_batches_give_back_what_they_grew_to, 0, 4);
    tcase_add_test(tcase, a_batch_comes_into_use_where_it_has_room);
    tcase_add_test(tcase, the_next_in_memory_is_taken_first);
    tcase_add_loop_test(tcase, what_is_finished_together_is_uploaded_together,
                        0, 5);
    tcase_add_test(tcase, a_failed_batch_shares_no_upload);
    tcase_add_test(tcase, finished_batches_are_known_until_they_are_uploaded);
    tcase_add_test(tcase, half_of_them_wake_a_worker);
    tcase_add_test(tcase, beside_other_devices_each_one_wakes);
    tcase_add_test(tcase, in_inline_mode_none_wakes);
    tcase_add_test(tcase, a_caller_that_finds_nothing_wakes_for_a_single_one);
    tcase_add_test(tcase, one_more_comes_into_use_where_workers_ran_out);
    tcase_add_test(tcase, batches_are_ready_in_sequence);
    tcase_add_test(tcase, a_bad_record_ends_nothing_and_another_failure_all);
    tcase_add_test(tcase, memory_that_grows_again_is_counted_once);
    tcase_add_test(tcase, memory_is_populated_by_the_first_batch_in_it);
    tcase_add_test(tcase, each_batch_has_its_part_of_the_memory);
    return suite_run(suite);
}
