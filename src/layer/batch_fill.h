/* batch_fill.h: transforms samples into a batch; one a thread. */
#ifndef LEAT_LAYER_BATCH_FILL_H
#define LEAT_LAYER_BATCH_FILL_H

#include "layer/batch.h"
#include "layer/chunk.h"

#include <leat/transform.h>

/* How samples become tops; the same for all batches. */
typedef struct leat__batch_spec {
    int batch_size;
    int ntop;
    leat_layout layout;
    leat_dtype top_type;
    leat_dtype label_type; /* of all tops but the first */
    leat_rng rng;
    uint64_t seed;
    bool crops; /* a device transforms: tops 0 are uint8 crops */
} leat__batch_spec;

typedef struct leat__batch_fill {
    leat__batch_spec spec;
    leat_transformer *transformer; /* owned */
    int draws;                     /* random words that an image takes */
} leat__batch_fill;

/* Clones the transformer. Errors: LEAT_ENOMEM. */
int leat__batch_fill_init(leat__batch_fill *fill, const leat__batch_spec *spec,
                          const leat_transformer *transformer);
/* Takes a zeroed one too. */
void leat__batch_fill_finish(leat__batch_fill *fill);

/*
 * The layout of a batch that begins with `sample`; errors name the sample.
 * Errors: LEAT_EDATA, LEAT_EINVAL (crop, mean), LEAT_ENOMEM.
 */
int leat__batch_spec_shape(const leat__batch_spec *spec,
                           leat_transformer *transformer,
                           const leat_sample *sample, leat__batch_shape *out);

/* The same in a running layer, where it is the record's fault: LEAT_EDATA. */
int leat__batch_fill_shape(leat__batch_fill *fill, const leat_sample *sample,
                           leat__batch_shape *out);

/*
 * Transforms the chunk's samples from `*i` on, and before `end`, into its
 * batch, whose shape is known; `*i` is then the first one that was not. Errors:
 * LEAT_EDATA, LEAT_ENOMEM; the line names sample `*i`.
 */
int leat__batch_fill_chunk(leat__batch_fill *fill, leat__batch *batch,
                           const leat__chunk *chunk, int *i, int end);

/*
 * Transforms `sample` instead of the chunk's sample `i`, under that one's
 * random choices. Errors: LEAT_EDATA, LEAT_ENOMEM.
 */
int leat__batch_fill_sample(leat__batch_fill *fill, leat__batch *batch,
                            const leat__chunk *chunk, int i,
                            const leat_sample *sample);

#endif
