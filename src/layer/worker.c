#include "layer/worker.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/trace.h"
#include "data/transformer.h"

int leat__worker_init(leat__worker *self)
{
    int status = leat__assembler_init(
        &self->assembler, &self->options->assembly, self->options->transformer);
    if (status || !self->relay)
        return status;
    const leat__stand_in_options options = {
        .on_error = self->options->on_error,
        .step = self->options->step,
        .reader = self->options->reader,
        .relay = self->relay,
        .fallback = &self->options->shape,
        .boxes = self->options->boxes,
    };
    return leat__stand_in_init(&self->stand_in, &options, &self->assembler);
}

void leat__worker_finish(leat__worker *self)
{
    leat__stand_in_finish(&self->stand_in);
    leat__assembler_finish(&self->assembler);
}

static void go(leat__worker *self, leat__worker_at to)
{
    atomic_store_explicit(&self->at, (int)to, memory_order_relaxed);
}

/* The error line names what failed; `run` may have sample `i` of the batch. */
static void fail_batch(leat__batch *batch, const leat__run *run, int i,
                       int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    const leat_provenance *from = NULL;
    if (i >= run->first && i < run->first + run->n)
        from = &run->sample[i - run->first]->from;
    leat__batch_fail(batch, i, status, from, line);
}

/* A first record that tells no shape leaves it to those before it. */
static int find_shape(leat__worker *self, leat__batch *batch,
                      const leat__run *run, leat__batch_shape *out)
{
    int is_bad = run->bad.n > 0 && run->bad.item[0].place == 0;
    int status = LEAT_EDATA;
    if (!is_bad)
        status = leat__assembler_shape(&self->assembler, run->sample[0], out);
    if (status == LEAT_EDATA && self->relay)
        status = leat__stand_in_shape(&self->stand_in, batch, run, out);
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
    int status = leat__uploader_await(&batch->lane->uploader, batch);
    go(self, LEAT__AT_WORK);
    batch->held_up = leat__clock_now() - begin;
    return status;
}

/* The first sample decides the shape; 0: there is none. */
static int prepare_batch(leat__worker *self, leat__batch *batch, leat__run *run)
{
    leat_device *device = batch->lane->device;
    leat__batch_shape shape;
    batch->held_up = 0;
    if (run->n == 0 || run->failed == 0) {
        leat__batch_set_shape(batch, run, NULL);
        return 0;
    }
    int status = LEAT_OK;
    if (!device->ops->unified)
        status = await_upload(self, batch);
    if (status == LEAT_OK)
        status = find_shape(self, batch, run, &shape);
    if (status == LEAT_OK)
        status = leat__slots_reserve(&batch->lane->slots, batch, &shape);
    if (status)
        fail_batch(batch, run, 0, status);
    leat__batch_set_shape(batch, run, status ? NULL : &shape);
    return status == LEAT_OK;
}

/*
 * Whether there is a shape, from the first run or by waiting for that. What the
 * slot's last upload took of the time is in `held_up`.
 */
static int await_shape(leat__worker *self, leat__batch *batch, leat__run *run,
                       int64_t *held_up)
{
    if (run->first == 0) {
        int has_shape = prepare_batch(self, batch, run);
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

/* The samples of a run that are there, into their places. */
static void place(leat__worker *self, leat__batch *batch, leat__run *run)
{
    int end = run->failed < 0 ? run->n : run->failed;
    int status;
    int failed = 0;
    leat__trace_begin(LEAT__SPAN_TRANSFORM);
    status = batch->populates ? leat__batch_populate(batch, run) : LEAT_OK;
    if (status) {
        failed = run->first;
    } else if (self->relay) {
        status = leat__stand_in_place(&self->stand_in, batch, run, &failed);
        if (status == LEAT_OK)
            status = leat__batch_note_bad(batch, run);
    } else {
        int i = 0;
        status = leat__assembler_place(&self->assembler, batch, run, &i, end);
        failed = run->first + i;
    }
    leat__trace_end();
    if (status)
        fail_batch(batch, run, failed, status);
    leat__counter_add_alone(&self->bytes,
                            (int64_t)batch->shape.top[0].bytes * run->n);
}

/*
 * Whether there is something to place: before a record that cannot be read,
 * too, since one that cannot be transformed may be the batch's first bad one.
 */
static int has_samples(const leat__run *run)
{
    return run->failed < 0 || (run->failed > 0 && run->status == LEAT_EDATA);
}

int64_t leat__worker_work(leat__worker *self, leat__run *run)
{
    leat__batch *batch = run->batch;
    int n = run->n;
    int64_t held_up;
    go(self, LEAT__AT_READING);
    leat__data_reader_read(self->options->reader, run);
    go(self, LEAT__AT_WORK);
    int64_t begin = run->begun;
    leat__counter_add_alone(&self->reading, begin - run->claimed);
    if (run->failed >= 0)
        leat__batch_fail(batch, run->first + run->failed, run->status,
                         run->failed < n ? &run->sample[run->failed]->from
                                         : NULL,
                         run->line);
    if (self->relay)
        leat__stand_in_begin(&self->stand_in);
    int has_shape = await_shape(self, batch, run, &held_up);
    if (has_shape && has_samples(run))
        place(self, batch, run);
    if (self->relay)
        leat__stand_in_end(&self->stand_in, batch, run, has_shape);
    /* Samples that a batch cut short will never have count as done. */
    if (run->last)
        n += batch->size - batch->n;
    leat__counter_add_alone(&self->items, run->n);
    leat__counter_add_alone(&self->runs, 1);
    atomic_store_explicit(
        &self->warnings,
        leat__transformer_warnings(self->assembler.transformer),
        memory_order_relaxed);
    leat__data_reader_give(self->options->reader, run);
    /* A copy from pageable memory may be over only when the call is. */
    if (!batch->lane->device->ops->unified)
        go(self, LEAT__AT_COPY);
    held_up += leat__publisher_place(self->publisher, batch, n);
    go(self, LEAT__AT_REST);
    int64_t end = leat__clock_now();
    leat__counter_add_alone(&self->busy, end - begin - held_up);
    if (held_up > 0)
        leat__counter_add_alone(&self->blocked_full, held_up);
    return end;
}
