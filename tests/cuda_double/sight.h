/* sight.h: what a kernel of the caller's sees of a batch of the fixture. */
#ifndef LEAT_TESTS_SIGHT_H
#define LEAT_TESTS_SIGHT_H

#include "cuda_double.h"

#include <leat.h>

/* Of a sample. */
typedef struct sight {
    float label;
    float pixel;
} sight;

/*
 * Launches a kernel that takes `us` modelled microseconds on the stream, and
 * notes the batch of `n` samples in the two tops once the stream comes to it.
 */
void sight_launch(leat_blob *const top[], int n, sight *out, double us,
                  cudaStream_t on);

/* How many of the samples, in sequence from the fixture's first, are not its.
 */
int sight_count_wrong(const sight *seen, int samples);

#endif
