/* The kernels of softmax.h. Sums are taken in one order: runs are alike. */
#include "softmax.h"

#include <cuda_runtime.h>

#define BLOCK 128

/* A block for each image: its scores, and the errors of its classes. */
static __global__ void __launch_bounds__(BLOCK)
    classify(const softmax net, const float *images, const float *labels)
{
    __shared__ float part[SOFTMAX_CLASSES][BLOCK];
    const float *image = images + (size_t)blockIdx.x * net.pixels;
    for (int c = 0; c < SOFTMAX_CLASSES; c++) {
        float sum = 0;
        for (int i = threadIdx.x; i < net.pixels; i += BLOCK)
            sum += image[i] * net.weights[(size_t)c * net.pixels + i];
        part[c][threadIdx.x] = sum;
    }
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int c = 0; threadIdx.x < half && c < SOFTMAX_CLASSES; c++)
            part[c][threadIdx.x] += part[c][threadIdx.x + half];
    }
    if (threadIdx.x > 0)
        return;
    int best = 0;
    int label = (int)labels[blockIdx.x];
    for (int c = 1; c < SOFTMAX_CLASSES; c++)
        if (part[c][0] > part[best][0])
            best = c;
    float sum = 0;
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        sum += expf(part[c][0] - part[best][0]);
    float loss = 0;
    for (int c = 0; c < SOFTMAX_CLASSES; c++) {
        float logarithm = part[c][0] - part[best][0] - logf(sum);
        net.errors[blockIdx.x * SOFTMAX_CLASSES + c] =
            expf(logarithm) - (c == label);
        if (c == label)
            loss = -logarithm;
    }
    net.scores[2 * blockIdx.x] = loss;
    net.scores[2 * blockIdx.x + 1] = best == label;
}

/* Thread 0 sums the losses, thread 1 the right ones. */
static __global__ void add_scores(const softmax net, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += net.scores[2 * i + threadIdx.x];
    net.totals[threadIdx.x] += sum;
}

/* A thread for each weight. */
static __global__ void __launch_bounds__(BLOCK)
    descend(const softmax net, const float *images, int n, float rate)
{
    int pixel = blockIdx.x * BLOCK + threadIdx.x;
    int c = blockIdx.y;
    if (pixel >= net.pixels)
        return;
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += net.errors[i * SOFTMAX_CLASSES + c] *
               images[(size_t)i * net.pixels + pixel];
    net.weights[(size_t)c * net.pixels + pixel] -= rate * sum / n;
}

cudaError_t softmax_load(void)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, classify);
    if (!error)
        error = cudaFuncGetAttributes(&attributes, add_scores);
    if (!error)
        error = cudaFuncGetAttributes(&attributes, descend);
    return error;
}

cudaError_t softmax_forward(const softmax *net, const float *images,
                            const float *labels, int n, cudaStream_t stream)
{
    if (n < 1 || n > net->images)
        return cudaErrorInvalidValue;
    classify<<<n, BLOCK, 0, stream>>>(*net, images, labels);
    add_scores<<<1, 2, 0, stream>>>(*net, n);
    return cudaGetLastError();
}

cudaError_t softmax_update(const softmax *net, const float *images, int n,
                           float rate, cudaStream_t stream)
{
    dim3 blocks((net->pixels + BLOCK - 1) / BLOCK, SOFTMAX_CLASSES);
    descend<<<blocks, BLOCK, 0, stream>>>(*net, images, n, rate);
    return cudaGetLastError();
}
