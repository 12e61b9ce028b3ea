/* gpu_feed.h: the data layer of a net file on cuda:0, for the CUDA examples. */
#ifndef GPU_FEED_H
#define GPU_FEED_H

#include <leat.h>
#include <leat/cuda.h>

#include <cuda_runtime_api.h>

/* Exit statuses. */
enum { GPU_FEED_DONE = 0, GPU_FEED_FAILED = 1, GPU_FEED_NO_GPU = 77 };

/* A layer and its tops. */
typedef struct gpu_feed {
    leat_data_layer *layer;
    leat_blob *top[2]; /* the layer's own */
    int images;        /* in a batch */
    int pixels;        /* of an image */
    int valid;         /* images of the latest batch that are no padding */
} gpu_feed;

/*
 * Opens the data layer of a phase and sets it up. The functions here return
 * exit statuses; one line on stderr then says why.
 */
int gpu_feed_open(gpu_feed *feed, const char *net, leat_phase phase,
                  leat_top_mode mode);

/* Takes a zeroed one. Before the streams that it was given go. */
void gpu_feed_close(gpu_feed *feed);

/* The next batch, ready on `stream`; its memory is the device's. */
int gpu_feed_next(gpu_feed *feed, const float **images, const float **labels,
                  cudaStream_t stream);

/* What a call of CUDA's returned, as an exit status. */
int gpu_feed_check(cudaError_t error);

#endif
