/*
 * A bad record is replaced by the nearest earlier record of the whole sequence
 * that fits. Going back from a sample: records of other ranks, read again; then
 * the latest good sample of this rank, which accounts for all that lies further
 * back. That is a sample of the same chunk, or the carry that the chunk before
 * handed on. Where neither is known (after a resume) or it does not fit (a
 * batch of another shape), records are read again one by one, back through the
 * epoch before, which holds every record once. What lies further back replaces
 * nothing, known or not.
 *
 * None of that depends on which thread worked when: a carry gives for samples
 * of one shape what reading back would give.
 */
#include "layer/on_error/replacement.h"
#include "base/memory.h"
#include "layer/tops/variable_tops.h"

#include <string.h>

static leat_sample *create_sample(const leat_allocator *buffers)
{
    leat_sample *sample = leat__alloc_zero(1, sizeof(*sample));
    if (!sample)
        return NULL;
    leat_sample_init(sample);
    sample->allocator = buffers;
    return sample;
}

static void destroy_sample(leat_sample *sample)
{
    leat_sample_finish(sample);
    leat__free(sample);
}

int leat__replacement_init(leat__replacement *replacement,
                           const leat__replacement_options *options,
                           leat__batch_fill *fill)
{
    memset(replacement, 0, sizeof(*replacement));
    leat_sample *trial = create_sample(options->buffers);
    if (!trial)
        return LEAT_ENOMEM;
    replacement->options = *options;
    replacement->fill = fill;
    replacement->trial = trial;
    return LEAT_OK;
}

void leat__replacement_finish(leat__replacement *replacement)
{
    destroy_sample(replacement->trial);
    memset(replacement, 0, sizeof(*replacement));
}

void leat__replacement_begin(leat__replacement *replacement)
{
    replacement->state = LEAT__CARRY_OPEN;
    replacement->latest = NULL;
    replacement->is_mixed = false;
    replacement->look.is_known = false;
}

/* A record that is good in one shape may be bad in another. */
static bool is_known_in(const leat__carry *carry,
                        const leat__batch_shape *shape)
{
    bool is_start = carry->state == LEAT__CARRY_NONE && carry->shape.ntop == 0;
    return is_start || leat__batch_shape_is_same(&carry->shape, shape);
}

/* No sample of this chunk was good yet: the chunk before has the latest. */
static void take_over(leat__replacement *replacement, const leat__batch *batch,
                      leat__chunk *chunk)
{
    const leat__carry *carry =
        leat__carry_chain_await(replacement->options.carry_chain, chunk);
    replacement->state = carry->state;
    replacement->is_mixed = replacement->is_mixed || carry->is_mixed;
    replacement->latest = &chunk->taken->sample;
    replacement->epoch = carry->epoch;
    if (!replacement->look.is_known)
        replacement->look = carry->look;
    if (!is_known_in(carry, &batch->shape)) {
        replacement->state = LEAT__CARRY_UNKNOWN;
        replacement->is_mixed = true;
    }
}

void leat__replacement_end(leat__replacement *replacement,
                           const leat__batch *batch, leat__chunk *chunk,
                           bool has_shape)
{
    leat__carry *handed = chunk->handed;
    if (!has_shape)
        replacement->state = LEAT__CARRY_UNKNOWN;
    else if (replacement->state == LEAT__CARRY_OPEN)
        take_over(replacement, batch, chunk);
    handed->look = replacement->look;
    if (has_shape)
        handed->shape = batch->shape;
    /* What variable tops took is of this batch's samples. */
    handed->shape.bytes = handed->shape.fixed;
    handed->is_mixed = replacement->is_mixed;
    handed->epoch = replacement->epoch;
    if (replacement->state == LEAT__CARRY_RECORD)
        leat_sample_swap(handed->sample, *replacement->latest);
    leat__carry_chain_leave(replacement->options.carry_chain, chunk,
                            replacement->state);
}

/* A record's own shape, and whether it is good in it. */
static int try_shape(leat__replacement *replacement, leat__batch *batch,
                     const leat__chunk *chunk, leat_sample *sample)
{
    leat__batch_shape shape;
    int status = leat__batch_fill_shape(replacement->fill, sample, &shape);
    if (!status)
        status = leat__batch_reserve(batch, &shape);
    if (status)
        return status;
    batch->shape = shape;
    return leat__batch_fill_sample(replacement->fill, batch, chunk, 0, sample);
}

/* Notes whether a bad record has another shape, in which it may be good. */
static void note_shape(leat__replacement *replacement, const leat__batch *batch,
                       const leat_sample *sample)
{
    leat__batch_shape own;
    if (leat__batch_fill_shape(replacement->fill, sample, &own) == LEAT_OK &&
        !leat__batch_shape_is_same(&own, &batch->shape))
        replacement->is_mixed = true;
}

static int try_sample(leat__replacement *replacement, leat__batch *batch,
                      const leat__chunk *chunk, int i,
                      const leat_sample *sample)
{
    int status =
        leat__batch_fill_sample(replacement->fill, batch, chunk, i, sample);
    if (status == LEAT_EDATA)
        note_shape(replacement, batch, sample);
    return status;
}

/* The first epoch whose records may replace sample `i`. */
static int64_t oldest_epoch(const leat__chunk *chunk, int i)
{
    return chunk->at[i].epoch - 1;
}

/* Whether the look went over what lies there. */
static bool has_seen(const leat__carry_look *look, int64_t epoch, int64_t index)
{
    return look->is_known && (epoch < look->epoch ||
                              (epoch == look->epoch && index < look->index));
}

/*
 * Reads back from sample `i`, at most `most` records: the first good one
 * becomes the trial. LEAT_END: there is none, or none after what `seen`, unless
 * NULL, went over.
 */
static int read_back(leat__replacement *replacement, leat__batch *batch,
                     const leat__chunk *chunk, int i, int64_t most,
                     bool for_shape, const leat__carry_look *seen)
{
    leat__data_reader *reader = replacement->options.reader;
    int64_t epoch = chunk->at[i].epoch;
    int64_t index = chunk->at[i].index;
    int64_t oldest = oldest_epoch(chunk, i);
    for (int64_t n = 0; n < most; n++) {
        int status = leat__data_reader_read_neighbor(reader, -1, &epoch, &index,
                                                     replacement->trial);
        if (status == LEAT_END || epoch < oldest)
            return LEAT_END;
        if (seen && has_seen(seen, epoch, index))
            return LEAT_END;
        if (!status)
            status = for_shape ? try_shape(replacement, batch, chunk,
                                           replacement->trial)
                               : try_sample(replacement, batch, chunk, i,
                                            replacement->trial);
        if (!status)
            replacement->epoch = epoch;
        if (status != LEAT_EDATA)
            return status;
    }
    return LEAT_END;
}

/*
 * The shape of the nearest good record before the chunk. Of a run of bad
 * batches each reads what lies after the first sample of the one before, not
 * the whole run again. LEAT_END: there is none.
 */
static int look_back(leat__replacement *replacement, leat__batch *batch,
                     const leat__chunk *chunk, const leat__carry_look *seen,
                     leat__batch_shape *out)
{
    leat__carry_look *look = &replacement->look;
    int status = read_back(replacement, batch, chunk, 0, INT64_MAX, true, seen);
    if (status < 0)
        return status;
    look->is_found = !status;
    if (!status) {
        look->shape = batch->shape;
        look->found_epoch = replacement->epoch;
    } else if (seen->is_known && seen->is_found &&
               seen->found_epoch >= oldest_epoch(chunk, 0)) {
        *look = *seen;
    }
    look->is_known = true;
    look->epoch = chunk->at[0].epoch;
    look->index = chunk->at[0].index;
    if (!look->is_found)
        return LEAT_END;
    *out = look->shape;
    return LEAT_OK;
}

int leat__replacement_shape(leat__replacement *replacement, leat__batch *batch,
                            const leat__chunk *chunk, leat__batch_shape *out)
{
    bool can_reread = leat__data_reader_can_reread(replacement->options.reader);
    const leat__carry *carry =
        leat__carry_chain_await(replacement->options.carry_chain, chunk);
    int status = LEAT_END;
    if (can_reread)
        status = read_back(replacement, batch, chunk, 0,
                           replacement->options.step - 1, true, NULL);
    if (status == LEAT_END && carry->state == LEAT__CARRY_RECORD &&
        !carry->is_mixed && carry->epoch >= oldest_epoch(chunk, 0)) {
        *out = carry->shape;
        return LEAT_OK;
    }
    bool is_open = carry->state != LEAT__CARRY_NONE || carry->is_mixed;
    if (status == LEAT_END && can_reread && is_open) {
        status = look_back(replacement, batch, chunk, &carry->look, out);
        if (!status)
            return LEAT_OK;
    }
    if (status < 0)
        return status;
    *out = status == LEAT_END ? *replacement->options.fallback : batch->shape;
    return LEAT_OK;
}

/*
 * Reads the replacement again, and puts it there. It stays in the bad record's
 * sample, which nobody needs: variable tops take it from there.
 */
static int find_back(leat__replacement *replacement, leat__batch *batch,
                     leat__chunk *chunk, int i, int64_t most)
{
    int status = read_back(replacement, batch, chunk, i, most, false, NULL);
    if (status)
        return status;
    leat_sample_swap(chunk->sample[i], replacement->trial);
    if (batch->sample)
        batch->sample[chunk->first + i] = chunk->sample[i];
    replacement->state = LEAT__CARRY_RECORD;
    replacement->latest = &chunk->sample[i];
    return LEAT_OK;
}

/* Fills sample `i` from the nearest earlier good record. LEAT_END: none. */
static int find(leat__replacement *replacement, leat__batch *batch,
                leat__chunk *chunk, int i)
{
    bool can_reread = leat__data_reader_can_reread(replacement->options.reader);
    if (replacement->state == LEAT__CARRY_OPEN)
        take_over(replacement, batch, chunk);
    if (can_reread) {
        int status = find_back(replacement, batch, chunk, i,
                               replacement->options.step - 1);
        if (status != LEAT_END)
            return status;
    }
    if (replacement->state == LEAT__CARRY_NONE)
        return LEAT_END;
    if (replacement->state == LEAT__CARRY_RECORD) {
        if (replacement->epoch < oldest_epoch(chunk, i))
            return LEAT_END;
        int status =
            try_sample(replacement, batch, chunk, i, *replacement->latest);
        if (status != LEAT_EDATA)
            return status;
        replacement->state = LEAT__CARRY_UNKNOWN;
    }
    if (!can_reread)
        return LEAT_END;
    int status = find_back(replacement, batch, chunk, i, INT64_MAX);
    if (status == LEAT_END)
        replacement->state = LEAT__CARRY_NONE;
    return status;
}

/* Fills sample `i`, whose record is `bad`, which notes with what. */
static int fill(leat__replacement *replacement, leat__batch *batch,
                leat__chunk *chunk, int i, leat__bad *bad)
{
    int status = LEAT_END;
    if (replacement->options.on_error == LEAT_ON_ERROR_REPLACE)
        status = find(replacement, batch, chunk, i);
    else if (replacement->options.step > 1)
        replacement->is_mixed =
            true; /* other ranks' records were not checked */
    if (status < 0)
        return status;
    const leat_sample *sample = chunk->sample[i];
    leat_replacement kind = LEAT_REPLACEMENT_ZEROS;
    if (status == LEAT_END) {
        leat__tops_put_zeros(replacement->fill->spec.plan, batch,
                             chunk->first + i);
    } else {
        sample = *replacement->latest;
        kind = LEAT_REPLACEMENT_RECORD;
    }
    leat__batch_note(batch, chunk->first + i, sample);
    leat_provenance *from = &batch->from[chunk->first + i];
    from->epoch = chunk->at[i].epoch;
    from->position = chunk->at[i].index;
    from->replacement = kind;
    bad->from.replacement = kind;
    return LEAT_OK;
}

/* The next bad record: one that could not be read, or is found to be bad. */
static int note_bad(leat__replacement *replacement, leat__batch *batch,
                    leat__chunk *chunk, int i)
{
    const leat_sample *sample = chunk->sample[i];
    int status = leat__bad_list_add(&chunk->bad, i, &sample->from);
    if (!status)
        note_shape(replacement, batch, sample);
    return status;
}

int leat__replacement_fill(leat__replacement *replacement, leat__batch *batch,
                           leat__chunk *chunk, int *failed)
{
    int unread = chunk->bad.n;
    int next = 0;
    for (int i = 0; i < chunk->n; i++) {
        int from = i;
        int end = next < unread ? chunk->bad.item[next].sample : chunk->n;
        int status =
            leat__batch_fill_chunk(replacement->fill, batch, chunk, &i, end);
        if (i > from) {
            replacement->state = LEAT__CARRY_RECORD;
            replacement->latest = &chunk->sample[i - 1];
            replacement->epoch = chunk->at[i - 1].epoch;
            replacement->is_mixed = false;
        }
        if (!status && i == chunk->n)
            break;
        int at = next;
        if (!status) {
            next++;
        } else if (status == LEAT_EDATA) {
            at = chunk->bad.n;
            status = note_bad(replacement, batch, chunk, i);
        }
        if (!status)
            status = fill(replacement, batch, chunk, i, &chunk->bad.item[at]);
        if (status) {
            *failed = chunk->first + i;
            return status;
        }
    }
    return LEAT_OK;
}
