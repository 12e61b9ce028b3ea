/* assembler.h: puts samples into their places in a batch; one a thread. */
#ifndef LEAT_LAYER_ASSEMBLER_H
#define LEAT_LAYER_ASSEMBLER_H

#include "layer/batch.h"

#include <leat/transform.h>

/* How samples become tops; the same for all batches. */
typedef struct leat__assembly {
    int batch_size;
    int ntop;
    leat_layout layout;
    leat_dtype top_type;
    leat_dtype label_type; /* of all tops but the first */
    leat_rng rng;
    uint64_t seed;
} leat__assembly;

typedef struct leat__assembler {
    leat__assembly assembly;
    leat_transformer *transformer; /* owned */
    int draws;                     /* random words that an image takes */
} leat__assembler;

/* Clones the transformer. Errors: LEAT_ENOMEM. */
int leat__assembler_init(leat__assembler *assembler,
                         const leat__assembly *assembly,
                         const leat_transformer *transformer);
/* Takes a zeroed one too. */
void leat__assembler_finish(leat__assembler *assembler);

/*
 * What a batch that begins with `sample` looks like; errors name the sample.
 * Errors: LEAT_EDATA, LEAT_EINVAL (crop, mean), LEAT_ENOMEM.
 */
int leat__assembly_shape(const leat__assembly *assembly,
                         leat_transformer *transformer,
                         const leat_sample *sample, leat__batch_shape *out);

/* The same in a running layer, where it is the record's fault: LEAT_EDATA. */
int leat__assembler_shape(leat__assembler *assembler, const leat_sample *sample,
                          leat__batch_shape *out);

/*
 * Transforms all samples of a good run into their places in its batch, whose
 * shape is known. Errors: LEAT_EDATA, LEAT_ENOMEM; `*failed` is the place of
 * the sample that the error line names.
 */
int leat__assembler_place(leat__assembler *assembler, leat__batch *batch,
                          const leat__run *run, int *failed);

#endif
