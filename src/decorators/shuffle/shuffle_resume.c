/* Positions of a buffer: what it held is read again. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "decorators/shuffle/shuffle_buffer.h"

void leat__shuffle_begin_epoch(leat__shuffle_buffer *buffer, int64_t epoch)
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
    while (run < n && run < LEAT__SHUFFLE_AT_ONCE &&
           held[run].input == held[0].input + run)
        run++;
    return run;
}

/* Goes to an input: on from where the upstream reader is, or, where that is not
 * known, by its index. A seek may cost that reader a buffer of its own. */
static int go_to_input(leat__shuffle_buffer *buffer, int64_t input)
{
    const leat_position at = {buffer->next.epoch, input};
    int64_t skipped;
    if (input == buffer->taken)
        return LEAT_OK;
    int status =
        buffer->taken < 0
            ? leat_reader_seek(leat__shuffle_upstream(buffer), at, NULL)
            : leat_reader_skip(leat__shuffle_upstream(buffer),
                               input - buffer->taken, &skipped);
    if (!status)
        buffer->taken = input;
    return status;
}

/* Reads inputs that are held, in their order; the number of them in *got. */
static int read_held(leat__shuffle_buffer *buffer,
                     const leat__shuffle_held held[], int32_t n, int *got,
                     bool *is_bad)
{
    leat_reader *upstream = leat__shuffle_upstream(buffer);
    int status;
    leat__shuffle_clear_scratch(buffer);
    if (leat_reader_is_random_access(upstream)) {
        leat_position at[LEAT__SHUFFLE_AT_ONCE];
        int some = n < LEAT__SHUFFLE_AT_ONCE ? n : LEAT__SHUFFLE_AT_ONCE;
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
    return *is_bad ? leat__shuffle_keep_line(buffer->into[*got]) : status;
}

/* Reads all that are held into their slots. */
static int load(leat__shuffle_buffer *buffer, const leat__shuffle_held held[],
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
            status = leat__shuffle_check_fields(buffer, &buffer->scratch[k]);
            if (!status)
                leat__shuffle_slots_exchange(&buffer->slots, held[i].slot,
                                             &buffer->scratch[k], input);
        }
        if (!status)
            status = leat__shuffle_check_memory(buffer);
        leat__shuffle_report_filling(i, n, &begun);
    }
    if (status == LEAT_END)
        return leat_error(LEAT_EINVAL, "shuffle: the data end before what the "
                                       "resumed buffer held");
    return status;
}

/* Fills the buffer as it is before position `t`, if there are `inputs` in all
 * (-1: not known). */
static int restore_slots(leat__shuffle_buffer *buffer, int64_t t,
                         int64_t inputs)
{
    int status = leat__shuffle_make_slots(buffer);
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

static int check_state(const leat__shuffle_buffer *buffer,
                       const buffer_state *state)
{
    const int64_t size = buffer->options.size;
    int64_t taken = state->inputs;
    if (taken == -1 && state->position < LEAT_ENDLESS - size)
        taken = state->position + size;
    if (taken < LEAT_ENDLESS && state->position >= 0 &&
        state->position <= taken && state->from >= 0 && state->from <= taken)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "shuffle: a buffer of %lld cannot be at position %lld of "
                      "%lld inputs, read from %lld",
                      (long long)buffer->options.size,
                      (long long)state->position, (long long)state->inputs,
                      (long long)state->from);
}

/* Goes to a position; a stream is where its mark was taken. */
static int go_to(leat__shuffle_buffer *buffer, int64_t epoch,
                 const buffer_state *state)
{
    const int64_t size = buffer->options.size;
    bool ends = state->inputs >= 0 && state->position > state->inputs - size;
    leat__shuffle_begin_epoch(buffer, epoch);
    buffer->taken = buffer->finds ? -1 : state->from;
    int status = restore_slots(buffer, state->position, state->inputs);
    if (!status)
        status =
            go_to_input(buffer, ends ? state->inputs : state->position + size);
    if (status)
        return status;
    buffer->next.index = state->position;
    buffer->has_ended = ends;
    buffer->is_filled = true;
    leat__shuffle_note_memory(buffer);
    return LEAT_OK;
}

/* Keeps the mark that the stream was resumed from as the first one. */
static int keep_mark(leat__shuffle_buffer *buffer, const unsigned char *bytes,
                     size_t size, int64_t from)
{
    leat__shuffle_mark *first =
        leat__shuffle_marks_add(&buffer->marks, from, from);
    return leat_token_put(&first->token, bytes, size);
}

static int seek_begin(leat__shuffle_buffer *buffer, int64_t epoch)
{
    const leat_position first = {epoch, 0};
    int status = leat_reader_seek(leat__shuffle_upstream(buffer), first, NULL);
    if (!status)
        leat__shuffle_begin_epoch(buffer, epoch);
    return status;
}

static int seek_mark(leat__shuffle_buffer *buffer, int64_t epoch,
                     leat_token *mark)
{
    buffer_state state;
    int status = leat_token_get(mark, &state, sizeof(state));
    if (!status)
        status = check_state(buffer, &state);
    size_t begin = mark->cursor;
    const leat_position from = {epoch, state.from};
    if (!status && !buffer->finds)
        status = leat_reader_seek(leat__shuffle_upstream(buffer), from, mark);
    if (status)
        return status;
    size_t size = mark->cursor - begin;
    /* Perhaps not even one buffer's inputs are there. */
    if (state.position == 0 && state.inputs < 0 && buffer->finds)
        return seek_begin(buffer, epoch);
    if (state.position == 0 && state.inputs < 0)
        leat__shuffle_begin_epoch(buffer, epoch);
    else
        status = go_to(buffer, epoch, &state);
    if (!status && !buffer->finds)
        status = keep_mark(buffer, mark->bytes + begin, size, state.from);
    return status;
}

int leat__shuffle_buffer_seek(leat_reader *reader, leat_position position,
                              leat_token *mark)
{
    leat__shuffle_buffer *buffer = leat__shuffle_buffer_of(reader);
    if (mark)
        return seek_mark(buffer, position.epoch, mark);
    if (position.index == 0)
        return seek_begin(buffer, position.epoch);
    if (!buffer->finds || buffer->count < 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "shuffle: sample %lld cannot be found by its index, "
                          "as the reader \"%s\" %s",
                          (long long)position.index,
                          leat__shuffle_upstream(buffer)->ops->name,
                          buffer->finds ? "has no count" : "finds no index");
    const buffer_state state = {
        position.index, buffer->count == LEAT_ENDLESS ? -1 : buffer->count, 0};
    int status = check_state(buffer, &state);
    return status ? status : go_to(buffer, position.epoch, &state);
}

int leat__shuffle_buffer_mark(leat_reader *reader, leat_token *token)
{
    const leat__shuffle_buffer *buffer = leat__shuffle_buffer_of(reader);
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
                 : leat_reader_mark(leat__shuffle_upstream(buffer), token);
}

int leat__shuffle_buffer_can_seek(leat_reader *reader)
{
    const leat__shuffle_buffer *buffer = leat__shuffle_buffer_of(reader);
    return buffer->finds && buffer->count >= 0;
}

int leat__shuffle_buffer_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(
        leat__shuffle_upstream(leat__shuffle_buffer_of(reader)), out);
}

int leat__shuffle_buffer_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        leat__shuffle_begin_epoch(leat__shuffle_buffer_of(reader), 0);
    return status;
}
