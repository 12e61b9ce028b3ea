#include "layer/run.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/memory.h"
#include "base/trace.h"

void leat__run_destroy(leat__run *run)
{
    if (!run)
        return;
    for (int i = 0; run->sample && i < run->capacity; i++) {
        leat_sample_finish(run->sample[i]);
        leat__free(run->sample[i]);
    }
    leat__free(run->sample);
    leat__free(run->index);
    leat__free(run->locator);
    leat__free(run->epoch);
    leat__free(run->draws);
    leat__bad_list_finish(&run->bad);
    leat__free(run);
}

int leat__run_create(leat__run **out, int capacity, int draws,
                     const leat_allocator *boxes)
{
    size_t n = (size_t)capacity;
    leat__run *run = leat__alloc_zero(1, sizeof(*run));
    if (!run)
        return LEAT_ENOMEM;
    run->capacity = capacity;
    run->sample = leat__alloc_zero(n, sizeof(*run->sample));
    run->index = leat__alloc_zero(n, sizeof(*run->index));
    run->locator = leat__alloc_zero(n, sizeof(*run->locator));
    run->epoch = leat__alloc_zero(n, sizeof(*run->epoch));
    run->draws = leat__alloc_zero(n * (size_t)draws, sizeof(*run->draws));
    if (!run->sample || !run->index || !run->locator || !run->epoch ||
        !run->draws)
        goto fail;
    for (int i = 0; i < capacity; i++) {
        run->sample[i] = leat__alloc_zero(1, sizeof(**run->sample));
        if (!run->sample[i])
            goto fail;
        leat_sample_init(run->sample[i]);
        run->sample[i]->allocator = boxes;
    }
    *out = run;
    return LEAT_OK;

fail:
    leat__run_destroy(run);
    return LEAT_ENOMEM;
}

int leat__run_reserve(leat__run *run, size_t bytes)
{
    int status = LEAT_OK;
    for (int i = 0; status == LEAT_OK && i < run->capacity; i++)
        status = leat_sample_reserve(run->sample[i], bytes);
    return status;
}

void leat__run_fail(leat__run *run, int i, int status, int collects)
{
    leat__run_place(run, i);
    if (status == LEAT_EDATA && collects) {
        status = leat__bad_list_add(&run->bad, i, &run->sample[i]->from);
        if (status == LEAT_OK)
            return;
    }
    if (run->failed >= 0)
        return;
    run->failed = i;
    run->status = status;
    leat__error_save(run->line);
}

static void read_samples(leat__run *run, leat_reader *reader, int collects)
{
    int i = 0;
    /* A reader in any order may go by the epoch. */
    for (int k = 0; !run->is_located && k < run->n; k++)
        run->sample[k]->from.epoch = run->epoch[k];
    while (i < run->n) {
        int got;
        int status =
            run->is_located
                ? leat_reader_read_located(reader, run->locator + i,
                                           run->sample + i, run->n - i, &got)
                : leat_reader_read_at(reader, run->index + i, run->sample + i,
                                      run->n - i, &got);
        i += got;
        if (status == LEAT_EDATA) {
            leat__run_fail(run, i++, status, collects);
        } else if (status) {
            leat__run_fail(run, i, status, collects);
            return;
        }
    }
}

/*
 * The samples' places, those before a failure too: one may yet turn out to be
 * bad. Returns the bytes of what was read; what a reader left in the boxes of
 * other samples, their number of fields too, may be anything.
 */
static int64_t settle(leat__run *run)
{
    int64_t bytes = 0;
    int bad = 0;
    for (int i = 0; i < run->n; i++) {
        leat__run_place(run, i);
        if (bad < run->bad.n && run->bad.item[bad].place == i)
            bad++;
        else if (run->failed < 0)
            bytes += leat__run_payload(run, i);
    }
    return bytes;
}

void leat__run_read(leat__run *run, leat_reader *reader, int collects)
{
    run->unread = 0;
    leat__trace_begin(LEAT__SPAN_READ);
    read_samples(run, reader, collects);
    leat__trace_end();
    leat__counter_add_alone(&run->bytes, settle(run));
    int64_t now = leat__clock_now();
    leat__counter_add_alone(&run->busy, now - run->begun);
    run->begun = now;
}
