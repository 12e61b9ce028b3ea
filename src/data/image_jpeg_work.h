/*
 * image_jpeg_work.h: the work and the memory that a JPEG may cause libjpeg, by
 * its header, its scans and its size in bytes.
 */
#ifndef LEAT_DATA_IMAGE_JPEG_WORK_H
#define LEAT_DATA_IMAGE_JPEG_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h uses FILE without it */

#include <jpeglib.h>

/* The most work that the scans of a file of `bytes` may cause. */
uint64_t leat__jpeg_most_work(const struct jpeg_decompress_struct *codec,
                              size_t bytes);

/* Of the present scan, in a row of MCUs of the whole image. */
uint64_t leat__jpeg_row_work(const struct jpeg_decompress_struct *codec);

/*
 * A small file must not cause memory for a huge image to be allocated.
 * Arithmetic coding has no such bound, but each block costs work at least once.
 */
bool leat__jpeg_is_too_short(const struct jpeg_decompress_struct *codec,
                             size_t bytes);

/*
 * What libjpeg takes beside our pixels: rows of samples on their way through
 * it, and, with several scans, all coefficients. Never less than it does take,
 * which test_image_bombs compares.
 */
uint64_t leat__jpeg_working_bytes(const struct jpeg_decompress_struct *codec);

#endif
