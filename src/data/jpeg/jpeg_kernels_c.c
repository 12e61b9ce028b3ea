#include "data/jpeg/jpeg_color_c.h"
#include "data/jpeg/jpeg_idct_c.h"

#include "data/jpeg/jpeg_block_body.h"

const leat__jpeg_kernels leat__jpeg_kernels_c = {
    .name = "c",
    .order = order + 1,
    .decode = decode_mcus,
    .color = {[LEAT__JPEG_H1V1] = color_h1v1,
              [LEAT__JPEG_H2V1] = color_h2v1,
              [LEAT__JPEG_H1V2] = color_h1v2,
              [LEAT__JPEG_H2V2] = color_h2v2}};
