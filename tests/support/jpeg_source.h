/* jpeg_source.h: JPEG files of the kinds that libjpeg's encoder writes. */
#ifndef LEAT_TESTS_JPEG_SOURCE_H
#define LEAT_TESTS_JPEG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which markers and component ids declare the colour space. */
typedef enum jpeg_markers {
    JPEG_JFIF,           /* YCbCr */
    JPEG_ADOBE_YCBCR,    /* transform 1 */
    JPEG_ADOBE_RGB,      /* transform 0 */
    JPEG_ADOBE_YCCK,     /* transform 2, which is wrong for three components */
    JPEG_JFIF_ADOBE_RGB, /* both, which disagree */
    JPEG_UNMARKED,       /* neither, ids 1 2 3 */
    JPEG_UNMARKED_ZERO,  /* neither, ids 0 1 2 */
    JPEG_UNMARKED_RGB,   /* neither, ids R G B */
    JPEG_MARKERS
} jpeg_markers;

typedef enum jpeg_content {
    JPEG_PHOTO, /* broad shapes and grain */
    JPEG_NOISE, /* of full contrast */
    JPEG_GRADIENT,
    JPEG_FLAT,
    JPEG_EDGES,   /* black and white, some pixels apart */
    JPEG_CHECKER, /* black and white in turn: the largest coefficients */
    JPEG_BLACK,
    JPEG_CONTENTS
} jpeg_content;

/* How a file is made; zeros are libjpeg's defaults. */
typedef struct jpeg_source {
    const char *name; /* of the sampling */
    int width, height;
    int components;        /* 1 or 3 */
    int h[3], v[3];        /* sampling factors */
    int quality;           /* 1 to 100 */
    int restart_mcus;      /* restart interval */
    int restart_rows;      /* the same, in rows of MCUs */
    bool is_optimized;     /* Huffman tables of its own */
    bool is_progressive;   /* several scans */
    bool is_arithmetic;    /* no Huffman codes */
    bool has_large_quanta; /* quantization above 255 is not limited to it */
    jpeg_markers markers;
    jpeg_content content;
    uint64_t seed; /* of the content */
} jpeg_source;

/* Freed by free(bytes). */
typedef struct made_jpeg {
    unsigned char *bytes; /* of exactly its size, for a sanitizer */
    size_t size;
} made_jpeg;

made_jpeg jpeg_source_make(const jpeg_source *source);

/*
 * A source chosen by `index`: its sampling, markers, restarts, quality, content
 * and seed. 4900 successive ones have each size from 1 x 1 to 70 x 70, but of
 * 400 one is larger.
 */
enum { JPEG_SIDE_MAX = 340 };
jpeg_source jpeg_source_pick(uint64_t index);

enum { JPEG_SOURCE_TEXT = 256 };

/* All of it, for the message of a failed test. */
const char *jpeg_source_text(char out[JPEG_SOURCE_TEXT],
                             const jpeg_source *source);

/* The next of the numbers that follow from a seed (splitmix64). */
uint64_t jpeg_random(uint64_t *state);

/* [0, n) */
int jpeg_random_below(uint64_t *state, int n);

#endif
