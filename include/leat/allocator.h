/* leat/allocator.h: memory of the caller's own for what takes much of it. */
#ifndef LEAT_ALLOCATOR_H
#define LEAT_ALLOCATOR_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Hooks that give and take memory. Both are called from any thread, several at
 * a time, and call nothing of leat. They and `user` must last as long as the
 * memory: for a data layer until it is destroyed and no blob shares its batches
 * any more. In a forked child `free` is not called for the parent's memory.
 */
typedef struct leat_allocator {
    size_t size; /* sizeof(leat_allocator) */
    /**
     * At least `bytes`, above 0, at a multiple of `alignment`, a power of 2.
     * Need not be zeroed. NULL: there is none, which is LEAT_ENOMEM; so is what
     * is not aligned, which goes back at once.
     */
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    /** Takes it back, with the numbers that it was asked for with. */
    void (*free)(void *user, void *memory, size_t bytes, size_t alignment);
    void *user; /* handed to both */
} leat_allocator;

#ifdef __cplusplus
}
#endif
#endif
