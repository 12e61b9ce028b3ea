#include "layer/worker.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/streaming_copy.h"
#include "base/trace.h"
#include "layer/tops/variable_tops.h"

int leat__worker_init(leat__worker *worker, const leat__worker_options *options,
                      leat__device_queues *queues,
                      leat__carry_chain *carry_chain)
{
    worker->options = options;
    worker->queues = queues;
    worker->carry_chain = carry_chain;
    int status =
        leat__batch_fill_init(&worker->fill, &options->spec, options->image);
    if (status || !carry_chain)
        return status;
    const leat__replacement_options replacement = {
        .on_error = options->on_error,
        .step = options->step,
        .reader = options->reader,
        .carry_chain = carry_chain,
        .fallback = &options->shape,
        .buffers = options->buffers,
    };
    return leat__replacement_init(&worker->replacement, &replacement,
                                  &worker->fill);
}

void leat__worker_finish(leat__worker *worker)
{
    leat__replacement_finish(&worker->replacement);
    leat__batch_fill_finish(&worker->fill);
}

static void set_activity(leat__worker *worker, leat__worker_activity to)
{
    atomic_store_explicit(&worker->activity, (int)to, memory_order_relaxed);
}

/*
 * The error line names the failed item; `chunk` may have sample `i` of the
 * batch.
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

/* The shape that the first sample decides. LEAT_EDATA: that is bad. */
static int find_shape(leat__worker *worker, const leat__chunk *chunk,
                      leat__batch_shape *out)
{
    if (chunk->n == 0) {
        *out = worker->options->shape;
        return LEAT_OK;
    }
    bool is_bad = chunk->bad.n > 0 && chunk->bad.item[0].sample == 0;
    return is_bad
               ? LEAT_EDATA
               : leat__batch_fill_shape(&worker->fill, chunk->sample[0], out);
}

/*
 * The batch's host memory may still be on its way to the device, by its upload
 * or by a caller's push: both are waited for here, where nobody holds a lock.
 */
static int await_upload(leat__worker *worker, leat__batch *batch)
{
    leat__device_queue *queue =
        leat__device_queues_of(worker->queues, batch->number);
    int64_t begin = leat__clock_now();
    set_activity(worker, LEAT__COPYING);
    int status = leat__device_copy_await_host(&queue->copy, &batch->upload);
    if (!status)
        status = leat__device_copy_await_pushes(&queue->copy, batch);
    set_activity(worker, LEAT__WORKING);
    batch->held_up = leat__clock_now() - begin;
    return status;
}

/* Memory for the shape that was found (0, or why there is none), or for that of
 * what replaces the first sample. */
static int prepare_memory(leat__worker *worker, leat__batch *batch,
                          leat__chunk *chunk, int found, bool is_replaced,
                          leat__batch_shape *shape)
{
    int status = LEAT_OK;
    if (!batch->slab->device->ops->unified)
        status = await_upload(worker, batch);
    if (status)
        return status;
    if (is_replaced)
        found =
            leat__replacement_shape(&worker->replacement, batch, chunk, shape);
    return found ? found : leat__batch_reserve(batch, shape);
}

/*
 * The first sample decides the shape. Whether there is one. What replaces it
 * may be that of a chunk before, whose worker may wait for threads that prepare
 * batches: it is waited for first.
 */
static bool prepare_batch(leat__worker *worker, leat__batch *batch,
                          leat__chunk *chunk)
{
    leat__batch_shape shape;
    bool has_first = chunk->failed != 0;
    int status = has_first ? find_shape(worker, chunk, &shape) : chunk->status;
    bool is_replaced = has_first && status == LEAT_EDATA && worker->carry_chain;
    if (is_replaced)
        leat__carry_chain_await(worker->carry_chain, chunk);
    batch->held_up = 0;
    leat__batch_begin_prepare(batch);
    status = prepare_memory(worker, batch, chunk, status, is_replaced, &shape);
    if (status && has_first)
        fail_batch(batch, chunk, 0, status);
    if (status)
        leat__batch_give_back(batch);
    leat__batch_end_prepare(batch);
    leat__batch_set_shape(batch, status ? NULL : &shape, chunk->is_last);
    return !status;
}

/*
 * Whether there is a shape, from the first chunk or by waiting for that. What
 * the last upload took of the time is in `held_up`.
 */
static bool await_shape(leat__worker *worker, leat__batch *batch,
                        leat__chunk *chunk, int64_t *held_up)
{
    if (chunk->first == 0) {
        bool has_shape = prepare_batch(worker, batch, chunk);
        *held_up = batch->held_up;
        return has_shape;
    }
    int64_t begin = leat__clock_now();
    set_activity(worker, LEAT__IDLE);
    bool has_shape = leat__batch_wait_shape(batch);
    set_activity(worker, LEAT__WORKING);
    *held_up = batch->held_up;
    if (*held_up > 0) {
        int64_t waited = leat__clock_now() - begin;
        if (waited < *held_up)
            *held_up = waited;
    }
    return has_shape;
}

/* The last chunk's worker fills the batch up. */
static int pad_batch(const leat__top_plan *plan, leat__batch *batch)
{
    int status = LEAT_OK;
    if (batch->populates)
        status =
            leat__batch_populate(batch, batch->valid, batch->n - batch->valid);
    for (int i = batch->valid; i < batch->n && !status; i++) {
        leat__tops_put_zeros(plan, batch, i);
        leat__batch_note_padding(batch, i);
    }
    return status;
}

/* Transforms the samples of a chunk that are there, and pads. */
static void fill_batch(leat__worker *worker, leat__batch *batch,
                       leat__chunk *chunk)
{
    int end = chunk->failed < 0 ? chunk->n : chunk->failed;
    int status = LEAT_OK;
    int failed = chunk->first;
    const leat__top_plan *plan = worker->fill.spec.plan;
    leat__trace_begin(LEAT__SPAN_TRANSFORM);
    if (batch->populates)
        status = leat__batch_populate(batch, chunk->first, chunk->n);
    if (!status && worker->carry_chain) {
        status =
            leat__replacement_fill(&worker->replacement, batch, chunk, &failed);
        if (!status)
            status = leat__batch_note_bad(batch, &chunk->bad, chunk->first);
    } else if (!status) {
        int i = 0;
        status = leat__batch_fill_chunk(&worker->fill, batch, chunk, &i, end);
        failed += i;
    }
    if (!status && chunk->is_last && batch->valid < batch->n)
        status = pad_batch(plan, batch);
    if (!status && plan->is_variable && chunk->failed < 0)
        status = leat__variable_tops_write(plan, batch, batch->n);
    leat__trace_end();
    if (status)
        fail_batch(batch, chunk, failed, status);
    size_t each = plan->top[0].is_usual
                      ? batch->shape.top[0].bytes
                      : batch->shape.bytes / (size_t)batch->size;
    leat__counter_add_exclusive(&worker->bytes, (int64_t)each * chunk->n);
}

/*
 * Whether there is something to transform: before a record that cannot be read,
 * too, since one that cannot be transformed may be the batch's first bad one.
 */
static bool has_samples(const leat__chunk *chunk)
{
    return chunk->failed < 0 ||
           (chunk->failed > 0 && chunk->status == LEAT_EDATA);
}

static void count(leat__worker *worker, int samples)
{
    leat__counter_add_exclusive(&worker->items, samples);
    leat__counter_add_exclusive(&worker->chunks, 1);
    leat__image_counts images = leat__batch_fill_count(&worker->fill);
    atomic_store_explicit(&worker->warnings, images.warnings,
                          memory_order_relaxed);
    atomic_store_explicit(&worker->jpeg_fast, images.jpeg_fast,
                          memory_order_relaxed);
    atomic_store_explicit(&worker->jpeg_library, images.jpeg_library,
                          memory_order_relaxed);
}

int64_t leat__worker_work(leat__worker *worker, leat__chunk *chunk,
                          leat__batch *batch)
{
    int n = chunk->n;
    int64_t held_up;
    set_activity(worker, LEAT__READING);
    leat__data_reader_read(worker->options->reader, chunk);
    set_activity(worker, LEAT__WORKING);
    int64_t begin = chunk->begun;
    leat__counter_add_exclusive(&worker->reading, begin - chunk->claimed);
    if (chunk->failed >= 0)
        leat__batch_fail(batch, chunk->first + chunk->failed, chunk->status,
                         chunk->failed < n ? &chunk->sample[chunk->failed]->from
                                           : NULL,
                         chunk->line);
    if (chunk->ending.status)
        leat__batch_fail(batch, chunk->first + chunk->ending.sample,
                         chunk->ending.status, NULL, chunk->ending.line);
    if (worker->carry_chain)
        leat__replacement_begin(&worker->replacement);
    bool has_shape = await_shape(worker, batch, chunk, &held_up);
    if (has_shape && has_samples(chunk))
        fill_batch(worker, batch, chunk);
    if (worker->carry_chain)
        leat__replacement_end(&worker->replacement, batch, chunk, has_shape);
    count(worker, n);
    /* The samples that a short batch lacks count as done. */
    if (chunk->is_last)
        n += batch->size - batch->valid;
    leat__chunk_recycle(chunk);
    leat__data_reader_give(worker->options->reader, chunk);
    if (!batch->slab->device->ops->unified) {
        /* A copy from pageable memory may be over only when the call is. */
        set_activity(worker, LEAT__COPYING);
        leat__streaming_copy_end();
    }
    held_up += leat__device_queues_complete(worker->queues, batch, n);
    set_activity(worker, LEAT__IDLE);
    int64_t end = leat__clock_now();
    leat__counter_add_exclusive(&worker->busy, end - begin - held_up);
    if (held_up > 0)
        leat__counter_add_exclusive(&worker->blocked_full, held_up);
    return end;
}
