#include "data/image_jpeg_work.h"

/* Of 64 a Huffman code has a bit at least. */
#define PIXELS_PER_BYTE 512
/*
 * The work that the bytes of a file may cause, in coefficients that its scans
 * walk over; each block counts for some more. A scan of a few bytes may have
 * only empty blocks. Progressive files of a single colour, which are the
 * smallest, have some 1000 coefficients a byte with Huffman codes, of which the
 * DC scans take at least two a block; photographs have 10 to 60. Arithmetic
 * codes have no such floor, and their coefficients cost more.
 */
#define BLOCK_WORK 8
#define FREE_WORK ((uint64_t)1 << 23)
#define HUFFMAN_WORK_PER_BYTE 4096
#define ARITHMETIC_WORK_PER_BYTE 512
/* What libjpeg takes for an image of any size. */
#define FIXED_BYTES ((uint64_t)128 << 10)

uint64_t leat__jpeg_most_work(const struct jpeg_decompress_struct *codec,
                              size_t bytes)
{
    uint64_t each =
        codec->arith_code ? ARITHMETIC_WORK_PER_BYTE : HUFFMAN_WORK_PER_BYTE;
    return FREE_WORK + each * bytes;
}

uint64_t leat__jpeg_row_work(const struct jpeg_decompress_struct *codec)
{
    uint64_t blocks = codec->MCUs_per_row;
    if (codec->comps_in_scan == 1)
        blocks *= (uint64_t)codec->cur_comp_info[0]->v_samp_factor;
    else
        blocks *= (uint64_t)codec->blocks_in_MCU;
    int band = codec->progressive_mode ? codec->Se - codec->Ss + 1 : DCTSIZE2;
    return blocks * (uint64_t)(BLOCK_WORK + (band > 0 ? band : 0));
}

/* Blocks of a component, padded to whole MCUs as the whole image's are. */
static uint64_t padded_blocks(const jpeg_component_info *component,
                              uint64_t *columns, uint64_t *rows)
{
    uint64_t h = (uint64_t)component->h_samp_factor;
    uint64_t v = (uint64_t)component->v_samp_factor;
    *columns = (component->width_in_blocks + h - 1) / h * h;
    *rows = (component->height_in_blocks + v - 1) / v * v;
    return *columns * *rows;
}

bool leat__jpeg_is_too_short(const struct jpeg_decompress_struct *codec,
                             size_t bytes)
{
    uint64_t pixels = (uint64_t)codec->image_width * codec->image_height;
    if (!codec->arith_code)
        return pixels / PIXELS_PER_BYTE > bytes;
    uint64_t columns, rows, blocks = 0;
    for (int i = 0; i < codec->num_components; i++)
        blocks += padded_blocks(&codec->comp_info[i], &columns, &rows);
    return blocks * (BLOCK_WORK + DCTSIZE2) >
           leat__jpeg_most_work(codec, bytes);
}

uint64_t leat__jpeg_working_bytes(const struct jpeg_decompress_struct *codec)
{
    uint64_t width = codec->image_width + (uint64_t)DCTSIZE * MAX_SAMP_FACTOR;
    uint64_t bytes = FIXED_BYTES + width * MAX_COMPS_IN_SCAN * 2;
    for (int i = 0; i < codec->num_components; i++) {
        const jpeg_component_info *component = &codec->comp_info[i];
        uint64_t columns, rows;
        uint64_t blocks = padded_blocks(component, &columns, &rows);
        if (jpeg_has_multiple_scans((j_decompress_ptr)(uintptr_t)codec))
            bytes += blocks * sizeof(JBLOCK) + rows * sizeof(JBLOCKROW);
        /* A context row group precedes and follows those of an MCU. */
        uint64_t groups = DCTSIZE + 2;
        bytes +=
            columns * DCTSIZE * groups * (uint64_t)component->v_samp_factor;
        bytes += width * (uint64_t)codec->max_v_samp_factor;
    }
    return bytes;
}
