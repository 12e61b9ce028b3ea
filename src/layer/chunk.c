#include "layer/chunk.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/memory.h"
#include "base/trace.h"
#include "data/sample.h"

void leat__chunk_destroy(leat__chunk *chunk)
{
    if (!chunk)
        return;
    for (int i = 0; chunk->all && i < chunk->capacity; i++)
        leat_sample_finish(&chunk->all[i].sample);
    leat__free(chunk->all);
    leat__free(chunk->sample);
    leat__free(chunk->at);
    leat__free(chunk->words);
    leat__bad_list_finish(&chunk->bad);
    leat_token_finish(&chunk->mark);
    leat__free(chunk);
}

int leat__chunk_create(leat__chunk **out, int capacity, int draws,
                       const leat_allocator *buffers)
{
    size_t bytes, n = (size_t)capacity;
    leat__chunk *chunk = leat__alloc_zero(1, sizeof(*chunk));
    if (!chunk)
        return LEAT_ENOMEM;
    chunk->capacity = capacity;
    chunk->is_used = true;
    chunk->most = LEAT__CHUNK_BUFFERS;
    chunk->sample = leat__alloc_zero(n, sizeof(*chunk->sample));
    chunk->at = leat__alloc_zero(n, sizeof(*chunk->at));
    chunk->words = leat__alloc_zero(n * (size_t)draws, sizeof(*chunk->words));
    if (!leat__multiply(n, sizeof(*chunk->all), &bytes))
        chunk->all = leat__alloc_aligned_zero(bytes);
    if (!chunk->all || !chunk->sample || !chunk->at || !chunk->words)
        goto fail;
    for (int i = 0; i < capacity; i++) {
        chunk->sample[i] = &chunk->all[i].sample;
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
    size_t n = bytes > 0 && bytes < chunk->most ? chunk->most / bytes : 1;
    for (int i = 0; !status && i < chunk->capacity && (size_t)i < n; i++)
        status = leat__sample_reserve(chunk->sample[i], bytes);
    return status;
}

size_t leat__chunk_buffers(const leat__chunk *chunk, int first)
{
    return leat__sample_buffers(chunk->sample + first, chunk->n - first);
}

int leat__chunk_list_create(leat__chunk_list *list, int n, int capacity,
                            int draws, const leat_allocator *buffers,
                            size_t bytes, size_t most)
{
    int status = LEAT_OK;
    list->chunk = leat__alloc_zero((size_t)n, sizeof(leat__chunk *));
    if (!list->chunk)
        return LEAT_ENOMEM;
    while (!status && list->n < n) {
        if (list->cancelled && atomic_load(list->cancelled))
            return leat_error(LEAT_ECANCELLED, "the layer was cancelled");
        status =
            leat__chunk_create(&list->chunk[list->n], capacity, draws, buffers);
        if (!status) {
            list->chunk[list->n]->most = most;
            status = leat__chunk_reserve(list->chunk[list->n++], bytes);
        }
    }
    return status;
}

void leat__chunk_list_destroy(leat__chunk_list *list)
{
    for (int i = 0; i < list->n; i++)
        leat__chunk_destroy(list->chunk[i]);
    leat__free(list->chunk);
}

void leat__chunk_clear(leat__chunk *chunk, int first, int n)
{
    for (int i = first; i < first + n; i++)
        leat__sample_clear(chunk->sample[i]);
}

/*
 * A rare long sample leaves its buffer at its place, where later uses of the
 * chunk would end. So buffers of more than their part that held little are
 * freed.
 */
static void free_idle(leat__chunk *chunk)
{
    size_t part = chunk->most / (size_t)chunk->capacity;
    for (int i = 0; i < chunk->capacity; i++)
        if (chunk->sample[i]->buffer_size > part)
            leat__sample_release(chunk->sample[i]);
}

void leat__chunk_recycle(leat__chunk *chunk)
{
    if (chunk->is_full)
        free_idle(chunk);
    if (chunk->is_used)
        leat__chunk_clear(chunk, 0, chunk->capacity);
    chunk->is_used = false;
}

void leat__chunk_release(leat__chunk *chunk)
{
    for (int i = 0; i < chunk->capacity; i++)
        leat__sample_release(chunk->sample[i]);
}

static void set_position(leat__chunk *chunk, int i)
{
    chunk->sample[i]->from.epoch = chunk->at[i].epoch;
    chunk->sample[i]->from.position = chunk->at[i].index;
}

void leat__chunk_fail(leat__chunk *chunk, int i, int status, bool collects)
{
    set_position(chunk, i);
    chunk->sample[i]->deferred = LEAT__SAMPLE_FAILED;
    chunk->sample[i]->stable = 0; /* its key may be in its own buffer */
    if (status == LEAT_EDATA && collects) {
        status = leat__bad_list_add(&chunk->bad, i, &chunk->sample[i]->from);
        if (!status)
            return;
    }
    leat__failure_note(&chunk->ending, i, status, leat_last_error());
    if (chunk->failed >= 0 && chunk->failed <= i)
        return;
    chunk->failed = i;
    chunk->status = status;
    leat__error_save(chunk->line);
}

int leat__chunk_materialize(leat_reader *reader, leat__chunk *chunk, int i,
                            int *got)
{
    return leat_reader_materialize(reader, chunk->sample + i,
                                   leat__chunk_call_size(chunk->n - i), got);
}

int leat__chunk_read_at(leat_reader *reader, leat__chunk *chunk, int i,
                        int *got)
{
    return leat_reader_read_at(reader, chunk->at + i, chunk->sample + i,
                               leat__chunk_call_size(chunk->n - i), got);
}

static void read_samples(leat__chunk *chunk, leat_reader *reader, bool collects)
{
    int i = 0;
    while (i < chunk->n) {
        int got;
        int status = chunk->read(reader, chunk, i, &got);
        i += got;
        if (status == LEAT_EDATA) {
            leat__chunk_fail(chunk, i++, status, collects);
        } else if (status) {
            leat__chunk_fail(chunk, i, status, collects);
            return;
        }
    }
}

/* Sets the positions of samples [i, end), all of them good; their bytes. */
static int64_t settle_good(leat__chunk *chunk, int i, int end)
{
    int64_t bytes = 0;
    for (; i < end; i++) {
        set_position(chunk, i);
        bytes += leat__chunk_payload(chunk, i);
    }
    return bytes;
}

int64_t leat__chunk_settle(leat__chunk *chunk)
{
    int64_t bytes = 0;
    int i = 0;
    int good = chunk->failed < 0 ? chunk->n : chunk->failed;
    for (int k = 0; k < chunk->bad.n && chunk->bad.item[k].sample < good; k++) {
        int bad = chunk->bad.item[k].sample;
        bytes += settle_good(chunk, i, bad);
        set_position(chunk, bad);
        i = bad + 1;
    }
    bytes += settle_good(chunk, i, good);
    for (i = good; i < chunk->n; i++)
        set_position(chunk, i);
    return bytes;
}

void leat__chunk_read(leat__chunk *chunk, leat_reader *reader, bool collects)
{
    if (!chunk->read)
        return;
    leat__trace_begin(LEAT__SPAN_READ);
    read_samples(chunk, reader, collects);
    leat__trace_end();
    chunk->read = NULL;
    if (leat__chunk_buffers(chunk, 0) > chunk->most)
        chunk->is_full = true;
    leat__bad_list_sort(&chunk->bad);
    leat__counter_add_exclusive(&chunk->bytes, leat__chunk_settle(chunk));
    int64_t now = leat__clock_now();
    leat__counter_add_exclusive(&chunk->busy, now - chunk->begun);
    chunk->begun = now;
}

void leat__mark_copy(leat_token *to, const leat_token *from)
{
    to->size = 0;
    if (from->size > 0 && leat_token_put(to, from->bytes, from->size))
        to->size = 0;
}
