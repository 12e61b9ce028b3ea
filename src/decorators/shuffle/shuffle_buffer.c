/*
 * shuffle:N, a buffer that samples are drawn from.
 *
 * DESIGN
 *
 * Each position draws a slot (shuffle_draws.h), gives its sample, and the next
 * input takes the slot; after the last input the buffer runs empty. An input
 * is read straight into the caller's sample, which is then exchanged with the
 * slot: nothing is copied. A bad record takes a slot like any other, with its
 * error's line as a field, and is returned where it is drawn.
 *
 * What the buffer holds at a position follows from the draws, so a resume takes
 * the position and, once it is known, the number of inputs. The samples are
 * found by their indices where the upstream reader finds these; else they are
 * read again from a mark that was taken before the oldest of them.
 *
 * All is of one caller at a time, but for `memory`.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "decorators/decorator.h"
#include "decorators/shuffle/shuffle.h"
#include "decorators/shuffle/shuffle_draws.h"
#include "decorators/shuffle/shuffle_marks.h"
#include "decorators/shuffle/shuffle_slots.h"

#include <leat/log.h>

#include <stdio.h>
#include <string.h>

/* Samples read in one go while the buffer is filled. */
enum { AT_ONCE = 16 };

/* Nanoseconds between lines of the log while it is filled. */
#define LOG_INTERVAL (10 * INT64_C(1000000000))

typedef struct shuffle_buffer {
    leat__decorator decorator;
    leat__shuffle_options options;
    int64_t max_memory; /* 0: no limit */
    int64_t count;      /* of the upstream reader; -1: unknown */
    bool finds;         /* it goes to every index */
    leat_position next; /* what is given next */
    bool is_filled;     /* as far as there are inputs */
    bool has_ended;     /* there are no more inputs than `taken` */
    int64_t taken;      /* inputs of this epoch */
    leat__shuffle_draws draws;
    leat__shuffle_slots slots;
    leat__shuffle_marks marks; /* of a stream that finds no index */
    leat_sample scratch[AT_ONCE];
    leat_sample *into[AT_ONCE]; /* these */
    atomic_int_fast64_t memory; /* any thread reads it */
} shuffle_buffer;

static shuffle_buffer *buffer_of(leat_reader *reader)
{
    return (shuffle_buffer *)reader;
}

static leat_reader *upstream_of(const shuffle_buffer *buffer)
{
    return buffer->decorator.upstream[0];
}

static void note_memory(shuffle_buffer *buffer)
{
    atomic_store_explicit(&buffer->memory,
                          leat__shuffle_slots_memory(&buffer->slots),
                          memory_order_relaxed);
}

/* ---- Bad records -------------------------------------------------------- */

/* Keeps the line of the error that a record has, as its only field. */
static int keep_line(leat_sample *sample)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    size_t bytes = strlen(line) + 1;
    sample->nfields = 0;
    sample->deferred = 0;
    char *kept = leat_sample_take(sample, bytes);
    if (!kept)
        return LEAT_ENOMEM;
    memcpy(kept, line, bytes);
    const int64_t length = (int64_t)bytes;
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, &length, kept);
}

static int return_line(leat_sample *sample)
{
    sample->nfields = 0;
    return leat_error(LEAT_EDATA, "%s", (const char *)sample->field[0].data);
}

/* A slot has room for as many fields as were promised. A deferred sample has
 * those of the reader that deferred it, which may be more. */
static int check_fields(shuffle_buffer *buffer, const leat_sample *sample)
{
    if (sample->nfields >= 0 && sample->nfields <= buffer->slots.nfields)
        return LEAT_OK;
    if (sample->deferred && sample->nfields > 0 &&
        sample->nfields <= LEAT_MAX_FIELDS)
        return leat__shuffle_slots_widen(&buffer->slots, sample->nfields);
    return leat_error(LEAT_ESTATE,
                      "shuffle: the reader \"%s\" gave a sample of %d fields, "
                      "expected %d",
                      upstream_of(buffer)->ops->name, sample->nfields,
                      buffer->slots.nfields);
}

/* ---- Inputs ------------------------------------------------------------- */

/* Takes a mark of the stream now and then. Where the reader cannot give one
 * here, the next input is as good. */
static int note_mark(shuffle_buffer *buffer)
{
    if (buffer->finds ||
        !leat__shuffle_marks_are_due(&buffer->marks, buffer->taken))
        return LEAT_OK;
    int64_t oldest = leat__shuffle_slots_oldest(&buffer->slots);
    leat__shuffle_mark *mark = leat__shuffle_marks_add(
        &buffer->marks, oldest < buffer->taken ? oldest : buffer->taken,
        buffer->taken);
    int status = leat_reader_mark(upstream_of(buffer), &mark->token);
    buffer->marks.n -= status != LEAT_OK;
    return status == LEAT_ESTATE ? LEAT_OK : status;
}

/*
 * Reads up to `n` inputs. A bad record is one, too, alone: `*input` is the
 * number of the first, or ~ it. At the end *got is 0.
 */
static int read_inputs(shuffle_buffer *buffer, leat_sample *const out[], int n,
                       int *got, int64_t *input)
{
    int status = note_mark(buffer);
    *got = 0;
    *input = buffer->taken;
    if (!status)
        status = leat_reader_pull(upstream_of(buffer), out, n, got);
    if (status == LEAT_END) {
        buffer->has_ended = true;
        return LEAT_OK;
    }
    if (status == LEAT_EDATA) {
        status = keep_line(out[0]);
        *input = ~*input;
        *got = 1;
    }
    if (!status)
        buffer->taken += *got;
    return status;
}

static void clear_scratch(shuffle_buffer *buffer)
{
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_clear(&buffer->scratch[i]);
}

static int make_slots(shuffle_buffer *buffer)
{
    const leat_field_spec *spec;
    int n;
    int64_t size = buffer->options.size;
    if (buffer->slots.samples)
        return LEAT_OK;
    int status = leat_reader_fields(upstream_of(buffer), &spec, &n);
    if (status)
        return status;
    if (buffer->count >= 0 && buffer->count < size)
        size = buffer->count;
    return leat__shuffle_slots_init(&buffer->slots, (int32_t)size, n);
}

static int check_memory(shuffle_buffer *buffer)
{
    const leat__shuffle_slots *slots = &buffer->slots;
    note_memory(buffer);
    int64_t memory = leat__shuffle_slots_memory(slots);
    if (buffer->max_memory == 0 || memory <= buffer->max_memory)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "shuffle: %d samples of a buffer of %d take %lld bytes, "
                      "but max_memory is %lld: expected a smaller buffer",
                      (int)slots->n, (int)slots->size, (long long)memory,
                      (long long)buffer->max_memory);
}

/* A line of the log every 10 s. */
static void report_filling(int32_t done, int32_t all, int64_t *last)
{
    int64_t now = leat__clock_now();
    if (now - *last < LOG_INTERVAL)
        return;
    *last = now;
    leat_log_line(LEAT_LOG_INFO, "shuffle: %d of %d samples are in the buffer",
                  (int)done, (int)all);
}

/* Puts what was read to scratch into new slots. */
static int append(shuffle_buffer *buffer, int n, int64_t input)
{
    int step = input < 0 ? -1 : 1;
    for (int i = 0; i < n; i++) {
        int status = check_fields(buffer, &buffer->scratch[i]);
        if (status)
            return status;
        leat__shuffle_slots_exchange(&buffer->slots, buffer->slots.n,
                                     &buffer->scratch[i], input + step * i);
    }
    return check_memory(buffer);
}

/* Reads the first inputs of an epoch. */
static int fill(shuffle_buffer *buffer)
{
    int64_t begun = leat__clock_now();
    int status = make_slots(buffer);
    const leat__shuffle_slots *slots = &buffer->slots;
    while (!status && slots->n < slots->size && !buffer->has_ended) {
        int got, left = slots->size - slots->n;
        int64_t input;
        clear_scratch(buffer);
        status = leat__decorator_check_running(&buffer->decorator);
        if (!status)
            status = read_inputs(buffer, buffer->into,
                                 left < AT_ONCE ? left : AT_ONCE, &got, &input);
        if (!status)
            status = append(buffer, got, input);
        report_filling(slots->n, slots->size, &begun);
    }
    buffer->is_filled = !status;
    return status;
}

/* ---- Giving ------------------------------------------------------------- */

static int32_t draw(shuffle_buffer *buffer)
{
    return (int32_t)leat__shuffle_draw(&buffer->draws, buffer->next.index++,
                                       (uint32_t)buffer->slots.n);
}

/* Gives the sample of slot `i` in exchange for an input. */
static int exchange(shuffle_buffer *buffer, int32_t i, leat_sample *sample,
                    int64_t input)
{
    int status = check_fields(buffer, sample);
    if (status)
        return status;
    int64_t given =
        leat__shuffle_slots_exchange(&buffer->slots, i, sample, input);
    return given < 0 ? return_line(sample) : LEAT_OK;
}

/* While there are inputs. No bad record can be drawn in the midst of several
 * that were read, as then one is read at a time. */
static int exchange_some(shuffle_buffer *buffer, leat_sample *const out[],
                         int n, int *got)
{
    int32_t slot[AT_ONCE];
    int some;
    int64_t input;
    n = buffer->slots.nbad > 0 ? 1 : n < AT_ONCE ? n : AT_ONCE;
    int status = read_inputs(buffer, out, n, &some, &input);
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
static int give(shuffle_buffer *buffer, leat_sample *const out[], int n,
                int *got)
{
    int status = leat__decorator_check_running(&buffer->decorator);
    if (!status && !buffer->is_filled)
        status = fill(buffer);
    if (!status && !buffer->has_ended)
        status = exchange_some(buffer, out, n, got);
    while (!status && buffer->has_ended && *got < n) {
        if (buffer->slots.n == 0)
            return LEAT_END;
        int64_t given =
            leat__shuffle_slots_take(&buffer->slots, draw(buffer), out[*got]);
        status = given < 0 ? return_line(out[*got]) : LEAT_OK;
        *got += !status;
    }
    leat__sample_prefetch(out, *got);
    note_memory(buffer);
    return status;
}

/* Below a reader that joins several its fields are appended, so that a slot's
 * sample cannot be exchanged for it. */
static int give_joined(shuffle_buffer *buffer, leat_sample *out, int *got)
{
    leat_sample *sample = &buffer->scratch[0];
    leat_sample_clear(sample);
    int status = give(buffer, &sample, 1, got);
    if (status == LEAT_OK && sample->deferred)
        status = leat_reader_materialize(upstream_of(buffer), &sample, 1, got);
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
    shuffle_buffer *buffer = buffer_of(reader);
    return out[0]->nfields > 0 ? give_joined(buffer, out[0], got)
                               : give(buffer, out, n, got);
}

/* ---- Positions ---------------------------------------------------------- */

/* Begins an epoch, whose inputs the upstream reader gives next. */
static void begin_epoch(shuffle_buffer *buffer, int64_t epoch)
{
    buffer->next = (leat_position){epoch, 0};
    buffer->is_filled = buffer->has_ended = false;
    buffer->taken = 0;
    buffer->marks.n = 0;
    leat__shuffle_slots_clear(&buffer->slots);
    leat__shuffle_draws_init(&buffer->draws, buffer->options.seed,
                             leat__shuffle_epoch(&buffer->options, epoch));
}

/* The inputs of a resumed buffer that lie together. */
static int run_length(const leat__shuffle_held held[], int32_t n)
{
    int run = 1;
    while (run < n && run < AT_ONCE && held[run].input == held[0].input + run)
        run++;
    return run;
}

/* Goes to an input: by its index, or on from where the stream is. */
static int go_to_input(shuffle_buffer *buffer, int64_t input)
{
    const leat_position at = {buffer->next.epoch, input};
    int64_t skipped;
    if (input == buffer->taken)
        return LEAT_OK;
    int status = buffer->finds
                     ? leat_reader_seek(upstream_of(buffer), at, NULL)
                     : leat_reader_skip(upstream_of(buffer),
                                        input - buffer->taken, &skipped);
    if (!status)
        buffer->taken = input;
    return status;
}

/* Reads inputs that are held, in their order; the number of them in *got. */
static int read_held(shuffle_buffer *buffer, const leat__shuffle_held held[],
                     int32_t n, int *got, bool *is_bad)
{
    leat_reader *upstream = upstream_of(buffer);
    int status;
    clear_scratch(buffer);
    if (leat_reader_is_random_access(upstream)) {
        leat_position at[AT_ONCE];
        int some = n < AT_ONCE ? n : AT_ONCE;
        for (int i = 0; i < some; i++)
            at[i] = (leat_position){buffer->next.epoch, held[i].input};
        leat_reader_advise(upstream, at, some);
        status = leat_reader_pull_at(upstream, at, buffer->into, some, got);
    } else {
        *got = 0;
        status = go_to_input(buffer, held[0].input);
        if (!status)
            status = leat_reader_pull(upstream, buffer->into,
                                      run_length(held, n), got);
        buffer->taken += *got + (status == LEAT_EDATA);
    }
    *is_bad = status == LEAT_EDATA;
    return *is_bad ? keep_line(buffer->into[*got]) : status;
}

/* Reads all that are held into their slots. */
static int load(shuffle_buffer *buffer, const leat__shuffle_held held[],
                int32_t n)
{
    int64_t begun = leat__clock_now();
    int status = LEAT_OK;
    for (int32_t i = 0; i < n && !status;) {
        int got;
        bool is_bad;
        status = leat__decorator_check_running(&buffer->decorator);
        if (!status)
            status = read_held(buffer, held + i, n - i, &got, &is_bad);
        if (status)
            break;
        for (int k = 0; k < got + is_bad && !status; k++, i++) {
            int64_t input = k < got ? held[i].input : ~held[i].input;
            status = check_fields(buffer, &buffer->scratch[k]);
            if (!status)
                leat__shuffle_slots_exchange(&buffer->slots, held[i].slot,
                                             &buffer->scratch[k], input);
        }
        if (!status)
            status = check_memory(buffer);
        report_filling(i, n, &begun);
    }
    if (status == LEAT_END)
        return leat_error(LEAT_EINVAL, "shuffle: the data end before what the "
                                       "resumed buffer held");
    return status;
}

/* Fills the buffer as it is before position `t`, if there are `inputs` in all
 * (-1: not known). */
static int restore_slots(shuffle_buffer *buffer, int64_t t, int64_t inputs)
{
    int status = make_slots(buffer);
    if (status)
        return status;
    int32_t size = buffer->slots.size;
    leat__shuffle_held *held = leat__alloc_zero((size_t)size, sizeof(*held));
    int32_t *work = leat__alloc_zero((size_t)size, sizeof(*work));
    status = held && work ? LEAT_OK : LEAT_ENOMEM;
    if (!status) {
        int32_t n =
            leat__shuffle_walk(&buffer->draws, t, size, inputs, held, work);
        leat__shuffle_slots_open(&buffer->slots, n);
        status = load(buffer, held, n);
    }
    leat__free(held);
    leat__free(work);
    return status;
}

/* Where a buffer is in an epoch. A mark has it before that of the stream, whose
 * index it names. */
typedef struct buffer_state {
    int64_t position;
    int64_t inputs; /* of the epoch; -1: at least what a full buffer takes */
    int64_t from;   /* the input before which the stream's mark was taken */
} buffer_state;

static int check_state(const shuffle_buffer *buffer, const buffer_state *state)
{
    const int64_t most = INT64_MAX / 4;
    int64_t taken = state->inputs;
    if (taken < 0 && state->position < most)
        taken = state->position + buffer->options.size;
    if (state->position >= 0 && state->position < most && state->inputs >= -1 &&
        state->inputs < most && state->from >= 0 && state->from <= taken &&
        (state->inputs < 0 || state->position <= state->inputs))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "shuffle: a buffer of %lld cannot be at position %lld of "
                      "%lld inputs, read from %lld",
                      (long long)buffer->options.size,
                      (long long)state->position, (long long)state->inputs,
                      (long long)state->from);
}

/* Goes to a position; a stream is where its mark was taken. */
static int go_to(shuffle_buffer *buffer, int64_t epoch,
                 const buffer_state *state)
{
    int64_t filled = state->position + buffer->options.size;
    bool ends = state->inputs >= 0 && filled > state->inputs;
    begin_epoch(buffer, epoch);
    buffer->taken = buffer->finds ? -1 : state->from;
    int status = restore_slots(buffer, state->position, state->inputs);
    /* Reading by index has left the upstream reader where it was. */
    if (buffer->finds)
        buffer->taken = -1;
    if (!status)
        status = go_to_input(buffer, ends ? state->inputs : filled);
    if (status)
        return status;
    buffer->next.index = state->position;
    buffer->has_ended = ends;
    buffer->is_filled = true;
    note_memory(buffer);
    return LEAT_OK;
}

/* Keeps the mark that the stream was resumed from as the first one. */
static int keep_mark(shuffle_buffer *buffer, const unsigned char *bytes,
                     size_t size, int64_t from)
{
    leat__shuffle_mark *first =
        leat__shuffle_marks_add(&buffer->marks, from, from);
    return leat_token_put(&first->token, bytes, size);
}

static int seek_begin(shuffle_buffer *buffer, int64_t epoch)
{
    const leat_position first = {epoch, 0};
    int status = leat_reader_seek(upstream_of(buffer), first, NULL);
    if (!status)
        begin_epoch(buffer, epoch);
    return status;
}

static int seek_mark(shuffle_buffer *buffer, int64_t epoch, leat_token *mark)
{
    buffer_state state;
    int status = leat_token_get(mark, &state, sizeof(state));
    if (!status)
        status = check_state(buffer, &state);
    size_t begin = mark->cursor;
    const leat_position from = {epoch, state.from};
    if (!status && !buffer->finds)
        status = leat_reader_seek(upstream_of(buffer), from, mark);
    if (status)
        return status;
    size_t size = mark->cursor - begin;
    /* Perhaps not even one buffer's inputs are there. */
    if (state.position == 0 && state.inputs < 0 && buffer->finds)
        return seek_begin(buffer, epoch);
    if (state.position == 0 && state.inputs < 0)
        begin_epoch(buffer, epoch);
    else
        status = go_to(buffer, epoch, &state);
    if (!status && !buffer->finds)
        status = keep_mark(buffer, mark->bytes + begin, size, state.from);
    return status;
}

static int buffer_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    shuffle_buffer *buffer = buffer_of(reader);
    if (mark)
        return seek_mark(buffer, position.epoch, mark);
    if (position.index == 0)
        return seek_begin(buffer, position.epoch);
    if (!buffer->finds || buffer->count < 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "shuffle: sample %lld cannot be found by its index, "
                          "as the reader \"%s\" %s",
                          (long long)position.index,
                          upstream_of(buffer)->ops->name,
                          buffer->finds ? "has no count" : "finds no index");
    const buffer_state state = {
        position.index, buffer->count == LEAT_ENDLESS ? -1 : buffer->count, 0};
    int status = check_state(buffer, &state);
    return status ? status : go_to(buffer, position.epoch, &state);
}

static int buffer_mark(leat_reader *reader, leat_token *token)
{
    const shuffle_buffer *buffer = buffer_of(reader);
    const leat__shuffle_mark *first =
        buffer->marks.n > 0 ? &buffer->marks.mark[0] : NULL;
    const buffer_state state = {.position = buffer->next.index,
                                .inputs =
                                    buffer->has_ended ? buffer->taken : -1,
                                .from = first ? first->input : 0};
    int status = leat_token_put(token, &state, sizeof(state));
    if (status || buffer->finds)
        return status;
    return first ? leat_token_put(token, first->token.bytes, first->token.size)
                 : leat_reader_mark(upstream_of(buffer), token);
}

static int buffer_can_seek(leat_reader *reader)
{
    const shuffle_buffer *buffer = buffer_of(reader);
    return buffer->finds && buffer->count >= 0;
}

static int buffer_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(upstream_of(buffer_of(reader)), out);
}

static int buffer_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        begin_epoch(buffer_of(reader), 0);
    return status;
}

/* ---- The reader --------------------------------------------------------- */

static int64_t buffer_memory(leat_reader *reader)
{
    return atomic_load_explicit(&buffer_of(reader)->memory,
                                memory_order_relaxed);
}

static void buffer_close(leat_reader *reader)
{
    shuffle_buffer *buffer = buffer_of(reader);
    leat__shuffle_slots_finish(&buffer->slots);
    leat__shuffle_marks_finish(&buffer->marks);
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_finish(&buffer->scratch[i]);
    leat__decorator_close(reader);
}

static const leat_reader_ops buffer_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shuffle",
    .fields = leat__decorator_fields,
    .next = buffer_next,
    .seek = buffer_seek,
    .cancel = leat__decorator_cancel,
    .close = buffer_close,
    .count = buffer_count,
    .can_seek = buffer_can_seek,
    .save = leat__decorator_save,
    .restore = buffer_restore,
    .may_block = leat__decorator_may_block,
    .memory = buffer_memory,
};

/* Over a stream whose positions no index finds. */
static const leat_reader_ops buffer_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shuffle",
    .fields = leat__decorator_fields,
    .next = buffer_next,
    .seek = buffer_seek,
    .cancel = leat__decorator_cancel,
    .close = buffer_close,
    .count = buffer_count,
    .can_seek = buffer_can_seek,
    .mark = buffer_mark,
    .save = leat__decorator_save,
    .restore = buffer_restore,
    .may_block = leat__decorator_may_block,
    .memory = buffer_memory,
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
    shuffle_buffer *buffer = leat__decorator_new(
        open, finds && count >= 0 ? &buffer_ops : &buffer_stream_ops,
        sizeof(*buffer));
    if (!buffer)
        return LEAT_ENOMEM;
    buffer->options = *options;
    buffer->max_memory = open->max_memory;
    buffer->count = count;
    buffer->finds = finds;
    leat__shuffle_marks_init(&buffer->marks, options->size / 2);
    for (int i = 0; i < AT_ONCE; i++) {
        leat_sample_init(&buffer->scratch[i]);
        buffer->scratch[i].allocator = open->allocator;
        buffer->into[i] = &buffer->scratch[i];
    }
    begin_epoch(buffer, 0);
    *out = &buffer->decorator.reader;
    return LEAT_OK;
}
