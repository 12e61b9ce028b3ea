/* transform_reference.h: the slow oracle that every faster way must equal. */
#ifndef LEAT_DEVICE_TRANSFORM_REFERENCE_H
#define LEAT_DEVICE_TRANSFORM_REFERENCE_H

#include "device/transform_job.h"

/* Writes the whole image into `top`, element by element. Any thread. */
void leat__transform_reference(const leat__transform_job *job,
                               const leat__transform_image *image, void *top);

#endif
