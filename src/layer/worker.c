#include "layer/worker.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/trace.h"
#include "data/transformer.h"

int leat__worker_init(leat__worker *self)
{
    int status = leat__batch_fill_init(&self->fill, &self->options->spec,
                                       self->options->transformer);
    if (status || !self->carry_chain)
        return status;
    const leat__replacement_options options = {
        .on_error = self->options->on_error,
        .step = self->options->step,
        .reader = self->options->reader,
        .carry_chain = self->carry_chain,
        .fallback = &self->options->shape,
        .buffers = self->options->buffers,
    };
    return leat__replacement_init(&self->replacement, &options, &self->fill);
}

void leat__worker_finish(leat__worker *self)
{
    leat__replacement_finish(&self->replacement);
    leat__batch_fill_finish(&self->fill);
}

static void go(leat__worker *self, leat__worker_at to)
{
    atomic_store_explicit(&self->at, (int)to, memory_order_relaxed);
}

/* The error line names what failed; `chunk` may have sample `i` of the batch.
 */
static void fail_batch(leat__batch *batch, const leat__chunk *chunk, int i,
                       int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    const leat_provenance *from = NULL;
    if (i >= chunk->first && i < chunk->first + chunk->n)
        from = &chunk->sample[i - chunk->first]->from;
    leat__batch_fail(batch, i, status, from, line);
}

/* A first record that tells no shape leaves it to those before it. */
static int find_shape(leat__worker *self, leat__batch *batch,
                      const leat__chunk *chunk, leat__batch_shape *out)
{
    int is_bad = chunk->bad.n > 0 && chunk->bad.item[0].place == 0;
    int status = LEAT_EDATA;
    if (!is_bad)
        status = leat__batch_fill_shape(&self->fill, chunk->sample[0], out);
    if (status == LEAT_EDATA && self->carry_chain)
        status = leat__replacement_shape(&self->replacement, batch, chunk, out);
    return status;
}

/*
 * The slot's host side may still be on its way to the device: that upload is
 * waited for here, where nobody holds a lock.
 */
static int await_upload(leat__worker *self, leat__batch *batch)
{
    int64_t begin = leat__clock_now();
    go(self, LEAT__AT_COPY);
    int status = leat__device_copy_await(&batch->lane->device_copy, batch);
    go(self, LEAT__AT_WORK);
    batch->held_up = leat__clock_now() - begin;
    return status;
}

/* The first sample decides the shape; 0: there is none. */
static int prepare_batch(leat__worker *self, leat__batch *batch,
                         leat__chunk *chunk)
{
    leat_device *device = batch->lane->device;
    leat__batch_shape shape;
    batch->held_up = 0;
    if (chunk->n == 0 || chunk->failed == 0) {
        leat__batch_set_shape(batch, chunk, NULL);
        return 0;
    }
    int status = LEAT_OK;
    if (!device->ops->unified)
        status = await_upload(self, batch);
    if (status == LEAT_OK)
        status = find_shape(self, batch, chunk, &shape);
    if (status == LEAT_OK)
        status = leat__batch_pool_reserve(&batch->lane->pool, batch, &shape);
    if (status)
        fail_batch(batch, chunk, 0, status);
    leat__batch_set_shape(batch, chunk, status ? NULL : &shape);
    return status == LEAT_OK;
}

/*
 * Whether there is a shape, from the first chunk or by waiting for that. What
 * the slot's last upload took of the time is in `held_up`.
 */
static int await_shape(leat__worker *self, leat__batch *batch,
                       leat__chunk *chunk, int64_t *held_up)
{
    if (chunk->first == 0) {
        int has_shape = prepare_batch(self, batch, chunk);
        *held_up = batch->held_up;
        return has_shape;
    }
    int may_wait = !batch->lane->device->ops->unified;
    int64_t begin = may_wait ? leat__clock_now() : 0;
    go(self, LEAT__AT_REST);
    int has_shape = leat__batch_wait_shape(batch);
    go(self, LEAT__AT_WORK);
    *held_up = batch->held_up;
    if (*held_up > 0) {
        int64_t waited = leat__clock_now() - begin;
        if (waited < *held_up)
            *held_up = waited;
    }
    return has_shape;
}

/* The samples of a chunk that are there, into their places. */
static void place(leat__worker *self, leat__batch *batch, leat__chunk *chunk)
{
    int end = chunk->failed < 0 ? chunk->n : chunk->failed;
    int status;
    int failed = 0;
    leat__trace_begin(LEAT__SPAN_TRANSFORM);
    status = batch->populates ? leat__batch_populate(batch, chunk) : LEAT_OK;
    if (status) {
        failed = chunk->first;
    } else if (self->carry_chain) {
        status =
            leat__replacement_place(&self->replacement, batch, chunk, &failed);
        if (status == LEAT_OK)
            status = leat__batch_note_bad(batch, chunk);
    } else {
        int i = 0;
        status = leat__batch_fill_place(&self->fill, batch, chunk, &i, end);
        failed = chunk->first + i;
    }
    leat__trace_end();
    if (status)
        fail_batch(batch, chunk, failed, status);
    leat__counter_add_alone(&self->bytes,
                            (int64_t)batch->shape.top[0].bytes * chunk->n);
}

/*
 * Whether there is something to place: before a record that cannot be read,
 * too, since one that cannot be transformed may be the batch's first bad one.
 */
static int has_samples(const leat__chunk *chunk)
{
    return chunk->failed < 0 ||
           (chunk->failed > 0 && chunk->status == LEAT_EDATA);
}

int64_t leat__worker_work(leat__worker *self, leat__chunk *chunk)
{
    leat__batch *batch = chunk->batch;
    int n = chunk->n;
    int64_t held_up;
    go(self, LEAT__AT_READING);
    leat__data_reader_read(self->options->reader, chunk);
    go(self, LEAT__AT_WORK);
    int64_t begin = chunk->begun;
    leat__counter_add_alone(&self->reading, begin - chunk->claimed);
    if (chunk->failed >= 0)
        leat__batch_fail(batch, chunk->first + chunk->failed, chunk->status,
                         chunk->failed < n ? &chunk->sample[chunk->failed]->from
                                           : NULL,
                         chunk->line);
    if (self->carry_chain)
        leat__replacement_begin(&self->replacement);
    int has_shape = await_shape(self, batch, chunk, &held_up);
    if (has_shape && has_samples(chunk))
        place(self, batch, chunk);
    if (self->carry_chain)
        leat__replacement_end(&self->replacement, batch, chunk, has_shape);
    /* Samples that a batch cut short will never have count as done. */
    if (chunk->last)
        n += batch->size - batch->n;
    leat__counter_add_alone(&self->items, chunk->n);
    leat__counter_add_alone(&self->chunks, 1);
    atomic_store_explicit(&self->warnings,
                          leat__transformer_warnings(self->fill.transformer),
                          memory_order_relaxed);
    leat__data_reader_give(self->options->reader, chunk);
    /* A copy from pageable memory may be over only when the call is. */
    if (!batch->lane->device->ops->unified)
        go(self, LEAT__AT_COPY);
    held_up += leat__batch_order_place(self->order, batch, n);
    go(self, LEAT__AT_REST);
    int64_t end = leat__clock_now();
    leat__counter_add_alone(&self->busy, end - begin - held_up);
    if (held_up > 0)
        leat__counter_add_alone(&self->blocked_full, held_up);
    return end;
}
