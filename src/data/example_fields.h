/* example_fields.h: the fields of a sample, read from an Example or
 * SequenceExample by a plan. */
#ifndef LEAT_DATA_EXAMPLE_FIELDS_H
#define LEAT_DATA_EXAMPLE_FIELDS_H

#include "data/example_plan.h"

/*
 * Replaces the fields of the sample from `base` on by those of the plan, read
 * from the message in field `message`. Defaults are views of the plan. Errors,
 * which leave the sample as it was: LEAT_EDATA with the feature; LEAT_ENOMEM;
 * LEAT_EINVAL without room for the fields. Any threads.
 */
int leat__example_fields_read(const leat__example_plan *plan,
                              leat_sample *sample, int base, int message);

#endif
