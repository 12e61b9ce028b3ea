/* layer_fixture.h: a small data set in memory, and a layer over it, for layer
 * tests. */
#ifndef LEAT_TESTS_LAYER_FIXTURE_H
#define LEAT_TESTS_LAYER_FIXTURE_H

#include <leat.h>

/* LAYER_FIXTURE_COUNT images of 2 x 5 x 6; pixel j of image i is (31 i + j) mod
   256, its label 1000 + i. */
#define LAYER_FIXTURE_COUNT 13
#define LAYER_FIXTURE_CHANNELS 2
#define LAYER_FIXTURE_HEIGHT 5
#define LAYER_FIXTURE_WIDTH 6
#define LAYER_FIXTURE_PIXELS                                                   \
    (LAYER_FIXTURE_CHANNELS * LAYER_FIXTURE_HEIGHT * LAYER_FIXTURE_WIDTH)

/* The pipeline over it. */
leat_pipeline *layer_fixture_pipeline(void);

/* The pixel at (c, h, w) of image i. */
int layer_fixture_pixel(int i, int c, int h, int w);

/* Defaults of both, of which the first have the second. */
void layer_fixture_options(leat_data_layer_options *options,
                           leat_transform_options *transform);

/* A layer with its two tops, set up; aborts the test on failure. */
typedef struct layer_fixture {
    leat_data_layer *layer;
    leat_blob *top[2];
} layer_fixture;

layer_fixture layer_fixture_open(const leat_pipeline *pipeline,
                                 const leat_data_layer_options *options);
void layer_fixture_close(layer_fixture *fixture);

/* One forward for the CPU; its status. */
int layer_fixture_forward(layer_fixture *fixture);

/* Label and first pixel of sample i of the batch just delivered. */
float layer_fixture_label(layer_fixture *fixture, int i);

/* Holds the calling thread, and those that it starts, on one core: 1. 0: as
   before. */
void layer_fixture_use_one_core(int one);

/* A checksum of both tops' contents. */
uint32_t layer_fixture_digest(layer_fixture *fixture);

/* The same of sample i of the batch just delivered. */
uint32_t layer_fixture_sample_digest(layer_fixture *fixture, int i);

#endif
