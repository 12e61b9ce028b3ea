/* gpu_layer.h: a layer on a GPU whose batches streams fetch, and what they
 * ought to be: the CPU's. */
#ifndef LEAT_TESTS_GPU_LAYER_H
#define LEAT_TESTS_GPU_LAYER_H

#include <leat.h>
#include <leat/ext/device.h>

#define GPU_STREAMS 3

/* Images of random bytes and their labels; a batch of the defaults is so many.
 */
leat_pipeline *gpu_pipeline(void);
#define GPU_BATCH 8

/* Random crops, mirrored at random, with mean and scale. */
void gpu_options(leat_data_layer_options *options,
                 leat_transform_options *transform);

/* A layer, its own two tops, and what its caller has. */
typedef struct gpu_layer {
    leat_data_layer *layer;
    leat_device *device;
    leat_stream stream[GPU_STREAMS];
    leat_event event[GPU_STREAMS];
    unsigned char *seen; /* the batches fetched, in pinned memory */
    size_t bytes[2];     /* of a batch's tops */
    int steps;           /* for which there is room */
    double late;         /* seconds that a stream is busy before it fetches */
} gpu_layer;

/* For `layer`, which is set up; or for one that this sets up. */
gpu_layer gpu_layer_of(leat_data_layer *layer, const char *device, int steps);
gpu_layer gpu_layer_open(const leat_pipeline *pipeline,
                         const leat_data_layer_options *options,
                         const char *device, int steps);
/* Waits; destroys the layer with `has_layer` alone. */
void gpu_layer_close(gpu_layer *feed, int has_layer);

/* A forward for stream s; aborts the test on failure. */
void gpu_layer_forward(gpu_layer *feed, int s);
/* Fetches a top of the batch of that step on stream s. */
void gpu_layer_fetch(gpu_layer *feed, int step, int top, int s);
/* Later work on stream `after` waits for what stream s has. */
void gpu_layer_order(gpu_layer *feed, int s, int after);
/* Waits for all streams. */
void gpu_layer_wait(gpu_layer *feed);

/* The layer with the same options on the CPU, set up. */
leat_data_layer *gpu_twin(const leat_pipeline *pipeline,
                          const leat_data_layer_options *options);
/*
 * How many of the first `steps` batches seen are not those that the twin
 * delivers next, of which the feed has every `every`-th, the first at `first`.
 */
int gpu_count_wrong(const gpu_layer *feed, leat_data_layer *twin, int steps,
                    int every, int first);

/*
 * What main of such a test does first, with the arguments: takes the names of
 * the devices. Returns 0, or the status to end with: 77 where one is missing.
 */
int gpu_take_devices(int argc, char **argv);
/* Device i of those, or the first again where there are fewer. */
const char *gpu_device(int i);

#endif
