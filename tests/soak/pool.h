/* pool.h: memory that a soak lends to leat, and wants back. */
#ifndef LEAT_TESTS_POOL_H
#define LEAT_TESTS_POOL_H

#include <leat/ext/device.h>

#include <stdatomic.h>

typedef struct pool {
    leat_device *device; /* whose pinned memory it gives; NULL: the system's */
    atomic_llong given;  /* pieces, so far */
    atomic_llong out;    /* not yet back */
    atomic_int is_wrong; /* one came back with other numbers */
} pool;

/* Hooks that take from the pool, which must last as long as they. */
leat_allocator pool_hooks(pool *self);

#endif
