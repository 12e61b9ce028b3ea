/* replacement.h: replaces bad records; one a thread. */
#ifndef LEAT_LAYER_ON_ERROR_REPLACEMENT_H
#define LEAT_LAYER_ON_ERROR_REPLACEMENT_H

#include "layer/batch_fill.h"
#include "layer/data_reader.h"
#include "layer/on_error/carry_chain.h"

#include <leat/data_layer.h>

typedef struct leat__replacement_options {
    const leat_allocator *buffers;  /* borrowed; NULL: malloc */
    leat_on_error on_error;         /* ZERO or REPLACE */
    int step;                       /* ranks that divide the positions */
    leat__data_reader *reader;      /* borrowed; it collects */
    leat__carry_chain *carry_chain; /* borrowed */
    /* Of batches before which, and in which, no record has a shape. */
    const leat__batch_shape *fallback; /* borrowed */
} leat__replacement_options;

typedef struct leat__replacement {
    leat__replacement_options options;
    leat__batch_fill *fill; /* borrowed */
    leat_sample *trial; /* owned; a record that may become the replacement */

    /* Of the chunk in work: the latest good sample before the current one. */
    leat__carry_state state;
    leat_sample **latest; /* the owner of that sample */
    int64_t epoch;        /* in which it was read */
    bool is_mixed;
    leat__carry_look look; /* the latest that is known of */
} leat__replacement;

/* Errors: LEAT_ENOMEM; the struct is then as if zeroed. */
int leat__replacement_init(leat__replacement *replacement,
                           const leat__replacement_options *options,
                           leat__batch_fill *fill);
void leat__replacement_finish(
    leat__replacement *replacement); /* a zeroed one too */

/* Every chunk that entered the carry chain begins, and ends by leaving it. */
void leat__replacement_begin(leat__replacement *replacement);
/* `has_shape`: the batch has one; else it failed. */
void leat__replacement_end(leat__replacement *replacement,
                           const leat__batch *batch, leat__chunk *chunk,
                           bool has_shape);

/*
 * The shape of a batch whose first record has none: that of the nearest earlier
 * good one. The batch, not yet shaped, is used to try records.
 * Errors: those of the reader, LEAT_ENOMEM.
 */
int leat__replacement_shape(leat__replacement *replacement, leat__batch *batch,
                            const leat__chunk *chunk, leat__batch_shape *out);

/*
 * As leat__batch_fill_chunk for a whole chunk, but a bad record is noted in the
 * chunk's list and replaced. `*failed` is the sample of the batch where that
 * failed. Errors: those of the reader, LEAT_ENOMEM.
 */
int leat__replacement_fill(leat__replacement *replacement, leat__batch *batch,
                           leat__chunk *chunk, int *failed);

#endif
