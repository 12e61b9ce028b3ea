/*
 * allocation_count.c: a library to preload: malloc and its kin, of the program
 * and of all its libraries, are counted and passed on to glibc. `leat bench
 * layer` finds the count by its name, and reports steady_allocations.
 *
 *     LD_PRELOAD=build/libleat_allocation_count.so leat bench layer --json ...
 *
 * With another C library it counts nothing, and has no such name.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __GLIBC__

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static atomic_int_fast64_t calls;

static void count(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

/* Calls so far, of all threads. */
int64_t leat_allocation_count(void);

int64_t leat_allocation_count(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
void *realloc(void *memory, size_t size)
{
    count();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
void free(void *memory)
{
    __libc_free(memory);
}

#endif
