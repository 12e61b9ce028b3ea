/*
 * jpeg_kernels.h: what decoding a baseline JPEG spends its time on, for the
 * processor that it runs on.
 *
 * A set of kernels is one body (jpeg_kernels_body.h) with the transforms of one
 * instruction set. All sets give the samples and pixels of libjpeg.
 */
#ifndef LEAT_DATA_JPEG_JPEG_KERNELS_H
#define LEAT_DATA_JPEG_JPEG_KERNELS_H

#include "data/jpeg/huffman_table.h"

#include <stddef.h>

/* Four for the luma of 4:2:0, and one for each chroma component. */
#define LEAT__JPEG_BLOCKS_MAX 6
/* Vectors read and write so many samples past either end of a row. */
#define LEAT__JPEG_PAD 64

/* Of a component, in the order of the kernels' blocks. */
typedef struct leat__jpeg_multipliers {
    _Alignas(64) int16_t of[64]; /* 0 to 255 */
    int16_t limit[64];           /* the most coefficient, in magnitude */
} leat__jpeg_multipliers;

/* Dequantised coefficients above it are where libjpeg's variants differ. */
#define LEAT__JPEG_COEFFICIENT_MAX 16383

/* A component's samples of one row of MCUs. */
typedef struct leat__jpeg_band {
    unsigned char *samples; /* the first; a row precedes it */
    ptrdiff_t pitch;
} leat__jpeg_band;

/* One block of every MCU. */
typedef struct leat__jpeg_block {
    const leat__huffman_dc *dc;
    const leat__huffman_ac *ac;
    const leat__jpeg_multipliers *multipliers;
    int component;
    bool is_dropped; /* its samples are not wanted in any MCU */
    int step;        /* columns of the band to the next MCU's block */
    size_t offset;   /* in the band, of the first MCU's block */
} leat__jpeg_block;

/* A scan, up to the MCU that is next. */
typedef struct leat__jpeg_scan {
    leat__jpeg_block block[LEAT__JPEG_BLOCKS_MAX];
    int blocks; /* of an MCU */
    leat__jpeg_band band[3];
    int first_wanted, end_wanted; /* MCUs of a row whose samples are wanted */
    /* Bits, the next one highest; `count` of them are valid. */
    uint64_t bits;
    unsigned count;
    const unsigned char *next; /* byte, after those */
    const unsigned char *stop; /* MCUs are decoded up to here */
    int predicted[3];          /* DC coefficients, by component */
    uint32_t irregular;        /* not 0: something that no clean file has */
} leat__jpeg_scan;

/*
 * Decodes MCUs of a row, from `first` to before `end`, until `scan->next` is
 * past `scan->stop`; returns the first MCU that was not decoded.
 */
typedef int leat__jpeg_decode(leat__jpeg_scan *scan, int first, int end);

/* Rows of samples that make a row of pixels. */
typedef struct leat__jpeg_rows {
    const unsigned char *luma;
    const unsigned char *chroma[2];       /* Cb, Cr: the nearest rows */
    const unsigned char *other_chroma[2]; /* the nearest but those */
    int bias; /* of the vertical mean of two rows, in quarters: 1 or 2 */
} leat__jpeg_rows;

/*
 * Writes pixels B G R from column `first`, which is even, to before `end`;
 * `pixels` is that of column 0.
 */
typedef void leat__jpeg_color(const leat__jpeg_rows *rows, int first, int end,
                              unsigned char *pixels);

/* How chroma is spread: horizontally, vertically. */
enum { LEAT__JPEG_H1V1, LEAT__JPEG_H2V1, LEAT__JPEG_H1V2, LEAT__JPEG_H2V2 };

typedef struct leat__jpeg_kernels {
    const char *name;           /* as in LEAT_ISA */
    const unsigned char *order; /* of a block's coefficients, by zigzag index */
    leat__jpeg_decode *decode;
    leat__jpeg_color *color[4];
} leat__jpeg_kernels;

/*
 * The best set for this processor within the one that LEAT_ISA names; NULL
 * where that is plain C, which libjpeg's vectors beat, unless LEAT_ISA asks for
 * it. Any thread.
 */
const leat__jpeg_kernels *leat__jpeg_kernels_choose(void);

#endif
