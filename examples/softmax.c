#include "softmax.h"

#include <stddef.h>
#include <string.h>

/* Zeroed floats on the device. */
static cudaError_t take(float **out, size_t n)
{
    void *memory;
    cudaError_t error = cudaMalloc(&memory, n * sizeof(float));
    if (error)
        return error;
    *out = memory;
    return cudaMemset(memory, 0, n * sizeof(float));
}

cudaError_t softmax_init(softmax *net, int images, int pixels)
{
    memset(net, 0, sizeof(*net));
    net->pixels = pixels;
    net->images = images;
    cudaError_t error = take(&net->weights, (size_t)pixels * SOFTMAX_CLASSES);
    if (!error)
        error = take(&net->errors, (size_t)images * SOFTMAX_CLASSES);
    if (!error)
        error = take(&net->scores, (size_t)images * 2);
    if (!error)
        error = take(&net->totals, 2);
    if (!error)
        error = softmax_load();
    /* The memory is zero before any stream comes to it. */
    return error ? error : cudaDeviceSynchronize();
}

void softmax_finish(softmax *net)
{
    (void)cudaFree(net->weights);
    (void)cudaFree(net->errors);
    (void)cudaFree(net->scores);
    (void)cudaFree(net->totals);
    memset(net, 0, sizeof(*net));
}

cudaError_t softmax_read(const softmax *net, softmax_sums *out,
                         cudaStream_t stream)
{
    float totals[2];
    cudaError_t error = cudaMemcpyAsync(totals, net->totals, sizeof(totals),
                                        cudaMemcpyDeviceToHost, stream);
    if (!error)
        error = cudaMemsetAsync(net->totals, 0, sizeof(totals), stream);
    if (!error)
        error = cudaStreamSynchronize(stream);
    if (error)
        return error;
    *out = (softmax_sums){totals[0], totals[1]};
    return cudaSuccess;
}
