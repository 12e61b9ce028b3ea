#include "base/memory.h"
#include "pipeline/reader_form.h"
#include "support/order_check.h"
#include "support/plain_source.h"
#include "support/process_memory.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/choice.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEED = 7, OPERATION = 0x62 };

static const char *const kinds[] = {"random",     "counted", "seekable",
                                    "sequential", "marked",  "once"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* A second passes with each look at the clock, where that is asked for. */
static atomic_int seconds_pass;
static atomic_long seconds;
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    int status = __real_clock_gettime(clock, out);
    if (atomic_load(&seconds_pass))
        out->tv_sec += atomic_fetch_add(&seconds, 1);
    return status;
}

/* Epoch `e` of `n` records through a buffer, as the words say. */
static void play(order_epoch *epoch, int n, int size, int e)
{
    int *slot = malloc((size_t)(size < n ? size : n) * sizeof(*slot) + 1);
    int held = 0, taken = 0;
    epoch->n = 0;
    while (held < size && taken < n)
        slot[held++] = taken++;
    for (int t = 0; held > 0; t++) {
        uint32_t words[4];
        leat_choice(SEED, e, t / 4, OPERATION, words);
        int i = (int)((uint64_t)words[t % 4] * (uint64_t)held >> 32);
        order_add(epoch, slot[i]);
        slot[i] = taken < n ? taken++ : slot[--held];
    }
    free(slot);
}

static void check_buffer(const char *kind, const char *options, int n, int size)
{
    static order_epoch epoch[2];
    char text[200];
    play(&epoch[0], n, size, 0);
    play(&epoch[1], n, size, 1);
    snprintf(text, sizeof(text), "plain:%s,%d%s | shuffle:%d,seed=7", kind, n,
             options, size);
    order_check(text, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(samples_are_drawn_from_a_buffer)
{
    check_buffer(kinds[_i], "", 45, 5);
    check_buffer(kinds[_i], "", 45, 1);
    check_buffer(kinds[_i], "", 45, 44);
    check_buffer(kinds[_i], "", 45, 45);
    check_buffer(kinds[_i], "", 45, 1000);
    check_buffer(kinds[_i], "", 200, 17);
    check_buffer(kinds[_i], "", 0, 5);
    check_buffer(kinds[_i], "", 1, 5);
}
END_TEST

START_TEST(bad_records_come_where_they_are_drawn)
{
    check_buffer(kinds[_i], ",bad=1", 45, 5);
    check_buffer(kinds[_i], ",bad=1", 45, 100);
    check_buffer(kinds[_i], ",bad=1", 200, 20);
}
END_TEST

START_TEST(deferred_samples_are_held_as_they_are)
{
    check_buffer(kinds[_i], ",defers=1", 45, 7);
    check_buffer(kinds[_i], ",defers=1,bad=1", 45, 7);
}
END_TEST

/* A deferred sample has the fields that the map below is to leave out. */
START_TEST(maps_that_leave_fields_out_are_shuffled)
{
    const char *text = "(range:0,20) (range:0,20) | zip:prefix=(a_,b_) | "
                       "select:value=b_value | shuffle:5,seed=3";
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    unsigned seen = 0;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int i = 0; i < 20; i++) {
        int64_t value;
        ck_assert_msg(leat_reader_next(reader, &sample) == LEAT_OK, "%d: %s", i,
                      leat_last_error());
        ck_assert_int_eq(sample.nfields, 1);
        memcpy(&value, sample.field[0].data, sizeof(value));
        seen |= 1u << value;
    }
    ck_assert_uint_eq(seen, (1u << 20) - 1);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_buffer_of_one_changes_nothing)
{
    static order_epoch epoch;
    order_add_range(&epoch, 0, 45);
    char text[100];
    snprintf(text, sizeof(text), "plain:%s,45 | shuffle:1", kinds[_i]);
    order_check(text, &epoch, 1, 0);
}
END_TEST

START_TEST(an_endless_epoch_has_a_buffer)
{
    static order_epoch epoch, pass;
    char text[100];
    play(&pass, 1000, 20, 0);
    epoch.is_cut = 1;
    epoch.n = 0;
    for (int i = 0; i < 500; i++)
        order_add(&epoch, pass.record[i] % 30);
    snprintf(text, sizeof(text), "plain:%s,30 | repeat | shuffle:20,seed=7",
             kinds[_i]);
    order_check(text, &epoch, 1, 0);
}
END_TEST

START_TEST(streams_of_decorators_are_shuffled)
{
    static order_epoch epoch, inner;
    play(&inner, 60, 9, 0);
    for (int i = 0; i < 60; i++)
        ck_assert_int_lt(inner.record[i], i + 9);
    play(&epoch, 60, 13, 0);
    for (int i = 0; i < 60; i++)
        epoch.record[i] = inner.record[epoch.record[i]];
    char text[120];
    snprintf(text, sizeof(text),
             "plain:%s,60 | shuffle:9,seed=7 | shuffle:13,seed=7", kinds[_i]);
    order_check(text, &epoch, 1, 0);
    snprintf(text, sizeof(text),
             "(plain:%s,25) (plain:%s,35,first=25) | chain | "
             "shuffle:9,seed=7",
             kinds[_i], kinds[_i]);
    order_check(text, &inner, 1, 0);
}
END_TEST

/* A long epoch, so that marks are dropped and thinned; few positions of it. */
START_TEST(marks_lead_back_to_what_is_held)
{
    static order_epoch epoch;
    char text[100];
    leat_token mark;
    leat_token_init(&mark);
    for (int size = 2; size <= 200; size = size * 10 / 3) {
        play(&epoch, 4000, size, 0);
        snprintf(text, sizeof(text), "plain:%s,4000 | shuffle:%d,seed=7",
                 kinds[_i], size);
        leat_reader *reader = order_open(text);
        leat_sample sample;
        leat_sample_init(&sample);
        for (int i = 0; i < 4000; i++) {
            if (i % 97 == 0) {
                mark.size = mark.cursor = 0;
                ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
                leat_reader *other = order_open(text);
                ck_assert_int_eq(
                    leat_reader_seek(other, (leat_position){0, 0}, &mark),
                    LEAT_OK);
                for (int k = i; k < 4000 && k < i + 300; k++) {
                    ck_assert_int_eq(leat_reader_next(other, &sample), LEAT_OK);
                    ck_assert_int_eq(sample.from.record, epoch.record[k]);
                }
                leat_reader_close(other);
            }
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            ck_assert_int_eq(sample.from.record, epoch.record[i]);
        }
        leat_sample_finish(&sample);
        leat_reader_close(reader);
    }
    leat_token_finish(&mark);
}
END_TEST

/* Up to the most samples that can be counted; positions of marks end before. */
START_TEST(any_count_of_samples_can_be_resumed)
{
    static const int64_t counts[] = {INT64_MAX / 2 + 1, INT64_MAX - 1};
    enum { SIZE = 7, AT_END = 2 * SIZE };
    for (int c = 0; c < 2; c++) {
        char text[80];
        leat_token mark;
        leat_sample sample;
        int64_t rest[AT_END];
        snprintf(text, sizeof(text), "range:%lld | shuffle:%d,seed=7",
                 (long long)counts[c], SIZE);
        leat_reader *reader = order_open(text), *other = order_open(text);
        leat_token_init(&mark);
        leat_sample_init(&sample);
        for (int i = 0; i < 2 * SIZE; i++) {
            const leat_position position = {0, i};
            mark.size = mark.cursor = 0;
            ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            int64_t record = sample.from.record;
            ck_assert_int_eq(leat_reader_seek(other, position, NULL), LEAT_OK);
            ck_assert_int_eq(leat_reader_next(other, &sample), LEAT_OK);
            ck_assert_int_eq(sample.from.record, record);
            ck_assert_int_eq(leat_reader_seek(other, position, &mark), LEAT_OK);
            ck_assert_int_eq(leat_reader_next(other, &sample), LEAT_OK);
            ck_assert_int_eq(sample.from.record, record);
        }
        for (int i = 0; i < AT_END; i++) {
            const leat_position position = {0, counts[c] - AT_END + i};
            ck_assert_int_eq(leat_reader_seek(reader, position, NULL), LEAT_OK);
            for (int k = i; k < AT_END; k++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                rest[k] = i == 0 ? sample.from.record : rest[k];
                ck_assert_int_eq(sample.from.record, rest[k]);
            }
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        }
        leat_sample_finish(&sample);
        leat_token_finish(&mark);
        leat_reader_close(reader);
        leat_reader_close(other);
    }
}
END_TEST

START_TEST(a_resume_of_a_stream_reads_from_the_oldest_on)
{
    enum { RECORDS = 3000, SIZE = 20 };
    leat_reader *reader = order_open("plain:marked,3000 | shuffle:20,seed=7");
    static order_epoch epoch;
    leat_token mark;
    leat_token_init(&mark);
    order_read(reader, 2500, &epoch);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    leat_reader_close(reader);
    reader = order_open("plain:marked,3000 | shuffle:20,seed=7");
    long before = plain_source_reads();
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 2500}, &mark),
                     LEAT_OK);
    /* Only what is held is read; the rest is passed by. */
    ck_assert_int_eq(plain_source_reads() - before, SIZE);
    leat_reader_close(reader);
    leat_token_finish(&mark);
}
END_TEST

/* Each buffer is filled once, not for every sample that the next one holds. */
START_TEST(a_resume_of_buffers_over_buffers_fills_each_once)
{
    const char *text = "plain:counted,3000 | shuffle:20,seed=7 | "
                       "shuffle:20,seed=8 | shuffle:20,seed=9";
    static order_epoch epoch;
    order_epoch *rest = calloc(1, sizeof(*rest));
    leat_reader *reader = order_open(text);
    order_read(reader, 3000, &epoch);
    leat_reader_close(reader);
    reader = order_open(text);
    long before = plain_source_reads();
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 2500}, NULL),
                     LEAT_OK);
    ck_assert_int_lt(plain_source_reads() - before, 1000);
    order_read(reader, 500, rest);
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(rest->record[i], epoch.record[2500 + i]);
    leat_reader_close(reader);
    free(rest);
}
END_TEST

/* Counts no samples, and gives three. */
static int liar_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec field = {.name = "x", .dtype = LEAT_INT32};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int liar_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    static const int32_t value = 7;
    static int given;
    (void)reader;
    (void)n;
    if (given++ == 3)
        return LEAT_END;
    *got = 1;
    return leat_sample_set(out[0], out[0]->nfields, LEAT_INT32, 0, NULL,
                           &value);
}

static int liar_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    (void)reader;
    (void)position;
    (void)mark;
    return LEAT_OK;
}

static void liar_stop(leat_reader *reader)
{
    (void)reader;
}

static int liar_count(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = 0;
    return LEAT_OK;
}

static int liar_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "liar",
                                        .fields = liar_fields,
                                        .next = liar_next,
                                        .seek = liar_seek,
                                        .cancel = liar_stop,
                                        .close = liar_stop,
                                        .count = liar_count};
    static leat_reader liar = {.ops = &ops};
    (void)open;
    *out = &liar;
    return LEAT_OK;
}

START_TEST(a_reader_that_counts_none_may_give_some)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "liar", .open = liar_open};
    const leat_shuffle_options options = {.size = sizeof(options), .buffer = 5};
    leat_pipeline *liar, *shuffled;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(
        leat_pipeline_create(&liar, &type, NULL, NULL, NULL, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_shuffle(&shuffled, liar, &options), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(shuffled, &reader), LEAT_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(shuffled);
    leat_pipeline_unref(liar);
}
END_TEST

/* The Nth allocation of a seek fails: no sample comes before another seek. */
START_TEST(a_seek_that_fails_gives_no_samples)
{
    static order_epoch epoch, seen;
    int failed = 0;
    play(&epoch, 45, 20, 0);
    for (int n = 0; failed == n; n++) {
        leat_sample sample;
        leat_reader *reader = order_open("plain:random,45 | shuffle:20,seed=7");
        leat_sample_init(&sample);
        leat__alloc_fail_at(n);
        int status = leat_reader_seek(reader, (leat_position){0, 5}, NULL);
        leat__alloc_fail_at(-1);
        if (status) {
            failed++;
            ck_assert_int_eq(status, LEAT_ENOMEM);
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ENOMEM);
            ck_assert_int_eq(
                leat_reader_seek(reader, (leat_position){0, 5}, NULL), LEAT_OK);
        }
        seen.n = 0;
        order_read(reader, ORDER_MAX, &seen);
        ck_assert_int_eq(seen.n, 40);
        ck_assert_mem_eq(seen.record, epoch.record + 5, 40 * sizeof(int));
        leat_sample_finish(&sample);
        leat_reader_close(reader);
    }
    ck_assert_int_gt(failed, 3);
}
END_TEST

START_TEST(a_mark_that_is_none_is_refused)
{
    static const int64_t states[][4] = {
        {-1, -1, 0, 0},          {5, 4, 0, 0},
        {5, -2, 0, 0},           {5, 45, 46, 0},
        {5, -1, 26, 0},          {INT64_MAX, -1, 0, 0},
        {5, INT64_MAX, 0, 0},    {5, -1, -1, 0},
        {40, -1, 0, 0},          {1, -1, 5, 40},
        {1000000, 2000000, 0, 0}};
    leat_reader *reader = order_open("plain:marked,45 | shuffle:20,seed=7");
    leat_token mark;
    leat_token_init(&mark);
    for (int i = 0; i < (int)(sizeof(states) / sizeof(states[0])); i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat__reader_put_form(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat_token_put(&mark, states[i], sizeof(states[i])),
                         LEAT_OK);
        int status = leat_reader_seek(reader, (leat_position){0, 0}, &mark);
        ck_assert_msg(status == LEAT_EINVAL || status == LEAT_END, "%d: %d", i,
                      status);
    }
    static order_epoch epoch, seen;
    play(&epoch, 45, 20, 0);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    order_read(reader, ORDER_MAX, &seen);
    ck_assert_mem_eq(seen.record, epoch.record, 45 * sizeof(int));
    leat_token_finish(&mark);
    leat_reader_close(reader);
}
END_TEST

/* Fields of two buffers side by side, as zip asks for them. */
START_TEST(samples_are_appended_below_a_join)
{
    for (int defers = 0; defers < 2; defers++) {
        static order_epoch first, second;
        char text[2][100];
        leat_pipeline *upstream[2];
        leat_reader *reader;
        leat_sample sample;
        play(&first, 45, 10, 0);
        play(&second, 45, 6, 0);
        for (int i = 0; i < 2; i++) {
            snprintf(text[i], sizeof(text[i]),
                     "plain:random,45,defers=%d | shuffle:%d,seed=7", defers,
                     i ? 6 : 10);
            upstream[i] = order_parse(text[i]);
        }
        leat_pipeline *pipeline =
            stream_decorators_over(STREAM_ZIP, upstream, 2);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        leat_sample_init(&sample);
        for (int i = 0; i < 45; i++) {
            int32_t label[2];
            ck_assert_msg(leat_reader_next(reader, &sample) == LEAT_OK, "%s",
                          leat_last_error());
            ck_assert_int_eq(sample.nfields, 4);
            memcpy(&label[0], sample.field[1].data, 4);
            memcpy(&label[1], sample.field[3].data, 4);
            ck_assert_int_eq(label[0], 1000 + first.record[i]);
            ck_assert_int_eq(label[1], 1000 + second.record[i]);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        leat_sample_finish(&sample);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(upstream[0]);
        leat_pipeline_unref(upstream[1]);
    }
}
END_TEST

START_TEST(what_it_holds_is_reported_and_has_a_limit)
{
    leat_pipeline *pipeline =
        order_parse("plain:random,1000,wide=1000 | shuffle:100,seed=7");
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_OK);
    ck_assert_int_eq(reader->ops->memory(reader), 0);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t memory = reader->ops->memory(reader);
    ck_assert_int_gt(memory, 100 * 1000);
    ck_assert_int_lt(memory, 100 * 2000);
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_lt(reader->ops->memory(reader), 100 * 2000);
    leat_reader_close(reader);
    options.max_memory = 50 * 1000;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 50000"));
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(what_samples_of_a_few_bytes_take_is_counted)
{
    leat_pipeline *pipeline = order_parse("range:50000 | shuffle:40000,seed=7");
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    int64_t before = process_memory_heap();
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int i = 0; i < 5000; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t counted = reader->ops->memory(reader);
    ck_assert_int_le(process_memory_heap() - before, counted + counted / 10);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* A hundred and fifty of 8 bytes, and then of 80,000. */
static int give_growing(void *user, leat_sample *sample)
{
    static const char bytes[80000];
    int *given = user;
    const int64_t size = ++*given > 150 ? (int64_t)sizeof(bytes) : 8;
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, &size, bytes);
}

START_TEST(samples_that_grow_meet_the_limit_too)
{
    const leat_field_spec field = {
        .name = "x", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = give_growing};
    const leat_shuffle_options shuffle = {.size = sizeof(shuffle),
                                          .buffer = 100};
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *growing, *shuffled;
    leat_reader *reader;
    leat_sample sample;
    int given = 0, status = LEAT_OK;
    leat_sample_init(&sample);
    options.max_memory = 1000000;
    ck_assert_int_eq(leat_pipeline_callback(&growing, &callbacks, &given),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_shuffle(&shuffled, growing, &shuffle),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open_with(shuffled, &options, &reader),
                     LEAT_OK);
    while (!status && given < 1000)
        status = leat_reader_next(reader, &sample);
    ck_assert_msg(status == LEAT_ELIMIT, "%s", leat_last_error());
    ck_assert_int_lt(given, 200);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(shuffled);
    leat_pipeline_unref(growing);
}
END_TEST

/* One in fifty of 1 MB, the others of 100 bytes. */
static int give_rare_long(void *user, leat_sample *sample)
{
    int *given = user;
    const int64_t size = ++*given % 50 == 49 ? 1000000 : 100;
    void *bytes = leat_sample_take(sample, (size_t)size);
    if (!bytes)
        return LEAT_ENOMEM;
    memset(bytes, 0, (size_t)size);
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, &size, bytes);
}

/* Two at a time are long, not a hundred. */
START_TEST(rare_long_samples_leave_no_buffers)
{
    const leat_field_spec field = {
        .name = "x", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = give_rare_long};
    const leat_shuffle_options shuffle = {.size = sizeof(shuffle),
                                          .buffer = 100};
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *rare, *shuffled;
    leat_reader *reader;
    leat_sample sample;
    int given = 0;
    leat_sample_init(&sample);
    options.max_memory = 20000000;
    ck_assert_int_eq(leat_pipeline_callback(&rare, &callbacks, &given),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_shuffle(&shuffled, rare, &shuffle), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open_with(shuffled, &options, &reader),
                     LEAT_OK);
    for (int i = 0; i < 10000; i++)
        ck_assert_msg(leat_reader_next(reader, &sample) == LEAT_OK, "%d: %s", i,
                      leat_last_error());
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(shuffled);
    leat_pipeline_unref(rare);
}
END_TEST

static long allocated;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    allocated += (long)bytes;
    return aligned_alloc(alignment,
                         (bytes + alignment - 1) / alignment * alignment);
}

static void give_free(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user;
    (void)alignment;
    allocated -= memory ? (long)bytes : 0;
    free(memory);
}

START_TEST(buffers_are_of_the_callers_allocator)
{
    const leat_allocator allocator = {
        .size = sizeof(allocator), .alloc = allocate, .free = give_free};
    leat_pipeline *pipeline =
        order_parse("plain:sequential,1000,wide=1000 | shuffle:100,seed=7");
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    sample.allocator = options.allocator = &allocator;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_OK);
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_ptr_eq(sample.allocator, &allocator);
        ck_assert_int_gt(allocated, 100 * 1000);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(allocated, 0);
}
END_TEST

/* What hands samples over by exchange, of which the caller decodes each. */
static const char *const holders[] = {
    "range:0,4000 | shuffle:100",
    "range:0,4000 | prefetch:100",
    "(range:0,2000) (range:0,2000) | merge:buffer=50",
};
enum { HOLDERS = sizeof(holders) / sizeof(holders[0]) };

START_TEST(what_the_caller_adds_stays_with_it)
{
    leat_reader *reader = order_open(holders[_i]);
    leat_sample sample;
    leat_sample_init(&sample);
    for (int epoch = 0; epoch < 2; epoch++) {
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch, 0}, NULL), LEAT_OK);
        for (int i = 0; i < 4000; i++) {
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            ck_assert_ptr_nonnull(leat_sample_take(&sample, 1000000));
            ck_assert_int_lt(reader->ops->memory(reader), 2000000);
        }
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

/* Of bounded samples; the marks of a stream, too. */
START_TEST(nothing_is_allocated_in_the_steady_state)
{
    enum { AT_ONCE = 32 };
    char text[100];
    snprintf(text, sizeof(text), "plain:%s,4000 | repeat:4 | shuffle:50",
             kinds[_i]);
    leat_reader *reader = order_open(text);
    leat_sample sample[AT_ONCE];
    leat_sample *out[AT_ONCE];
    int64_t before = 0;
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_init(out[i] = &sample[i]);
    for (int i = 0; i < 12000;) {
        int got;
        ck_assert_int_eq(leat_reader_next_batch(reader, out, AT_ONCE, &got),
                         LEAT_OK);
        if (i < 6000 && i + got >= 6000)
            before = leat__alloc_count();
        i += got;
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_finish(&sample[i]);
    leat_reader_close(reader);
}
END_TEST

static int lines;

static void count_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    ck_assert_int_eq(level, LEAT_LOG_INFO);
    ck_assert_ptr_nonnull(strstr(line, "shuffle: "));
    ck_assert_ptr_nonnull(strstr(line, "of 500 samples are in the buffer"));
    lines++;
}

START_TEST(filling_it_is_reported_every_ten_seconds)
{
    leat_reader *reader = order_open("plain:random,1000 | shuffle:500");
    leat_sample sample;
    leat_sample_init(&sample);
    leat_log_set(count_line, NULL, LEAT_LOG_INFO);
    long begun = atomic_load(&seconds);
    atomic_store(&seconds_pass, 1);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    atomic_store(&seconds_pass, 0);
    long passed = atomic_load(&seconds) - begun;
    ck_assert_int_gt(lines, 1);
    ck_assert_int_le(lines, (int)(passed / 10));
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(it_keeps_the_order_in_a_layer)
{
    static order_epoch epoch[2];
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    char text[100];
    leat_data_layer *layer;
    leat_blob *top[2];
    play(&epoch[0], 60, 10, 0);
    play(&epoch[1], 60, 10, 1);
    snprintf(text, sizeof(text), "plain:%s,60 | shuffle:10,seed=7", kinds[_i]);
    leat_pipeline *pipeline = order_parse(text);
    options.batch_size = 8;
    options.workers = 3;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_blob_create(&top[0], NULL);
    leat_blob_create(&top[1], NULL);
    ck_assert_msg(leat_data_layer_setup(layer, top, 2) == LEAT_OK, "%s",
                  leat_last_error());
    for (int i = 0; i < 120; i += 8) {
        ck_assert_msg(leat_data_layer_forward(layer, top, 2, LEAT_HOST) ==
                          LEAT_OK,
                      "%s", leat_last_error());
        const leat_batch *batch = leat_data_layer_batch(layer);
        for (int k = 0; k < 8; k++)
            ck_assert_int_eq(batch->from[k].record,
                             epoch[(i + k) / 60].record[(i + k) % 60]);
    }
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shuffle_buffer");
    TCase *all = tcase_create("shuffle_buffer");
    tcase_set_timeout(all, 240);
    tcase_add_loop_test(all, samples_are_drawn_from_a_buffer, 0, KINDS);
    tcase_add_loop_test(all, bad_records_come_where_they_are_drawn, 0, KINDS);
    tcase_add_loop_test(all, deferred_samples_are_held_as_they_are, 0, KINDS);
    tcase_add_loop_test(all, a_buffer_of_one_changes_nothing, 0, KINDS);
    tcase_add_loop_test(all, an_endless_epoch_has_a_buffer, 0, KINDS - 1);
    tcase_add_loop_test(all, streams_of_decorators_are_shuffled, 0, KINDS - 1);
    tcase_add_loop_test(all, marks_lead_back_to_what_is_held, 0, KINDS - 1);
    tcase_add_test(all, any_count_of_samples_can_be_resumed);
    tcase_add_test(all, a_resume_of_a_stream_reads_from_the_oldest_on);
    tcase_add_test(all, a_resume_of_buffers_over_buffers_fills_each_once);
    tcase_add_test(all, a_reader_that_counts_none_may_give_some);
    tcase_add_test(all, a_seek_that_fails_gives_no_samples);
    tcase_add_test(all, a_mark_that_is_none_is_refused);
    tcase_add_test(all, maps_that_leave_fields_out_are_shuffled);
    tcase_add_test(all, samples_are_appended_below_a_join);
    tcase_add_test(all, what_it_holds_is_reported_and_has_a_limit);
    tcase_add_test(all, what_samples_of_a_few_bytes_take_is_counted);
    tcase_add_test(all, samples_that_grow_meet_the_limit_too);
    tcase_add_test(all, rare_long_samples_leave_no_buffers);
    tcase_add_test(all, buffers_are_of_the_callers_allocator);
    tcase_add_loop_test(all, what_the_caller_adds_stays_with_it, 0, HOLDERS);
    tcase_add_loop_test(all, nothing_is_allocated_in_the_steady_state, 0,
                        KINDS - 1);
    tcase_add_test(all, filling_it_is_reported_every_ten_seconds);
    tcase_add_loop_test(all, it_keeps_the_order_in_a_layer, 0, KINDS - 1);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
