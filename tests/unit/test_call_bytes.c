/* Calls of readers that make them up of several others': as many samples after
   a long one as before it, and few of large buffers. */
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <sched.h>
#include <stdatomic.h>

enum { N = 64, AHEAD = 200, ROWS = 2, SHORT = 64, LONG = 1 << 20 };

static leat_sample sample[N], *out[N];
static atomic_int reads, opened;
static int held_bytes; /* of buffers that a reader exchanges; 0: none */

static void set_up(void)
{
    for (int i = 0; i < N; i++) {
        leat_sample_init(&sample[i]);
        out[i] = &sample[i];
    }
}

static void tear_down(void)
{
    for (int i = 0; i < N; i++)
        leat_sample_finish(&sample[i]);
}

static int set_bytes(leat_sample *to, int bytes)
{
    const int64_t shape[] = {ROWS, bytes / ROWS};
    void *data = leat_sample_take(to, (size_t)bytes);
    if (!data)
        return LEAT_ENOMEM;
    memset(data, 0, (size_t)bytes);
    return leat_sample_set(to, 0, LEAT_UINT8, 2, shape, data);
}

/* A sample that was held before the call, in a large buffer. */
static int give_held(leat_sample *to)
{
    leat_sample held;
    leat_sample_init(&held);
    int status = leat_sample_take(&held, (size_t)held_bytes) ? 0 : LEAT_ENOMEM;
    leat_sample_clear(&held);
    if (!status)
        status = set_bytes(&held, SHORT);
    if (!status)
        status = leat_sample_move(to, &held);
    leat_sample_finish(&held);
    return status;
}

/* The first of a pass is long. */
static int next(void *pass, leat_sample *to)
{
    int *number = pass;
    atomic_fetch_add(&reads, 1);
    if (held_bytes)
        return give_held(to);
    return set_bytes(to, (*number)++ == 0 ? LONG : SHORT);
}

static int open_pass(void *user, void **pass)
{
    static int number[4];
    (void)user;
    *pass = &number[atomic_fetch_add(&opened, 1) % 4];
    *(int *)*pass = 0;
    return LEAT_OK;
}

static int reset(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

static const leat_field_spec field = {
    .name = "data", .dtype = LEAT_UINT8, .ndim = 2, .shape = {ROWS, -1}};

static int keep_as_it_is(void *user, leat_sample *at)
{
    (void)user, (void)at;
    return LEAT_OK;
}

enum {
    SHARD,
    MIX,
    INTERLEAVE,
    BLOCKS,
    MAP,
    UNBATCH,
    CACHE,
    ZIP,
    PREFETCH,
    MERGE,
    KINDS
};

static int zip_numbers(leat_pipeline **made, leat_pipeline *records)
{
    static const leat_zip_options shortest = {.size = sizeof(shortest),
                                              .align = LEAT_ALIGN_SHORTEST};
    leat_pipeline *inputs[] = {records, NULL};
    int status = leat_pipeline_parse(&inputs[1], "range:100000");
    if (!status)
        status = leat_pipeline_zip(made, inputs, 2, &shortest);
    leat_pipeline_unref(inputs[1]);
    return status;
}

static int decorate(leat_pipeline **made, leat_pipeline *records, int kind)
{
    static const leat_interleave_options blocks = {.size = sizeof(blocks),
                                                   .block = 50};
    static const leat_map_options map = {
        .size = sizeof(map), .fields = &field, .nfields = 1, .in_order = 1};
    static const leat_cache_options cache = {.size = sizeof(cache),
                                             .bytes = 16 << 20};
    static const leat_prefetch_options ahead = {.size = sizeof(ahead),
                                                .samples = AHEAD};
    leat_pipeline *inputs[] = {records, records};
    switch (kind) {
    case SHARD:
        return leat_pipeline_shard(made, records, 2, 0, 0);
    case MIX:
        return leat_pipeline_mix(made, inputs, 2, NULL);
    case INTERLEAVE:
        return leat_pipeline_interleave(made, inputs, 2, NULL);
    case BLOCKS:
        return leat_pipeline_interleave(made, inputs, 2, &blocks);
    case MAP:
        return leat_pipeline_map(made, records, keep_as_it_is, NULL, 1, &map);
    case UNBATCH:
        return leat_pipeline_unbatch(made, records);
    case CACHE:
        return leat_pipeline_cache(made, records, &cache);
    case ZIP:
        return zip_numbers(made, records);
    case PREFETCH:
        return leat_pipeline_prefetch(made, records, &ahead);
    default:
        return leat_pipeline_merge(made, inputs, 1, AHEAD);
    }
}

static leat_reader *open_kind(int kind)
{
    static const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                             .fields = &field,
                                             .nfields = 1,
                                             .open = open_pass,
                                             .next = next,
                                             .reset = reset};
    leat_pipeline *records, *decorated;
    leat_reader *reader;
    atomic_store(&reads, 0);
    ck_assert_int_eq(leat_pipeline_callback(&records, &callbacks, NULL),
                     LEAT_OK);
    ck_assert_msg(!decorate(&decorated, records, kind), "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_pipeline_open(decorated, &reader), LEAT_OK);
    leat_pipeline_unref(records);
    leat_pipeline_unref(decorated);
    return reader;
}

/* Samples of the next call, once threads have read ahead. */
static int call(leat_reader *reader, int kind, int *given)
{
    int got;
    while (kind >= PREFETCH && *given > 0 &&
           atomic_load(&reads) < *given + AHEAD / 2)
        sched_yield();
    ck_assert_msg(!leat_reader_next_batch(reader, out, N, &got), "%s",
                  leat_last_error());
    *given += got;
    return got;
}

START_TEST(calls_recover_from_a_long_record)
{
    leat_reader *reader = open_kind(_i);
    int given = 0, most = 0;
    for (int i = 0; i < 40; i++)
        call(reader, _i, &given);
    /* What is in memory comes without waiting. */
    if (_i == CACHE)
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    for (int i = 0; i < 10; i++) {
        int got = call(reader, _i, &given);
        most = got > most ? got : most;
    }
    ck_assert_int_ge(most, 16);
    leat_reader_close(reader);
}
END_TEST

/* Their contents are short, but the caller's samples take the buffers. */
START_TEST(a_call_of_large_buffers_ends_early)
{
    int given = 0;
    held_bytes = 48 << 10;
    leat_reader *reader = open_kind(_i);
    ck_assert_int_eq(call(reader, _i, &given), 2);
    leat_reader_close(reader);
}
END_TEST

START_TEST(calls_of_a_queue_recover_from_a_long_sample)
{
    enum { SENT = 20 };
    leat_push *push;
    leat_pipeline *queue;
    leat_reader *reader;
    leat_sample sent;
    int got;
    leat_sample_init(&sent);
    ck_assert_int_eq(leat_push_create(&push, NULL, &field, 1, SENT), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_push(&queue, push), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(queue, &reader), LEAT_OK);
    for (int round = 0; round < 2; round++) {
        int n = round > 0 ? SENT : 1;
        for (int i = 0; i < n; i++) {
            ck_assert_int_eq(set_bytes(&sent, round > 0 ? SHORT : LONG),
                             LEAT_OK);
            ck_assert_int_eq(leat_push_send(push, &sent), LEAT_OK);
        }
        ck_assert_int_eq(leat_reader_next_batch(reader, out, N, &got), LEAT_OK);
        ck_assert_int_eq(got, n);
    }
    leat_sample_finish(&sent);
    leat_reader_close(reader);
    leat_pipeline_unref(queue);
    leat_push_unref(push);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("call_bytes");
    TCase *tcase = tcase_create("call_bytes");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, calls_recover_from_a_long_record, 0, KINDS);
    tcase_add_loop_test(tcase, a_call_of_large_buffers_ends_early, 0, UNBATCH);
    tcase_add_test(tcase, calls_of_a_queue_recover_from_a_long_sample);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
