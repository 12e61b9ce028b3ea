/* sample.h: what the library does to samples besides leat/sample.h. */
#ifndef LEAT_DATA_SAMPLE_H
#define LEAT_DATA_SAMPLE_H

#include <leat/sample.h>

/*
 * Copies the key and fields that lie elsewhere into the sample's buffer, beside
 * those that are there, so that it needs nothing else. Errors: LEAT_ENOMEM; the
 * sample is then as it was.
 */
int leat__sample_own(leat_sample *sample);

#endif
