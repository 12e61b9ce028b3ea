/* run.h: consecutive samples of one batch, the unit of work. */
#ifndef LEAT_LAYER_RUN_H
#define LEAT_LAYER_RUN_H

#include "layer/bad_list.h"

#include <leat/reader.h>

#include <stdatomic.h>

/* A point of the endless sequence, between two batches. */
typedef struct leat__place {
    int64_t position; /* global, over all epochs and ranks */
    int64_t epoch;
    int64_t index; /* in the epoch; may lie behind its end */
} leat__place;

/* Belongs to one thread at a time: whoever fills it, then whoever takes it. */
typedef struct leat__run {
    int capacity;      /* samples there is room for */
    int first;         /* place of the first sample in its batch */
    int n;             /* samples */
    int last;          /* the batch ends with this run */
    leat__place after; /* with `last`: behind the batch */
    /* The first sample that could not be read; -1: none. */
    int failed;
    int status;
    char line[LEAT__ERROR_MAX];
    leat__bad_list bad; /* or, where those are collected, all that are bad */
    int unread;         /* sample[] is still to be read, by whoever takes it */
    int is_located;     /* by locator[] */
    int64_t claimed;    /* the clock, when the taker's turn for it came */
    int64_t begun; /* the clock, when that began, or else the taker's work */
    leat_sample **sample;  /* n of them, each with a box of its own */
    int64_t *index;        /* position in the epoch */
    leat_locator *locator; /* where it lies, if the reader locates */
    int64_t *epoch;
    uint32_t *draws;           /* of Caffe's generator, n x draws */
    int is_queued;             /* goes through the thread's queues */
    struct leat__batch *batch; /* whoever takes the run sets it */
    /* Of all that was read into it; written by who has it, read by anybody. */
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;  /* nanoseconds */
    struct leat__baton *taken; /* what stood before it, and what it hands on; */
    struct leat__baton *handed; /* where something may stand in */
} leat__run;

/*
 * A run of at most `capacity` samples, each with `draws` words of Caffe's
 * generator; their boxes come from `boxes` (borrowed; NULL: malloc). Errors:
 * LEAT_ENOMEM.
 */
int leat__run_create(leat__run **out, int capacity, int draws,
                     const leat_allocator *boxes);
void leat__run_destroy(leat__run *run); /* takes NULL */

/* Makes all boxes of the run so large, for what its samples will have. */
int leat__run_reserve(leat__run *run, size_t bytes);

/*
 * Notes the first failure of the run, at sample `i`, or where those are
 * collected a bad record (LEAT_EDATA); the line is the thread's.
 */
void leat__run_fail(leat__run *run, int i, int status, int collects);

/*
 * Reads the samples of an unread run, where they were located or by their
 * numbers; failures are noted in it.
 */
void leat__run_read(leat__run *run, leat_reader *reader, int collects);

/* Says which place a sample has. */
static inline void leat__run_place(leat__run *run, int i)
{
    run->sample[i]->from.epoch = run->epoch[i];
    run->sample[i]->from.position = run->index[i];
}

/* Bytes of a sample's fields. */
static inline int64_t leat__run_payload(const leat__run *run, int i)
{
    const leat_sample *sample = run->sample[i];
    int64_t bytes = 0;
    for (int k = 0; k < sample->nfields; k++)
        bytes += (int64_t)sample->field[k].bytes;
    return bytes;
}

#endif
