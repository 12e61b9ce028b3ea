/* The public functions of readers: they check arguments and call the table. */
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_chain.h"
#include "pipeline/reader_form.h"
#include "pipeline/reader_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The status that the next call returns, with its line, and the bad record. */
static void keep(leat_reader *reader, int status, const leat_provenance *from)
{
    struct leat_reader_state *state = reader->state;
    state->status = status;
    if (status == LEAT_END)
        return;
    leat__error_save(state->line);
    if (status != LEAT_EDATA || !from)
        return;
    state->from = *from;
    if (from->key_size > sizeof(state->key)) {
        state->from.key_cut += (uint32_t)(from->key_size - sizeof(state->key));
        state->from.key_size = sizeof(state->key);
    }
    if (from->key)
        memcpy(state->key, from->key, state->from.key_size);
    state->from.key = from->key ? state->key : NULL;
}

/* LEAT_EDATA is returned once, LEAT_END and other errors until seek. */
static int return_kept(leat_reader *reader, leat_sample *sample)
{
    struct leat_reader_state *state = reader->state;
    int status = state->status;
    if (status == LEAT_EDATA) {
        state->from.epoch = sample->from.epoch;
        state->from.position = sample->from.position;
        sample->from = state->from;
        state->status = LEAT_OK;
        /* The next bad record's key takes the place of this one's, and the
           sample has nothing else. */
        sample->nfields = 0;
        if (leat_sample_own(sample))
            return LEAT_ENOMEM;
    }
    return status == LEAT_END ? LEAT_END
                              : leat_error(status, "%s", state->line);
}

/*
 * A reader that met an error may have begun samples after it. The caller asks
 * for these again, into the same samples, which have to be empty as they were:
 * a reader that joins several asks for one at a time.
 */
static void clear_rest(leat_sample *const out[], int first, int n)
{
    for (int i = first; i < n; i++)
        leat_sample_clear(out[i]);
}

/* The same after the end, whose sample a map or a callback may have begun. */
static void clear_begun(leat_sample *sample, int nfields)
{
    if (nfields == 0)
        leat_sample_clear(sample);
    sample->nfields = nfields;
    sample->deferred = 0;
}

/* An index beyond all numbers is the last one: nobody gets there one by one. */
static void pass_by(struct leat_reader_state *state, int64_t n)
{
    int64_t *index = &state->at.index;
    if (__builtin_add_overflow(*index, n, index))
        *index = INT64_MAX;
}

static int call_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got, int *deferred)
{
    struct leat_reader_state *state = reader->state;
    int nfields = out[0]->nfields; /* of other readers */
    leat__reader_call call;
    leat__reader_call_begin(&call, reader);
    unsigned lines = leat__error_lines();
    state->has_begun = true;
    int status = reader->ops->next(reader, out, n, got);
    leat__reader_call_end(&call);
    status =
        leat__reader_check_count(reader, "next", lines, status, out, n, got);
    if (state->upstream || state->depth > 1)
        leat__reader_set_depths(reader, out, *got);
    *deferred = *got;
    /* Alone, one that defers is checked when its samples are completed. */
    if (!state->defers || call.figures)
        status = leat__reader_check_samples(reader, status, out, got, deferred);
    if (call.figures)
        leat__reader_count_given(call.figures, out, *got);
    pass_by(state, *got + (status == LEAT_EDATA));
    if (!status)
        return LEAT_OK;
    bool is_sticky = status != LEAT_EDATA;
    if (*got > 0 || is_sticky)
        keep(reader, status, *got < n ? &out[*got]->from : NULL);
    if (status == LEAT_END && *got == 0)
        clear_begun(out[0], nfields);
    clear_rest(out, *got + (*got == 0), n);
    return *got > 0 ? LEAT_OK : status;
}

static bool is_cancelled(const struct leat_reader_state *state)
{
    return atomic_load_explicit(&state->cancelled, memory_order_relaxed);
}

/* A bad record is forgotten once reading is cancelled. */
static bool has_kept(struct leat_reader_state *state)
{
    if (state->status == LEAT_EDATA && is_cancelled(state))
        state->status = LEAT_OK;
    return state->status != LEAT_OK;
}

int leat__reader_pull(leat_reader *reader, leat_sample *const out[], int n,
                      int *got, int *deferred)
{
    *got = *deferred = 0;
    if (n < 1)
        return leat_error(LEAT_EINVAL, "expected 1 sample or more, got %d", n);
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (reader->state->status && has_kept(reader->state))
        return return_kept(reader, out[0]);
    return call_next(reader, out, n, got, deferred);
}

int leat_reader_pull(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    int deferred;
    return leat__reader_pull(reader, out, n, got, &deferred);
}

static void clear(leat_sample *const out[], int n)
{
    for (int i = 0; i < n; i++)
        leat__sample_clear(out[i]);
}

static int grow_held(struct leat_reader_state *state, int n,
                     const leat_allocator *allocator)
{
    leat_sample *more = leat__alloc_zero((size_t)n, sizeof(*more));
    if (!more)
        return LEAT_ENOMEM;
    for (int i = 0; i < state->held_capacity; i++)
        leat_sample_swap(&more[i], &state->held[i]);
    for (int i = state->held_capacity; i < n; i++)
        more[i].allocator = allocator;
    leat__free(state->held);
    state->held = more;
    state->held_capacity = n;
    return LEAT_OK;
}

/*
 * Keeps samples that a bad one left deferred for the next call. Those that were
 * held before go back to where they were, ahead of the rest.
 */
static int hold(leat_reader *reader, leat_sample *const out[], int n)
{
    struct leat_reader_state *state = reader->state;
    if (state->held_at == state->nheld) {
        if (state->held_capacity < n && grow_held(state, n, out[0]->allocator))
            return LEAT_ENOMEM;
        state->nheld = state->held_at = n;
    }
    for (int i = n - 1; i >= 0; i--)
        leat__sample_exchange(&state->held[--state->held_at], out[i]);
    return LEAT_OK;
}

static void drop_held(struct leat_reader_state *state)
{
    state->nheld = state->held_at = 0;
}

/* What the last call held comes before what the reader gives. */
static int pull_held(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    struct leat_reader_state *state = reader->state;
    if (state->held_at < state->nheld && is_cancelled(state))
        drop_held(state);
    if (state->held_at == state->nheld)
        return leat_reader_pull(reader, out, n, got);
    for (*got = 0; *got < n && state->held_at < state->nheld; ++*got)
        leat__sample_exchange(&state->held[state->held_at++], out[*got]);
    return LEAT_OK;
}

/* Whether the samples after a bad one are held; else the status is sticky. */
static int hold_rest(leat_reader *reader, leat_sample *const out[], int n)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    if (hold(reader, out, n)) {
        keep(reader, LEAT_ENOMEM, NULL);
        return LEAT_ENOMEM;
    }
    return leat_error(LEAT_EDATA, "%s", line);
}

int leat_reader_next_batch(leat_reader *reader, leat_sample *const out[], int n,
                           int *got)
{
    *got = 0;
    if (n < 1)
        return leat_error(LEAT_EINVAL, "expected 1 sample or more, got %d", n);
    int pulled;
    clear(out, n);
    int status = leat__reader_check_process(reader);
    if (!status)
        status = pull_held(reader, out, n, &pulled);
    if (status)
        return status;
    status = leat_reader_materialize(reader, out, pulled, got);
    int rest = pulled - *got - 1;
    if (status == LEAT_EDATA && rest > 0)
        return hold_rest(reader, out + *got + 1, rest);
    if (status && status != LEAT_EDATA) {
        drop_held(reader->state);
        keep(reader, status, NULL);
    }
    return status;
}

int leat_reader_next(leat_reader *reader, leat_sample *sample)
{
    int got;
    return leat_reader_next_batch(reader, &sample, 1, &got);
}

/* Samples that are read and dropped. */
static int skip_by_reading(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat_sample *scratch = &reader->state->scratch;
    int status = LEAT_OK;
    while (*skipped < n && !status) {
        int got;
        leat_sample_clear(scratch);
        status = leat_reader_pull(reader, &scratch, 1, &got);
        *skipped += got + (status == LEAT_EDATA);
        if (status == LEAT_EDATA)
            status = LEAT_OK;
    }
    return status;
}

static int call_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    int64_t more = 0;
    leat__reader_call call;
    leat__reader_call_begin(&call, reader);
    unsigned lines = leat__error_lines();
    reader->state->has_begun = true;
    int status = reader->ops->skip(reader, n, &more);
    leat__reader_call_end(&call);
    /* A bad record is passed by as well. */
    bool is_bad = status == LEAT_EDATA;
    if (more < 0 || more > n - is_bad || (!status && more == 0))
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\": skip reports %lld samples, "
                          "expected 1 to %lld",
                          reader->ops->name, (long long)more, (long long)n);
    *skipped += more + is_bad;
    pass_by(reader->state, more + is_bad);
    if (is_bad)
        return LEAT_OK;
    status = leat__reader_check_status(reader, "skip", lines, status);
    if (status)
        keep(reader, status, NULL);
    return status;
}

int leat_reader_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    struct leat_reader_state *state = reader->state;
    *skipped = 0;
    if (n < 0)
        return leat_error(LEAT_EINVAL, "expected 0 samples or more, got %lld",
                          (long long)n);
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (is_cancelled(state))
        drop_held(state);
    for (; *skipped < n && state->held_at < state->nheld; ++*skipped)
        state->held_at++;
    if (!LEAT__HAS(reader, skip))
        return skip_by_reading(reader, n, skipped);
    while (*skipped < n && !status) {
        if (state->status == LEAT_EDATA)
            status = skip_by_reading(reader, *skipped + 1, skipped);
        else if (state->status)
            status = return_kept(reader, &state->scratch);
        else
            status = call_skip(reader, n - *skipped, skipped);
    }
    return status;
}

int leat_reader_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    unsigned lines = leat__error_lines();
    return leat__reader_check_status(reader, "fields", lines,
                                     reader->ops->fields(reader, out, n));
}

void leat_reader_cancel(leat_reader *reader)
{
    /* One that is being opened has no state yet. */
    if (reader->state && leat__reader_check_process(reader))
        return;
    if (reader->state)
        atomic_store_explicit(&reader->state->cancelled, true,
                              memory_order_relaxed);
    reader->ops->cancel(reader);
}

/* The first position that is not in [0, count), or `n`. */
static int find_outside(const leat_position at[], int n, int64_t count)
{
    int i = 0;
    while (i < n && at[i].index >= 0 && at[i].index < count)
        i++;
    return i;
}

int leat_reader_pull_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    *got = 0;
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (!leat_reader_is_random_access(reader))
        return leat__reader_unsupported(reader, "read samples in any order");
    leat__reader_set_random(reader);
    int64_t count;
    unsigned lines = leat__error_lines();
    status = leat__reader_refuse_end(reader, "count",
                                     reader->ops->count(reader, &count));
    if (status)
        return leat__reader_check_status(reader, "count", lines, status);
    int outside = find_outside(at, n, count);
    if (outside < n)
        return leat_error(LEAT_EINVAL,
                          "sample %lld is out of range: there are %lld",
                          (long long)at[outside].index, (long long)count);
    if (n < 1)
        return LEAT_OK;
    int deferred;
    leat__reader_call call;
    leat__reader_call_begin(&call, reader);
    status = leat__reader_refuse_end(
        reader, "read_at", reader->ops->read_at(reader, at, out, n, got));
    status =
        leat__reader_check_count(reader, "read_at", lines, status, out, n, got);
    status = leat__reader_check_samples(reader, status, out, got, &deferred);
    status = leat__reader_map(reader, out, status, got);
    leat__reader_call_end(&call);
    if (call.figures)
        leat__reader_count_given(call.figures, out, *got);
    if (status)
        clear_rest(out, *got + 1, n);
    return status;
}

int leat_reader_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    clear(out, n);
    return leat_reader_pull_at(reader, at, out, n, got);
}

void leat_reader_advise(leat_reader *reader, const leat_position at[], int n)
{
    int64_t count;
    if (!LEAT__HAS(reader, advise) || !leat_reader_is_random_access(reader) ||
        leat_reader_count(reader, &count) || find_outside(at, n, count) < n)
        return;
    leat__reader_call call;
    leat__reader_call_begin(&call, reader);
    reader->ops->advise(reader, at, n);
    leat__reader_call_end(&call);
}

/*
 * Whether a seek that failed may have moved the reader, or one below it: then
 * only another seek says where it is.
 */
static bool may_have_moved(int status, const leat_token *mark)
{
    return status < 0 && status != LEAT_EUNSUPPORTED &&
           (status != LEAT_EINVAL || mark);
}

static bool is_first(leat_position position)
{
    return position.epoch == 0 && position.index == 0;
}

static int call_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    struct leat_reader_state *state = reader->state;
    leat__reader_call call;
    leat__reader_call_begin(&call, reader);
    unsigned lines = leat__error_lines();
    state->is_moved = false;
    int status = leat__reader_check_operation(
        reader, "seek", lines, reader->ops->seek(reader, position, mark));
    leat__reader_call_end(&call);
    /* A single pass cannot be begun again; until it is read it need not be. */
    if (status == LEAT_EUNSUPPORTED && !mark && !state->has_begun &&
        is_first(position))
        status = LEAT_OK;
    if (status && !state->is_moved && !may_have_moved(status, mark))
        return status;
    state->has_begun = status || mark || !is_first(position);
    drop_held(state);
    if (status) {
        keep(reader, status, NULL);
        return status;
    }
    state->status = LEAT_OK;
    state->at = position;
    return LEAT_OK;
}

int leat__reader_seek_input(leat_reader *reader, leat_reader *input,
                            leat_position to, leat_token *mark)
{
    int status = leat_reader_seek(input, to, mark);
    if (!status)
        reader->state->is_moved = true;
    return status;
}

/* A mark of a reader that has none is its position. */
static int seek_marked(leat_reader *reader, leat_token *mark)
{
    leat_position at;
    int64_t skipped;
    int status = leat__token_get_position(mark, reader->ops->name, &at);
    if (status)
        return status;
    status = call_seek(reader, at, NULL);
    if (status != LEAT_EUNSUPPORTED || at.index == 0)
        return status;
    status = call_seek(reader, (leat_position){at.epoch, 0}, NULL);
    return status ? status : leat_reader_skip(reader, at.index, &skipped);
}

int leat_reader_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    int status = leat__reader_check_process(reader);
    if (!status && mark)
        status = leat__reader_take_form(reader, mark);
    if (status)
        return status;
    if (mark && !LEAT__HAS(reader, mark))
        return seek_marked(reader, mark);
    if (position.epoch < 0 || position.index < 0)
        return leat_error(LEAT_EINVAL,
                          "epoch %lld, index %lld is no position: expected 0 "
                          "or more",
                          (long long)position.epoch, (long long)position.index);
    return call_seek(reader, position, mark);
}

static int put_mark(leat_reader *reader, leat_token *token)
{
    const struct leat_reader_state *state = reader->state;
    /* Samples that no call gave may be lost behind an error. */
    if (state->status < 0 && state->status != LEAT_EDATA)
        return leat_error(state->status, "%s", state->line);
    int ahead = state->nheld - state->held_at + (state->status == LEAT_EDATA);
    if (!LEAT__HAS(reader, mark)) {
        const leat_position at = {state->at.epoch, state->at.index - ahead};
        int put = leat__reader_put_form(reader, token);
        return put ? put : leat_token_put(token, &at, sizeof(at));
    }
    if (ahead > 0)
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\" has %d samples that no call has "
                          "returned yet: read them before the mark",
                          reader->ops->name, ahead);
    int status = leat__reader_put_form(reader, token);
    if (status)
        return status;
    unsigned lines = leat__error_lines();
    return leat__reader_check_operation(reader, "mark", lines,
                                        reader->ops->mark(reader, token));
}

int leat_reader_mark(leat_reader *reader, leat_token *token)
{
    size_t size = token->size;
    int status = leat__reader_check_process(reader);
    if (!status)
        status = put_mark(reader, token);
    if (status)
        token->size = size;
    return status;
}

int leat_reader_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (!LEAT__HAS(reader, restore))
        return leat__reader_unsupported(reader, "restore its state");
    unsigned lines = leat__error_lines();
    status = leat__reader_check_operation(reader, "restore", lines,
                                          reader->ops->restore(reader, token));
    if (status == LEAT_EUNSUPPORTED)
        return status;
    drop_held(reader->state);
    if (status) {
        keep(reader, status, NULL);
        return status;
    }
    reader->state->status = LEAT_OK;
    reader->state->at = (leat_position){0, 0};
    return LEAT_OK;
}
