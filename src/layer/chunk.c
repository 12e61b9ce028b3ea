#include "layer/chunk.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/memory.h"
#include "base/trace.h"

void leat__chunk_destroy(leat__chunk *chunk)
{
    if (!chunk)
        return;
    for (int i = 0; chunk->sample && i < chunk->capacity; i++) {
        leat_sample_finish(chunk->sample[i]);
        leat__free(chunk->sample[i]);
    }
    leat__free(chunk->sample);
    leat__free(chunk->index);
    leat__free(chunk->locator);
    leat__free(chunk->epoch);
    leat__free(chunk->draws);
    leat__bad_list_finish(&chunk->bad);
    leat__free(chunk);
}

int leat__chunk_create(leat__chunk **out, int capacity, int draws,
                       const leat_allocator *buffers)
{
    size_t n = (size_t)capacity;
    leat__chunk *chunk = leat__alloc_zero(1, sizeof(*chunk));
    if (!chunk)
        return LEAT_ENOMEM;
    chunk->capacity = capacity;
    chunk->sample = leat__alloc_zero(n, sizeof(*chunk->sample));
    chunk->index = leat__alloc_zero(n, sizeof(*chunk->index));
    chunk->locator = leat__alloc_zero(n, sizeof(*chunk->locator));
    chunk->epoch = leat__alloc_zero(n, sizeof(*chunk->epoch));
    chunk->draws = leat__alloc_zero(n * (size_t)draws, sizeof(*chunk->draws));
    if (!chunk->sample || !chunk->index || !chunk->locator || !chunk->epoch ||
        !chunk->draws)
        goto fail;
    for (int i = 0; i < capacity; i++) {
        chunk->sample[i] = leat__alloc_zero(1, sizeof(**chunk->sample));
        if (!chunk->sample[i])
            goto fail;
        leat_sample_init(chunk->sample[i]);
        chunk->sample[i]->allocator = buffers;
    }
    *out = chunk;
    return LEAT_OK;

fail:
    leat__chunk_destroy(chunk);
    return LEAT_ENOMEM;
}

int leat__chunk_reserve(leat__chunk *chunk, size_t bytes)
{
    int status = LEAT_OK;
    for (int i = 0; status == LEAT_OK && i < chunk->capacity; i++)
        status = leat_sample_reserve(chunk->sample[i], bytes);
    return status;
}

void leat__chunk_fail(leat__chunk *chunk, int i, int status, int collects)
{
    leat__chunk_place(chunk, i);
    if (status == LEAT_EDATA && collects) {
        status = leat__bad_list_add(&chunk->bad, i, &chunk->sample[i]->from);
        if (status == LEAT_OK)
            return;
    }
    if (chunk->failed >= 0)
        return;
    chunk->failed = i;
    chunk->status = status;
    leat__error_save(chunk->line);
}

static void read_samples(leat__chunk *chunk, leat_reader *reader, int collects)
{
    int i = 0;
    /* A reader in any order may go by the epoch. */
    for (int k = 0; !chunk->is_located && k < chunk->n; k++)
        chunk->sample[k]->from.epoch = chunk->epoch[k];
    while (i < chunk->n) {
        int got;
        int status =
            chunk->is_located
                ? leat_reader_read_located(reader, chunk->locator + i,
                                           chunk->sample + i, chunk->n - i,
                                           &got)
                : leat_reader_read_at(reader, chunk->index + i,
                                      chunk->sample + i, chunk->n - i, &got);
        i += got;
        if (status == LEAT_EDATA) {
            leat__chunk_fail(chunk, i++, status, collects);
        } else if (status) {
            leat__chunk_fail(chunk, i, status, collects);
            return;
        }
    }
}

/*
 * The samples' places, those before a failure too: one may yet turn out to be
 * bad. Returns the bytes of what was read; what a reader left in the buffers of
 * other samples, their number of fields too, may be anything.
 */
static int64_t settle(leat__chunk *chunk)
{
    int64_t bytes = 0;
    int bad = 0;
    for (int i = 0; i < chunk->n; i++) {
        leat__chunk_place(chunk, i);
        if (bad < chunk->bad.n && chunk->bad.item[bad].place == i)
            bad++;
        else if (chunk->failed < 0)
            bytes += leat__chunk_payload(chunk, i);
    }
    return bytes;
}

void leat__chunk_read(leat__chunk *chunk, leat_reader *reader, int collects)
{
    chunk->unread = 0;
    leat__trace_begin(LEAT__SPAN_READ);
    read_samples(chunk, reader, collects);
    leat__trace_end();
    leat__counter_add_alone(&chunk->bytes, settle(chunk));
    int64_t now = leat__clock_now();
    leat__counter_add_alone(&chunk->busy, now - chunk->begun);
    chunk->begun = now;
}
