/* The kernels of examples/softmax_kernels.cu in the double: loops. */
#include "cuda_double/cuda_double.h"
#include "softmax.h"

#include <math.h>

typedef struct batch {
    softmax net;
    const float *images;
    const float *labels; /* NULL: the update */
    int n;
    float rate;
} batch;

/* The errors of one image, and its loss; whether the class is right. */
static float classify(const softmax *net, const float *image, int label,
                      float errors[], int *is_right)
{
    const float *weights = cuda_double_bytes(net->weights);
    float score[SOFTMAX_CLASSES];
    int best = 0;
    for (int c = 0; c < SOFTMAX_CLASSES; c++) {
        score[c] = 0;
        for (int i = 0; i < net->pixels; i++)
            score[c] += image[i] * weights[c * net->pixels + i];
        best = score[c] > score[best] ? c : best;
    }
    float sum = 0;
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        sum += expf(score[c] - score[best]);
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        errors[c] = expf(score[c] - score[best]) / sum - (float)(c == label);
    *is_right = best == label;
    return logf(sum) - (score[label] - score[best]);
}

static void forward(const batch *self)
{
    const softmax *net = &self->net;
    const float *images = cuda_double_bytes(self->images);
    const float *labels = cuda_double_bytes(self->labels);
    float *errors = cuda_double_bytes(net->errors);
    float *totals = cuda_double_bytes(net->totals);
    for (int i = 0; i < self->n; i++) {
        int is_right;
        totals[0] += classify(net, images + i * net->pixels, (int)labels[i],
                              errors + i * SOFTMAX_CLASSES, &is_right);
        totals[1] += (float)is_right;
    }
}

static void update(const batch *self)
{
    const softmax *net = &self->net;
    const float *images = cuda_double_bytes(self->images);
    const float *errors = cuda_double_bytes(net->errors);
    float *weights = cuda_double_bytes(net->weights);
    for (int i = 0; i < self->n; i++)
        for (int c = 0; c < SOFTMAX_CLASSES; c++)
            for (int k = 0; k < net->pixels; k++)
                weights[c * net->pixels + k] -=
                    self->rate * errors[i * SOFTMAX_CLASSES + c] *
                    images[i * net->pixels + k] / (float)self->n;
}

static void run(void *argument)
{
    const batch *self = argument;
    if (self->labels)
        forward(self);
    else
        update(self);
}

/* As with an older driver. */
static int is_loaded;

cudaError_t softmax_load(void)
{
    is_loaded = 1;
    return cudaSuccess;
}

static cudaError_t launch(batch *one, cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    if (error)
        return error;
    if (!is_loaded && capture != cudaStreamCaptureStatusNone)
        return cudaErrorStreamCaptureUnsupported;
    is_loaded = 1;
    return cuda_double_launch(run, one, sizeof(*one), 0, stream);
}

cudaError_t softmax_forward(const softmax *net, const float *images,
                            const float *labels, int n, cudaStream_t stream)
{
    batch one = {.net = *net, .images = images, .labels = labels, .n = n};
    if (n < 1 || n > net->images)
        return cudaErrorInvalidValue;
    return launch(&one, stream);
}

cudaError_t softmax_update(const softmax *net, const float *images, int n,
                           float rate, cudaStream_t stream)
{
    batch one = {.net = *net, .images = images, .n = n, .rate = rate};
    return launch(&one, stream);
}
