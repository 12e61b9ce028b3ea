/*
 * bandwidth.h: how fast the cores write to memory, to compare with their
 * output.
 */
#ifndef LEAT_TOOLS_BENCH_BANDWIDTH_H
#define LEAT_TOOLS_BENCH_BANDWIDTH_H

#include <leat/status.h>

/* Bytes in a second, of all cores together, outside of their caches. */
struct bandwidth {
    double store;  /* memset */
    double memcpy; /* bytes copied: each is read and written */
};

/* Takes a second. Errors: LEAT_ENOMEM, LEAT_EIO. */
int bandwidth_measure(struct bandwidth *out);

#endif
