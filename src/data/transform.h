/* transform.h: Caffe's DataTransformer, prepared once and then read-only. */
#ifndef LEAT_DATA_TRANSFORM_H
#define LEAT_DATA_TRANSFORM_H

#include "device/transform_rows.h"

#include <leat/ext/device.h>

/* Options checked, mean loaded. Immutable: shared by all workers. */
typedef struct leat__transform leat__transform;

/*
 * The options (NULL: none) with every default in the place of its zero, fields
 * beyond the caller's size included; pointers are borrowed. Errors: LEAT_EINVAL
 * where there is no size.
 */
int leat__transform_options_copy(leat_transform_options *out,
                                 const leat_transform_options *given);

/*
 * `options` NULL: the defaults. Everything that can be decided before an image
 * is seen is decided here, the instruction set (LEAT_ISA) too.
 * Errors: LEAT_EINVAL for options that contradict themselves or that the top
 * type does not allow; LEAT_EIO and LEAT_EFORMAT of the mean file; LEAT_ENOMEM.
 */
int leat__transform_create(leat__transform **out,
                           const leat_transform_options *options,
                           leat_phase phase, leat_dtype top_type,
                           leat_layout layout);
void leat__transform_destroy(leat__transform *transform);

/*
 * The shape {channels, height, width} that an image of `shape` has after the
 * transform. Errors: LEAT_EINVAL: crop larger than the image, a mean of other
 * dimensions, another number of mean values.
 */
int leat__transform_shape(const leat__transform *transform, const int shape[3],
                          int out[3]);

/*
 * Whether the mean image, if there is one, has the shape of an image before the
 * crop. LEAT_EINVAL names the mean file and both shapes: none of the three
 * functions that meet it calls it a bad record.
 */
int leat__transform_check_mean(const leat__transform *transform, int channels,
                               int height, int width);

/* Continues a hash over the mean image, if there is one, and its shape. */
uint64_t leat__transform_hash_mean(const leat__transform *transform,
                                   uint64_t hash);

/* How many words of Caffe's generator each image takes: 0 to 3. */
int leat__transform_words_per_image(const leat__transform *transform);

/*
 * Makes the image's choices (h_off, w_off, mirror; its shape is set) from
 * random words: LEAT_RNG_LEAT takes words[0] mirror, [1] row, [2] column, high
 * bits first; LEAT_RNG_CAFFE takes draws in Caffe's order, modulo.
 */
void leat__transform_choose(const leat__transform *transform, leat_rng rng,
                            const uint32_t words[4],
                            leat__transform_image *image);

/*
 * Writes the image into its place `top` in a batch whose images are `shape`
 * {channels, height, width}; `top` is aligned to its element only.
 * Errors: LEAT_EDATA when the image does not have that shape, or is too small
 * for the crop; LEAT_EINVAL as of leat__transform_check_mean. Nothing is
 * written then. Thread safety: any thread.
 */
int leat__transform_apply(const leat__transform *transform,
                          const leat__transform_image *image,
                          const int shape[3], void *top);

/*
 * The same without a look at the image: an image of the same type and shape
 * was applied before, and leat__transform_choose has made this one's choices.
 */
void leat__transform_run(const leat__transform *transform,
                         const leat__transform_image *image, const int shape[3],
                         void *top);

/*
 * Where nothing is left to choose, since it is neither mirrored nor smaller
 * than the image, and the image is one row: what converts it and all others of
 * its type and shape, once source and top are set; else NULL. Good as long as
 * the transform lives.
 */
leat__row_convert *leat__transform_row(const leat__transform *transform,
                                       const leat__transform_image *image,
                                       const int shape[3], leat__row_run *out);

/*
 * As leat__transform_apply as far as the CPU goes when a device does the rest:
 * the uint8 crop into `crop`, in `layout`, and what was chosen for it. The
 * image is of uint8. A whole image that is streamed, or small, goes past the
 * caches, and may be there for other threads only after
 * leat__streaming_copy_end. Errors as of
 * leat__transform_apply. Thread safety: any thread.
 */
int leat__transform_crop(const leat__transform *transform,
                         const leat__transform_image *image, const int shape[3],
                         leat_layout layout, bool is_streamed, void *crop,
                         leat_device_choice *choice);

/* Scale and means of all batches; borrowed. Its shape is not set. */
const leat__transform_job *
leat__transform_plan(const leat__transform *transform);

#endif
