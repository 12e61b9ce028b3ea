/* memory_cuda.h: pinned memory of the host, and memory of the device. */
#ifndef LEAT_CUDA_MEMORY_CUDA_H
#define LEAT_CUDA_MEMORY_CUDA_H

#include "cuda_check.h"

#include <stdbool.h>

/* NUMA nodes that a mask given to mbind can name. */
#define LEAT__CUDA_NODES_MAX 1024

/* Operations of the device table: the memory is cleared. */
int leat__cuda_memory_host_alloc(leat_device *device, size_t bytes, void **out);
int leat__cuda_memory_host_alloc_on(leat_device *device, int node, size_t bytes,
                                    void **out);
void leat__cuda_memory_host_free(leat_device *device, void *memory,
                                 size_t bytes);
int leat__cuda_memory_alloc(leat_device *device, size_t bytes, void **out);
void leat__cuda_memory_free(leat_device *device, void *memory, size_t bytes);

/*
 * Pins a page by registration, which a driver may not support, and sets
 * cuda->registers. Called on a visit to the device.
 */
cudaError_t leat__cuda_memory_try_pinning(leat__cuda_device *cuda);

/* Errors of a machine that does not allow memory to be pinned. */
bool leat__cuda_memory_is_refusal(cudaError_t error);

#endif
