/* sample.h: internal functions of samples. */
#ifndef LEAT_DATA_SAMPLE_H
#define LEAT_DATA_SAMPLE_H

#include "base/memory.h"

#include <leat/sample.h>

#include <stddef.h>

/*
 * Makes the sample's own buffer at least `bytes` long; views into it move
 * along. Errors: LEAT_ENOMEM.
 */
int leat__sample_reserve(leat_sample *sample, size_t bytes);

/* In place of `deferred`: the sample could not be read, and nobody looks at it
 * until it is cleared. */
enum { LEAT__SAMPLE_FAILED = -1 };

/* leat_sample_clear and leat_sample_take, inline for those called for each
 * sample of a layer. */
static inline void leat__sample_clear(leat_sample *sample)
{
    sample->nfields = 0;
    sample->stable = 1;
    sample->deferred = 0;
    sample->route = 0;
    sample->at.epoch = -1;
    sample->taken = 0;
    sample->from.key = NULL;
    sample->from.key_size = 0;
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

#endif
