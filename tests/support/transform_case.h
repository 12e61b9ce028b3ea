/* transform_case.h: random inputs of a device's transform, and their tops. */
#ifndef LEAT_TESTS_TRANSFORM_CASE_H
#define LEAT_TESTS_TRANSFORM_CASE_H

#include <leat/ext/device.h>

/*
 * A batch in host memory. Pixels and means begin at random addresses, of bytes
 * and of floats, in blocks that end with them.
 */
typedef struct transform_case {
    leat_device_transform what; /* top is left to the user */
    size_t pixel_bytes;
    size_t pixels_over; /* what a multiple of 16 bytes the pixels lie past */
    size_t mean_floats; /* 0: no mean file */
    size_t mean_over;   /* likewise, in floats */
    size_t top_bytes;
    void *expected; /* the top, by leat__transform_reference */
    void *block[5];
    int nblocks;
} transform_case;

/*
 * The batch of that number, always the same: 1 to 5 channels, heights and
 * widths from 1 to beyond what a thread does, every type and layout, with and
 * without means, mirrored images and places of bad records.
 */
void transform_case_init(transform_case *self, uint32_t number);
void transform_case_finish(transform_case *self);

/* What it is, for a message. Static. */
const char *transform_case_text(const transform_case *self);

#endif
