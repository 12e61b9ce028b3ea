#include "base/memory.h"
#include "base/cancel.h"
#include "base/error.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int_fast64_t allocations;
/* Number of the allocation that fails; below 0: none. */
static atomic_int_fast64_t fault = -1;
/* Allocations of this thread before the one that fails; below 0: none. */
static _Thread_local int64_t own_fault = -1;

static bool is_faulty(void)
{
    int64_t number =
        atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return (own_fault >= 0 && own_fault-- == 0) ||
           number == atomic_load_explicit(&fault, memory_order_relaxed);
}

int64_t leat__alloc_count(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

int64_t leat__alloc_fail_at(int64_t n)
{
    int64_t now = atomic_load(&allocations);
    int64_t before = atomic_exchange(&fault, n < 0 ? -1 : now + n);
    return before < now ? -1 : before - now;
}

int64_t leat__alloc_fail_own(int64_t n)
{
    int64_t before = own_fault;
    own_fault = n;
    return before;
}

static void *checked(void *memory, size_t bytes)
{
    if (!memory)
        leat__error_memory(bytes);
    return memory;
}

void *leat__alloc(size_t bytes)
{
    return checked(is_faulty() ? NULL : malloc(bytes ? bytes : 1), bytes);
}

void *leat__alloc_zero(size_t n, size_t size)
{
    size_t bytes;
    if (leat__multiply(n, size, &bytes))
        return checked(NULL, SIZE_MAX);
    return checked(is_faulty() ? NULL : calloc(1, bytes ? bytes : 1), bytes);
}

void *leat__alloc_aligned(size_t bytes)
{
    if (bytes > SIZE_MAX - LEAT__ALIGNMENT)
        return checked(NULL, bytes);
    size_t whole = (bytes + LEAT__ALIGNMENT) & ~(size_t)(LEAT__ALIGNMENT - 1);
    void *memory = is_faulty() ? NULL : aligned_alloc(LEAT__ALIGNMENT, whole);
    return checked(memory, bytes);
}

void *leat__alloc_aligned_zero(size_t bytes)
{
    void *memory = leat__alloc_aligned(bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void *leat__realloc(void *memory, size_t bytes)
{
    void *moved = is_faulty() ? NULL : realloc(memory, bytes ? bytes : 1);
    return checked(moved, bytes);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define SMALLEST_PAGE 4096

/* Blocks that are pages of their own. malloc keeps what is freed: of each
 * thread's arena up to 64 MiB, once blocks of up to 32 MiB have been freed. */
#define PAGES_FROM ((size_t)1 << 20)

/* Smaller blocks waste more by huge pages than they gain. */
#define HUGE_FROM ((size_t)4 << 20)

void *leat__alloc_pages(size_t bytes)
{
    if (is_faulty())
        return checked(NULL, bytes);
    void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return checked(NULL, bytes);
    /* A hint: without huge pages the memory is only slower. */
    if (bytes >= HUGE_FROM)
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

int leat__numa_node_of(const void *memory)
{
    int node = -1;
    long code = syscall(SYS_get_mempolicy, &node, NULL, 0, memory,
                        MPOL_F_NODE | MPOL_F_ADDR);
    return code == 0 ? node : -1;
}

/* For kernels without MADV_POPULATE_WRITE. */
static void write_to_pages(volatile unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += SMALLEST_PAGE)
        memory[i] = memory[i];
    memory[bytes - 1] = memory[bytes - 1];
}

int leat__populate(void *memory, size_t bytes)
{
    if (!bytes)
        return LEAT_OK;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t before = (uintptr_t)memory % page;
    size_t whole = (before + bytes + page - 1) / page * page;
    if (madvise((char *)memory - before, whole, MADV_POPULATE_WRITE) == 0)
        return LEAT_OK;
    if (errno == ENOMEM || errno == EFAULT || errno == EHWPOISON)
        return leat_error(
            LEAT_ENOMEM, "out of memory: %zu bytes cannot be populated", bytes);
    write_to_pages(memory, bytes);
    return LEAT_OK;
}

void leat__free_pages(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes ? bytes : 1);
}

void *leat__resize_pages(void *memory, size_t before, size_t bytes)
{
    if (!memory)
        return leat__alloc_pages(bytes);
    if (is_faulty())
        return checked(NULL, bytes);
    void *moved =
        mremap(memory, before ? before : 1, bytes ? bytes : 1, MREMAP_MAYMOVE);
    return checked(moved == MAP_FAILED ? NULL : moved, bytes);
}

char *leat__strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = leat__alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void leat__free(void *memory)
{
    free(memory);
}

/* A caller's hooks may be cancellation points; leat's calls are none. */
static void *call_alloc(const leat_allocator *from, size_t bytes,
                        size_t alignment)
{
    int cancel = leat__cancel_disable();
    void *memory = from->alloc(from->user, bytes, alignment);
    leat__cancel_restore(cancel);
    return memory;
}

static void call_free(const leat_allocator *to, void *memory, size_t bytes,
                      size_t alignment)
{
    int cancel = leat__cancel_disable();
    to->free(to->user, memory, bytes, alignment);
    leat__cancel_restore(cancel);
}

void *leat__alloc_from(const leat_allocator *from, size_t bytes,
                       size_t alignment)
{
    if (!from)
        return bytes < PAGES_FROM ? leat__alloc_aligned(bytes)
                                  : leat__alloc_pages(bytes);
    size_t asked = bytes ? bytes : 1;
    void *memory = is_faulty() ? NULL : call_alloc(from, asked, alignment);
    if (!memory || (uintptr_t)memory % alignment == 0)
        return checked(memory, bytes);
    call_free(from, memory, asked, alignment);
    leat_error(LEAT_ENOMEM,
               "an allocator's memory at %p is not aligned to %zu bytes",
               memory, alignment);
    return NULL;
}

void leat__free_to(const leat_allocator *to, void *memory, size_t bytes,
                   size_t alignment)
{
    if (!to && bytes < PAGES_FROM)
        leat__free(memory);
    else if (!to)
        leat__free_pages(memory, bytes);
    else if (memory)
        call_free(to, memory, bytes ? bytes : 1, alignment);
}
