/* shuffle:N: inputs take the slots of the samples that are drawn. */
#include "decorators/shuffle/shuffle_buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/sample.h"
#include "decorators/grouper.h"

#include <leat/log.h>

#include <string.h>

/* Nanoseconds between lines of the log while it is filled. */
#define LOG_INTERVAL (10 * INT64_C(1000000000))

void leat__shuffle_note_memory(leat__shuffle_buffer *buffer)
{
    atomic_store_explicit(&buffer->memory,
                          leat__shuffle_slots_memory(&buffer->slots),
                          memory_order_relaxed);
}

int leat__shuffle_keep_line(leat_sample *sample)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    sample->deferred = 0;
    return leat__sample_keep_line(sample, line);
}

static int return_line(leat_sample *sample)
{
    sample->nfields = 0;
    return leat_error(LEAT_EDATA, "%s", (const char *)sample->field[0].data);
}

int leat__shuffle_check_fields(leat__shuffle_buffer *buffer,
                               const leat_sample *sample)
{
    if (sample->nfields >= 0 && sample->nfields <= buffer->slots.nfields)
        return LEAT_OK;
    if (sample->deferred && sample->nfields > 0 &&
        sample->nfields <= LEAT_MAX_FIELDS)
        return leat__shuffle_slots_widen(&buffer->slots, sample->nfields);
    return leat_error(LEAT_ESTATE,
                      "shuffle: the reader \"%s\" gave a sample of %d fields, "
                      "expected %d",
                      leat__shuffle_upstream(buffer)->ops->name,
                      sample->nfields, buffer->slots.nfields);
}

/* ---- Inputs ------------------------------------------------------------- */

/* Takes a mark of the stream now and then. Where the reader cannot give one
 * here, the next input is as good. */
static int note_mark(leat__shuffle_buffer *buffer)
{
    if (buffer->finds ||
        !leat__shuffle_marks_are_due(&buffer->marks, buffer->taken))
        return LEAT_OK;
    int64_t oldest = leat__shuffle_slots_oldest(&buffer->slots);
    leat__shuffle_mark *mark = leat__shuffle_marks_add(
        &buffer->marks, oldest < buffer->taken ? oldest : buffer->taken,
        buffer->taken);
    int status = leat_reader_mark(leat__shuffle_upstream(buffer), &mark->token);
    buffer->marks.n -= status != LEAT_OK;
    return status == LEAT_ESTATE ? LEAT_OK : status;
}

/*
 * Reads up to `n` inputs. A bad record is one, too, alone: `*input` is the
 * number of the first, or ~ it. At the end *got is 0.
 */
static int read_inputs(leat__shuffle_buffer *buffer, leat_sample *const out[],
                       int n, int *got, int64_t *input)
{
    int status = note_mark(buffer);
    *got = 0;
    *input = buffer->taken;
    if (!status)
        status = leat_reader_pull(leat__shuffle_upstream(buffer), out, n, got);
    if (status == LEAT_END) {
        buffer->has_ended = true;
        return LEAT_OK;
    }
    if (status == LEAT_EDATA) {
        status = leat__shuffle_keep_line(out[0]);
        *input = ~*input;
        *got = 1;
    }
    if (!status)
        buffer->taken += *got;
    return status;
}

void leat__shuffle_clear_scratch(leat__shuffle_buffer *buffer)
{
    for (int i = 0; i < LEAT__SHUFFLE_AT_ONCE; i++)
        leat_sample_clear(&buffer->scratch[i]);
}

int leat__shuffle_make_slots(leat__shuffle_buffer *buffer)
{
    const leat_field_spec *spec;
    int n;
    int64_t size = buffer->options.size;
    if (buffer->slots.samples)
        return LEAT_OK;
    int status = leat_reader_fields(leat__shuffle_upstream(buffer), &spec, &n);
    if (status)
        return status;
    /* One at least, for a reader that counts none and gives some. */
    if (buffer->count >= 0 && buffer->count < size)
        size = buffer->count > 0 ? buffer->count : 1;
    return leat__shuffle_slots_init(&buffer->slots, (int32_t)size, n,
                                    buffer->allocator);
}

int leat__shuffle_check_memory(leat__shuffle_buffer *buffer)
{
    const leat__shuffle_slots *slots = &buffer->slots;
    leat__shuffle_note_memory(buffer);
    /* Groups that are to be written yet are held upstream. */
    int64_t memory = leat__shuffle_slots_memory(slots) +
                     leat__grouper_held_below(leat__shuffle_upstream(buffer));
    if (buffer->max_memory == 0 || memory <= buffer->max_memory)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "shuffle: %d samples of a buffer of %d take %lld bytes, "
                      "but max_memory is %lld: expected a smaller buffer",
                      (int)slots->n, (int)slots->size, (long long)memory,
                      (long long)buffer->max_memory);
}

void leat__shuffle_report_filling(int32_t done, int32_t all, int64_t *last)
{
    int64_t now = leat__clock_now();
    if (now - *last < LOG_INTERVAL)
        return;
    *last = now;
    leat_log_line(LEAT_LOG_INFO, "shuffle: %d of %d samples are in the buffer",
                  (int)done, (int)all);
}

/* Puts what was read to scratch into new slots. */
static int append(leat__shuffle_buffer *buffer, int n, int64_t input)
{
    int step = input < 0 ? -1 : 1;
    for (int i = 0; i < n; i++) {
        int status = leat__shuffle_check_fields(buffer, &buffer->scratch[i]);
        if (status)
            return status;
        leat__shuffle_slots_exchange(&buffer->slots, buffer->slots.n,
                                     &buffer->scratch[i], input + step * i);
    }
    return leat__shuffle_check_memory(buffer);
}

/* Reads the first inputs of an epoch. */
static int fill(leat__shuffle_buffer *buffer)
{
    int64_t begun = leat__clock_now();
    int status = leat__shuffle_make_slots(buffer);
    const leat__shuffle_slots *slots = &buffer->slots;
    while (!status && slots->n < slots->size && !buffer->has_ended) {
        int got, left = slots->size - slots->n;
        int64_t input;
        leat__shuffle_clear_scratch(buffer);
        status = leat__decorator_check_running(&buffer->decorator);
        if (!status)
            status = read_inputs(
                buffer, buffer->into,
                left < LEAT__SHUFFLE_AT_ONCE ? left : LEAT__SHUFFLE_AT_ONCE,
                &got, &input);
        if (!status)
            status = append(buffer, got, input);
        leat__shuffle_report_filling(slots->n, slots->size, &begun);
    }
    buffer->is_filled = !status;
    return status;
}

/* ---- Giving ------------------------------------------------------------- */

static int32_t draw(leat__shuffle_buffer *buffer)
{
    return (int32_t)leat__shuffle_draw(&buffer->draws, buffer->next.index++,
                                       (uint32_t)buffer->slots.n);
}

/* Gives the sample of slot `i` in exchange for an input. */
static int exchange(leat__shuffle_buffer *buffer, int32_t i,
                    leat_sample *sample, int64_t input)
{
    int status = leat__shuffle_check_fields(buffer, sample);
    if (status)
        return status;
    int64_t given =
        leat__shuffle_slots_exchange(&buffer->slots, i, sample, input);
    return given < 0 ? return_line(sample) : LEAT_OK;
}

/* While there are inputs. No bad record can be drawn in the midst of several
 * that were read, as then one is read at a time. */
static int exchange_some(leat__shuffle_buffer *buffer, leat_sample *const out[],
                         int n, int *got)
{
    int32_t slot[LEAT__SHUFFLE_AT_ONCE];
    int some;
    int64_t input;
    n = buffer->slots.nbad > 0      ? 1
        : n < LEAT__SHUFFLE_AT_ONCE ? n
                                    : LEAT__SHUFFLE_AT_ONCE;
    /* What the last ones have left: an error would concern none of them. */
    int status = leat__shuffle_check_memory(buffer);
    if (!status)
        status = read_inputs(buffer, out, n, &some, &input);
    for (int i = 0; !status && i < some; i++) {
        slot[i] = draw(buffer);
        leat__shuffle_slots_expect(&buffer->slots, slot[i]);
    }
    for (int i = 0; !status && i < some; i++) {
        status = exchange(buffer, slot[i], out[i], input + i);
        *got += !status;
    }
    return status;
}

/* Fills samples that have no fields of other readers. */
static int give(leat__shuffle_buffer *buffer, leat_sample *const out[], int n,
                int *got)
{
    int status = leat__decorator_check_running(&buffer->decorator);
    if (!status && !buffer->is_filled)
        status = fill(buffer);
    if (!status && !buffer->has_ended)
        status = exchange_some(buffer, out, n, got);
    else if (!status)
        status = leat__shuffle_check_memory(buffer);
    while (!status && buffer->has_ended && *got < n) {
        if (buffer->slots.n == 0)
            return LEAT_END;
        int64_t given =
            leat__shuffle_slots_take(&buffer->slots, draw(buffer), out[*got]);
        status = given < 0 ? return_line(out[*got]) : LEAT_OK;
        *got += !status;
    }
    leat__sample_prefetch(out, *got);
    leat__shuffle_note_memory(buffer);
    return status;
}

/* Below a reader that joins several its fields are appended, so that a slot's
 * sample cannot be exchanged for it. */
static int give_joined(leat__shuffle_buffer *buffer, leat_sample *out, int *got)
{
    leat_sample *sample = &buffer->scratch[0];
    leat_sample_clear(sample);
    int status = give(buffer, &sample, 1, got);
    if (status == LEAT_OK && sample->deferred)
        status = leat_reader_materialize(leat__shuffle_upstream(buffer),
                                         &sample, 1, got);
    if (status == LEAT_OK || status == LEAT_EDATA) {
        int moved = leat_sample_move(out, sample);
        status = moved ? moved : status;
    }
    *got = status == LEAT_OK;
    return status;
}

static int buffer_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    leat__shuffle_buffer *buffer = leat__shuffle_buffer_of(reader);
    return out[0]->nfields > 0 ? give_joined(buffer, out[0], got)
                               : give(buffer, out, n, got);
}

static int64_t buffer_memory(leat_reader *reader)
{
    return atomic_load_explicit(&leat__shuffle_buffer_of(reader)->memory,
                                memory_order_relaxed);
}

static void buffer_close(leat_reader *reader)
{
    leat__shuffle_buffer *buffer = leat__shuffle_buffer_of(reader);
    leat__shuffle_slots_finish(&buffer->slots);
    leat__shuffle_marks_finish(&buffer->marks);
    for (int i = 0; i < LEAT__SHUFFLE_AT_ONCE; i++)
        leat_sample_finish(&buffer->scratch[i]);
    leat__decorator_close(reader);
}

static const leat_reader_ops buffer_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shuffle",
    .fields = leat__decorator_fields,
    .next = buffer_next,
    .seek = leat__shuffle_buffer_seek,
    .cancel = leat__decorator_cancel,
    .close = buffer_close,
    .count = leat__shuffle_buffer_count,
    .can_seek = leat__shuffle_buffer_can_seek,
    .save = leat__decorator_save,
    .restore = leat__shuffle_buffer_restore,
    .may_block = leat__decorator_may_block,
    .memory = buffer_memory,
    .is_endless = leat__decorator_is_any_endless,
};

/* Over a stream whose positions no index finds. */
static const leat_reader_ops buffer_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shuffle",
    .fields = leat__decorator_fields,
    .next = buffer_next,
    .seek = leat__shuffle_buffer_seek,
    .cancel = leat__decorator_cancel,
    .close = buffer_close,
    .count = leat__shuffle_buffer_count,
    .can_seek = leat__shuffle_buffer_can_seek,
    .mark = leat__shuffle_buffer_mark,
    .save = leat__decorator_save,
    .restore = leat__shuffle_buffer_restore,
    .may_block = leat__decorator_may_block,
    .memory = buffer_memory,
    .is_endless = leat__decorator_is_any_endless,
};

int leat__shuffle_buffer_open(const leat_open *open,
                              const leat__shuffle_options *options,
                              leat_reader **out)
{
    leat_reader *upstream = open->upstream[0];
    int64_t count;
    int status = leat_reader_count(upstream, &count);
    if (status == LEAT_EUNSUPPORTED)
        count = -1;
    else if (status)
        return status;
    bool finds = leat_reader_can_seek(upstream);
    leat__shuffle_buffer *buffer = leat__decorator_new(
        open, finds && count >= 0 ? &buffer_ops : &buffer_stream_ops,
        sizeof(*buffer));
    if (!buffer)
        return LEAT_ENOMEM;
    buffer->options = *options;
    buffer->max_memory = open->max_memory;
    buffer->allocator = open->allocator;
    buffer->count = count;
    buffer->finds = finds;
    leat__shuffle_marks_init(&buffer->marks, options->size / 2);
    for (int i = 0; i < LEAT__SHUFFLE_AT_ONCE; i++) {
        leat_sample_init(&buffer->scratch[i]);
        buffer->scratch[i].allocator = buffer->allocator;
        buffer->into[i] = &buffer->scratch[i];
    }
    leat__shuffle_begin_epoch(buffer, 0);
    *out = &buffer->decorator.reader;
    return LEAT_OK;
}
