/* memory.h: allocation, counted, with failures on demand for tests. */
#ifndef LEAT_BASE_MEMORY_H
#define LEAT_BASE_MEMORY_H

#include <leat/allocator.h>

#include <stdbool.h>

/* Alignment of batches and buffers: a cache line, and an AVX-512 vector. */
#define LEAT__ALIGNMENT 64

/* Cache line in bytes: the unit in which cores exchange memory. */
#define LEAT__CACHE_LINE 64

/*
 * Each returns NULL and sets the thread's error line when memory is short, and
 * counts as one allocation. Size 0 returns a valid pointer.
 */
void *leat__alloc(size_t bytes);
void *leat__alloc_zero(size_t n, size_t size); /* n x size, overflow-checked */
void *leat__alloc_aligned(size_t bytes);       /* to LEAT__ALIGNMENT */
void *leat__alloc_aligned_zero(size_t bytes);
void *leat__realloc(void *memory, size_t bytes);
char *leat__strdup(const char *text);

/*
 * Zeroed pages from the system, huge ones if available; counts as an
 * allocation. Freed by leat__free_pages with the same size.
 */
void *leat__alloc_pages(size_t bytes);
void leat__free_pages(void *memory, size_t bytes);

/* Pages of another size with the contents of those of `before` bytes, which
 * they replace; NULL: there are none yet. NULL comes where there is no memory,
 * and those before stay. Counts as an allocation. */
void *leat__resize_pages(void *memory, size_t before, size_t bytes);

/*
 * Populates memory with pages now instead of at the first write; its contents
 * are kept. Errors: LEAT_ENOMEM.
 */
int leat__populate(void *memory, size_t bytes);

/*
 * The NUMA node of the page at `memory`; -1: unknown, or not populated yet.
 */
int leat__numa_node_of(const void *memory);

/* Frees memory of the functions above, except pages. Takes NULL. */
void leat__free(void *memory);

/*
 * Allocates from a caller's allocator, or, if it is NULL, by
 * leat__alloc_aligned, and large blocks as pages, so that none that is freed
 * stays with malloc; counts as one allocation. Freed to the same allocator,
 * with the same size and alignment.
 */
void *leat__alloc_from(const leat_allocator *from, size_t bytes,
                       size_t alignment);
void leat__free_to(const leat_allocator *to, void *memory, size_t bytes,
                   size_t alignment);

/* Whether a x b overflows; else the product in *out. */
static inline bool leat__multiply(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

/* Allocations of the process so far, failed ones included. */
int64_t leat__alloc_count(void);

/*
 * For tests: makes only the n-th allocation from now on, counted from 0, fail;
 * below 0: none. Returns how many allocations were left until the failure set
 * earlier; below 0: it has failed, or there was none.
 */
int64_t leat__alloc_fail_at(int64_t n);

/*
 * The same for the calling thread's allocations alone: those of other threads
 * are not counted and do not fail.
 */
int64_t leat__alloc_fail_own(int64_t n);

#endif
