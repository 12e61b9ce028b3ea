/* transformer.h: what the layer asks of a transformer beyond its public face.
 */
#ifndef LEAT_DATA_TRANSFORMER_H
#define LEAT_DATA_TRANSFORMER_H

#include "device/transform_job.h"

#include <leat/ext/device.h>

/* How many words of Caffe's generator each image takes. */
int leat__transformer_words_per_image(const leat_transformer *transformer);

/*
 * LEAT_EINVAL where the mean file is of another shape than the image before the
 * crop, which is no fault of the image; LEAT_OK also for a field that is no
 * image. May leave an error line then, too.
 */
int leat__transformer_check_mean(leat_transformer *transformer,
                                 const leat_field *field);

/* Images so far whose codec warned. */
int64_t leat__transformer_warnings(const leat_transformer *transformer);

/*
 * leat_transformer_apply as far as the CPU goes when a device does the rest: an
 * uint8 crop in `layout`, and the choices made for it.
 */
int leat__transformer_crop(leat_transformer *transformer,
                           const leat_field *field, leat_rng rng,
                           const uint32_t words[4], const int shape[3],
                           leat_layout layout, void *crop,
                           leat_device_choice *choice);

/* Scale and means of all batches; borrowed. Its shape is not set. */
const leat__transform_job *
leat__transformer_plan(const leat_transformer *transformer);

#endif
