#include "data/jpeg/jpeg_segment.h"

#include <string.h>

#define WINDOW_BYTES (LEAT__JPEG_SEGMENT_BYTES - LEAT__JPEG_OVERREAD)
#define ZEROS 16

/* Copies up to the next 0xff, with it, but no more than fits. */
static void copy_clean(leat__jpeg_segment *segment)
{
    size_t room = WINDOW_BYTES - segment->size;
    size_t left = (size_t)(segment->source_end - segment->source);
    size_t most = left < room ? left : room;
    const unsigned char *mark = memchr(segment->source, 0xff, most);
    size_t n = mark ? (size_t)(mark - segment->source) + 1 : most;
    memcpy(segment->bytes + segment->size, segment->source, n);
    segment->size += n;
    segment->source += n;
}

/*
 * What is after a 0xff: true for a stuffed zero, false for the marker that ends
 * the segment.
 */
static bool is_stuffed(leat__jpeg_segment *segment)
{
    int code = segment->source < segment->source_end ? *segment->source++ : -1;
    if (code == 0)
        return true;
    bool is_known = (code >= LEAT__JPEG_RST0 && code < LEAT__JPEG_RST0 + 8) ||
                    code == LEAT__JPEG_EOI;
    segment->marker = is_known ? code : -1;
    return false;
}

static void fill(leat__jpeg_segment *segment)
{
    while (!segment->marker && segment->size < WINDOW_BYTES) {
        if (segment->source == segment->source_end) {
            segment->marker = -1;
            break;
        }
        copy_clean(segment);
        if (segment->source[-1] == 0xff && !is_stuffed(segment))
            segment->size--;
    }
    if (segment->marker)
        memset(segment->bytes + segment->size, 0, ZEROS);
}

void leat__jpeg_segment_begin(leat__jpeg_segment *segment)
{
    segment->size = 0;
    segment->marker = 0;
    fill(segment);
}

void leat__jpeg_segment_skip(leat__jpeg_segment *segment)
{
    segment->size = 0;
    segment->marker = 0;
    while (!segment->marker) {
        const unsigned char *from = segment->source;
        size_t left = (size_t)(segment->source_end - from);
        const unsigned char *mark = left ? memchr(from, 0xff, left) : NULL;
        if (!mark) {
            segment->marker = -1;
            return;
        }
        segment->source = mark + 1;
        is_stuffed(segment);
    }
}

void leat__jpeg_segment_refill(leat__jpeg_segment *segment, size_t used)
{
    segment->size -= used;
    memmove(segment->bytes, segment->bytes + used, segment->size);
    fill(segment);
}
