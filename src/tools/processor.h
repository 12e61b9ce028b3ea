/* processor.h: the cores that this process may use. */
#ifndef LEAT_TOOLS_PROCESSOR_H
#define LEAT_TOOLS_PROCESSOR_H

/* How many, from 1 to `most`: by affinity and the cgroup's quota. */
int processor_count(int most);

/* What the first one is called, such as "AMD EPYC"; static. */
const char *processor_name(void);

/* Seconds of processor time that this process took so far, on all cores. */
double processor_seconds(void);

#endif
