/*
 * prefetch_buffer.h: the samples that prefetch has read ahead, in the order of
 * their delivery, and the empty ones. It has no lock: its owner's guards it.
 */
#ifndef LEAT_DECORATORS_PREFETCH_PREFETCH_BUFFER_H
#define LEAT_DECORATORS_PREFETCH_PREFETCH_BUFFER_H

#include "base/error.h"

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>

/* A sample, or what comes in its place: a bad record, the end, an error. */
typedef struct leat__prefetch_slot {
    leat_sample sample;
    int status;      /* LEAT_OK: the sample is good */
    bool is_ready;   /* complete; under the owner's lock once it is pushed */
    int64_t epoch;   /* of LEAT_END: which one ended */
    size_t counted;  /* bytes of the sample's buffer that `memory` has */
    leat_token mark; /* the upstream reader's, from before the sample; empty:
                        that could not be had, as the status says */
    char line[LEAT__ERROR_MAX]; /* unless the status is LEAT_OK or LEAT_END */
} leat__prefetch_slot;

/* All is the owner's lock's but `memory`. */
typedef struct leat__prefetch_buffer {
    const leat_allocator *allocator; /* of samples; immutable */
    int size;                        /* of both arrays; immutable */
    int nslots;                      /* allocated */
    leat__prefetch_slot **empty;     /* a stack: the last used is in a cache */
    int nempty;
    int64_t empty_bytes;        /* `counted` of the empty ones */
    leat__prefetch_slot **ring; /* pushed in order */
    int64_t head, tail;         /* of all that were pushed */
    atomic_int_fast64_t memory; /* bytes held; any thread */
} leat__prefetch_buffer;

/*
 * Room for `size` slots, of which `n` are made. Errors: LEAT_ENOMEM; finish
 * frees what there is.
 */
int leat__prefetch_buffer_init(leat__prefetch_buffer *buffer, int size, int n,
                               const leat_allocator *allocator);

/* Frees all slots, those that the owner took included if they were given
 * back. Takes a zeroed buffer. */
void leat__prefetch_buffer_finish(leat__prefetch_buffer *buffer);

/* Makes slots until there are `n`, at most `size`. LEAT_ENOMEM: not all. */
int leat__prefetch_buffer_grow(leat__prefetch_buffer *buffer, int n);

/* An empty slot, cleared; there must be one. */
leat__prefetch_slot *leat__prefetch_buffer_take(leat__prefetch_buffer *buffer);

/* Gives a slot back. */
void leat__prefetch_buffer_give(leat__prefetch_buffer *buffer,
                                leat__prefetch_slot *slot);

/* Appends a slot that take returned. */
void leat__prefetch_buffer_push(leat__prefetch_buffer *buffer,
                                leat__prefetch_slot *slot);

/* The oldest slot; NULL: there is none. */
static inline leat__prefetch_slot *
leat__prefetch_buffer_front(const leat__prefetch_buffer *buffer)
{
    return buffer->head < buffer->tail
               ? buffer->ring[buffer->head % buffer->size]
               : NULL;
}

/*
 * Takes out the oldest slot if it is ready, or with `is_unordered` the oldest
 * sample that is ready before an end or an error. NULL: there is none.
 */
leat__prefetch_slot *leat__prefetch_buffer_pop(leat__prefetch_buffer *buffer,
                                               bool is_unordered);

/* Empties the ring. */
void leat__prefetch_buffer_clear(leat__prefetch_buffer *buffer);

/*
 * Frees buffers of empty slots until `bytes` are freed, those that were not
 * used for long first; not that of the slot to be taken next.
 */
void leat__prefetch_buffer_trim(leat__prefetch_buffer *buffer, int64_t bytes);

/* Counts what the slot's sample has in memory by now. Under the lock, as room
 * that was found must be there when it is taken. */
void leat__prefetch_buffer_count(leat__prefetch_buffer *buffer,
                                 leat__prefetch_slot *slot);

#endif
