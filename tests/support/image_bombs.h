/* image_bombs.h: images of few bytes that ask for much memory or work. */
#ifndef LEAT_TESTS_IMAGE_BOMBS_H
#define LEAT_TESTS_IMAGE_BOMBS_H

#include <stddef.h>

/* Bytes that grow; all zero is none. Freed by free(bytes). */
typedef struct bomb {
    unsigned char *bytes;
    size_t size;
} bomb;

void bomb_put(bomb *out, const void *bytes, size_t size);
void bomb_zeros(bomb *out, size_t size);

/* What follows a JPEG's start of frame marker, 0xff. */
enum {
    BOMB_BASELINE = 0xc0,
    BOMB_PROGRESSIVE = 0xc2,
    BOMB_ARITHMETIC = 0xc9,
    BOMB_ARITHMETIC_PROGRESSIVE = 0xca
};

/*
 * The beginning of a JPEG of components without subsampling: quantization, and
 * Huffman codes of which a DC one is the bit 0 for an equal DC, and an AC one
 * the bit 0 for a run of blocks, whose 14 further bits follow.
 */
void bomb_jpeg(bomb *out, int frame, int width, int height, int components);

/*
 * A scan's header: the DC of all components for `last` 0, else the AC band from
 * 1 to `last` of the first one, at successive approximation `high`, `low`.
 */
void bomb_scan(bomb *out, int components, int last, int high, int low);
void bomb_jpeg_end(bomb *out);

/* A PNG's signature and header. */
void bomb_png(bomb *out, int width, int height, int depth, int color_type);
void bomb_chunk(bomb *out, const char *name, const void *data, size_t size);
/* A chunk of `size` bytes, deflated, after `head`. */
void bomb_deflated_chunk(bomb *out, const char *name, const void *head,
                         size_t head_size, const void *data, size_t size);

/* A gray PNG of 1 bit and all its pixels, black. */
void bomb_black_png(bomb *out, int width, int height);

#endif
