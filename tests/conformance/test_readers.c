/* What every reader must do, over all kinds of them. */
#include "base/memory.h"
#include "base/thread.h"
#include "support/bad_records.h"
#include "support/reader_cases.h"
#include "support/shared_data.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 45
#define BUFFERS 64

static const reader_case *tested;
static leat_pipeline *pipeline;
static int count;
static leat_sample buffers[BUFFERS];
static leat_sample *out[BUFFERS];

static void begin(int i)
{
    reader_cases_begin();
    tested = &reader_cases[i];
    pipeline = tested->make(RECORDS, &count);
    for (int k = 0; k < BUFFERS; k++) {
        leat_sample_init(&buffers[k]);
        out[k] = &buffers[k];
    }
}

static void end(void)
{
    for (int k = 0; k < BUFFERS; k++)
        leat_sample_finish(&buffers[k]);
    leat_pipeline_unref(pipeline);
    reader_cases_end();
}

static leat_reader *reader_new(void)
{
    leat_reader *reader = NULL;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s: %s", tested->name, leat_last_error());
    return reader;
}

static int record_at(int64_t epoch, int64_t index)
{
    return tested->record((leat_position){epoch, index}, RECORDS);
}

static int is_bad(int64_t epoch, int64_t index)
{
    return tested->has_bad && record_at(epoch, index) % 10 == 3;
}

/* Whether the sample is the one at this position. */
static int is_at(const leat_sample *sample, int64_t epoch, int64_t index)
{
    int record = record_at(epoch, index);
    const unsigned char *data = sample->field[0].data;
    int32_t label;
    memcpy(&label, sample->field[1].data, sizeof(label));
    return sample->nfields == 2 && sample->from.record == record &&
           sample->from.source && sample->field[0].bytes >= 3 &&
           data[0] == record && data[2] == record && label == 1000 + record;
}

/* Reads up to `n` samples at `index`, and returns their number, bad ones
 * included; 0 at the end. */
static int read_some(leat_reader *reader, int64_t epoch, int64_t index, int n)
{
    int got = -1;
    int status = leat_reader_next_batch(reader, out, n, &got);
    ck_assert_int_ge(got, status == LEAT_OK);
    ck_assert_int_le(got, n);
    for (int k = 0; k < got; k++)
        ck_assert_msg(!is_bad(epoch, index + k) &&
                          is_at(out[k], epoch, index + k),
                      "%s: %d", tested->name, (int)index + k);
    if (status == LEAT_OK || status == LEAT_END)
        return got;
    ck_assert_msg(status == LEAT_EDATA && is_bad(epoch, index + got), "%s: %s",
                  tested->name, leat_last_error());
    ck_assert_int_eq(out[got]->from.record, record_at(epoch, index + got));
    return got + 1;
}

/* Reads on from `index` to the end, `n` at a time. */
static void read_to_end(leat_reader *reader, int64_t epoch, int64_t index,
                        int n)
{
    int more;
    while ((more = read_some(reader, epoch, index, n)) > 0)
        index += more;
    ck_assert_msg(index == count, "%s: %d of %d", tested->name, (int)index,
                  count);
}

/* By seek, where the reader can, else as leat does. */
static void go_to(leat_reader *reader, int64_t epoch, int64_t index)
{
    int64_t skipped;
    int status = leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
    ck_assert_int_eq(status, leat_reader_can_seek(reader) || index == 0
                                 ? LEAT_OK
                                 : LEAT_EUNSUPPORTED);
    if (!status)
        return;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, index, &skipped), LEAT_OK);
    ck_assert_int_eq(skipped, index);
}

START_TEST(samples_come_in_order_for_every_number_at_a_time)
{
    const int sizes[] = {1, 2, 3, 7, 32, 33, BUFFERS};
    begin(_i);
    leat_reader *reader = reader_new();
    for (int i = 0; i < 7; i++) {
        read_to_end(reader, 0, 0, sizes[i]);
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_END);
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_END);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    int got;
    ck_assert_int_eq(leat_reader_next_batch(reader, out, 0, &got), LEAT_EINVAL);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(the_fields_are_told_beforehand_and_read_nothing)
{
    begin(_i);
    leat_reader *reader = reader_new();
    const leat_field_spec *spec = NULL;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(n, 2);
        ck_assert_str_eq(spec[0].name, "data");
        ck_assert_int_eq(spec[0].dtype, LEAT_UINT8);
        ck_assert_str_eq(spec[1].name, "label");
        ck_assert_int_eq(spec[1].dtype, LEAT_INT32);
        ck_assert_int_eq(spec[1].ndim, 0);
    }
    read_to_end(reader, 0, 0, 5);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(a_reset_half_way_starts_anew)
{
    begin(_i);
    leat_reader *reader = reader_new();
    for (int n = 1; n < 12; n++) {
        for (int k = 0; k < n; k++)
            ck_assert_int_eq(leat_reader_next(reader, out[0]),
                             is_bad(0, k) ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    read_to_end(reader, 0, 0, 4);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(readers_of_one_pipeline_do_not_meet)
{
    begin(_i);
    leat_reader *first = reader_new();
    leat_reader *second = reader_new();
    for (int k = 0; k < 10; k++)
        (void)leat_reader_next(first, out[0]);
    read_to_end(second, 0, 0, 3);
    read_to_end(first, 0, 10, 3);
    leat_reader_cancel(first);
    ck_assert_int_eq(leat_reader_seek(second, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    read_to_end(second, 0, 0, 6);
    leat_reader_close(second);
    leat_reader_close(first);
    end();
}
END_TEST

START_TEST(a_reader_outlives_the_callers_reference)
{
    begin(_i);
    leat_reader *reader = reader_new();
    leat_pipeline_unref(pipeline);
    pipeline = NULL;
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(a_cancelled_reader_gives_nothing_any_more)
{
    begin(_i);
    leat_reader *reader = reader_new();
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
    leat_reader_cancel(reader);
    leat_reader_cancel(reader);
    for (int i = 0; i < 2; i++) {
        int got = -1;
        ck_assert_int_eq(leat_reader_next_batch(reader, out, 3, &got),
                         LEAT_ECANCELLED);
        ck_assert_int_eq(got, 0);
    }
    const leat_position index[] = {{0, 0}};
    int got;
    if (tested->is_random_access)
        ck_assert_int_eq(leat_reader_read_at(reader, index, out, 1, &got),
                         LEAT_ECANCELLED);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(what_a_reader_cannot_do_it_says)
{
    begin(_i);
    leat_reader *reader = reader_new();
    leat_token token;
    const leat_position index[] = {{0, 0}};
    int64_t n = -1;
    int got;
    leat_token_init(&token);
    int expected = tested->is_random_access ? LEAT_OK : LEAT_EUNSUPPORTED;
    const leat_position amid = {0, 5};
    ck_assert_int_eq(leat_reader_is_random_access(reader),
                     tested->is_random_access);
    ck_assert_int_eq(leat_reader_count(reader, &n), expected);
    ck_assert_int_eq(n, tested->is_random_access ? count : -1);
    ck_assert_int_eq(leat_reader_read_at(reader, index, out, 1, &got),
                     expected);
    ck_assert_int_eq(leat_reader_can_seek(reader), tested->is_random_access);
    ck_assert_int_eq(leat_reader_seek(reader, amid, NULL), expected);
    int saves = tested->has_identity ? LEAT_OK : LEAT_EUNSUPPORTED;
    ck_assert_int_eq(leat_reader_save(reader, &token), saves);
    ck_assert_int_eq(leat_reader_restore(reader, &token), saves);
    leat_token_finish(&token);
    leat_reader_close(reader);
    end();
}
END_TEST

/* Opens and reads all, with the allocation `n` failing; 1 if it did. */
static int read_with_fault(int64_t n)
{
    leat_reader *reader;
    int got;
    int failures = 0;
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    while (leat_pipeline_open(pipeline, &reader) == LEAT_ENOMEM)
        failures++;
    const leat_field_spec *spec;
    while (leat_reader_fields(reader, &spec, &got) == LEAT_ENOMEM)
        failures++;
    leat_sample_finish(out[0]);
    int status = LEAT_OK;
    while (status != LEAT_END && status != LEAT_ENOMEM)
        status = leat_reader_next_batch(reader, out, 8, &got);
    failures += status == LEAT_ENOMEM;
    leat__alloc_fail_at(-1);
    ck_assert_int_le(failures, 1);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    read_to_end(reader, 0, 0, 8);
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

START_TEST(a_reader_survives_every_failing_allocation)
{
    begin(_i);
    int64_t n = 0;
    while (read_with_fault(n))
        n++;
    ck_assert_int_ge(n, 1);
    end();
}
END_TEST

START_TEST(every_position_of_three_epochs_is_found_by_seek)
{
    begin(_i);
    leat_reader *reader = reader_new();
    for (int64_t epoch = 2; epoch >= 0; epoch--)
        for (int64_t index = count; index >= 0; index--) {
            go_to(reader, epoch, index);
            if (index % 11 == 0)
                read_to_end(reader, epoch, index, 7);
            else
                (void)read_some(reader, epoch, index, 4);
        }
    leat_reader_close(reader);
    end();
}
END_TEST

/* As text, as another process would have it. */
static void resume_elsewhere(leat_token *mark, int64_t epoch, int64_t index)
{
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_token_parse(&token, leat_token_text(mark)), LEAT_OK);
    leat_reader *other = reader_new();
    int status = leat_reader_seek(other, (leat_position){epoch, index}, &token);
    ck_assert_msg(status == LEAT_OK, "%s: %s", tested->name, leat_last_error());
    ck_assert_uint_eq(token.cursor, token.size);
    read_to_end(other, epoch, index, 5);
    leat_reader_close(other);
    leat_token_finish(&token);
}

START_TEST(every_position_of_three_epochs_is_found_by_mark)
{
    leat_token mark;

    begin(_i);
    leat_reader *reader = reader_new();
    ck_assert_int_eq(leat_reader_has_mark(reader), tested->has_mark);
    leat_token_init(&mark);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        go_to(reader, epoch, 0);
        for (int64_t index = 0;; index++) {
            mark.size = 0;
            ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
            ck_assert_uint_le(mark.size, 3 * 32);
            resume_elsewhere(&mark, epoch, index);
            if (!read_some(reader, epoch, index, 1))
                break;
        }
        /* Marks take no memory once there is room in the token. */
        go_to(reader, epoch, 0);
        for (int64_t index = 0; index < 7; index++)
            (void)read_some(reader, epoch, index, 1);
        int64_t allocations = leat__alloc_count();
        mark.size = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat__alloc_count(), allocations);
    }
    leat_reader_close(reader);
    leat_token_finish(&mark);
    end();
}
END_TEST

/* A mark that was damaged leads somewhere, or is refused; nothing else. */
START_TEST(damaged_marks_do_no_harm)
{
    leat_token mark;
    begin(_i);
    leat_reader *reader = reader_new();
    leat_token_init(&mark);
    for (int64_t index = 0; index < 7; index++)
        (void)read_some(reader, 0, index, 1);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    size_t size = mark.size;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        int got;
        mark.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        mark.cursor = 0;
        /* Up to 2^63 samples are skipped by an index alone. */
        if (!tested->is_random_access && bit % 64 > 20) {
            mark.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            continue;
        }
        if (!leat_reader_seek(reader, (leat_position){0, 7}, &mark))
            (void)leat_reader_next_batch(reader, out, 3, &got);
        mark.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (mark.size = 0; mark.size < size; mark.size++) {
        mark.cursor = 0;
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 7}, &mark),
                         LEAT_EINVAL);
    }
    go_to(reader, 0, 0);
    read_to_end(reader, 0, 0, 5);
    leat_reader_close(reader);
    leat_token_finish(&mark);
    end();
}
END_TEST

START_TEST(skipping_some_is_reading_as_many)
{
    begin(_i);
    leat_reader *reader = reader_new();
    for (int64_t index = 0; index <= count; index += 1 + index % 3)
        for (int64_t n = 0; n <= count + 1; n += 1 + n % 4) {
            int64_t skipped = -1;
            go_to(reader, 1, 0);
            for (int64_t at = 0; at < index;)
                at += read_some(reader, 1, at, index - at < 5 ? 1 : 3);
            int64_t at = index;
            int64_t left = count - at;
            ck_assert_int_eq(leat_reader_skip(reader, n, &skipped),
                             n > left ? LEAT_END : LEAT_OK);
            ck_assert_int_eq(skipped, n > left ? left : n);
            (void)read_some(reader, 1, at + skipped, 4);
        }
    leat_reader_close(reader);
    end();
}
END_TEST

/* The samples of an epoch that next left, of one thread of several. */
typedef struct completer {
    leat__thread thread;
    leat_reader *reader;
    int first, step, n;
    int wrong;
    const unsigned char *is_told; /* bad, said next */
} completer;

static void *complete(void *argument)
{
    completer *self = argument;
    for (int i = self->first; i < self->n; i += self->step) {
        int got;
        if (self->is_told[i])
            continue;
        int status = leat_reader_materialize(self->reader, &out[i], 1, &got);
        self->wrong += status != (is_bad(1, i) ? LEAT_EDATA : LEAT_OK) ||
                       got != (status == LEAT_OK) ||
                       (status ? out[i]->from.record != record_at(1, i)
                               : !is_at(out[i], 1, i));
    }
    return NULL;
}

/* Also of other samples, while next goes on. */
static void check_completed(leat_reader *reader, int threads)
{
    unsigned char is_told[BUFFERS] = {0};
    completer crew[4];
    memset(crew, 0, sizeof(crew));
    int n = 0, got = 0, status = LEAT_OK;
    go_to(reader, 1, 0);
    for (int i = 0; i < BUFFERS; i++)
        leat_sample_clear(out[i]);
    while (status != LEAT_END) {
        status = leat_reader_pull(reader, out + n, 1 + n % 9, &got);
        ck_assert(status == LEAT_OK || status == LEAT_EDATA ||
                  status == LEAT_END);
        n += got;
        if (status == LEAT_EDATA)
            is_told[n++] = 1;
    }
    ck_assert_int_eq(n, count);
    for (int i = 0; i < threads; i++) {
        crew[i].reader = reader;
        crew[i].first = i;
        crew[i].step = threads;
        crew[i].n = n;
        crew[i].is_told = is_told;
        ck_assert_int_eq(leat__thread_start(&crew[i].thread, "completer",
                                            complete, &crew[i]),
                         LEAT_OK);
    }
    leat_sample other;
    leat_sample_init(&other);
    go_to(reader, 2, 0);
    while ((status = leat_reader_next(reader, &other)) != LEAT_END)
        ck_assert(status == LEAT_OK || status == LEAT_EDATA);
    leat_sample_finish(&other);
    for (int i = 0; i < threads; i++) {
        leat__thread_join(&crew[i].thread);
        ck_assert_int_eq(crew[i].wrong, 0);
    }
}

START_TEST(deferred_samples_are_completed_inline_or_on_four_threads)
{
    begin(_i);
    leat_reader *reader = reader_new();
    check_completed(reader, 1);
    check_completed(reader, 4);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(reading_takes_no_memory_once_it_runs)
{
    begin(_i);
    leat_reader *reader = reader_new();
    int64_t before = 0;
    for (int64_t epoch = 0; epoch < 30; epoch++) {
        int64_t skipped;
        if (epoch == 24)
            before = leat__alloc_count();
        go_to(reader, epoch, 0);
        read_to_end(reader, epoch, 0, 1 + (int)(epoch % 6) * 3);
        go_to(reader, epoch, 0);
        ck_assert_int_eq(leat_reader_skip(reader, count, &skipped), LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
    end();
}
END_TEST

/* Buffers that came from the caller, and have not gone back. */
static atomic_int buffers_held;

static void *take_buffer(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    atomic_fetch_add(&buffers_held, 1);
    return aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
}

static void give_buffer(void *user, void *memory, size_t bytes,
                        size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    atomic_fetch_sub(&buffers_held, 1);
    free(memory);
}

START_TEST(buffers_that_are_swapped_are_neither_lost_nor_shared)
{
    static const leat_allocator allocator = {
        .size = sizeof(allocator), .alloc = take_buffer, .free = give_buffer};
    begin(_i);
    for (int k = 0; k < BUFFERS; k++)
        out[k]->allocator = &allocator;
    leat_reader *reader = reader_new();
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        go_to(reader, epoch, 0);
        read_to_end(reader, epoch, 0, 3 + 2 * (int)epoch);
        for (int i = 0; i < BUFFERS; i++)
            for (int k = 0; k < i; k++)
                ck_assert(!out[i]->buffer || out[i]->buffer != out[k]->buffer);
    }
    leat_reader_close(reader);
    for (int k = 0; k < BUFFERS; k++)
        leat_sample_finish(out[k]);
    ck_assert_int_eq(atomic_load(&buffers_held), 0);
    end();
}
END_TEST

static void *cancel_soon(void *argument)
{
    leat_reader_cancel(argument);
    return NULL;
}

START_TEST(a_reader_is_cancelled_from_another_thread)
{
    leat__thread thread = {0};
    begin(_i);
    leat_reader *reader = reader_new();
    (void)read_some(reader, 0, 0, 1);
    ck_assert_int_eq(
        leat__thread_start(&thread, "canceller", cancel_soon, reader), LEAT_OK);
    int status = LEAT_OK;
    while (status != LEAT_ECANCELLED) {
        int got;
        status = leat_reader_next_batch(reader, out, 3, &got);
        if (status == LEAT_END)
            status = leat_reader_seek(reader, (leat_position){0, 0}, NULL);
        ck_assert(status == LEAT_OK || status == LEAT_EDATA ||
                  status == LEAT_ECANCELLED);
    }
    leat__thread_join(&thread);
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_ECANCELLED);
    leat_reader_close(reader);
    end();
}
END_TEST

/* Closed with samples kept, held or deferred. */
START_TEST(a_reader_is_closed_anywhere)
{
    begin(_i);
    for (int n = 1; n < 9; n++)
        for (int calls = 0; calls < 4; calls++) {
            int got;
            leat_reader *reader = reader_new();
            for (int k = 0; k < calls; k++)
                (void)leat_reader_next_batch(reader, out, n, &got);
            for (int k = 0; k < n; k++)
                leat_sample_clear(out[k]);
            (void)leat_reader_pull(reader, out, n, &got);
            leat_reader_close(reader);
        }
    end();
}
END_TEST

/* One record of 15 that fails, through each way to read and decorator. */
static leat_pipeline *failing_pipeline(bad_records *records, int decorator)
{
    leat_pipeline *made = bad_records_pipeline(records);
    return decorator < 0 ? made
                         : stream_decorators_take((stream_kind)decorator, made);
}

static void check_failure(const bad_records *records, int decorator, int bad,
                          int n)
{
    enum { FAILING = 15 };
    leat_reader *reader;
    int wanted = 0, got, status = LEAT_OK;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    while (status != LEAT_END) {
        status = leat_reader_next_batch(reader, out, n, &got);
        int told = got + (status == LEAT_EDATA);
        for (int k = 0; k < told; k++, wanted++) {
            const leat_position at = {0, wanted};
            int64_t from = decorator == STREAM_FILTER
                               ? stream_decorators_filtered(wanted)
                           : decorator == STREAM_ROTATE
                               ? stream_decorators_rotated(at, FAILING)
                               : wanted;
            ck_assert_int_eq(out[k]->from.record, from);
            ck_assert_int_eq(k == got, from == bad);
        }
        if (!status || status == LEAT_EDATA)
            continue;
        if (status == LEAT_END)
            break;
        ck_assert_int_eq(records->kind[bad], BAD_RECORDS_BROKEN);
        ck_assert_int_eq(status, LEAT_EIO);
        ck_assert_int_eq(leat_reader_next_batch(reader, out, n, &got), status);
        ck_assert_int_eq(got, 0);
        break;
    }
    if (records->kind[bad] != BAD_RECORDS_BROKEN)
        ck_assert_int_eq(wanted, decorator == STREAM_FILTER
                                     ? (int)stream_decorators_left(FAILING)
                                     : FAILING);
    leat_reader_close(reader);
}

START_TEST(an_error_at_any_position_comes_after_the_samples_before_it)
{
    static const bad_records_kind kinds[] = {BAD_RECORDS_UNREADABLE,
                                             BAD_RECORDS_BROKEN};
    reader_cases_begin();
    for (int k = 0; k < BUFFERS; k++)
        leat_sample_init(out[k] = &buffers[k]);
    for (int way = 0; way < BAD_RECORDS_WAYS; way++)
        for (int decorator = -1; decorator <= STREAM_ROTATE; decorator++)
            for (int bad = 0; bad < 15; bad++) {
                bad_records records = {.count = 15,
                                       .way = (bad_records_way)way};
                records.kind[bad] = kinds[_i];
                pipeline = failing_pipeline(&records, decorator);
                for (int n = 1; n < 20; n += 3)
                    check_failure(&records, decorator, bad, n);
                leat_pipeline_unref(pipeline);
            }
    pipeline = NULL;
    end();
}
END_TEST

START_TEST(a_shuffled_mnist_has_every_digit_once)
{
    const int expected[] = {980, 1135, 1032, 1010, 982,
                            892, 958,  1028, 974,  1009};
    char text[4096];
    int found[10] = {0};
    int got;
    begin(0);
    leat_pipeline_unref(pipeline);
    snprintf(text, sizeof(text),
             "lmdb:%s/lmdb/mnist_test_lmdb | test_shuffle:seed=7",
             shared_folder());
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    leat_reader *reader = NULL;
    if (leat_pipeline_open(pipeline, &reader) == LEAT_EIO) {
        printf("skipped: no shared data: %s\n", leat_last_error());
        end();
        return;
    }
    ck_assert_ptr_nonnull(reader);
    while (leat_reader_next_batch(reader, out, BUFFERS, &got) == LEAT_OK) {
        for (int k = 0; k < got; k++) {
            int32_t label;
            memcpy(&label, out[k]->field[1].data, sizeof(label));
            ck_assert(label >= 0 && label < 10);
            found[label]++;
        }
    }
    ck_assert_mem_eq(found, expected, sizeof(found));
    leat_reader_close(reader);
    end();
}
END_TEST

static void add_position_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, every_position_of_three_epochs_is_found_by_seek,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, every_position_of_three_epochs_is_found_by_mark,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, damaged_marks_do_no_harm, 0, READER_CASES);
    tcase_add_loop_test(tcase, skipping_some_is_reading_as_many, 0,
                        READER_CASES);
    tcase_add_loop_test(
        tcase, deferred_samples_are_completed_inline_or_on_four_threads, 0,
        READER_CASES);
    tcase_add_loop_test(tcase, reading_takes_no_memory_once_it_runs, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase,
                        buffers_that_are_swapped_are_neither_lost_nor_shared, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_reader_is_cancelled_from_another_thread, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_reader_is_closed_anywhere, 0, READER_CASES);
    tcase_add_loop_test(
        tcase, an_error_at_any_position_comes_after_the_samples_before_it, 0,
        2);
}

int main(void)
{
    Suite *suite = suite_create("readers");
    TCase *tcase = tcase_create("readers");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, samples_come_in_order_for_every_number_at_a_time,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, the_fields_are_told_beforehand_and_read_nothing,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, a_reset_half_way_starts_anew, 0, READER_CASES);
    tcase_add_loop_test(tcase, readers_of_one_pipeline_do_not_meet, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_reader_outlives_the_callers_reference, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_cancelled_reader_gives_nothing_any_more, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, what_a_reader_cannot_do_it_says, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_reader_survives_every_failing_allocation, 0,
                        READER_CASES);
    add_position_tests(tcase);
    tcase_add_test(tcase, a_shuffled_mnist_has_every_digit_once);
    return suite_run(suite);
}
