/* host.h: the host's NUMA nodes, processors and memory, as sysfs and procfs
   describe them. */
#ifndef LEAT_TOOLS_BENCH_HOST_H
#define LEAT_TOOLS_BENCH_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What follows reads the files under `root`, which is "" but in tests. */

/* The NUMA nodes that have memory, in ascending order, at most `most`. Returns
   how many; 0: unknown. */
int host_nodes(const char *root, int node[], int most);

/*
 * Lets the calling thread run on the node's processors alone, out of those that
 * it might use at the first call. Returns how many these are; 0: none, or
 * unknown, and the thread stays where it was.
 */
int host_run_on(const char *root, int node);

/*
 * Bytes of memory that the process can take: what the system has available, and
 * what the control groups (version 2) leave. INT64_MAX: unknown.
 */
int64_t host_available(const char *root);

/* Has pages that are not populated yet come from that node alone. Returns
   whether the system does so; a node below 0 is no wish. */
bool host_place(void *memory, size_t bytes, int node);

#endif
