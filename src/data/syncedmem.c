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

int leat__fence_create(leat__fence **out, leat_device *device)
{
    leat__fence *fence = leat__alloc_zero(1, sizeof(*fence));
    if (!fence)
        return LEAT_ENOMEM;
    int status = device->ops->event_create(device, &fence->event);
    if (status) {
        leat__free(fence);
        return status;
    }
    fence->device = device;
    fence->generation = leat__fork_generation();
    atomic_init(&fence->references, 1);
    *out = fence;
    return LEAT_OK;
}

void leat__fence_ref(leat__fence *fence)
{
    if (fence)
        atomic_fetch_add_explicit(&fence->references, 1, memory_order_relaxed);
}

void leat__fence_unref(leat__fence *fence)
{
    if (!fence || atomic_fetch_sub(&fence->references, 1) > 1)
        return;
    if (fence->generation == leat__fork_generation())
        fence->device->ops->event_destroy(fence->device, fence->event);
    leat__free(fence);
}

leat__host_tally *leat__host_tally_create(void)
{
    leat__host_tally *tally = leat__alloc_zero(1, sizeof(*tally));
    if (tally)
        atomic_init(&tally->references, 1);
    return tally;
}

void leat__host_tally_unref(leat__host_tally *tally)
{
    if (tally && atomic_fetch_sub(&tally->references, 1) == 1)
        leat__free(tally);
}

/* The host side is there (1), or no more (-1). */
static void count_host(const leat__slab *slab, int sign)
{
    leat__host_tally *tally = slab->tally;
    if (!tally || !slab->host)
        return;
    atomic_fetch_add(slab->is_pageable ? &tally->pageable : &tally->pinned,
                     sign * (int64_t)slab->bytes);
}

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

void leat__slab_set_tally(leat__slab *slab, leat__host_tally *tally)
{
    if (tally)
        atomic_fetch_add(&tally->references, 1);
    slab->tally = tally;
}

void leat__slab_set_device_only(leat__slab *slab)
{
    slab->is_device_only = !slab->device->ops->unified;
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

void leat__slab_free_memory(leat__slab *slab)
{
    leat_device *device = slab->device;
    count_host(slab, -1);
    if (slab->device_memory && !device->ops->unified)
        device->ops->free(device, slab->device_memory, slab->bytes);
    if (slab->is_pageable)
        leat__free_pages(slab->host, slab->bytes);
    else if (slab->host && slab->allocator.alloc)
        leat__free_to(&slab->allocator, slab->host, slab->bytes, PAGE_BYTES);
    else if (slab->host)
        device->ops->host_free(device, slab->host, slab->bytes);
    slab->host = slab->device_memory = NULL;
}

void leat__slab_unref(leat__slab *slab)
{
    if (!slab || atomic_fetch_sub(&slab->references, 1) > 1)
        return;
    bool inherited = is_inherited(slab);
    if (inherited)
        count_host(slab, -1);
    else
        leat__slab_free_memory(slab);
    leat__host_tally_unref(slab->tally);
    if (inherited)
        free_inherited(slab);
    else
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

static int make_host(leat__slab *slab)
{
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

int leat__slab_ensure_host(leat__slab *slab)
{
    if (slab->host)
        return LEAT_OK;
    int status = make_host(slab);
    if (!status)
        count_host(slab, 1);
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
    leat__slab *slab = mem->slab, *mirror = mem->mirror;
    leat__fence *written = mem->written;
    /* Before they are freed: a child that is forked meanwhile would free them
     * once more. */
    *mem = (leat__syncedmem){0};
    leat__slab_unref(slab);
    leat__slab_unref(mirror);
    leat__fence_unref(written);
}

void leat__syncedmem_view(leat__syncedmem *mem, leat__slab *slab)
{
    leat__slab *mirror = mem->mirror;
    bool serves = mirror && slab->is_device_only &&
                  slab->device == mirror->device &&
                  slab->tally == mirror->tally;
    if (serves)
        mem->mirror = NULL;
    leat__slab_ref(slab);
    leat__syncedmem_clear(mem);
    mem->slab = slab;
    mem->mirror = serves ? mirror : NULL;
}

static int make_mirror(leat__syncedmem *mem)
{
    const leat__slab *slab = mem->slab;
    leat__slab *mirror;
    int status = leat__slab_create(&mirror, slab->device, mem->bytes);
    if (status)
        return status;
    mirror->must_pin = slab->must_pin;
    leat__slab_set_allocator(mirror, leat__slab_allocator(slab));
    leat__slab_set_tally(mirror, slab->tally);
    status = leat__slab_ensure_host(mirror);
    if (status) {
        leat__slab_unref(mirror);
        return status;
    }
    leat__slab *before = mem->mirror;
    mem->mirror = mirror; /* before the other is freed, as in clear */
    leat__slab_unref(before);
    return LEAT_OK;
}

static int ensure_host(leat__syncedmem *mem)
{
    if (!mem->slab->is_device_only)
        return leat__slab_ensure_host(mem->slab);
    return mem->mirror && mem->mirror->bytes >= mem->bytes ? LEAT_OK
                                                           : make_mirror(mem);
}

/* Where the host side is, once ensured. */
static char *host_side(const leat__syncedmem *mem)
{
    return mem->slab->is_device_only ? mem->mirror->host
                                     : (char *)mem->slab->host + mem->offset;
}

void leat__syncedmem_set_written(leat__syncedmem *mem, leat__fence *fence)
{
    leat__fence *before = mem->written;
    if (before == fence)
        return;
    leat__fence_ref(fence);
    mem->written = fence;
    leat__fence_unref(before);
}

int leat__syncedmem_await(const leat__syncedmem *mem, leat_stream stream)
{
    const leat__fence *fence = mem->written;
    return fence ? fence->device->ops->stream_wait(fence->device, stream,
                                                   fence->event)
                 : LEAT_OK;
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
    const leat__slab *host =
        mem->slab->is_device_only ? mem->mirror : mem->slab;
    return !leat__slab_is_foreign(mem->slab) ||
           (host && host->is_pageable && mem->head != LEAT_HEAD_AT_GPU);
}

/*
 * Copies between the sides and waits, on a stream of its own: waiting for the
 * default stream would wait for the whole device. The device's writes come
 * first.
 */
static int copy_sides(leat__syncedmem *mem, leat_copy_direction direction)
{
    leat__slab *slab = mem->slab;
    leat_device *device = slab->device;
    char *host = host_side(mem);
    char *memory = (char *)slab->device_memory + mem->offset;
    leat_stream stream;
    int status = device->ops->stream_create(device, &stream);
    if (status)
        return status;
    status = leat__syncedmem_await(mem, stream);
    if (!status && direction == LEAT_COPY_TO_DEVICE)
        status = device->ops->copy(device, memory, host, mem->bytes, direction,
                                   stream);
    else if (!status)
        status = device->ops->copy(device, host, memory, mem->bytes, direction,
                                   stream);
    int waited = leat__device_finish_stream(device, stream);
    device->ops->stream_destroy(device, stream);
    return status ? status : waited;
}

int leat__syncedmem_await_writes(const leat__syncedmem *mem)
{
    const leat__fence *fence = mem->written;
    if (!fence || leat__slab_is_foreign(mem->slab))
        return LEAT_OK;
    return fence->device->ops->event_synchronize(fence->device, fence->event);
}

void *leat__syncedmem_cpu(leat__syncedmem *mem, bool will_write)
{
    leat__slab *slab = mem->slab;
    if (!is_host_accessible(mem)) {
        (void)refuse_foreign(slab);
        return NULL;
    }
    if (ensure_host(mem))
        return NULL;
    if (mem->head == LEAT_HEAD_AT_GPU) {
        if (!slab->device->ops->unified && copy_sides(mem, LEAT_COPY_TO_HOST))
            return NULL;
        mem->head = LEAT_SYNCED;
    }
    /* The device may still read what the host is going to write. */
    if (will_write && leat__syncedmem_await_writes(mem))
        return NULL;
    if (will_write || mem->head == LEAT_UNINITIALIZED)
        mem->head = LEAT_HEAD_AT_CPU;
    return host_side(mem);
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
    int status = is_host ? ensure_host(mem) : leat__slab_ensure_device(slab);
    if (status)
        return status;
    mem->head = side;
    *out = is_host ? host_side(mem) : (char *)slab->device_memory + mem->offset;
    return LEAT_OK;
}

/* A capture would not survive being waited for. */
static int check_no_capture(const leat__slab *slab, leat_stream stream)
{
    leat_device *device = slab->device;
    if (!slab->is_device_only || !device->ops->stream_is_capturing ||
        !device->ops->stream_is_capturing(device, stream))
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "the stream is being captured into a graph; push a lent "
                      "top that the device computed outside the capture");
}

int leat__syncedmem_push(leat__syncedmem *mem, leat_stream stream)
{
    if (mem->head != LEAT_HEAD_AT_CPU)
        return leat_error(LEAT_ESTATE,
                          "the newest contents are not on the host");
    leat__slab *slab = mem->slab;
    if (leat__slab_is_foreign(slab))
        return refuse_foreign(slab);
    int status = check_no_capture(slab, stream);
    if (!status)
        status = leat__slab_ensure_device(slab);
    if (status)
        return status;
    atomic_store_explicit(&slab->is_pushed, true, memory_order_relaxed);
    if (!slab->device->ops->unified)
        status = slab->device->ops->copy(
            slab->device, (char *)slab->device_memory + mem->offset,
            host_side(mem), mem->bytes, LEAT_COPY_TO_DEVICE, stream);
    if (!status && slab->is_device_only)
        status = leat__device_finish_stream(slab->device, stream);
    if (status)
        return status;
    mem->head = LEAT_SYNCED;
    return LEAT_OK;
}
