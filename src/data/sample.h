/* sample.h: internal functions of samples. */
#ifndef LEAT_DATA_SAMPLE_H
#define LEAT_DATA_SAMPLE_H

#include <leat/sample.h>

/*
 * Makes the sample's own buffer at least `bytes` long; views into it move
 * along. Errors: LEAT_ENOMEM.
 */
int leat__sample_reserve(leat_sample *sample, size_t bytes);

#endif
