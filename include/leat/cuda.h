/*
 * leat/cuda.h: data layers and blobs with CUDA streams.
 *
 * Needs no CUDA header: a cudaStream_t is a `struct CUstream_st *`, and 0 is
 * the default stream. A build without CUDA has no device "cuda:N". The
 * functions behave as those of leat/data_layer.h and leat/blob.h.
 *
 * CUDA graphs. Forward, release, restore and destroy stay outside a capture;
 * what reads the tops is captured once for each slot (leat_data_layer_slots),
 * as the tops of a slot keep their addresses until restore. Where shapes vary,
 * compare them too.
 *
 *     leat_cuda_forward(layer, top, 2, stream);
 *     int slot = leat_data_layer_batch(layer)->slot;
 *     if (!step[slot])
 *         capture(&step[slot], leat_blob_gpu_data(top[0]), stream);
 *     cudaGraphLaunch(step[slot], stream);
 *
 * leat works in the primary context of the GPU. A program that destroys it, as
 * cudaDeviceReset does, gets LEAT_EDEVICE from every later call that needs the
 * GPU, and must not do so while such a call runs; destroy frees what the host
 * has of a layer. Only a new process can use that GPU through leat again. That
 * needs a driver for CUDA 12.0 or newer: with older ones, what is called after
 * the program has used the GPU again is undefined.
 */
#ifndef LEAT_CUDA_H
#define LEAT_CUDA_H

#include <leat/data_layer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/**
 * Converts a stream for leat's functions. In a file that is compiled with
 * per-thread default streams (nvcc --default-stream per-thread, or
 * CUDA_API_PER_THREAD_DEFAULT_STREAM) 0 becomes cudaStreamPerThread, which it
 * means there. Thread safety: any thread.
 */
static inline leat_stream leat_cuda_stream(struct CUstream_st *stream)
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    return stream ? (leat_stream)stream : 2;
#else
    return (leat_stream)stream;
#endif
}

/**
 * leat_data_layer_forward, ready on `stream`. Thread safety: one caller a
 * layer.
 */
static inline int leat_cuda_forward(leat_data_layer *layer,
                                    leat_blob *const top[], int ntop,
                                    struct CUstream_st *stream)
{
    return leat_data_layer_forward(layer, top, ntop, leat_cuda_stream(stream));
}

/**
 * leat_data_layer_release after one stream. Thread safety: one caller a layer.
 */
static inline int leat_cuda_release(leat_data_layer *layer,
                                    struct CUstream_st *stream)
{
    leat_stream one = leat_cuda_stream(stream);
    return leat_data_layer_release(layer, &one, 1);
}

/** leat_blob_async_gpu_push on `stream`. Thread safety: one caller a blob. */
static inline int leat_cuda_push(leat_blob *blob, struct CUstream_st *stream)
{
    return leat_blob_async_gpu_push(blob, leat_cuda_stream(stream));
}

#ifdef __cplusplus
}
#endif
#endif
