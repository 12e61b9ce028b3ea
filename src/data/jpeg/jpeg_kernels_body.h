/*
 * jpeg_kernels_body.h: the kernels of one instruction set. The including file
 * defines JPEG_KERNELS, the table's name, JPEG_NAME, its text, and what
 * jpeg_color_body.h and jpeg_block_body.h ask for; the build gives it the set's
 * flags.
 */
#include "data/jpeg/jpeg_block_body.h"
#include "data/jpeg/jpeg_color_body.h"

const leat__jpeg_kernels JPEG_KERNELS = {
    .name = JPEG_NAME,
    .order = order + 1,
    .decode = decode_mcus,
    .color = {[LEAT__JPEG_H1V1] = color_h1v1,
              [LEAT__JPEG_H2V1] = color_h2v1,
              [LEAT__JPEG_H1V2] = color_h1v2,
              [LEAT__JPEG_H2V2] = color_h2v2}};
