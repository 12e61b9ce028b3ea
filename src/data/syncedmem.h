/*
 * syncedmem.h: memory on host and device, and which side is newer.
 *
 * A slab is the memory, shared by reference count; a syncedmem is a view of a
 * part of it, with its own head. A fence is an event of the device, shared
 * likewise, so that a view knows what still writes its memory. Thread safety:
 * one caller at a time per syncedmem; references are atomic.
 */
#ifndef LEAT_DATA_SYNCEDMEM_H
#define LEAT_DATA_SYNCEDMEM_H

#include "base/memory.h"

#include <leat/allocator.h>
#include <leat/blob.h>
#include <leat/ext/device.h>

#include <stdatomic.h>
#include <stdbool.h>

/* An event whose latest record ends the device's writes to some memory. */
typedef struct leat__fence {
    leat_device *device;
    leat_event event;
    unsigned generation; /* of the process that created it: base/fork.h */
    atomic_int references;
} leat__fence;

/* Errors: LEAT_ENOMEM, LEAT_EDEVICE. */
int leat__fence_create(leat__fence **out, leat_device *device);
/* Both take NULL. */
void leat__fence_ref(leat__fence *fence);
void leat__fence_unref(leat__fence *fence);

/* Host memory that slabs have taken, where somebody counts it. */
typedef struct leat__host_tally {
    atomic_int references;
    atomic_int_fast64_t pinned;
    atomic_int_fast64_t pageable;
} leat__host_tally;

/* NULL: no memory. */
leat__host_tally *leat__host_tally_create(void);
void leat__host_tally_unref(leat__host_tally *tally); /* takes NULL */

typedef struct leat__slab {
    leat_device *device;
    size_t bytes;
    bool must_pin; /* an error, instead of pageable memory, if pinning fails */
    bool is_pageable;
    bool is_device_only; /* each view has a host side of its own */
    void *host;          /* NULL until first used */
    void *device_memory; /* NULL until first used; unified: host */
    atomic_int references;
    unsigned generation;      /* of the process that created it: base/fork.h */
    leat_allocator allocator; /* of the host side; zeroed: the device's */
    leat__host_tally *tally;  /* shared; NULL: none */
    /* Workers read the fields above while the caller counts here. */
    char apart[LEAT__CACHE_LINE];
    atomic_int_fast64_t recalls; /* how often loans of it were recalled */
    atomic_bool is_pushed;       /* streams may still read the host side */
} leat__slab;

/* Creates a slab without memory on either side. Errors: LEAT_ENOMEM. */
int leat__slab_create(leat__slab **out, leat_device *device, size_t bytes);
/* Sets the allocator of the host side before it is allocated; NULL: the
 * device's. */
void leat__slab_set_allocator(leat__slab *slab,
                              const leat_allocator *allocator);
/* Has the host side counted from its allocation to its end; NULL: nowhere. */
void leat__slab_set_tally(leat__slab *slab, leat__host_tally *tally);

/*
 * Each view has a host side of its own, so that one of many contents that the
 * device makes takes host memory for one. Of a slab that nobody has viewed; a
 * device that computes in host memory has one side.
 */
void leat__slab_set_device_only(leat__slab *slab);

/* The allocator set, or NULL; borrowed. */
const leat_allocator *leat__slab_allocator(const leat__slab *slab);
/*
 * Ends every loan of the slab's memory so far: the borrowing blobs no longer
 * return it. One caller at a time.
 */
void leat__slab_recall(leat__slab *slab);
void leat__slab_ref(leat__slab *slab);
void leat__slab_unref(leat__slab *slab); /* takes NULL */
/* Frees both sides of a slab of which every loan was recalled. Others may share
 * the slab, but do not use its memory any more. */
void leat__slab_free_memory(leat__slab *slab);
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
    leat__slab *slab;   /* shared; NULL: empty */
    leat__slab *mirror; /* its own: the host side of a view of a slab that is
                           device-only; NULL until first used */
    size_t offset;
    size_t bytes;
    leat_head head;
    leat__fence *written; /* shared; NULL: nothing writes the device's side */
} leat__syncedmem;

/* Drops the references to slab and fence, and a host side of its own. */
void leat__syncedmem_clear(leat__syncedmem *mem);

/*
 * Makes it a view of `slab` (shared) alone: all else is zero, but for a host
 * side of its own that serves this slab as well.
 */
void leat__syncedmem_view(leat__syncedmem *mem, leat__slab *slab);

/* Says when the device's writes end: at the fence's latest record; NULL: now.
 */
void leat__syncedmem_set_written(leat__syncedmem *mem, leat__fence *fence);

/* What is enqueued on `stream` from now on comes after the device's writes.
   Errors: LEAT_EDEVICE. */
int leat__syncedmem_await(const leat__syncedmem *mem, leat_stream stream);

/* Waits until the device's writes are over; a forked child's are its parent's.
   Errors: LEAT_EDEVICE. */
int leat__syncedmem_await_writes(const leat__syncedmem *mem);

/*
 * That side of the memory, copied first if necessary, after the device's writes
 * to it; NULL on error, LEAT_ESTATE if the slab is foreign and its host side
 * not accessible.
 */
void *leat__syncedmem_cpu(leat__syncedmem *mem, bool will_write);
void *leat__syncedmem_gpu(leat__syncedmem *mem, bool will_write);

/*
 * That side, to be overwritten entirely: nothing is copied to it, and it
 * becomes the newest. Errors: LEAT_ENOMEM, LEAT_EDEVICE.
 */
int leat__syncedmem_overwrite(leat__syncedmem *mem, leat_head side, void **out);

/*
 * Enqueues the copy from host to device; the head becomes SYNCED. From a host
 * side of its own, which the next contents use again, the copy is over then.
 */
int leat__syncedmem_push(leat__syncedmem *mem, leat_stream stream);

#endif
