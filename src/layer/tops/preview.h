/* preview.h: samples that setup reads to find the shapes of tops, and which are
 * delivered in their turn. */
#ifndef LEAT_LAYER_TOPS_PREVIEW_H
#define LEAT_LAYER_TOPS_PREVIEW_H

#include "layer/chunk.h"

/* The most samples that can be previewed, or batches with one. */
#define LEAT__PREVIEWS_MAX 256
/* What their buffers may take where the layer has no max_memory. */
#define LEAT__PREVIEWS_BYTES ((size_t)1 << 30)

/* Zeroed, but for `most`: none. */
typedef struct leat__previews {
    leat__chunk_list list; /* of a sample each, or a batch */
    int room;              /* chunks that there is room for */
    int filled;            /* all but batches without a sample */
    size_t most;           /* bytes of buffers, after which no more are read */
    size_t held;           /* bytes of buffers */
    size_t empty;          /* bytes of batches without a sample */
    int shown;             /* samples of the last of them that were lent */
    int taken;             /* chunks */
} leat__previews;

/* As leat__data_reader_preview; `ahead` as for leat__chunk_source_fill. At
 * least one can be previewed, however large it is, unless more than
 * LEAT__PREVIEWS_MAX batches without a sample take more than `most`
 * (LEAT_ELIMIT). */
int leat__previews_next(leat__previews *previews, leat__chunk_source *source,
                        bool ahead, const leat_sample **out);

/* As leat__data_reader_preview_batch. */
int leat__previews_batch(const leat__previews *previews,
                         const leat_sample ***out, int *n);

/* The next chunk that was not taken; false: there is none. */
static inline bool leat__previews_take(leat__previews *previews,
                                       leat__chunk **out)
{
    if (previews->taken == previews->list.n)
        return false;
    *out = previews->list.chunk[previews->taken++];
    return true;
}

#endif
