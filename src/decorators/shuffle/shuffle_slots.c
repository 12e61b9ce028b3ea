#include "decorators/shuffle/shuffle_slots.h"
#include "base/memory.h"
#include "data/sample.h"

#include <string.h>

static leat_sample *sample_at(const leat__shuffle_slots *slots, int32_t i)
{
    return (leat_sample *)(void *)(slots->samples + (size_t)i * slots->stride);
}

/* What malloc takes for a small aligned block beside its bytes: it cannot use
 * what it trims off before and after it. Measured over glibc 2.36. */
#define BLOCK_WASTE 192

/* Bytes that a sample's own buffer takes. */
static int64_t held(const leat_sample *sample)
{
    return sample->buffer_size == 0 ? 0
                                    : (int64_t)sample->buffer_size +
                                          (sample->allocator ? 0 : BLOCK_WASTE);
}

/* The bytes of a slot with room for so many fields. */
static size_t stride_for(int nfields)
{
    size_t bytes = offsetof(leat_sample, field) +
                   (size_t)nfields * sizeof(((leat_sample *)NULL)->field[0]);
    return (bytes + LEAT__CACHE_LINE - 1) / LEAT__CACHE_LINE * LEAT__CACHE_LINE;
}

int leat__shuffle_slots_init(leat__shuffle_slots *slots, int32_t size,
                             int nfields, const leat_allocator *allocator)
{
    size_t stride = stride_for(nfields);
    char *samples = leat__alloc_zero((size_t)size, stride);
    int64_t *input = leat__alloc_zero((size_t)size, sizeof(*input));
    if (!samples || !input) {
        leat__free(samples);
        leat__free(input);
        return LEAT_ENOMEM;
    }
    *slots = (leat__shuffle_slots){.samples = samples,
                                   .stride = stride,
                                   .nfields = nfields,
                                   .size = size,
                                   .input = input,
                                   .allocator = allocator};
    return LEAT_OK;
}

int leat__shuffle_slots_widen(leat__shuffle_slots *slots, int nfields)
{
    size_t stride = stride_for(nfields);
    char *samples = leat__alloc_zero((size_t)slots->size, stride);
    if (!samples)
        return LEAT_ENOMEM;
    for (int32_t i = 0; i < slots->used; i++)
        memcpy(samples + (size_t)i * stride, sample_at(slots, i),
               slots->stride);
    leat__free(slots->samples);
    slots->samples = samples;
    slots->stride = stride;
    slots->nfields = nfields;
    return LEAT_OK;
}

void leat__shuffle_slots_finish(leat__shuffle_slots *slots)
{
    for (int32_t i = 0; i < slots->used; i++) {
        leat_sample *sample = sample_at(slots, i);
        leat__free_to(sample->allocator, sample->buffer, sample->buffer_size,
                      LEAT__ALIGNMENT);
    }
    leat__free(slots->samples);
    leat__free(slots->input);
    *slots = (leat__shuffle_slots){0};
}

/* Its buffer may be freed. */
static void clear_slot(leat__shuffle_slots *slots, int32_t i)
{
    leat_sample *sample = sample_at(slots, i);
    int64_t before = held(sample);
    leat_sample_clear(sample);
    if (!sample->buffer)
        sample->allocator = slots->allocator;
    slots->bytes += held(sample) - before;
}

void leat__shuffle_slots_clear(leat__shuffle_slots *slots)
{
    slots->n = slots->nbad = 0;
}

void leat__shuffle_slots_open(leat__shuffle_slots *slots, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        clear_slot(slots, i);
        slots->input[i] = 0;
    }
    slots->n = n;
    slots->nbad = 0;
    if (slots->used < n)
        slots->used = n;
}

/* It touches only the fields that one of them has. */
static void swap(leat__shuffle_slots *slots, int32_t i, leat_sample *sample)
{
    leat_sample *slot = sample_at(slots, i);
    int64_t before = held(slot);
    leat__sample_exchange(slot, sample);
    slots->bytes += held(slot) - before;
}

int64_t leat__shuffle_slots_exchange(leat__shuffle_slots *slots, int32_t i,
                                     leat_sample *sample, int64_t input)
{
    int64_t given = 0;
    if (i < slots->n) {
        given = slots->input[i];
    } else {
        clear_slot(slots, i);
        slots->n = i + 1;
        if (slots->used <= i)
            slots->used = i + 1;
    }
    swap(slots, i, sample);
    slots->input[i] = input;
    slots->nbad += (input < 0) - (given < 0);
    return given;
}

int64_t leat__shuffle_slots_take(leat__shuffle_slots *slots, int32_t i,
                                 leat_sample *sample)
{
    int64_t given = slots->input[i];
    int32_t last = --slots->n;
    swap(slots, i, sample);
    slots->nbad -= given < 0;
    if (i != last) {
        leat_sample_swap(sample_at(slots, i), sample_at(slots, last));
        slots->input[i] = slots->input[last];
    }
    return given;
}

int64_t leat__shuffle_slots_oldest(const leat__shuffle_slots *slots)
{
    int64_t oldest = INT64_MAX;
    for (int32_t i = 0; i < slots->n; i++) {
        int64_t input = slots->input[i];
        input = input < 0 ? ~input : input;
        oldest = input < oldest ? input : oldest;
    }
    return oldest;
}

int64_t leat__shuffle_slots_memory(const leat__shuffle_slots *slots)
{
    return slots->used * (int64_t)(slots->stride + sizeof(*slots->input)) +
           slots->bytes;
}
