/*
 * interleave over streams, and over readers that a template makes.
 *
 * A mark has the turn, and of each slot its input and index there; then the
 * marks of those that are open. Inputs that have ended need none.
 */
#include "base/counter.h"
#include "data/sample.h"
#include "data/token.h"
#include "decorators/interleave/interleave.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_state.h"
#include "pipeline/reader_table.h"

#include <string.h>

static leat__interleave *interleave_of(leat_reader *reader)
{
    return (leat__interleave *)reader;
}

/* The next input in an empty slot. LEAT_END: there is none. */
static int take(leat__interleave *interleave, leat__interleave_slot *slot)
{
    const leat__decorator *decorator = &interleave->map.decorator;
    if (interleave->template)
        return leat__template_take(interleave, slot);
    if (interleave->next_element == decorator->nupstream)
        return LEAT_END;
    slot->element = interleave->next_element++;
    slot->reader = decorator->upstream[slot->element];
    slot->index = 0;
    return LEAT_OK;
}

static int take_again(leat__interleave *interleave, leat__interleave_slot *slot,
                      int64_t epoch, int64_t element)
{
    if (interleave->template)
        return leat__template_take_again(interleave, slot, epoch, element);
    slot->element = element;
    slot->reader = interleave->map.decorator.upstream[element];
    return LEAT_OK;
}

static void release(leat__interleave *interleave, leat__interleave_slot *slot)
{
    if (interleave->template)
        leat__template_release(interleave, slot);
    else
        slot->reader = NULL;
}

/* All upstream readers go to their first sample, or the template's to a name.
 */
static int go_to_element(leat__interleave *interleave, int64_t epoch,
                         int64_t next)
{
    const leat__decorator *decorator = &interleave->map.decorator;
    int status = LEAT_OK;
    interleave->next_element = next;
    if (interleave->template)
        return leat__template_seek(interleave, epoch, next);
    for (int i = 0; i < decorator->nupstream && !status && next == 0; i++)
        status = leat__reader_seek_input(&interleave->map.decorator.reader,
                                         decorator->upstream[i],
                                         (leat_position){epoch, 0}, NULL);
    return status;
}

static void end_turn(leat__interleave *interleave)
{
    interleave->in_block = 0;
    interleave->turn = (interleave->turn + 1) % interleave->cycle;
}

/* The next slot that can be read, filled. LEAT_END: there is none. */
static int find_slot(leat__interleave *interleave, leat__interleave_slot **out)
{
    int status = LEAT_OK;
    bool is_last = false;
    for (;;) {
        leat__interleave_slot *slot = &interleave->slot[interleave->turn];
        *out = slot;
        if (slot->reader)
            return LEAT_OK;
        if (!is_last)
            status = take(interleave, slot);
        if (status && status != LEAT_END)
            return status;
        if (slot->reader) {
            interleave->nopen++;
            return LEAT_OK;
        }
        is_last = true;
        if (interleave->nopen == 0)
            return LEAT_END;
        end_turn(interleave);
    }
}

/*
 * A template's samples outlive their reader. One that defers is asked for one
 * at a time, so that nothing is left to be returned after a bad sample.
 */
static int pull_copies(leat__interleave *interleave,
                       leat__interleave_slot *slot, leat_sample *const out[],
                       int n, int *got)
{
    if (slot->reader->state->defers)
        n = 1;
    int status = leat_reader_pull(slot->reader, out, n, got);
    if (!status)
        status = leat__template_complete(interleave, slot, out, *got, got);
    if (status != LEAT_EDATA)
        return status;
    leat_sample *bad = out[*got];
    bad->nfields = 0;
    if (leat_sample_own(bad) ||
        leat__template_keep_source(interleave, slot, bad))
        return LEAT_ENOMEM;
    return status;
}

static int pull_some(leat__interleave *interleave, leat__interleave_slot *slot,
                     leat_sample *const out[], int n, int *got)
{
    int all = interleave->map.decorator.nupstream;
    if (interleave->template)
        return pull_copies(interleave, slot, out, n, got);
    int status = leat_reader_pull(slot->reader, out, n, got);
    for (int i = 0; i < *got; i++)
        if (out[i]->deferred)
            leat_sample_push_route(out[i], (int)slot->element, all);
    return status;
}

/* *bytes: what it adds to the samples. */
static int pull(leat__interleave *interleave, leat__interleave_slot *slot,
                leat_sample *const out[], int n, int *got, size_t *bytes)
{
    size_t before = leat__sample_buffers(out, n);
    int status = pull_some(interleave, slot, out, n, got);
    *bytes += leat__sample_added(out, n, before);
    return status;
}

/* That the data of a template's reader, which no later epoch reads again, were
 * not written while they were read. What identified them cannot resume. */
static int check_template(const leat__interleave *interleave,
                          const leat__interleave_slot *slot)
{
    const leat__interleave_template *template = interleave->template;
    int status = template ? leat_reader_check(slot->reader) : LEAT_OK;
    return status == LEAT_EIO && template->is_identified ? LEAT_EFORMAT
                                                         : status;
}

/* The same of readers that are open, which a seek closes. Where nothing
 * identified them an epoch that is left has no promise to keep. */
static int check_slots(const leat__interleave *interleave)
{
    int status = LEAT_OK;
    if (!interleave->template || !interleave->template->is_identified)
        return LEAT_OK;
    for (int i = 0; i < interleave->cycle && !status; i++)
        if (interleave->slot[i].reader)
            status = check_template(interleave, &interleave->slot[i]);
    return status;
}

/* Gives samples of a turn, or passes them by without `out`. */
static int go_on(leat__interleave *interleave, leat__interleave_slot *slot,
                 leat_sample *const out[], int64_t n, int64_t *done,
                 size_t *bytes)
{
    int got = 0, status;
    if (n > interleave->block - interleave->in_block)
        n = interleave->block - interleave->in_block;
    if (out)
        status =
            pull(interleave, slot, out, leat__call_samples(n), &got, bytes);
    else
        status = leat_reader_skip(slot->reader, n, done);
    *done += got;
    int64_t passed = *done + (status == LEAT_EDATA);
    slot->index += passed;
    interleave->in_block += passed;
    if (status == LEAT_END) {
        status = check_template(interleave, slot);
        release(interleave, slot);
        interleave->nopen--;
        end_turn(interleave);
        return status;
    }
    if (interleave->in_block == interleave->block)
        end_turn(interleave);
    return status;
}

/* A name without a reader is a bad sample. */
static void name_failure(const leat__interleave *interleave,
                         leat_sample *sample)
{
    const leat_provenance *from = &interleave->template->sample.from;
    sample->from.source = from->source;
    sample->from.record = from->record;
}

static int advance(leat__interleave *interleave, leat_sample *const out[],
                   int64_t n, int64_t *done)
{
    int status = leat__decorator_check_running(&interleave->map.decorator);
    size_t bytes = 0;
    while (*done < n && !status && bytes < LEAT__CALL_BYTES) {
        int64_t some = 0;
        leat__interleave_slot *slot;
        leat_sample *const *to = out ? out + *done : NULL;
        status = find_slot(interleave, &slot);
        if (status == LEAT_EDATA && to)
            name_failure(interleave, *to);
        if (!status)
            status = go_on(interleave, slot, to, n - *done, &some, &bytes);
        *done += some;
    }
    return status;
}

static int interleave_next(leat_reader *reader, leat_sample *const out[], int n,
                           int *got)
{
    int64_t done = 0;
    int status = advance(interleave_of(reader), out, n, &done);
    *got = (int)done;
    return status;
}

static int interleave_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    return advance(interleave_of(reader), NULL, n, skipped);
}

static int interleave_materialize(leat_reader *reader, leat_sample *const out[],
                                  int n, int *got)
{
    const leat__decorator *decorator = &interleave_of(reader)->map.decorator;
    return leat_reader_materialize_routed(decorator->upstream,
                                          decorator->nupstream, out, n, got);
}

/* What a mark has of a slot: its index, and its element or -1. */
enum { SLOT_MARK_BYTES = sizeof(int64_t) + sizeof(int32_t) };

static int put_slot(const leat__interleave_slot *slot, leat_token *token)
{
    /* One that is empty says nothing of what it had: all ranks' are the same.
     */
    int32_t element = slot->reader ? (int32_t)slot->element : -1;
    int64_t index = slot->reader ? slot->index : 0;
    int status = leat_token_put(token, &index, sizeof(index));
    return status ? status : leat_token_put(token, &element, sizeof(element));
}

static int interleave_mark(leat_reader *reader, leat_token *token)
{
    const leat__interleave *interleave = interleave_of(reader);
    const int64_t state[] = {interleave->next_element, interleave->turn,
                             interleave->in_block};
    int status = leat_token_put(token, state, sizeof(state));
    for (int i = 0; i < interleave->cycle && !status; i++)
        status = put_slot(&interleave->slot[i], token);
    for (int i = 0; i < interleave->cycle && !status; i++)
        if (interleave->slot[i].reader)
            status = leat_reader_mark(interleave->slot[i].reader, token);
    return status;
}

static int bad_mark(void)
{
    return leat_error(LEAT_EINVAL, "interleave: the mark is none");
}

static int fill_slot(leat__interleave *interleave, int i, int64_t epoch,
                     const unsigned char bytes[SLOT_MARK_BYTES])
{
    leat__interleave_slot *slot = &interleave->slot[i];
    int64_t index;
    int32_t element;
    memcpy(&index, bytes, sizeof(index));
    memcpy(&element, bytes + sizeof(index), sizeof(element));
    if (element < -1 || index < 0 || index > LEAT__POSITION_MAX ||
        element >= interleave->next_element ||
        (!interleave->template &&
         interleave->next_element > interleave->map.decorator.nupstream))
        return bad_mark();
    if (element < 0)
        return LEAT_OK;
    for (int k = 0; k < i; k++)
        if (interleave->slot[k].reader &&
            interleave->slot[k].element == element)
            return bad_mark();
    int status = take_again(interleave, slot, epoch, element);
    slot->index = index;
    interleave->nopen += slot->reader != NULL;
    return status;
}

/* Fills the slots as they were, and goes to the marks of their readers. */
static int take_slots(leat__interleave *interleave, int64_t epoch,
                      leat_token *mark)
{
    unsigned char bytes[SLOT_MARK_BYTES];
    int status = LEAT_OK;
    for (int i = 0; i < interleave->cycle && !status; i++) {
        status = leat_token_get(mark, bytes, sizeof(bytes));
        if (!status)
            status = fill_slot(interleave, i, epoch, bytes);
    }
    for (int i = 0; i < interleave->cycle && !status; i++) {
        const leat__interleave_slot *slot = &interleave->slot[i];
        const leat_position at = {epoch, slot->index};
        if (slot->reader)
            status = leat_reader_seek(slot->reader, at, mark);
    }
    return status;
}

static int take_mark(leat__interleave *interleave, int64_t epoch,
                     leat_token *mark)
{
    int64_t state[3];
    int status = leat_token_get(mark, state, sizeof(state));
    if (status)
        return status;
    if (state[0] < 0 || state[0] > INT32_MAX || state[1] < 0 ||
        state[1] >= interleave->cycle || state[2] < 0 ||
        state[2] >= interleave->block)
        return bad_mark();
    interleave->next_element = state[0];
    interleave->turn = (int)state[1];
    interleave->in_block = state[2];
    status = take_slots(interleave, epoch, mark);
    return status ? status : go_to_element(interleave, epoch, state[0]);
}

static void empty_slots(leat__interleave *interleave)
{
    for (int i = 0; i < interleave->cycle; i++)
        release(interleave, &interleave->slot[i]);
    interleave->turn = 0;
    interleave->nopen = 0;
    interleave->in_block = 0;
    interleave->next_element = 0;
}

static int interleave_seek(leat_reader *reader, leat_position position,
                           leat_token *mark)
{
    leat__interleave *interleave = interleave_of(reader);
    if (!mark && position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "interleave: over a stream no index finds a sample");
    int status = check_slots(interleave);
    empty_slots(interleave);
    interleave->map.next = position;
    if (!status)
        status = go_to_element(interleave, position.epoch, 0);
    if (!status && mark)
        status = take_mark(interleave, position.epoch, mark);
    return status;
}

static int interleave_restore(leat_reader *reader, leat_token *token)
{
    leat__interleave *interleave = interleave_of(reader);
    int status = leat__index_map_restore(reader, token);
    empty_slots(interleave);
    if (!status && interleave->template)
        status = go_to_element(interleave, 0, 0);
    return status;
}

static void template_cancel(leat_reader *reader)
{
    leat__interleave *interleave = interleave_of(reader);
    leat__interleave_template *template = interleave->template;
    leat__decorator_cancel(reader);
    pthread_mutex_lock(&template->lock);
    template->is_cancelled = true;
    for (int i = 0; i < interleave->cycle; i++)
        if (interleave->slot[i].reader)
            leat_reader_cancel(interleave->slot[i].reader);
    for (int i = 0; i < template->nahead; i++)
        if (template->ahead[i].reader)
            leat_reader_cancel(template->ahead[i].reader);
    leat__opening_cancel(&template->opening);
    pthread_mutex_unlock(&template->lock);
}

#define STREAM_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "interleave",                     \
    .fields = leat__interleave_fields, .next = interleave_next,                \
    .seek = interleave_seek, .close = leat__interleave_close,                  \
    .skip = interleave_skip, .can_seek = leat__reader_no,                      \
    .mark = interleave_mark, .restore = interleave_restore

const leat_reader_ops leat__interleave_stream_ops = {
    STREAM_OPS,
    .cancel = leat__decorator_cancel,
    .materialize = interleave_materialize,
    .save = leat__decorator_save,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .is_endless = leat__decorator_is_any_endless,
};

/* The names' identity. LEAT_ESTATE: no run can be resumed from its readers. */
static int template_save(leat_reader *reader, leat_token *token)
{
    const char *unsaved = interleave_of(reader)->template->unsaved;
    return unsaved ? leat_error(LEAT_ESTATE, "%s", unsaved)
                   : leat__decorator_save(reader, token);
}

/* Of the names or of the first element, as the next one. */
static int template_reads_once(leat_reader *reader)
{
    const leat__interleave *interleave = interleave_of(reader);
    return interleave->template->reads_once ||
           leat__reader_reads_once(interleave->map.decorator.upstream[0]);
}

static int template_is_endless(leat_reader *reader)
{
    const leat__interleave *interleave = interleave_of(reader);
    return interleave->template->is_endless ||
           leat_reader_is_endless(interleave->map.decorator.upstream[0]);
}

/* Whether a reader that is open may block. */
static bool may_open_block(const leat__interleave *interleave)
{
    leat__interleave_template *template = interleave->template;
    int blocks = 0;
    pthread_mutex_lock(&template->lock);
    for (int i = 0; i < interleave->cycle && !blocks; i++)
        if (interleave->slot[i].reader)
            blocks = leat_reader_may_block(interleave->slot[i].reader);
    for (int i = 0; i < template->nahead && !blocks; i++)
        if (template->ahead[i].reader)
            blocks = leat_reader_may_block(template->ahead[i].reader);
    pthread_mutex_unlock(&template->lock);
    return blocks;
}

/* Where the first element is a pipe, the next one may be, too. */
static int template_may_block(leat_reader *reader)
{
    const leat__interleave *interleave = interleave_of(reader);
    return leat__pipeline_may_block(reader->pipeline) ||
           interleave->template->reads_once ||
           leat__decorator_may_block(reader) || may_open_block(interleave);
}

static int64_t template_memory(leat_reader *reader)
{
    const leat__interleave_template *template = interleave_of(reader)->template;
    return leat__counter_get(&template->sources.bytes) +
           leat__counter_get(&template->identities.bytes);
}

/* One that a template opened has a part of what that reserves. */
static int64_t template_reserves(leat_reader *reader)
{
    int64_t ahead = interleave_of(reader)->template->ahead_bytes;
    return template_memory(reader) + (reader->state->is_again ? 0 : ahead);
}

/* Of the names, and of the readers that are open: these need not have been read
 * to their ends. */
static int template_check(leat_reader *reader)
{
    leat__interleave *interleave = interleave_of(reader);
    leat__interleave_template *template = interleave->template;
    int status = leat__decorator_check(reader);
    pthread_mutex_lock(&template->lock);
    for (int i = 0; i < interleave->cycle && !status; i++)
        if (interleave->slot[i].reader)
            status = leat_reader_check(interleave->slot[i].reader);
    for (int i = 0; i < template->nahead && !status; i++)
        if (template->ahead[i].reader)
            status = leat_reader_check(template->ahead[i].reader);
    pthread_mutex_unlock(&template->lock);
    return status;
}

const leat_reader_ops leat__interleave_template_ops = {
    STREAM_OPS,
    .cancel = template_cancel,
    .save = template_save,
    .check = template_check,
    .revision = leat__template_revision,
    .reads_once = template_reads_once,
    .may_block = template_may_block,
    .is_endless = template_is_endless,
    .memory = template_memory,
    .reserves = template_reserves,
};
