/* caller.h: the work of a caller between two batches. */
#ifndef LEAT_TOOLS_BENCH_CALLER_H
#define LEAT_TOOLS_BENCH_CALLER_H

/* Keeps one core busy, as a net on the CPU does. */
void caller_compute(double milliseconds);

/* Leaves the cores alone, as a net on a GPU does. */
void caller_sleep(double milliseconds);

#endif
