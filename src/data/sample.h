/* sample.h: internal functions of samples. */
#ifndef LEAT_DATA_SAMPLE_H
#define LEAT_DATA_SAMPLE_H

#include <leat/sample.h>

/*
 * Makes the sample self-contained: copies the key and fields that are elsewhere
 * into its buffer, after those already there. Errors: LEAT_ENOMEM; the sample
 * is then unchanged.
 */
int leat__sample_own(leat_sample *sample);

#endif
