/* prefetcher_options.h: what a prefetcher, its lanes and their slots are told.
 */
#ifndef LEAT_LAYER_PREFETCHER_OPTIONS_H
#define LEAT_LAYER_PREFETCHER_OPTIONS_H

#include "layer/batch_fill.h"

typedef struct leat__prefetcher_options {
    leat__data_reader *reader;     /* borrowed; not yet started */
    leat_transformer *transformer; /* borrowed */
    leat_device *const *device;    /* of each lane; borrowed */
    int lanes;                     /* batch k goes to lane k mod lanes */
    /* Of batches, borrowed; NULL: the device's. */
    const leat_allocator *host_slabs;   /* where it computes in host memory */
    const leat_allocator *pinned_slabs; /* else */
    const leat_allocator *buffers;      /* borrowed; NULL: malloc */
    leat__batch_spec spec;
    leat__batch_shape shape; /* the first record's */
    leat_on_error on_error;
    int step;        /* ranks that divide the positions */
    int at_start;    /* no record comes before the first one */
    int decodes;     /* samples are encoded images: names the stage */
    int must_pin;    /* no batch in pageable memory */
    int slots;       /* of a lane: prefetch, and the one its caller holds */
    int circulating; /* slots in use from the start; the rest as needed */
    int workers;
    int may_time_waits; /* they have cores besides the caller's */
    int chunk_size;     /* samples in a chunk that a worker reads */
    int ahead_size;     /* and in one that the reader's thread reads ahead */
    const void *owner;  /* of the workers' threads: leat__thread */
} leat__prefetcher_options;

#endif
