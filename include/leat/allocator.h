/* leat/allocator.h: the caller's own allocator for large memory. */
#ifndef LEAT_ALLOCATOR_H
#define LEAT_ALLOCATOR_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocation hooks. Both are called from any thread, also concurrently, and
 * must not call leat. No thread is cancelled in them (pthread_cancel). They and
 * `user` must outlive the memory: for a data layer, until it is destroyed and
 * no blob shares its batches. In a forked child destroy and close do not call
 * `free` for the parent's memory.
 */
typedef struct leat_allocator {
    size_t size; /* sizeof(leat_allocator) */
    /**
     * Returns at least `bytes` (above 0), aligned to `alignment`, a power of 2;
     * need not be zeroed. NULL means LEAT_ENOMEM. Misaligned memory is freed at
     * once and is LEAT_ENOMEM too.
     */
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    /** Frees it; `bytes` and `alignment` are those of its allocation. */
    void (*free)(void *user, void *memory, size_t bytes, size_t alignment);
    void *user; /* passed to both */
} leat_allocator;

#ifdef __cplusplus
}
#endif
#endif
