/* transform_top.h: the transform on the CPU, into a top of any type. */
#ifndef LEAT_DEVICE_TRANSFORM_TOP_H
#define LEAT_DEVICE_TRANSFORM_TOP_H

#include "device/transform_rows.h"

/*
 * Writes the image into `top`, which is aligned to its element. The caller has
 * checked that the crop is inside the image and the channels agree. Any thread.
 */
void leat__transform_top(const leat__row_kernels *kernels,
                         const leat__transform_job *job,
                         const leat__transform_image *image, void *top);

/* leat__transform_one_row for a top of any type. */
leat__row_convert *leat__transform_top_row(const leat__row_kernels *kernels,
                                           const leat__transform_job *job,
                                           const leat__transform_image *image,
                                           leat__row_run *out);

#endif
