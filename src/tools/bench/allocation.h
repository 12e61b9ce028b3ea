/* allocation.h: how often this process asked for memory. */
#ifndef LEAT_TOOLS_BENCH_ALLOCATION_H
#define LEAT_TOOLS_BENCH_ALLOCATION_H

#include <stdint.h>

/*
 * Calls of malloc and its kin so far, of all threads and libraries; -1 where
 * they cannot be counted, as under a sanitizer.
 */
int64_t allocation_count(void);

#endif
