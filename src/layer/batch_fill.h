/* batch_fill.h: transforms samples into a batch; one a thread. */
#ifndef LEAT_LAYER_BATCH_FILL_H
#define LEAT_LAYER_BATCH_FILL_H

#include "data/transformer.h"
#include "layer/batch.h"
#include "layer/chunk.h"
#include "layer/tops/top_plan.h"

#include <leat/transform.h>

/* How samples become tops; the same for all batches. */
typedef struct leat__batch_spec {
    int batch_size;
    const leat__top_plan *plan; /* borrowed */
    leat_layout layout;
    leat_rng rng;
    uint64_t seed;
    bool crops; /* a device transforms: the first images are uint8 crops */
} leat__batch_spec;

typedef struct leat__batch_fill {
    leat__batch_spec spec;
    leat_transformer **image; /* owned, of each image of the plan */
} leat__batch_fill;

/* Clones the images' transformers. Errors: LEAT_ENOMEM; finish is due. */
int leat__batch_fill_init(leat__batch_fill *fill, const leat__batch_spec *spec,
                          leat_transformer *const image[]);
/* Takes a zeroed one too. */
void leat__batch_fill_finish(leat__batch_fill *fill);

/*
 * The layout of a batch that begins with `sample`; errors name the sample.
 * Errors: LEAT_EDATA, LEAT_EINVAL (crop, mean), LEAT_ENOMEM.
 */
int leat__batch_spec_shape(const leat__batch_spec *spec,
                           leat_transformer *const image[],
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
 * The mean images against a sample: LEAT_EINVAL for one that does not fit,
 * which is no fault of the record's.
 */
int leat__batch_spec_check_means(const leat__batch_spec *spec,
                                 leat_transformer *const image[],
                                 const leat_sample *sample);

/* Images decoded so far. */
leat__image_counts leat__batch_fill_count(const leat__batch_fill *fill);

/*
 * Transforms `sample` instead of the chunk's sample `i`, under that one's
 * random choices. Errors: LEAT_EDATA, LEAT_ENOMEM.
 */
int leat__batch_fill_sample(leat__batch_fill *fill, leat__batch *batch,
                            const leat__chunk *chunk, int i,
                            const leat_sample *sample);

#endif
