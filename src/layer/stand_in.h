/* stand_in.h: fills the places of bad records; one a thread. */
#ifndef LEAT_LAYER_STAND_IN_H
#define LEAT_LAYER_STAND_IN_H

#include "layer/assembler.h"
#include "layer/relay.h"

typedef struct leat__stand_in_options {
    const leat_allocator *boxes; /* borrowed; NULL: malloc */
    leat_on_error on_error;      /* ZERO or REPLACE */
    int step;                    /* ranks that divide the positions */
    leat__data_reader *reader;   /* borrowed; it collects */
    leat__relay *relay;          /* borrowed */
    /* Of batches before which, and in which, no record tells a shape. */
    const leat__batch_shape *fallback; /* borrowed */
} leat__stand_in_options;

typedef struct leat__stand_in {
    leat__stand_in_options options;
    leat__assembler *assembler; /* borrowed */
    leat_sample *record;        /* owned; what was read again and stands */
    leat_sample *trial;         /* owned; what is looked at */

    /* Of the run in work: what stands before the place looked at. */
    leat__baton_state state;
    leat_sample **standing; /* the owner of that sample */
    int is_mixed;
} leat__stand_in;

/* Errors: LEAT_ENOMEM; the struct is then as if zeroed. */
int leat__stand_in_init(leat__stand_in *stand_in,
                        const leat__stand_in_options *options,
                        leat__assembler *assembler);
void leat__stand_in_finish(leat__stand_in *stand_in); /* a zeroed one too */

/* Every run that entered the relay begins, and ends by leaving it. */
void leat__stand_in_begin(leat__stand_in *stand_in);
/* `has_shape`: the batch has one; else it failed. */
void leat__stand_in_end(leat__stand_in *stand_in, const leat__batch *batch,
                        leat__run *run, int has_shape);

/*
 * The shape of a batch whose first record tells none: that of the nearest
 * earlier good one. The batch, not yet shaped, is used to try records.
 * Errors: those of the reader, LEAT_ENOMEM.
 */
int leat__stand_in_shape(leat__stand_in *stand_in, leat__batch *batch,
                         const leat__run *run, leat__batch_shape *out);

/*
 * As leat__assembler_place for a whole run, but that a bad record is noted in
 * the run's list and something stands in for it. `*failed` is the place where
 * that could not be done. Errors: those of the reader, LEAT_ENOMEM.
 */
int leat__stand_in_place(leat__stand_in *stand_in, leat__batch *batch,
                         leat__run *run, int *failed);

#endif
