/* parallel_for.h: one function on several threads at once. */
#ifndef LEAT_BASE_PARALLEL_FOR_H
#define LEAT_BASE_PARALLEL_FOR_H

#include <leat/status.h>

/*
 * Calls function(i, context) for i from 0 to n - 1, each on a thread of its own
 * of that name, and waits for all. Returns the first error by i, with its line.
 * Errors besides: LEAT_EIO, LEAT_ENOMEM where a thread cannot be started; those
 * that were are waited for.
 */
int leat__parallel_for(const char *name, int n,
                       int (*function)(int i, void *context), void *context);

/* The same with function(0, context) on the calling thread, whose signals are
 * not blocked: they interrupt its writes. */
int leat__parallel_for_helped(const char *name, int n,
                              int (*function)(int i, void *context),
                              void *context);

#endif
