/*
 * syncedmem.h: memory on host and device, and which side is newer.
 *
 * A slab is the memory, shared by reference count; a syncedmem is a view of a
 * part of it, with its own head. Thread safety: one caller at a time per
 * syncedmem; references to slabs are atomic.
 */
#ifndef LEAT_DATA_SYNCEDMEM_H
#define LEAT_DATA_SYNCEDMEM_H

#include "base/memory.h"

#include <leat/allocator.h>
#include <leat/blob.h>
#include <leat/ext/device.h>

#include <stdatomic.h>
#include <stdbool.h>

typedef struct leat__slab {
    leat_device *device;
    size_t bytes;
    bool must_pin; /* an error, instead of pageable memory, if pinning fails */
    bool is_pageable;
    void *host;          /* NULL until first used */
    void *device_memory; /* NULL until first used; unified: host */
    atomic_int references;
    unsigned generation;      /* of the process that created it: base/fork.h */
    leat_allocator allocator; /* of the host side; zeroed: the device's */
    /* Workers read the fields above while the caller counts here. */
    char apart[LEAT__CACHE_LINE];
    atomic_int_fast64_t recalls; /* how often loans of it were recalled */
} leat__slab;

/* Creates a slab without memory on either side. Errors: LEAT_ENOMEM. */
int leat__slab_create(leat__slab **out, leat_device *device, size_t bytes);
/* Sets the allocator of the host side before it is allocated; NULL: the
 * device's. */
void leat__slab_set_allocator(leat__slab *slab,
                              const leat_allocator *allocator);
/* The allocator set, or NULL; borrowed. */
const leat_allocator *leat__slab_allocator(const leat__slab *slab);
/*
 * Ends every loan of the slab's memory so far: the borrowing blobs no longer
 * return it. One caller at a time.
 */
void leat__slab_recall(leat__slab *slab);
void leat__slab_ref(leat__slab *slab);
void leat__slab_unref(leat__slab *slab); /* takes NULL */
/*
 * Whether another process created the slab on a device with its own memory,
 * which cannot be used in this process.
 */
bool leat__slab_is_foreign(const leat__slab *slab);
/*
 * Allocate the host side or the device side if it does not exist; zeroed. If
 * host memory cannot be pinned (LEAT_ENOMEM), pageable memory is used and
 * logged, unless must_pin.
 */
int leat__slab_ensure_host(leat__slab *slab);
int leat__slab_ensure_device(leat__slab *slab);

typedef struct leat__syncedmem {
    leat__slab *slab; /* shared; NULL: empty */
    size_t offset;
    size_t bytes;
    leat_head head;
} leat__syncedmem;

/* Drops the reference to the slab. */
void leat__syncedmem_clear(leat__syncedmem *mem);

/*
 * That side of the memory, copied first if necessary; NULL on error,
 * LEAT_ESTATE if the slab is foreign and its host side not accessible.
 */
void *leat__syncedmem_cpu(leat__syncedmem *mem, bool will_write);
void *leat__syncedmem_gpu(leat__syncedmem *mem, bool will_write);

/*
 * That side, to be overwritten entirely: nothing is copied to it, and it
 * becomes the newest. Errors: LEAT_ENOMEM, LEAT_EDEVICE.
 */
int leat__syncedmem_overwrite(leat__syncedmem *mem, leat_head side, void **out);

/* Enqueues the copy from host to device; the head becomes SYNCED. */
int leat__syncedmem_push(leat__syncedmem *mem, leat_stream stream);

#endif
