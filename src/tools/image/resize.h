/* resize.h: resizes an image as OpenCV's INTER_LINEAR does. */
#ifndef LEAT_TOOLS_IMAGE_RESIZE_H
#define LEAT_TOOLS_IMAGE_RESIZE_H

#include <leat/image.h>

/* Keeps its tables from image to image; zeroed memory has none. */
struct resizer {
    int from; /* the widths of the taps */
    int to;
    struct resize_tap *tap; /* one for each column of the result */
    int16_t *row[2];        /* rows of the image, as wide as the result */
    int at[2];              /* which rows these are; -1: none */
};

/*
 * Writes an image as planes, to[0] x to[1] pixels for each channel, height
 * first: the same bytes as OpenCV's resize with INTER_LINEAR. Sides are at
 * least 1 and at most 2^24. Errors: LEAT_ENOMEM.
 */
int resizer_apply(struct resizer *resizer, const leat_image *image,
                  const int to[2], unsigned char *planes);

void resizer_finish(struct resizer *resizer);

#endif
