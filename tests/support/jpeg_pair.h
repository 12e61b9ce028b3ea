/*
 * jpeg_pair.h: a decoder that may take its own path for a JPEG, beside one that
 * is forced to libjpeg: nothing that they return may differ.
 */
#ifndef LEAT_TESTS_JPEG_PAIR_H
#define LEAT_TESTS_JPEG_PAIR_H

#include "data/image.h"

#include <stdbool.h>

/* The instruction sets, as LEAT_ISA names them. */
enum { JPEG_ISAS = 3 };
extern const char *const jpeg_isas[JPEG_ISAS];

/*
 * Creates a decoder for an instruction set, by the environment. NULL: this
 * processor lacks the set.
 */
leat_image_decoder *jpeg_decoder(const char *isa);

/* The decoder that decoded the latest image. */
typedef enum jpeg_path { JPEG_NOT_DECODED, JPEG_FAST, JPEG_LIBRARY } jpeg_path;

/* The path of the one image that followed `before`. */
jpeg_path jpeg_path_since(const leat_image_decoder *decoder,
                          leat__jpeg_counts before);

/* Three decoders that are given the same bytes. */
typedef struct jpeg_pair {
    leat_image_decoder *whole;
    leat_image_decoder *part; /* decodes regions only */
    leat_image_decoder *library;
} jpeg_pair;

/* False: this processor lacks the instruction set. */
bool jpeg_pair_open(jpeg_pair *out, const char *isa);
void jpeg_pair_close(jpeg_pair *pair);

/* The result for an image. */
typedef struct jpeg_verdict {
    int status;
    bool is_warned;
    jpeg_path path; /* of the whole image */
} jpeg_verdict;

/*
 * Decodes the bytes, copied to memory of exactly their size: the whole image
 * and a region that `seed` chooses. Fails the test, under `name`, where the
 * status, the error line, the warning or a pixel differs from libjpeg's; but a
 * region of a file with restart markers may be without a warning. An image of
 * more than 2^20 pixels is left out: LEAT_END.
 */
jpeg_verdict jpeg_pair_check(jpeg_pair *pair, const char *name,
                             const void *bytes, size_t size, leat_color color,
                             uint64_t seed);

/* A region inside an image. */
leat__image_region jpeg_region_pick(int height, int width, uint64_t seed);

/* Decodes at least the region. */
int jpeg_decode_region(leat_image_decoder *decoder, const void *bytes,
                       size_t size, leat_color color,
                       const leat__image_region *region, leat_image *out);

/*
 * The first row of the region in which `part` has other pixels than `whole`;
 * -1: none. 0 also for another shape.
 */
int jpeg_other_row(const leat_image *whole, const leat_image *part,
                   const leat__image_region *region);

#endif
