/*
 * sampler.h: which samples a rank takes, and where each batch begins and ends
 * in the endless sequence of epochs. Arithmetic alone: no reader, no lock.
 */
#ifndef LEAT_LAYER_SAMPLER_H
#define LEAT_LAYER_SAMPLER_H

#include <leat/data_layer.h>

#include <stdbool.h>
#include <stdint.h>

/* A point of the endless sequence, between two batches. */
typedef struct leat__position {
    int64_t position; /* global, over all epochs and ranks */
    int64_t epoch;
    int64_t index; /* in the epoch; may lie past its end */
} leat__position;

/* One thread's at a time. */
typedef struct leat__sampler {
    int batch_size;
    int rank; /* takes positions p = rank mod step */
    int step;
    leat_epoch_end epoch_end;
    int64_t count; /* samples in an epoch; 0: not known, or WRAP */

    leat__position window; /* where the current batch begins */
    int64_t width;         /* its positions, of all ranks; fewer if an epoch of
                              unknown length ends among them */
    int size;              /* of those, this rank's */
    bool follows_gap;      /* right before it samples were left out */
    int64_t cursor;        /* global position of the next record to be read */
    int64_t epoch;         /* of that record */
    int64_t index;
    int64_t skip; /* records from there to this rank's next sample */
    int in_batch; /* samples of the current batch handed out */
} leat__sampler;

/* At position 0, where batches run on into the next epoch. */
void leat__sampler_init(leat__sampler *sampler, int batch_size, int rank,
                        int step);

/*
 * Right after init: batches end with an epoch of `count` samples; 0: its length
 * is not known before it ends.
 */
void leat__sampler_end_epochs(leat__sampler *sampler, leat_epoch_end epoch_end,
                              int64_t count);

/*
 * To `start`, the beginning of a batch: for a reader that stands at the
 * beginning of its epoch, so that all records before it are still to be read
 * and dropped; or, where an epoch has `count` samples, that stands right there.
 */
void leat__sampler_rewind(leat__sampler *sampler, const leat__position *start);
void leat__sampler_seek(leat__sampler *sampler, const leat__position *start,
                        int64_t count);
/* Or one that stands at its epoch and index. */
void leat__sampler_at(leat__sampler *sampler, const leat__position *start);

/* This rank's samples before `start`. */
int64_t leat__sampler_before(const leat__sampler *sampler,
                             const leat__position *start);

/* Of the current batch's first sample not yet handed out: the same number. */
int64_t leat__sampler_ordinal(const leat__sampler *sampler);

/* Samples that the current batch still lacks, at most `most`. */
int leat__sampler_room(const leat__sampler *sampler, int most);

/*
 * Records to be read for `n` more samples, of which `had` were passed since the
 * last ones were handed out. Where the length of an epoch is not known, the
 * last samples of a batch take all that the other ranks' batches take, too: so
 * every rank finds the epoch's end in the same batch.
 */
int64_t leat__sampler_span(const leat__sampler *sampler, int had, int n);

/* `n` records that are not this rank's were passed, at most `skip`. */
void leat__sampler_drop(leat__sampler *sampler, int64_t n);

/* `n` records, each this rank's, were passed: 1, unless step is 1. */
void leat__sampler_take(leat__sampler *sampler, int n, leat_position at[]);

/* Moves on to this rank's next sample; an epoch has `count`. */
void leat__sampler_jump(leat__sampler *sampler, int64_t count);

/* The epoch ended at the cursor. */
void leat__sampler_next_epoch(leat__sampler *sampler);

/*
 * Whether an epoch of unknown length that ends at the cursor cuts the current
 * batch short, on every rank. It then ends, or restarts after the cut.
 */
bool leat__sampler_is_cut(const leat__sampler *sampler);

/* Leaves out what was passed of the batch: it begins at the cursor instead. */
void leat__sampler_restart(leat__sampler *sampler);

/*
 * Hands out `n` samples. Whether they complete the batch; `*after` is then
 * where every rank stands after it.
 */
bool leat__sampler_hand_out(leat__sampler *sampler, int n,
                            leat__position *after);

/*
 * Hands out what there is of the batch, which ends early: where an epoch of
 * unknown length does, or because nothing follows. A resume at `*after`, which
 * is the same on every rank, then finds the end again.
 */
void leat__sampler_end(leat__sampler *sampler, leat__position *after);

#endif
