/* jpeg_segment.h: the entropy-coded bytes of a JPEG, without stuffed zeros. */
#ifndef LEAT_DATA_JPEG_JPEG_SEGMENT_H
#define LEAT_DATA_JPEG_JPEG_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that are read past a segment's end before that is noticed. */
#define LEAT__JPEG_OVERREAD 2048
#define LEAT__JPEG_SEGMENT_BYTES (16384 + LEAT__JPEG_OVERREAD)

enum { LEAT__JPEG_RST0 = 0xd0, LEAT__JPEG_EOI = 0xd9 };

/*
 * A window of a segment, which ends at a marker. It holds all bytes of a short
 * segment; of a longer one it is moved on by leat__jpeg_segment_refill.
 */
typedef struct leat__jpeg_segment {
    const unsigned char *source; /* what follows, still with its stuffing */
    const unsigned char *source_end;
    unsigned char *bytes; /* of LEAT__JPEG_SEGMENT_BYTES; borrowed */
    size_t size;          /* in the window; 16 zeros follow a segment's last */
    int marker;           /* that ends it; 0: it goes on after the window;
                             -1: irregular */
} leat__jpeg_segment;

/* Begins the segment at `source`, which is past the last one's marker. */
void leat__jpeg_segment_begin(leat__jpeg_segment *segment);

/* Reads on to the marker that ends the segment; the window stays empty. */
void leat__jpeg_segment_skip(leat__jpeg_segment *segment);

/* Drops the first `used` bytes of the window and refills it. */
void leat__jpeg_segment_refill(leat__jpeg_segment *segment, size_t used);

#endif
