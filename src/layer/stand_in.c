/*
 * What stands in is the nearest earlier record of the whole sequence that can
 * fill the place. Going back from a place: records of other ranks, read again;
 * then what stands at this rank's own place before, itself the answer for all
 * that lies further back. That is a sample of the same run, or of the baton
 * that the run before handed on. Where neither is known (behind a resume) or it
 * does not fit (a batch of another shape), records are read again one by one,
 * back through the epoch before, which holds every record once.
 *
 * None of that depends on who worked when: a baton says of places in one shape
 * what reading back would say.
 */
#include "layer/stand_in.h"
#include "base/memory.h"
#include "layer/lane.h"

#include <string.h>

static leat_sample *create_sample(const leat_allocator *boxes)
{
    leat_sample *sample = leat__alloc_zero(1, sizeof(*sample));
    if (!sample)
        return NULL;
    leat_sample_init(sample);
    sample->allocator = boxes;
    return sample;
}

static void destroy_sample(leat_sample *sample)
{
    leat_sample_finish(sample);
    leat__free(sample);
}

int leat__stand_in_init(leat__stand_in *self,
                        const leat__stand_in_options *options,
                        leat__assembler *assembler)
{
    memset(self, 0, sizeof(*self));
    leat_sample *record = create_sample(options->boxes);
    leat_sample *trial = create_sample(options->boxes);
    if (!record || !trial) {
        destroy_sample(record);
        destroy_sample(trial);
        return LEAT_ENOMEM;
    }
    self->options = *options;
    self->assembler = assembler;
    self->record = record;
    self->trial = trial;
    return LEAT_OK;
}

void leat__stand_in_finish(leat__stand_in *self)
{
    destroy_sample(self->record);
    destroy_sample(self->trial);
    memset(self, 0, sizeof(*self));
}

static void swap(leat_sample **a, leat_sample **b)
{
    leat_sample *sample = *a;
    *a = *b;
    *b = sample;
}

void leat__stand_in_begin(leat__stand_in *self)
{
    self->state = LEAT__BATON_OPEN;
    self->standing = NULL;
    self->is_mixed = 0;
}

/* What was good in one shape says nothing of another. */
static int is_known_in(const leat__baton *baton, const leat__batch_shape *shape)
{
    int is_start = baton->state == LEAT__BATON_NONE && baton->shape.ntop == 0;
    return is_start || leat__batch_shape_is_same(&baton->shape, shape);
}

/* Nothing of this run stands yet: what the run before left does. */
static void take_over(leat__stand_in *self, const leat__batch *batch,
                      leat__run *run)
{
    const leat__baton *baton = leat__relay_await(self->options.relay, run);
    self->state = baton->state;
    self->is_mixed |= baton->is_mixed;
    self->standing = &run->taken->sample;
    if (!is_known_in(baton, &batch->shape)) {
        self->state = LEAT__BATON_UNKNOWN;
        self->is_mixed = 1;
    }
}

void leat__stand_in_end(leat__stand_in *self, const leat__batch *batch,
                        leat__run *run, int has_shape)
{
    leat__baton *handed = run->handed;
    if (!has_shape)
        self->state = LEAT__BATON_UNKNOWN;
    else if (self->state == LEAT__BATON_OPEN)
        take_over(self, batch, run);
    if (has_shape)
        handed->shape = batch->shape;
    handed->is_mixed = self->is_mixed;
    if (self->state == LEAT__BATON_RECORD)
        swap(&handed->sample, self->standing);
    leat__relay_leave(self->options.relay, run, self->state);
}

/* A record's own shape, and whether it is good in it. */
static int try_shape(leat__stand_in *self, leat__batch *batch,
                     const leat__run *run, leat_sample *sample)
{
    leat__batch_shape shape;
    int status = leat__assembler_shape(self->assembler, sample, &shape);
    if (status == LEAT_OK)
        status = leat__slots_reserve(&batch->lane->slots, batch, &shape);
    if (status)
        return status;
    batch->shape = shape;
    return leat__assembler_put(self->assembler, batch, run, 0, sample);
}

/* Notes whether a bad record has another shape, in which it may be good. */
static void look_at_shape(leat__stand_in *self, const leat__batch *batch,
                          const leat_sample *sample)
{
    leat__batch_shape own;
    if (leat__assembler_shape(self->assembler, sample, &own) == LEAT_OK &&
        !leat__batch_shape_is_same(&own, &batch->shape))
        self->is_mixed = 1;
}

static int try_place(leat__stand_in *self, leat__batch *batch,
                     const leat__run *run, int i, const leat_sample *sample)
{
    int status = leat__assembler_put(self->assembler, batch, run, i, sample);
    if (status == LEAT_EDATA)
        look_at_shape(self, batch, sample);
    return status;
}

/*
 * Reads back from place `i`, at most `most` records: the first good one becomes
 * the trial. LEAT_END: there is none.
 */
static int read_back(leat__stand_in *self, leat__batch *batch,
                     const leat__run *run, int i, int64_t most, int for_shape)
{
    leat__data_reader *reader = self->options.reader;
    int64_t epoch = run->epoch[i];
    int64_t index = run->index[i];
    int64_t oldest = epoch - 1;
    for (int64_t n = 0; n < most; n++) {
        int status = leat__data_reader_read_beside(reader, -1, &epoch, &index,
                                                   self->trial);
        if (status == LEAT_END || epoch < oldest)
            return LEAT_END;
        if (status == LEAT_OK)
            status = for_shape ? try_shape(self, batch, run, self->trial)
                               : try_place(self, batch, run, i, self->trial);
        if (status != LEAT_EDATA)
            return status;
    }
    return LEAT_END;
}

int leat__stand_in_shape(leat__stand_in *self, leat__batch *batch,
                         const leat__run *run, leat__batch_shape *out)
{
    int looks_back = leat__data_reader_looks_back(self->options.reader);
    const leat__baton *baton = leat__relay_await(self->options.relay, run);
    int status = LEAT_END;
    if (looks_back)
        status = read_back(self, batch, run, 0, self->options.step - 1, 1);
    if (status == LEAT_END && baton->state == LEAT__BATON_RECORD &&
        !baton->is_mixed) {
        *out = baton->shape;
        return LEAT_OK;
    }
    int is_open = baton->state != LEAT__BATON_NONE || baton->is_mixed;
    if (status == LEAT_END && looks_back && is_open)
        status = read_back(self, batch, run, 0, INT64_MAX, 1);
    if (status < 0)
        return status;
    *out = status == LEAT_END ? *self->options.fallback : batch->shape;
    return LEAT_OK;
}

/* Reads what stands in again, and puts it there. */
static int find_back(leat__stand_in *self, leat__batch *batch,
                     const leat__run *run, int i, int64_t most)
{
    int status = read_back(self, batch, run, i, most, 0);
    if (status)
        return status;
    swap(&self->record, &self->trial);
    self->state = LEAT__BATON_RECORD;
    self->standing = &self->record;
    return LEAT_OK;
}

/* Puts the nearest earlier good record into place `i`. LEAT_END: none. */
static int find(leat__stand_in *self, leat__batch *batch, leat__run *run, int i)
{
    int looks_back = leat__data_reader_looks_back(self->options.reader);
    if (self->state == LEAT__BATON_OPEN)
        take_over(self, batch, run);
    if (looks_back) {
        int status = find_back(self, batch, run, i, self->options.step - 1);
        if (status != LEAT_END)
            return status;
    }
    if (self->state == LEAT__BATON_NONE)
        return LEAT_END;
    if (self->state == LEAT__BATON_RECORD) {
        int status = try_place(self, batch, run, i, *self->standing);
        if (status != LEAT_EDATA)
            return status;
        self->state = LEAT__BATON_UNKNOWN;
    }
    if (!looks_back)
        return LEAT_END;
    int status = find_back(self, batch, run, i, INT64_MAX);
    if (status == LEAT_END)
        self->state = LEAT__BATON_NONE;
    return status;
}

static void put_zeros(leat__batch *batch, const leat__run *run, int i)
{
    for (int k = 0; k < batch->shape.ntop; k++)
        memset(leat__batch_at(batch, k, run->first + i), 0,
               batch->shape.top[k].bytes);
    if (batch->shape.is_cropped)
        *leat__batch_choice(batch, run->first + i) =
            (leat_device_choice){.is_zero = 1};
}

/* Fills place `i`, whose record is `bad`, and says in it with what. */
static int fill(leat__stand_in *self, leat__batch *batch, leat__run *run, int i,
                leat__bad *bad)
{
    int status = LEAT_END;
    if (self->options.on_error == LEAT_ON_ERROR_REPLACE)
        status = find(self, batch, run, i);
    else if (self->options.step > 1)
        self->is_mixed = 1; /* other ranks' records were not looked at */
    if (status < 0)
        return status;
    const leat_sample *sample = run->sample[i];
    leat_stand_in kind = LEAT_STAND_IN_ZEROS;
    if (status == LEAT_END) {
        put_zeros(batch, run, i);
    } else {
        sample = *self->standing;
        kind = LEAT_STAND_IN_RECORD;
    }
    leat__batch_note(batch, run->first + i, sample);
    leat_provenance *from = &batch->from[run->first + i];
    from->epoch = run->epoch[i];
    from->position = run->index[i];
    from->stand_in = kind;
    bad->from.stand_in = kind;
    return LEAT_OK;
}

/* The next bad record: one that could not be read, or is found to be bad. */
static int note_bad(leat__stand_in *self, leat__batch *batch, leat__run *run,
                    int i)
{
    const leat_sample *sample = run->sample[i];
    int status = leat__bad_list_add(&run->bad, i, &sample->from);
    if (status == LEAT_OK)
        look_at_shape(self, batch, sample);
    return status;
}

int leat__stand_in_place(leat__stand_in *self, leat__batch *batch,
                         leat__run *run, int *failed)
{
    int unread = run->bad.n;
    int next = 0;
    for (int i = 0; i < run->n; i++) {
        int from = i;
        int end = next < unread ? run->bad.item[next].place : run->n;
        int status =
            leat__assembler_place(self->assembler, batch, run, &i, end);
        if (i > from) {
            self->state = LEAT__BATON_RECORD;
            self->standing = &run->sample[i - 1];
            self->is_mixed = 0;
        }
        if (status == LEAT_OK && i == run->n)
            break;
        int at = next;
        if (status == LEAT_OK) {
            next++;
        } else if (status == LEAT_EDATA) {
            at = run->bad.n;
            status = note_bad(self, batch, run, i);
        }
        if (status == LEAT_OK)
            status = fill(self, batch, run, i, &run->bad.item[at]);
        if (status) {
            *failed = run->first + i;
            return status;
        }
    }
    return LEAT_OK;
}
