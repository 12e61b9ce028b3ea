/* memory.h: allocation that can be counted and made to fail. */
#ifndef LEAT_BASE_MEMORY_H
#define LEAT_BASE_MEMORY_H

#include <leat/allocator.h>

#include <stdbool.h>

/* Where slots and buffers begin: a cache line, and a row of an AVX-512 store.
 */
#define LEAT__ALIGNMENT 64

/* What processors take memory from each other by, in bytes. */
#define LEAT__CACHE_LINE 64

/*
 * Each returns NULL when memory is short, with the thread's error line set, and
 * counts as one allocation. A size of 0 gives a valid pointer.
 */
void *leat__alloc(size_t bytes);
void *leat__alloc_zero(size_t n, size_t size); /* n x size, overflow-checked */
void *leat__alloc_aligned(size_t bytes);       /* to LEAT__ALIGNMENT */
void *leat__alloc_aligned_zero(size_t bytes);
void *leat__realloc(void *memory, size_t bytes);
char *leat__strdup(const char *text);

/*
 * Zeroed pages straight from the system, huge ones where it has them; counts as
 * an allocation, freed by leat__free_pages with the same size.
 */
void *leat__alloc_pages(size_t bytes);
void leat__free_pages(void *memory, size_t bytes);

/*
 * Has the system back memory with pages now instead of at the first write; what
 * it holds stays. Errors: LEAT_ENOMEM, there are none left.
 */
int leat__populate(void *memory, size_t bytes);

/*
 * The NUMA node of the page at `memory`; -1 where the system does not tell, or
 * nothing lies there yet.
 */
int leat__numa_node_of(const void *memory);

/* Frees what any of the others gave. Takes NULL. */
void leat__free(void *memory);

/*
 * Memory of a caller's allocator, or with NULL, as leat__alloc_aligned gives
 * it; counts as one allocation. Freed to where it came from, with the same
 * numbers.
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
 * For tests: allocation number `n` from now on, counted from 0, fails; only
 * that one. Below 0: none. Returns how many are still to come before the one
 * set earlier; below 0: it has failed, or there was none.
 */
int64_t leat__alloc_fail_at(int64_t n);

#endif
