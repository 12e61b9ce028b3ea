/* transformer.h: what the layer needs of a transformer beyond leat/transform.h.
 */
#ifndef LEAT_DATA_TRANSFORMER_H
#define LEAT_DATA_TRANSFORMER_H

#include "device/transform_job.h"

#include <leat/ext/device.h>

/* How many words of Caffe's generator each image takes. */
int leat__transformer_words_per_image(const leat_transformer *transformer);

/*
 * LEAT_EINVAL if the mean file's shape is not that of the image before the
 * crop, which is not a fault of the image; LEAT_OK also for a field that is not
 * an image, which may set an error line.
 */
int leat__transformer_check_mean(leat_transformer *transformer,
                                 const leat_field *field);

/* Continues a hash over the mean image, if there is one, and its shape. */
uint64_t leat__transformer_hash_mean(const leat_transformer *transformer,
                                     uint64_t hash);

/*
 * The shape {channels, height, width} of an image before the transform; of an
 * encoded one the header is read. Errors: LEAT_EDATA, LEAT_ENOMEM.
 */
int leat__transformer_whole_shape(leat_transformer *transformer,
                                  const leat_field *field, int shape[3]);

/* Images decoded so far. */
typedef struct leat__image_counts {
    int64_t warnings; /* whose codec warned */
    int64_t jpeg_fast;
    int64_t jpeg_library;
} leat__image_counts;

/* Adds the transformer's to `counts`. */
void leat__transformer_count(const leat_transformer *transformer,
                             leat__image_counts *counts);

/*
 * The CPU's part of leat_transformer_apply if a device does the rest: a uint8
 * crop in `layout`, as of leat__transform_crop, and its random choices.
 */
int leat__transformer_crop(leat_transformer *transformer,
                           const leat_field *field, leat_rng rng,
                           const uint32_t words[4], const int shape[3],
                           leat_layout layout, bool is_streamed, void *crop,
                           leat_device_choice *choice);

/* Scale and means of all batches; borrowed. Its shape is not set. */
const leat__transform_job *
leat__transformer_plan(const leat_transformer *transformer);

#endif
