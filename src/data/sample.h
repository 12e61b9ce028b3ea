/* sample.h: internal functions of samples. */
#ifndef LEAT_DATA_SAMPLE_H
#define LEAT_DATA_SAMPLE_H

#include "base/memory.h"

#include <leat/sample.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes the sample's own buffer at least `bytes` long; views into it move
 * along. Errors: LEAT_ENOMEM.
 */
int leat__sample_reserve(leat_sample *sample, size_t bytes);

/* In place of `deferred`: the sample could not be read, and nobody looks at it
 * until it is cleared. */
enum { LEAT__SAMPLE_FAILED = -1 };

/*
 * Has a sample whose work failed say so when it is materialized again: half
 * done, it must not be worked on. `line` is the error's, `status` its status;
 * LEAT_ENOMEM if there is no memory for the line. Its fields are lost, its
 * origin stays.
 */
void leat__sample_refuse(leat_sample *sample, int status, const char *line);

/* In place of at.epoch: the sample was refused, and at.index is the status. */
enum { LEAT__SAMPLE_REFUSED = -2 };

static inline bool leat__sample_is_refused(const leat_sample *sample)
{
    return sample->at.epoch == LEAT__SAMPLE_REFUSED;
}

/* That status, with its line. It is told once. */
int leat__sample_refusal(leat_sample *sample);

/* Has an error's line as the sample's only field. Errors: LEAT_ENOMEM. */
int leat__sample_keep_line(leat_sample *sample, const char *line);

/* Buffers of more bytes are freed where the samples no longer need them. */
#define LEAT__SAMPLE_LARGE ((size_t)4 << 20)

/*
 * Of a large buffer, at the end of its contents: frees it if it has held little
 * for a while. Else each of the samples of a layer would meet a rare huge one
 * at last, and keep its memory.
 */
void leat__sample_trim(leat_sample *sample);

/*
 * The same of one of many samples that a reader fills ahead, for which smaller
 * buffers are large: counts a use before the contents go to the caller, and
 * frees the buffer before its next use. Buffers change places meanwhile.
 */
void leat__sample_count_use(leat_sample *sample);
void leat__sample_trim_ahead(leat_sample *sample);

/* Frees a buffer that holds little at once. The sample is then to be cleared.
 */
void leat__sample_release(leat_sample *sample);

/*
 * leat_sample_swap of a sample that a reader holds for the caller's. A buffer
 * that is large for the contents stays the caller's, who may have decoded into
 * it: else that of each sample held would be so large at last.
 */
void leat__sample_exchange(leat_sample *held, leat_sample *callers);

/*
 * A reader that makes up a call of several of other readers' ends it once they
 * have added so much (leat__sample_added): whoever fills many samples looks at
 * what they take between two calls.
 */
#define LEAT__CALL_BYTES ((size_t)64 << 10)

/* Samples that it asks for at a time, whose buffers are summed before and after
 * that. */
static inline int leat__call_samples(int64_t n)
{
    enum { MOST = 64 };
    return n < MOST ? (int)n : MOST;
}

/* Bytes of the samples' buffers. */
static inline size_t leat__sample_buffers(leat_sample *const sample[], int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += sample[i]->buffer_size;
    return bytes;
}

/*
 * Bytes that a reader added to samples whose buffers took `before`: of their
 * contents, or those by which the buffers grew if these are more, as where a
 * reader gave samples with large buffers that it held. What an earlier long
 * sample left of a buffer does not count.
 */
static inline size_t leat__sample_added(leat_sample *const sample[], int n,
                                        size_t before)
{
    size_t contents = 0, buffers = 0;
    for (int i = 0; i < n; i++) {
        contents += sample[i]->taken;
        buffers += sample[i]->buffer_size;
    }
    size_t grown = buffers > before ? buffers - before : 0;
    return grown > contents ? grown : contents;
}

/* In place of `idle`: a reader knows the buffer by its address. */
enum { LEAT__SAMPLE_BOUND = -1 };

/* leat_sample_clear and leat_sample_take, inline for those called for each
 * sample of a layer. */
static inline void leat__sample_clear(leat_sample *sample)
{
    if (sample->buffer_size > LEAT__SAMPLE_LARGE)
        leat__sample_trim(sample);
    sample->nfields = 0;
    sample->stable = 1;
    sample->deferred = 0;
    sample->route = 0;
    sample->at.epoch = -1;
    sample->taken = 0;
    sample->from.key = NULL;
    sample->from.key_size = 0;
    sample->from.key_cut = 0;
}

/* Whether a view of the sample lives as long as its reader: a stable sample of
 * LMDB has its pixels in the map, but its label in its buffer. */
static inline bool leat__sample_lasts(const leat_sample *sample,
                                      const void *view)
{
    return sample->stable &&
           (uintptr_t)view - (uintptr_t)sample->buffer >= sample->buffer_size;
}

static inline void *leat__sample_take(leat_sample *sample, size_t bytes)
{
    size_t at = sample->taken;
    size_t size =
        (bytes + LEAT__ALIGNMENT - 1) & ~(size_t)(LEAT__ALIGNMENT - 1);
    /* 0: nothing, or an overflow. */
    if (size == 0 || size > sample->buffer_size - at)
        return leat_sample_take(sample, bytes);
    sample->taken = at + size;
    return (char *)sample->buffer + at;
}

/*
 * Asks the processor for what a caller reads first of samples that lie apart:
 * the first line of each page, at most 64 KiB a field. Of samples in a row it
 * finds these by itself. Always inline, as gcc drops calls of functions that
 * only prefetch.
 */
__attribute__((always_inline)) static inline void
leat__sample_prefetch(leat_sample *const samples[], int n)
{
    const size_t page = 4096, most = 65536;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < samples[i]->nfields; k++) {
            const leat_field *field = &samples[i]->field[k];
            size_t bytes = field->bytes < most ? field->bytes : most;
            for (size_t at = 0; at < bytes; at += page)
                __builtin_prefetch((const char *)field->data + at);
        }
    }
}

#endif
