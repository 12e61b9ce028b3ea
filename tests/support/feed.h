/* feed.h: a small data set in memory, and a layer over it, for layer tests. */
#ifndef LEAT_TESTS_FEED_H
#define LEAT_TESTS_FEED_H

#include <leat.h>

/* FEED_COUNT images of 2 x 5 x 6; pixel j of image i is (31 i + j) mod 256,
   its label 1000 + i. */
#define FEED_COUNT 13
#define FEED_CHANNELS 2
#define FEED_HEIGHT 5
#define FEED_WIDTH 6
#define FEED_PIXELS (FEED_CHANNELS * FEED_HEIGHT * FEED_WIDTH)

/* The pipeline over it. */
leat_pipeline *feed_pipeline(void);

/* The pixel at (c, h, w) of image i. */
int feed_pixel(int i, int c, int h, int w);

/* Defaults of both, of which the first have the second. */
void feed_options(leat_data_layer_options *options,
                  leat_transform_options *transform);

/* A layer with its two tops, set up; aborts the test on failure. */
typedef struct feed_layer {
    leat_data_layer *layer;
    leat_blob *top[2];
} feed_layer;

feed_layer feed_open(const leat_pipeline *pipeline,
                     const leat_data_layer_options *options);
void feed_close(feed_layer *feed);

/* One forward for the CPU; its status. */
int feed_forward(feed_layer *feed);

/* Label and first pixel of sample i of the batch just delivered. */
float feed_label(feed_layer *feed, int i);

/* Holds the calling thread, and those that it starts, on one core: 1. 0: as
   before. */
void feed_use_one_core(int one);

/* A checksum of both tops' contents. */
uint32_t feed_digest(feed_layer *feed);

#endif
