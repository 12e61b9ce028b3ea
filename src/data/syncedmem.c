/*
 * DESIGN
 *
 * No locks. A slab's references are atomic, and the last unref frees it on
 * whatever thread that is. Its memory is allocated by one thread before the
 * slab is shared, or by the single caller of a syncedmem; `recalls` has one
 * writer, the layer's caller, and any reader. In a forked child `generation`
 * keeps the parent's devices and allocators from being called.
 */
#include "data/syncedmem.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/device.h"

#include <stdbool.h>
#include <string.h>

/* Alignment requested from a caller's allocator; devices use the same. */
#define PAGE_BYTES 4096

int leat__slab_create(leat__slab **out, leat_device *device, size_t bytes)
{
    int status = leat__fork_watch();
    if (status)
        return status;
    leat__slab *slab = leat__alloc_zero(1, sizeof(*slab));
    if (!slab)
        return LEAT_ENOMEM;
    slab->generation = leat__fork_generation();
    slab->device = device;
    slab->bytes = bytes;
    atomic_init(&slab->references, 1);
    *out = slab;
    return LEAT_OK;
}

void leat__slab_set_allocator(leat__slab *slab, const leat_allocator *allocator)
{
    static const leat_allocator none = {0};
    slab->allocator = allocator ? *allocator : none;
}

const leat_allocator *leat__slab_allocator(const leat__slab *slab)
{
    return slab->allocator.alloc ? &slab->allocator : NULL;
}

void leat__slab_recall(leat__slab *slab)
{
    leat__counter_add_exclusive(&slab->recalls, 1);
}

void leat__slab_ref(leat__slab *slab)
{
    atomic_fetch_add_explicit(&slab->references, 1, memory_order_relaxed);
}

static bool is_inherited(const leat__slab *slab)
{
    return slab->generation != leat__fork_generation();
}

bool leat__slab_is_foreign(const leat__slab *slab)
{
    return is_inherited(slab) && !slab->device->ops->unified;
}

/*
 * In a forked child only leat's own pages are freed: a device or a caller's
 * allocator may hold locks of threads that do not run there.
 */
static void free_inherited(leat__slab *slab)
{
    bool is_of_cpu = slab->device->ops == &leat__cpu_device_ops;
    if (slab->is_pageable || (is_of_cpu && !slab->allocator.alloc))
        leat__free_pages(slab->host, slab->bytes);
    leat__free(slab);
}

void leat__slab_unref(leat__slab *slab)
{
    if (!slab || atomic_fetch_sub(&slab->references, 1) > 1)
        return;
    if (is_inherited(slab)) {
        free_inherited(slab);
        return;
    }
    leat_device *device = slab->device;
    if (slab->device_memory && !device->ops->unified)
        device->ops->free(device, slab->device_memory, slab->bytes);
    if (slab->is_pageable)
        leat__free_pages(slab->host, slab->bytes);
    else if (slab->allocator.alloc)
        leat__free_to(&slab->allocator, slab->host, slab->bytes, PAGE_BYTES);
    else if (slab->host)
        device->ops->host_free(device, slab->host, slab->bytes);
    leat__free(slab);
}

static int make_pageable(leat__slab *slab)
{
    leat__log(LEAT_LOG_WARNING, "%s; copies will be slower", leat_last_error());
    slab->host = leat__alloc_pages(slab->bytes);
    slab->is_pageable = slab->host != NULL;
    return slab->host ? LEAT_OK : LEAT_ENOMEM;
}

static int take_host(leat__slab *slab)
{
    slab->host = leat__alloc_from(&slab->allocator, slab->bytes, PAGE_BYTES);
    if (!slab->host)
        return LEAT_ENOMEM;
    memset(slab->host, 0, slab->bytes);
    return LEAT_OK;
}

int leat__slab_ensure_host(leat__slab *slab)
{
    if (slab->host)
        return LEAT_OK;
    bool unified = slab->device->ops->unified;
    int status = slab->allocator.alloc
                     ? take_host(slab)
                     : slab->device->ops->host_alloc(slab->device, slab->bytes,
                                                     &slab->host);
    if (status == LEAT_ENOMEM && !slab->allocator.alloc && !unified &&
        !slab->must_pin)
        return make_pageable(slab);
    if (!status && unified)
        slab->device_memory = slab->host;
    return status;
}

int leat__slab_ensure_device(leat__slab *slab)
{
    if (slab->device_memory)
        return LEAT_OK;
    if (slab->device->ops->unified)
        return leat__slab_ensure_host(slab);
    return slab->device->ops->alloc(slab->device, slab->bytes,
                                    &slab->device_memory);
}

void leat__syncedmem_clear(leat__syncedmem *mem)
{
    leat__slab_unref(mem->slab);
    *mem = (leat__syncedmem){0};
}

static int refuse_foreign(const leat__slab *slab)
{
    return leat_error(LEAT_ESTATE,
                      "this blob's memory on %s belongs to another process; "
                      "make the blob after fork()",
                      slab->device->name);
}

/* A child may lack pinned pages, but has pageable ones. */
static bool is_host_accessible(const leat__syncedmem *mem)
{
    const leat__slab *slab = mem->slab;
    return !leat__slab_is_foreign(slab) ||
           (slab->is_pageable && mem->head != LEAT_HEAD_AT_GPU);
}

/*
 * Copies between the sides and waits, on a stream of its own: waiting for the
 * default stream would wait for the whole device.
 */
static int copy_sides(leat__syncedmem *mem, leat_copy_direction direction)
{
    leat__slab *slab = mem->slab;
    leat_device *device = slab->device;
    char *host = (char *)slab->host + mem->offset;
    char *memory = (char *)slab->device_memory + mem->offset;
    leat_stream stream;
    int status = device->ops->stream_create(device, &stream);
    if (status)
        return status;
    if (direction == LEAT_COPY_TO_DEVICE)
        status = device->ops->copy(device, memory, host, mem->bytes, direction,
                                   stream);
    else
        status = device->ops->copy(device, host, memory, mem->bytes, direction,
                                   stream);
    int waited = device->ops->stream_synchronize(device, stream);
    device->ops->stream_destroy(device, stream);
    return status ? status : waited;
}

void *leat__syncedmem_cpu(leat__syncedmem *mem, bool will_write)
{
    leat__slab *slab = mem->slab;
    if (!is_host_accessible(mem)) {
        (void)refuse_foreign(slab);
        return NULL;
    }
    if (leat__slab_ensure_host(slab))
        return NULL;
    if (mem->head == LEAT_HEAD_AT_GPU) {
        if (!slab->device->ops->unified && copy_sides(mem, LEAT_COPY_TO_HOST))
            return NULL;
        mem->head = LEAT_SYNCED;
    }
    if (will_write || mem->head == LEAT_UNINITIALIZED)
        mem->head = LEAT_HEAD_AT_CPU;
    return (char *)slab->host + mem->offset;
}

void *leat__syncedmem_gpu(leat__syncedmem *mem, bool will_write)
{
    leat__slab *slab = mem->slab;
    if (leat__slab_is_foreign(slab)) {
        (void)refuse_foreign(slab);
        return NULL;
    }
    if (leat__slab_ensure_device(slab))
        return NULL;
    if (mem->head == LEAT_HEAD_AT_CPU) {
        if (!slab->device->ops->unified && copy_sides(mem, LEAT_COPY_TO_DEVICE))
            return NULL;
        mem->head = LEAT_SYNCED;
    }
    if (will_write || mem->head == LEAT_UNINITIALIZED)
        mem->head = LEAT_HEAD_AT_GPU;
    return (char *)slab->device_memory + mem->offset;
}

int leat__syncedmem_overwrite(leat__syncedmem *mem, leat_head side, void **out)
{
    leat__slab *slab = mem->slab;
    bool is_host = side == LEAT_HEAD_AT_CPU;
    if (leat__slab_is_foreign(slab))
        return refuse_foreign(slab);
    int status =
        is_host ? leat__slab_ensure_host(slab) : leat__slab_ensure_device(slab);
    if (status)
        return status;
    mem->head = side;
    *out = (char *)(is_host ? slab->host : slab->device_memory) + mem->offset;
    return LEAT_OK;
}

int leat__syncedmem_push(leat__syncedmem *mem, leat_stream stream)
{
    if (mem->head != LEAT_HEAD_AT_CPU)
        return leat_error(LEAT_ESTATE,
                          "the newest contents are not on the host");
    leat__slab *slab = mem->slab;
    if (leat__slab_is_foreign(slab))
        return refuse_foreign(slab);
    int status = leat__slab_ensure_device(slab);
    if (status)
        return status;
    if (!slab->device->ops->unified)
        status = slab->device->ops->copy(
            slab->device, (char *)slab->device_memory + mem->offset,
            (char *)slab->host + mem->offset, mem->bytes, LEAT_COPY_TO_DEVICE,
            stream);
    if (status)
        return status;
    mem->head = LEAT_SYNCED;
    return LEAT_OK;
}
