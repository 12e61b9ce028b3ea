/* chunk.h: consecutive samples of one batch, the unit of work. */
#ifndef LEAT_LAYER_CHUNK_H
#define LEAT_LAYER_CHUNK_H

#include "layer/on_error/bad_list.h"

#include <leat/reader.h>

#include <stdatomic.h>

/* A point of the endless sequence, between two batches. */
typedef struct leat__position {
    int64_t position; /* global, over all epochs and ranks */
    int64_t epoch;
    int64_t index; /* in the epoch; may lie behind its end */
} leat__position;

/* Belongs to one thread at a time: whoever fills it, then whoever takes it. */
typedef struct leat__chunk {
    int capacity;         /* samples there is room for */
    int first;            /* place of the first sample in its batch */
    int n;                /* samples */
    int last;             /* the batch ends with this chunk */
    leat__position after; /* with `last`: behind the batch */
    /* The first sample that could not be read; -1: none. */
    int failed;
    int status;
    char line[LEAT__ERROR_MAX];
    leat__bad_list bad; /* or, where those are collected, all that are bad */
    int unread;         /* sample[] is still to be read, by whoever takes it */
    int is_located;     /* by locator[] */
    int64_t claimed;    /* the clock, when the taker's turn for it came */
    int64_t begun; /* the clock, when that began, or else the taker's work */
    leat_sample **sample;  /* n of them, each with a buffer of its own */
    int64_t *index;        /* position in the epoch */
    leat_locator *locator; /* where it lies, if the reader locates */
    int64_t *epoch;
    uint32_t *draws;           /* of Caffe's generator, n x draws */
    int is_queued;             /* goes through the thread's queues */
    struct leat__batch *batch; /* whoever takes the chunk sets it */
    /* Of all that was read into it; written by who has it, read by anybody. */
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;  /* nanoseconds */
    struct leat__carry *taken; /* what stood before it, and what it hands on; */
    struct leat__carry *handed; /* where something may stand in */
} leat__chunk;

/*
 * A chunk of at most `capacity` samples, each with `draws` words of Caffe's
 * generator; their buffers come from `buffers` (borrowed; NULL: malloc).
 * Errors: LEAT_ENOMEM.
 */
int leat__chunk_create(leat__chunk **out, int capacity, int draws,
                       const leat_allocator *buffers);
void leat__chunk_destroy(leat__chunk *chunk); /* takes NULL */

/* Makes all buffers of the chunk so large, for what its samples will have. */
int leat__chunk_reserve(leat__chunk *chunk, size_t bytes);

/*
 * Notes the first failure of the chunk, at sample `i`, or where those are
 * collected a bad record (LEAT_EDATA); the line is the thread's.
 */
void leat__chunk_fail(leat__chunk *chunk, int i, int status, int collects);

/*
 * Reads the samples of an unread chunk, where they were located or by their
 * numbers; failures are noted in it.
 */
void leat__chunk_read(leat__chunk *chunk, leat_reader *reader, int collects);

/* Says which place a sample has. */
static inline void leat__chunk_place(leat__chunk *chunk, int i)
{
    chunk->sample[i]->from.epoch = chunk->epoch[i];
    chunk->sample[i]->from.position = chunk->index[i];
}

/* Bytes of a sample's fields. */
static inline int64_t leat__chunk_payload(const leat__chunk *chunk, int i)
{
    const leat_sample *sample = chunk->sample[i];
    int64_t bytes = 0;
    for (int k = 0; k < sample->nfields; k++)
        bytes += (int64_t)sample->field[k].bytes;
    return bytes;
}

#endif
