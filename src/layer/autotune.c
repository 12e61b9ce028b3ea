#include "layer/autotune.h"
#include "layer/chunk.h"

#include <leat/data_layer.h>
#include <leat/sample.h>
#include <stdint.h>

/*
 * What a chunk touches. Below the least handing it over costs more than it
 * gains
 * ("Log: small images", "a run is a batch"); the most takes half a millisecond,
 * by which a caller that works on one may be late.
 */
#define CHUNK_BYTES_MIN ((size_t)512 << 10)
#define CHUNK_BYTES_MAX ((size_t)4 << 20)
/* A chunk has a leat_sample of some 3 KiB for each, whatever their fields. */
#define CHUNK_SAMPLES_MAX 1024
/* So many a worker may have at work beside max_memory. */
#define CHUNK_SAMPLES_MIN 64
#define OWN_BUFFERS_MIN ((size_t)64 << 10)

/* What a thread reads ahead: some 50 MiB of leat_samples, */
#define AHEAD_SAMPLES_MAX (1 << 14)
/* and so much with their buffers. */
#define AHEAD_BYTES_MAX ((size_t)256 << 20)

/*
 * LEAT_PREFETCH_AUTO: from so many batches to so many, or so many bytes. Two
 * beside the caller's let workers fill one while another is ready; more come
 * into use as they are needed.
 */
#define AUTO_BATCHES_MIN 3
#define AUTO_BATCHES_MAX 64
#define AUTO_BYTES_MAX ((size_t)256 << 20)

int leat__autotune_workers(int cores, bool caller_helps, bool has_copy_thread,
                           bool computes)
{
    int others = caller_helps + has_copy_thread;
    if (has_copy_thread && !computes && others < cores / 4)
        others = cores / 4;
    return cores > others ? cores - others : 1;
}

size_t leat__autotune_own_buffers(int takers, size_t max_memory)
{
    size_t part = max_memory / 2 / (size_t)takers;
    if (part < OWN_BUFFERS_MIN)
        part = OWN_BUFFERS_MIN;
    return max_memory > 0 && part < LEAT__CHUNK_BUFFERS ? part
                                                        : LEAT__CHUNK_BUFFERS;
}

static size_t bytes_ahead(size_t max_memory)
{
    return max_memory > 0 && max_memory < AHEAD_BYTES_MAX ? max_memory
                                                          : AHEAD_BYTES_MAX;
}

/* The leat_samples of as many chunks as there have to be have half of the
 * memory. */
static size_t count_samples(const leat__autotune_load *load, bool beside_thread)
{
    if (load->max_memory == 0)
        return CHUNK_SAMPLES_MAX;
    size_t n = bytes_ahead(load->max_memory) / 2 / (size_t)(load->takers + 1) /
               sizeof(leat_sample);
    size_t least = beside_thread ? 1 : CHUNK_SAMPLES_MIN;
    return n < least ? least : n < CHUNK_SAMPLES_MAX ? n : CHUNK_SAMPLES_MAX;
}

/*
 * The whole batch where that is cheap. A batch that one thread fills alone
 * stays in that core's cache; moving cache lines between two cores costs more
 * than the work where they share no cache. But while the caller has its batch,
 * the others are to keep every worker busy; and beside a thread that reads
 * ahead workers stay close to it, since storage that they touch too is read
 * best in one sweep ("Cold data"). An encoded image is work enough for a chunk.
 */
int leat__autotune_chunk_size(const leat__autotune_load *load,
                              bool beside_thread)
{
    if (load->sample_bytes == 0)
        return 1;
    size_t batch_size = (size_t)load->batch_size;
    size_t parts =
        (size_t)((load->workers + load->batches - 1) / load->batches);
    size_t n = (batch_size + parts - 1) / parts;
    size_t most = beside_thread ? CHUNK_BYTES_MIN : CHUNK_BYTES_MAX;
    size_t least = CHUNK_BYTES_MIN / load->sample_bytes;
    most /= load->sample_bytes;
    n = n > most ? most : n < least ? least : n;
    n = n < batch_size ? n : batch_size;
    size_t samples = count_samples(load, beside_thread);
    n = n < samples ? n : samples;
    /* One that a thread fills ends early by itself. */
    size_t own = leat__autotune_own_buffers(load->takers, load->max_memory);
    if (!beside_thread && load->buffer_bytes > 0 &&
        own / load->buffer_bytes < n)
        n = own / load->buffer_bytes;
    return n > 1 ? (int)n : 1;
}

leat__autotune_chunks
leat__autotune_chunks_ahead(const leat__autotune_ahead *ahead)
{
    int size = ahead->chunk_size;
    int in_batch = ahead->batch_size / size + (ahead->batch_size % size > 0);
    int64_t n = (int64_t)in_batch * ahead->batches;
    int64_t most = AHEAD_SAMPLES_MAX / size;
    size_t bytes = bytes_ahead(ahead->max_memory);
    size_t samples = (size_t)size * sizeof(leat_sample);
    n = n < most ? n : most;
    if (bytes / (samples + ahead->buffer_bytes) < (size_t)n)
        n = (int64_t)(bytes / (samples + ahead->buffer_bytes));
    n = n > ahead->takers ? n : ahead->takers + 1;
    size_t part = bytes / (size_t)n;
    part -= samples < part / 2 ? samples : part / 2;
    return (leat__autotune_chunks){
        .n = (int)n,
        .buffers = part < LEAT__CHUNK_BUFFERS ? part : LEAT__CHUNK_BUFFERS,
        .all = part * (size_t)n,
    };
}

bool leat__autotune_count_batches(leat__autotune_batches *out, int prefetch,
                                  size_t bytes, size_t max_memory)
{
    bool is_auto = prefetch == LEAT_PREFETCH_AUTO;
    int n = is_auto ? AUTO_BATCHES_MAX : prefetch + 1;
    if (max_memory > 0 && bytes > max_memory / 2)
        return false;
    if (is_auto && max_memory == 0)
        max_memory = bytes > AUTO_BYTES_MAX / AUTO_BATCHES_MIN
                         ? bytes * AUTO_BATCHES_MIN
                         : AUTO_BYTES_MAX;
    if (max_memory > 0 && bytes > 0 && max_memory / bytes < (size_t)n)
        n = (int)(max_memory / bytes);
    out->all = n;
    out->circulating = is_auto && n > AUTO_BATCHES_MIN ? AUTO_BATCHES_MIN : n;
    return true;
}
