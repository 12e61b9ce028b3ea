/* A queue that threads fill: what Paddle's blocking queue does, and more. */
#include "base/memory.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SENDERS_MAX = 16, READERS_MAX = 30, HANG = 60 };

static const leat_field_spec number_field = {.name = "number",
                                             .dtype = LEAT_INT32};

static leat_push *push;
static leat_pipeline *pipeline;

static void make(int capacity)
{
    int status = leat_push_create(&push, "queue", &number_field, 1, capacity);
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert_int_eq(leat_pipeline_push(&pipeline, push), LEAT_OK);
}

static void set_up(void)
{
    watchdog_start(HANG);
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
    leat_push_unref(push);
    pipeline = NULL;
    push = NULL;
    watchdog_stop();
}

static leat_reader *open_reader(void)
{
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    return reader;
}

static int send_with(leat_sample *sample, int32_t number)
{
    leat_sample_clear(sample);
    leat_sample_set(sample, 0, LEAT_INT32, 0, NULL, &number);
    return leat_push_send(push, sample);
}

static int send_number(int32_t number)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status = send_with(&sample, number);
    leat_sample_finish(&sample);
    return status;
}

static void send_numbers(int32_t first, int32_t end)
{
    for (; first < end; first++)
        ck_assert_int_eq(send_number(first), LEAT_OK);
}

static int32_t number_of(const leat_sample *sample)
{
    int32_t number;
    ck_assert_int_eq(sample->nfields, 1);
    memcpy(&number, sample->field[0].data, sizeof(number));
    return number;
}

/* The next number, or minus the status that came in place of one. */
static int receive(leat_reader *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status = leat_reader_next(reader, &sample);
    int number = status ? -1000 - status : number_of(&sample);
    leat_sample_finish(&sample);
    return number;
}

#define STATUS(status) (-1000 - (status))

/* ---- Threads ------------------------------------------------------------ */

typedef struct sender {
    pthread_t id;
    int first, n; /* numbers to send */
    int sent;
    int status; /* of the last one */
} sender;

static void *send_all(void *argument)
{
    sender *self = argument;
    leat_sample sample;
    leat_sample_init(&sample);
    for (; self->sent < self->n; self->sent++) {
        self->status = send_with(&sample, self->first + self->sent);
        if (self->status)
            break;
    }
    leat_sample_finish(&sample);
    return NULL;
}

static void start_sender(sender *self, int first, int n)
{
    *self = (sender){.first = first, .n = n};
    ck_assert_int_eq(pthread_create(&self->id, NULL, send_all, self), 0);
}

typedef struct receiver {
    pthread_t id;
    leat_reader *reader;
    atomic_int *seen; /* how often each number came */
    int n;
    int status;
    int in_order;
} receiver;

static void *receive_all(void *argument)
{
    receiver *self = argument;
    leat_sample sample;
    int last = -1;
    leat_sample_init(&sample);
    self->in_order = 1;
    while ((self->status = leat_reader_next(self->reader, &sample)) ==
           LEAT_OK) {
        int number = number_of(&sample);
        self->in_order &= number > last;
        last = number;
        atomic_fetch_add(&self->seen[number], 1);
        self->n++;
    }
    leat_sample_finish(&sample);
    return NULL;
}

static void start_receiver(receiver *self, atomic_int *seen)
{
    *self = (receiver){.reader = open_reader(), .seen = seen};
    ck_assert_int_eq(pthread_create(&self->id, NULL, receive_all, self), 0);
}

static void join_receiver(receiver *self)
{
    pthread_join(self->id, NULL);
    leat_reader_close(self->reader);
}

/* Waits until the queue has `n` samples. */
static void await_size(int n)
{
    while (leat_push_size(push) != n)
        sched_yield();
}

START_TEST(names_that_could_not_be_told_apart_are_refused)
{
    char longest[65] = "";
    memset(longest, 'n', 64);
    leat_field_spec named[2] = {{.name = "a", .dtype = LEAT_INT32},
                                {.name = "a", .dtype = LEAT_INT32}};
    const char *const refused[] = {"a", "", NULL, longest};
    for (int i = 0; i < 4; i++) {
        named[1].name = refused[i];
        ck_assert_int_eq(leat_push_create(&push, NULL, named, 2, 1),
                         LEAT_EINVAL);
    }
    named[1] = (leat_field_spec){
        .name = "b", .dtype = LEAT_INT32, .offsets_of = longest};
    ck_assert_int_eq(leat_push_create(&push, NULL, named, 2, 1), LEAT_EINVAL);
    longest[63] = 0;
    named[1] = (leat_field_spec){.name = longest, .dtype = LEAT_INT32};
    leat_push *made;
    ck_assert_int_eq(leat_push_create(&made, NULL, named, 2, 1), LEAT_OK);
    leat_push_unref(made);
}
END_TEST

/* ---- Paddle's cases ----------------------------------------------------- */

START_TEST(a_capacity_of_zero_is_refused)
{
    ck_assert_int_eq(leat_push_create(&push, NULL, &number_field, 1, 0),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_push_create(&push, NULL, &number_field, -1, 1),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_push_create(&push, NULL, NULL, 1, 1), LEAT_EINVAL);
    const leat_field_spec unknown = {.name = "x", .dtype = (leat_dtype)99};
    ck_assert_int_eq(leat_push_create(&push, NULL, &unknown, 1, 1),
                     LEAT_EINVAL);
    ck_assert_ptr_null(push);
}
END_TEST

START_TEST(capacity_and_size_are_reported)
{
    make(3);
    ck_assert_int_eq(leat_push_capacity(push), 3);
    ck_assert_int_eq(leat_push_size(push), 0);
    send_numbers(0, 2);
    ck_assert_int_eq(leat_push_size(push), 2);
    ck_assert_int_eq(leat_push_is_closed(push), 0);
    leat_push_close(push);
    ck_assert_int_eq(leat_push_is_closed(push), 1);
    ck_assert_int_eq(leat_push_size(push), 2);
}
END_TEST

/* (capacity, elements): more than fit, and fewer. */
START_TEST(first_in_is_first_out)
{
    static const int cases[][2] = {
        {2, 5}, {2, 50}, {10, 3}, {10, 1000}, {1, 9}};
    atomic_int seen[1000] = {0};
    sender one;
    receiver other;
    make(cases[_i][0]);
    start_receiver(&other, seen);
    start_sender(&one, 0, cases[_i][1]);
    pthread_join(one.id, NULL);
    leat_push_close(push);
    join_receiver(&other);
    ck_assert_int_eq(one.sent, cases[_i][1]);
    ck_assert_int_eq(other.n, cases[_i][1]);
    ck_assert_int_eq(other.in_order, 1);
    ck_assert_int_eq(other.status, LEAT_END);
}
END_TEST

START_TEST(a_sender_blocks_at_the_capacity_until_close)
{
    sender one;
    make(4);
    start_sender(&one, 0, 5);
    await_size(4);
    leat_push_close(push);
    pthread_join(one.id, NULL);
    ck_assert_int_eq(one.status, LEAT_END);
    ck_assert_int_eq(one.sent, 4);
    leat_reader *reader = open_reader();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(receive(reader), i);
    ck_assert_int_eq(receive(reader), STATUS(LEAT_END));
    ck_assert_int_eq(receive(reader), STATUS(LEAT_END));
    leat_reader_close(reader);
    ck_assert_int_eq(send_number(1), LEAT_END);
}
END_TEST

START_TEST(many_senders_and_receivers_lose_nothing)
{
    static const struct {
        int n[4], senders, receivers;
    } cases[] = {{{2, 3, 4, 0}, 3, 2},
                 {{9, 0, 0, 0}, 1, 3},
                 {{0, 7, 15, 6}, 4, 30},
                 {{500, 0, 700, 300}, 4, 4}};
    atomic_int seen[2000] = {0};
    sender senders[4];
    receiver receivers[READERS_MAX];
    int total = 0, received = 0;
    make(4);
    for (int i = 0; i < cases[_i].receivers; i++)
        start_receiver(&receivers[i], seen);
    for (int i = 0; i < cases[_i].senders; i++) {
        start_sender(&senders[i], total, cases[_i].n[i]);
        total += cases[_i].n[i];
    }
    for (int i = 0; i < cases[_i].senders; i++)
        pthread_join(senders[i].id, NULL);
    leat_push_close(push);
    for (int i = 0; i < cases[_i].receivers; i++) {
        join_receiver(&receivers[i]);
        received += receivers[i].n;
    }
    ck_assert_int_eq(received, total);
    for (int i = 0; i < total; i++)
        ck_assert_int_eq(atomic_load(&seen[i]), 1);
}
END_TEST

START_TEST(reopen_empties_it_and_begins_another_pass)
{
    make(3);
    leat_reader *reader = open_reader();
    send_numbers(0, 3);
    ck_assert_int_eq(receive(reader), 0);
    leat_push_close(push);
    leat_push_reopen(push);
    ck_assert_int_eq(leat_push_is_closed(push), 0);
    ck_assert_int_eq(leat_push_size(push), 0);
    send_numbers(10, 12);
    /* Passes do not mix. */
    ck_assert_int_eq(receive(reader), STATUS(LEAT_END));
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                     LEAT_OK);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(number_of(&sample), 10);
    ck_assert_int_eq(sample.from.record, 0);
    ck_assert_str_eq(sample.from.source, "queue");
    leat_sample_finish(&sample);
    ck_assert_int_eq(receive(reader), 11);
    /* A single pass, until it is reopened again. */
    leat_push_close(push);
    ck_assert_int_eq(receive(reader), STATUS(LEAT_END));
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){2, 0}, NULL),
                     LEAT_EUNSUPPORTED);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_reader_that_has_read_nothing_takes_any_pass)
{
    make(3);
    leat_reader *reader = open_reader();
    send_numbers(0, 3);
    leat_push_reopen(push);
    send_numbers(5, 6);
    ck_assert_int_eq(receive(reader), 5);
    leat_reader_close(reader);
}
END_TEST

START_TEST(reopen_lets_a_waiting_sender_go_on)
{
    sender one;
    make(2);
    start_sender(&one, 0, 3);
    await_size(2);
    leat_push_reopen(push);
    pthread_join(one.id, NULL);
    ck_assert_int_eq(one.sent, 3);
    leat_reader *reader = open_reader();
    ck_assert_int_eq(receive(reader) >= 0, 1);
    leat_reader_close(reader);
}
END_TEST

START_TEST(kill_ends_both_ends_with_its_error)
{
    sender one;
    make(2);
    leat_reader *reader = open_reader();
    start_sender(&one, 0, 5);
    await_size(2);
    ck_assert_int_eq(leat_push_kill(push, LEAT_END, "x"), LEAT_EINVAL);
    ck_assert_int_eq(leat_push_kill(push, LEAT_EIO, "the camera is gone"),
                     LEAT_OK);
    pthread_join(one.id, NULL);
    ck_assert_int_eq(one.status, LEAT_EIO);
    /* What is in the queue is not received. */
    ck_assert_int_eq(receive(reader), STATUS(LEAT_EIO));
    ck_assert_str_eq(leat_last_error(), "the camera is gone");
    ck_assert_int_eq(receive(reader), STATUS(LEAT_EIO));
    ck_assert_int_eq(send_number(1), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "the camera is gone");
    leat_push_reopen(push);
    send_numbers(7, 8);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(receive(reader), 7);
    leat_reader_close(reader);
}
END_TEST

START_TEST(kill_wakes_a_waiting_receiver)
{
    atomic_int seen[1] = {0};
    receiver other;
    make(2);
    start_receiver(&other, seen);
    leat_push_kill(push, LEAT_EDEVICE, NULL);
    join_receiver(&other);
    ck_assert_int_eq(other.status, LEAT_EDEVICE);
}
END_TEST

/* ---- leat's own --------------------------------------------------------- */

START_TEST(cancel_wakes_a_waiting_receiver)
{
    atomic_int seen[1] = {0};
    receiver other, rest;
    make(2);
    start_receiver(&other, seen);
    start_receiver(&rest, seen);
    leat_reader_cancel(other.reader);
    pthread_join(other.id, NULL);
    ck_assert_int_eq(other.status, LEAT_ECANCELLED);
    leat_reader_close(other.reader);
    /* The other one goes on. */
    send_numbers(0, 1);
    leat_push_close(push);
    join_receiver(&rest);
    ck_assert_int_eq(rest.n, 1);
}
END_TEST

START_TEST(trying_to_send_does_not_wait)
{
    leat_sample sample;
    int32_t number = 1;
    make(1);
    leat_sample_init(&sample);
    leat_sample_set(&sample, 0, LEAT_INT32, 0, NULL, &number);
    ck_assert_int_eq(leat_push_try_send(push, &sample), LEAT_OK);
    ck_assert_int_eq(sample.nfields, 0);
    leat_sample_set(&sample, 0, LEAT_INT32, 0, NULL, &number);
    ck_assert_int_eq(leat_push_try_send(push, &sample), LEAT_AGAIN);
    ck_assert_int_eq(sample.nfields, 1);
    leat_push_close(push);
    ck_assert_int_eq(leat_push_try_send(push, &sample), LEAT_END);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(a_buffer_is_handed_over_not_copied)
{
    leat_sample sample, out;
    make(2);
    leat_sample_init(&sample);
    leat_sample_init(&out);
    int32_t *number = leat_sample_take(&sample, 2 * sizeof(*number));
    *number = 5;
    memcpy(number + 1, "key", 3);
    leat_sample_set(&sample, 0, LEAT_INT32, 0, NULL, number);
    sample.from.key = number + 1;
    sample.from.key_size = 3;
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_OK);
    ck_assert_ptr_ne(sample.buffer, number);
    leat_reader *reader = open_reader();
    ck_assert_int_eq(leat_reader_next(reader, &out), LEAT_OK);
    ck_assert_ptr_eq(out.field[0].data, number);
    ck_assert_int_eq(*number, 5);
    ck_assert_mem_eq(out.from.key, "key", 3);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    leat_sample_finish(&out);
}
END_TEST

START_TEST(nothing_is_allocated_once_all_buffers_have_grown)
{
    leat_sample sample, out;
    make(2);
    leat_sample_init(&sample);
    leat_sample_init(&out);
    leat_reader *reader = open_reader();
    int64_t before = 0;
    for (int i = 0; i < 40; i++) {
        if (i == 10)
            before = leat__alloc_count();
        ck_assert_int_eq(send_with(&sample, i), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &out), LEAT_OK);
        ck_assert_int_eq(number_of(&out), i);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    leat_sample_finish(&out);
}
END_TEST

/* A number, in a buffer that is long for one in ten. */
static int send_rare(leat_sample *sample, int32_t number)
{
    enum { SHORT = 64, LONG = 1 << 20 };
    leat_sample_clear(sample);
    int32_t *at = leat_sample_take(sample, number % 10 < 9 ? SHORT : LONG);
    *at = number;
    leat_sample_set(sample, 0, LEAT_INT32, 0, NULL, at);
    return leat_push_send(push, sample);
}

/* Each place of the queue has a long sample at some time. */
START_TEST(rare_long_samples_leave_no_buffers)
{
    enum { CAPACITY = 63, ROUNDS = 100 };
    leat_sample sample, out;
    make(CAPACITY);
    leat_sample_init(&sample);
    leat_sample_init(&out);
    leat_reader *reader = open_reader();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CAPACITY; i++)
            ck_assert_int_eq(send_rare(&sample, round * CAPACITY + i), LEAT_OK);
        int64_t held = reader->ops->memory(reader);
        ck_assert_int_le(held, 12 << 20);
        for (int i = 0; i < CAPACITY; i++) {
            ck_assert_int_eq(leat_reader_next(reader, &out), LEAT_OK);
            ck_assert_int_eq(number_of(&out), round * CAPACITY + i);
        }
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    leat_sample_finish(&out);
}
END_TEST

START_TEST(samples_of_other_fields_are_refused)
{
    leat_sample sample;
    const float value = 1;
    const int64_t shape[] = {1};
    make(2);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "queue: a sample has 0 fields, expected 1");
    leat_sample_set(&sample, 0, LEAT_FLOAT32, 0, NULL, &value);
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"number\""));
    leat_sample_set(&sample, 0, LEAT_INT32, 1, shape, &value);
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_EINVAL);
    sample.field[0] = (leat_field){.dtype = LEAT_INT32, .data = &value};
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_EINVAL);
    sample.field[0].shape[0] = -1;
    sample.field[0].ndim = 1;
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_EINVAL);
    ck_assert_int_eq(leat_push_size(push), 0);
    leat_sample_finish(&sample);
}
END_TEST

/* An allocator that counts. */
static int live;

static void *take_memory(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    live++;
    return aligned_alloc(alignment,
                         (bytes + alignment - 1) / alignment * alignment);
}

static void give_memory(void *user, void *memory, size_t bytes,
                        size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    live--;
    free(memory);
}

START_TEST(a_reader_keeps_its_own_allocator)
{
    const leat_allocator allocator = {
        .size = sizeof(allocator), .alloc = take_memory, .free = give_memory};
    leat_sample out[2], *into[] = {&out[0], &out[1]};
    int got;
    make(4);
    for (int i = 0; i < 2; i++) {
        leat_sample_init(&out[i]);
        out[i].allocator = &allocator;
    }
    send_numbers(0, 4);
    leat_reader *reader = open_reader();
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(leat_reader_next_batch(reader, into, 2, &got),
                         LEAT_OK);
        ck_assert_int_eq(got, 1);
        ck_assert_ptr_eq(out[0].allocator, &allocator);
        ck_assert_int_eq(number_of(&out[0]), i);
    }
    ck_assert_int_gt(live, 0);
    leat_reader_close(reader);
    for (int i = 0; i < 2; i++)
        leat_sample_finish(&out[i]);
    ck_assert_int_eq(live, 0);
}
END_TEST

/* What a failed allocation could not copy comes with the next call. */
START_TEST(every_allocation_may_fail)
{
    leat_sample joined;
    const int32_t before = 3;
    for (int64_t n = 0;; n++) {
        leat_push *made = NULL;
        leat__alloc_fail_at(n);
        int status = leat_push_create(&made, NULL, &number_field, 1, 2);
        int64_t left = leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        leat_push_unref(made);
        if (left >= 0)
            break;
    }
    make(2);
    leat_sample_init(&joined);
    leat_reader *reader = open_reader();
    leat__alloc_fail_at(0);
    ck_assert_int_eq(send_number(1), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    send_numbers(1, 3);
    /* Fields of another reader come first, so that it has to be copied. */
    leat_sample *out[] = {&joined};
    int got;
    leat_sample_set(&joined, 0, LEAT_INT32, 0, NULL, &before);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(reader->ops->next(reader, out, 1, &(int){0}), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    ck_assert_int_eq(joined.nfields, 1);
    for (int32_t i = 1; i < 3; i++) {
        leat_sample_clear(&joined);
        leat_sample_set(&joined, 0, LEAT_INT32, 0, NULL, &before);
        got = 0;
        ck_assert_int_eq(reader->ops->next(reader, out, 1, &got), LEAT_OK);
        ck_assert_int_eq(got, 1);
        ck_assert_int_eq(joined.nfields, 2);
        ck_assert_mem_eq(joined.field[0].data, &before, sizeof(before));
        ck_assert_mem_eq(joined.field[1].data, &i, sizeof(i));
    }
    leat_reader_close(reader);
    leat_sample_finish(&joined);
}
END_TEST

START_TEST(readers_hold_the_queue)
{
    make(2);
    leat_reader *reader = open_reader();
    send_numbers(4, 5);
    leat_push_unref(push);
    push = NULL;
    leat_pipeline_unref(pipeline);
    pipeline = NULL;
    ck_assert_int_eq(receive(reader), 4);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_layer_is_fed_and_ends_but_is_not_saved)
{
    sender one;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_token token;
    make(3);
    start_sender(&one, 0, 20);
    options.batch_size = 4;
    options.workers = 2;
    const leat_top top = {.size = sizeof(top), .name = "number"};
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "queue"));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const int32_t *numbers =
            leat_blob_cpu_data(leat_data_layer_top(layer, 0));
        for (int k = 0; k < 4; k++)
            ck_assert_int_eq(numbers[k], 4 * i + k);
    }
    pthread_join(one.id, NULL);
    leat_push_close(push);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_END);
    leat_data_layer_destroy(layer);
    leat_token_finish(&token);
}
END_TEST

START_TEST(a_layer_that_waits_is_destroyed)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    const leat_top top = {.size = sizeof(top), .name = "number"};
    make(3);
    send_numbers(0, 2);
    options.batch_size = 1;
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    leat_data_layer_destroy(layer);
}
END_TEST

/* Senders, receivers, close, reopen and cancel, all at once. */
static atomic_int stop;

static void *send_until_stopped(void *argument)
{
    leat_sample sample;
    (void)argument;
    leat_sample_init(&sample);
    while (!atomic_load(&stop))
        (void)send_with(&sample, 1);
    leat_sample_finish(&sample);
    return NULL;
}

static void *receive_until_stopped(void *argument)
{
    leat_sample sample;
    (void)argument;
    leat_sample_init(&sample);
    while (!atomic_load(&stop)) {
        leat_reader *reader = open_reader();
        for (int i = 0; i < 20; i++)
            if (leat_reader_next(reader, &sample))
                (void)leat_reader_seek(reader, (leat_position){0, 0}, NULL);
        leat_reader_cancel(reader);
        ck_assert_int_ne(leat_reader_next(reader, &sample), LEAT_OK);
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
    return NULL;
}

START_TEST(a_forked_child_may_drop_it)
{
    sender one;
    int ended;
    make(1);
    start_sender(&one, 0, 2);
    await_size(1);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(HANG / 4);
        leat_pipeline_unref(pipeline);
        leat_push_unref(push);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    leat_push_close(push);
    pthread_join(one.id, NULL);
}
END_TEST

START_TEST(everything_at_once_neither_hangs_nor_races)
{
    pthread_t threads[6];
    make(2);
    atomic_store(&stop, 0);
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL,
                       i < 3 ? send_until_stopped : receive_until_stopped,
                       NULL);
    for (int i = 0; i < 200; i++) {
        leat_push_close(push);
        leat_push_reopen(push);
        if (i % 10 == 0)
            leat_push_kill(push, LEAT_EIO, "killed");
        leat_push_reopen(push);
        (void)leat_push_size(push);
        sched_yield();
    }
    atomic_store(&stop, 1);
    leat_push_close(push);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("push");
    TCase *tcase = tcase_create("push");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * HANG);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, names_that_could_not_be_told_apart_are_refused);
    tcase_add_test(tcase, a_capacity_of_zero_is_refused);
    tcase_add_test(tcase, capacity_and_size_are_reported);
    tcase_add_loop_test(tcase, first_in_is_first_out, 0, 5);
    tcase_add_test(tcase, a_sender_blocks_at_the_capacity_until_close);
    tcase_add_loop_test(tcase, many_senders_and_receivers_lose_nothing, 0, 4);
    tcase_add_test(tcase, reopen_empties_it_and_begins_another_pass);
    tcase_add_test(tcase, a_reader_that_has_read_nothing_takes_any_pass);
    tcase_add_test(tcase, reopen_lets_a_waiting_sender_go_on);
    tcase_add_test(tcase, kill_ends_both_ends_with_its_error);
    tcase_add_test(tcase, kill_wakes_a_waiting_receiver);
    tcase_add_test(tcase, cancel_wakes_a_waiting_receiver);
    tcase_add_test(tcase, trying_to_send_does_not_wait);
    tcase_add_test(tcase, a_buffer_is_handed_over_not_copied);
    tcase_add_test(tcase, nothing_is_allocated_once_all_buffers_have_grown);
    tcase_add_test(tcase, rare_long_samples_leave_no_buffers);
    tcase_add_test(tcase, samples_of_other_fields_are_refused);
    tcase_add_test(tcase, a_reader_keeps_its_own_allocator);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, readers_hold_the_queue);
    tcase_add_test(tcase, a_layer_is_fed_and_ends_but_is_not_saved);
    tcase_add_test(tcase, a_layer_that_waits_is_destroyed);
    tcase_add_test(tcase, a_forked_child_may_drop_it);
    tcase_add_test(tcase, everything_at_once_neither_hangs_nor_races);
    return suite_run(suite);
}
