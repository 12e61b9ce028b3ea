/* consumer.h: what a caller does between two batches. */
#ifndef LEAT_TOOLS_CONSUMER_H
#define LEAT_TOOLS_CONSUMER_H

/* Keeps one core busy, as a net on the CPU does. */
void consumer_compute(double milliseconds);

/* Leaves the cores alone, as a net on a GPU does. */
void consumer_sleep(double milliseconds);

#endif
