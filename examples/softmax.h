/* softmax.h: a linear classifier with a softmax loss, trained on a GPU. */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SOFTMAX_CLASSES = 10 };

/* Its memory on the current device; all pointers are the device's. */
typedef struct softmax {
    int pixels;
    int images;     /* in a batch, at most */
    float *weights; /* classes x pixels, zero at first */
    float *errors;  /* images x classes: probability less truth */
    float *scores;  /* images x 2: loss, and whether the class is right */
    float *totals;  /* the sums of scores since softmax_read */
} softmax;

/* What a number of batches came to. */
typedef struct softmax_sums {
    float loss;
    float correct;
} softmax_sums;

/* Takes memory for batches of up to `images`; softmax_finish after all. */
cudaError_t softmax_init(softmax *net, int images, int pixels);
void softmax_finish(softmax *net);

/*
 * Each of these launches kernels on `stream` and does not wait: forward adds a
 * batch to the sums, update moves the weights against the gradient of it. `n`
 * images of the device's memory, one after another, and their labels.
 */
cudaError_t softmax_forward(const softmax *net, const float *images,
                            const float *labels, int n, cudaStream_t stream);
cudaError_t softmax_update(const softmax *net, const float *images, int n,
                           float rate, cudaStream_t stream);

/*
 * Loads the kernels, which init does: CUDA loads a kernel with its first
 * launch, and drivers before CUDA 12.3 cannot while the stream is captured.
 */
cudaError_t softmax_load(void);

/* Waits for the stream; the sums begin anew. */
cudaError_t softmax_read(const softmax *net, softmax_sums *out,
                         cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
