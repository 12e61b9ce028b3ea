/*
 * allocation.c: the program's own malloc, which the libraries use too, counts
 * and calls glibc's.
 */
#include "tools/bench/allocation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define ALLOCATION_UNCOUNTED
#endif
#endif
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) ||                    \
    defined(__SANITIZE_THREAD__)
#define ALLOCATION_UNCOUNTED
#endif

#ifdef ALLOCATION_UNCOUNTED

int64_t allocation_count(void)
{
    return -1;
}

#else

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

int64_t allocation_count(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

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

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}

void free(void *memory)
{
    __libc_free(memory);
}

#endif
