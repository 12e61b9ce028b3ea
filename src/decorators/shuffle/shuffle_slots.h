/* shuffle_slots.h: the samples that a streaming buffer holds. */
#ifndef LEAT_DECORATORS_SHUFFLE_SHUFFLE_SLOTS_H
#define LEAT_DECORATORS_SHUFFLE_SHUFFLE_SLOTS_H

#include <leat/sample.h>

#include <stddef.h>
#include <stdint.h>

/*
 * A slot is a leat_sample that is cut off after the fields that samples have,
 * as most of its size are those that they do not have. Samples come and go by
 * exchange. One caller at a time.
 */
typedef struct leat__shuffle_slots {
    char *samples;  /* NULL: not made yet */
    size_t stride;  /* bytes of each */
    int nfields;    /* that a sample has at most */
    int32_t size;   /* slots */
    int32_t n;      /* of them in use, from the first on */
    int32_t used;   /* that were ever in use */
    int32_t nbad;   /* bad records among them */
    int64_t *input; /* of each its number among the inputs; ~: a bad record */
    int64_t bytes;  /* of the samples' buffers */
    const leat_allocator *allocator; /* of the buffers, borrowed */
} leat__shuffle_slots;

/* Makes empty slots. Errors: LEAT_ENOMEM. */
int leat__shuffle_slots_init(leat__shuffle_slots *slots, int32_t size,
                             int nfields, const leat_allocator *allocator);

/* Makes room for `nfields` in each, which may be in use. Errors: LEAT_ENOMEM;
 * the slots are then as they were. */
int leat__shuffle_slots_widen(leat__shuffle_slots *slots, int nfields);

void leat__shuffle_slots_finish(leat__shuffle_slots *slots);

/* Empties them, but keeps their memory. */
void leat__shuffle_slots_clear(leat__shuffle_slots *slots);

/* Uses `n` slots, in which nothing is yet. */
void leat__shuffle_slots_open(leat__shuffle_slots *slots, int32_t n);

/*
 * Exchanges the sample, of this input, with that of slot `i`, and returns the
 * input of the latter. A slot i = n is new.
 */
int64_t leat__shuffle_slots_exchange(leat__shuffle_slots *slots, int32_t i,
                                     leat_sample *sample, int64_t input);

/* Takes the sample of slot `i`, whose place the last one takes. */
int64_t leat__shuffle_slots_take(leat__shuffle_slots *slots, int32_t i,
                                 leat_sample *sample);

/* The least input that is held, or INT64_MAX. */
int64_t leat__shuffle_slots_oldest(const leat__shuffle_slots *slots);

/* Bytes of memory. */
int64_t leat__shuffle_slots_memory(const leat__shuffle_slots *slots);

/* Asks the processor for slot `i`, which is exchanged soon. Always inline, as
 * gcc drops calls of functions that only prefetch. */
__attribute__((always_inline)) static inline void
leat__shuffle_slots_expect(const leat__shuffle_slots *slots, int32_t i)
{
    const char *at = slots->samples + (size_t)i * slots->stride;
    for (size_t k = 0; k < slots->stride; k += 64)
        __builtin_prefetch(at + k, 1);
}

#endif
