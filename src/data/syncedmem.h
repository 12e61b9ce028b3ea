/*
 * syncedmem.h: memory on host and device, and which side is the newer one.
 *
 * A slab is the memory itself, shared by reference count; a syncedmem is one
 * owner's view of a part of it, with a head of its own. Thread safety: one
 * caller at a time a syncedmem; slabs are counted atomically.
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
    bool must_pin; /* no pageable host memory where the device cannot pin it */
    bool is_pageable;
    void *host;          /* NULL until first used */
    void *device_memory; /* NULL until first used; unified: host */
    atomic_int owners;
    unsigned generation;      /* of the process that made it: base/fork.h */
    leat_allocator allocator; /* of the host side; zeroed: the device's own */
    /* Workers read what is above while the caller counts here. */
    char apart[LEAT__CACHE_LINE];
    atomic_int_fast64_t
        recalls; /* how often what was lent of it was recalled */
} leat__slab;

/* A slab of which neither side exists yet. Errors: LEAT_ENOMEM. */
int leat__slab_create(leat__slab **out, leat_device *device, size_t bytes);
/* The host side, not yet made, is to come from there; NULL: the device's. */
void leat__slab_set_allocator(leat__slab *slab,
                              const leat_allocator *allocator);
/* What was said so, or NULL; borrowed. */
const leat_allocator *leat__slab_allocator(const leat__slab *slab);
/*
 * Ends every loan of the slab's memory so far: the blobs that have it refuse to
 * give it out. One caller at a time.
 */
void leat__slab_recall(leat__slab *slab);
void leat__slab_ref(leat__slab *slab);
void leat__slab_unref(leat__slab *slab); /* takes NULL */
/*
 * Whether another process made the slab, on a device with memory of its own:
 * here that device cannot be asked for anything.
 */
bool leat__slab_is_foreign(const leat__slab *slab);
/*
 * Makes the host side, or the device's, if it is not there; zeroed. Where host
 * memory cannot be pinned (LEAT_ENOMEM) it is pageable, which the log says, but
 * for a slab that must be.
 */
int leat__slab_ensure_host(leat__slab *slab);
int leat__slab_ensure_device(leat__slab *slab);

typedef struct leat__syncedmem {
    leat__slab *slab; /* shared; NULL: empty */
    size_t offset;
    size_t bytes;
    leat_head head;
} leat__syncedmem;

/* Lets go of the slab. */
void leat__syncedmem_clear(leat__syncedmem *mem);

/*
 * The side wanted, after the copy that it needs; NULL on error, which is
 * LEAT_ESTATE where the slab is foreign and the host side not at hand.
 */
void *leat__syncedmem_cpu(leat__syncedmem *mem, bool will_write);
void *leat__syncedmem_gpu(leat__syncedmem *mem, bool will_write);

/*
 * The side wanted, to be written whole: nothing is copied to it, and it is the
 * newest. Errors: LEAT_ENOMEM, LEAT_EDEVICE.
 */
int leat__syncedmem_overwrite(leat__syncedmem *mem, leat_head side, void **out);

/* Enqueues host to device; the head becomes SYNCED. */
int leat__syncedmem_push(leat__syncedmem *mem, leat_stream stream);

#endif
