/* data_reader_options.h: what a data reader, and the filler of its runs, are
 * told. */
#ifndef LEAT_LAYER_DATA_READER_OPTIONS_H
#define LEAT_LAYER_DATA_READER_OPTIONS_H

#include <leat/data_layer.h>

typedef struct leat__data_reader_options {
    const leat_pipeline *pipeline; /* borrowed */
    const leat_allocator *boxes;   /* of samples, borrowed; NULL: malloc */
    int batch_size;
    int rank; /* takes positions p = rank mod step */
    int step;
    int threaded;        /* a producer thread fills runs ahead */
    int probe;           /* also while the reader that was opened may block */
    int64_t probe_every; /* how often that is looked up, in nanoseconds; */
    int64_t probe_pause; /* and at a new epoch, so long after the last time */
    int collects;  /* LEAT_EDATA goes into the run's list and fails nothing */
    int draws;     /* words of Caffe's generator a sample; 0: none */
    uint32_t seed; /* of that generator's parent */
    const void *owner; /* of its thread: leat__thread */
} leat__data_reader_options;

#endif
