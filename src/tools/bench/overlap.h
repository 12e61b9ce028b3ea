/* overlap.h: how much of a layer's deliveries a caller's kernels hide. */
#ifndef LEAT_TOOLS_BENCH_OVERLAP_H
#define LEAT_TOOLS_BENCH_OVERLAP_H

#include "tools/delivery/layer_source.h"

/* Seconds of the device for each batch, by its own clock. */
struct overlap {
    int batches; /* that each figure is the mean of; 0: not measured */
    double copies;
    double kernels;
    double together;
    double share; /* of the shorter of the two that was hidden: 0 to 1 */
};

/*
 * Measures it on the source's stream, kernels `seconds` long, or, with 0, as
 * long as the delivery of a batch takes. Errors end the program, also where the
 * device has no such kernel or no timers.
 */
void overlap_measure(struct overlap *out, struct layer_source *source,
                     double seconds);

#endif
