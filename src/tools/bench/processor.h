/* processor.h: the processor, and what this process had of it. */
#ifndef LEAT_TOOLS_BENCH_PROCESSOR_H
#define LEAT_TOOLS_BENCH_PROCESSOR_H

/* What the first one is called, such as "AMD EPYC"; static. */
const char *processor_name(void);

/* Seconds of processor time that this process took so far, on all cores. */
double processor_seconds(void);

#endif
