/*
 * What the double's machine says to the tool of its system, as these say:
 * LEAT_DOUBLE_ROOT=FOLDER, below which sysfs is, and then pages lie on the NUMA
 * node that they are bound to, but on node 0 if that is LEAT_DOUBLE_ELSEWHERE;
 * LEAT_DOUBLE_CLOCK=1, the time is the model's.
 */
#include "cuda_double/cuda_double_state.h"

#include <linux/mempolicy.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    char below[512];
    const char *root = getenv("LEAT_DOUBLE_ROOT");
    if (!root || strncmp(path, "/sys/", 5) != 0)
        return __real_fopen(path, mode);
    snprintf(below, sizeof(below), "%s%s", root, path);
    return __real_fopen(below, mode);
}

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC || !getenv("LEAT_DOUBLE_CLOCK"))
        return __real_clock_gettime(clock, out);
    *out = (struct timespec){.tv_sec = double_host_time / 1000000000,
                             .tv_nsec = double_host_time % 1000000000};
    return 0;
}

/* Where pages were bound to last; only the tool's main thread does so. */
static struct bound {
    uintptr_t begin;
    uintptr_t end;
    int node;
} bound[1024];
static int nbound;

static long bind_pages(uintptr_t begin, uintptr_t bytes,
                       const unsigned long *mask)
{
    const char *elsewhere = getenv("LEAT_DOUBLE_ELSEWHERE");
    int node = __builtin_ctzl(mask[0]);
    if (elsewhere && atoi(elsewhere) == node)
        node = 0;
    if (nbound == (int)(sizeof(bound) / sizeof(bound[0])))
        abort();
    bound[nbound++] = (struct bound){begin, begin + bytes, node};
    return 0;
}

static long find_node(int *node, uintptr_t address)
{
    *node = 0;
    for (int i = 0; i < nbound; i++)
        if (address >= bound[i].begin && address < bound[i].end)
            *node = bound[i].node;
    return 0;
}

/* Of what is not the double's, no call has more arguments than these. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6] = {0};
    int n = number == SYS_mbind ? 6 : number == SYS_get_mempolicy ? 5 : 4;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < n; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (getenv("LEAT_DOUBLE_ROOT") && number == SYS_mbind)
        return bind_pages((uintptr_t)a[0], (uintptr_t)a[1],
                          (const unsigned long *)a[3]);
    if (getenv("LEAT_DOUBLE_ROOT") && number == SYS_get_mempolicy)
        return find_node((int *)a[0], (uintptr_t)a[3]);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
