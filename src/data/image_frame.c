#include "data/image_frame.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

#define SIDE_MAX ((uint64_t)1 << 20)
/*
 * libjpeg-turbo writes around the cache where rows are aligned for its vectors.
 * That makes decoding 3 % slower, and the pixels are about to be read.
 */
#define OFF_ALIGNMENT 16

int leat__image_check_size(uint64_t width, uint64_t height)
{
    if (width > SIDE_MAX || height > SIDE_MAX)
        return leat_error(LEAT_EDATA,
                          "image of %llu x %llu pixels; sides go up to %llu",
                          (unsigned long long)width, (unsigned long long)height,
                          (unsigned long long)SIDE_MAX);
    if (width * height > LEAT_IMAGE_PIXELS_MAX)
        return leat_error(LEAT_EDATA,
                          "image of %llu x %llu pixels; at most %llu "
                          "are decoded",
                          (unsigned long long)width, (unsigned long long)height,
                          (unsigned long long)LEAT_IMAGE_PIXELS_MAX);
    return LEAT_OK;
}

uint64_t leat__image_pixel_bytes(const leat__image_frame *frame)
{
    return (uint64_t)frame->width * (uint64_t)frame->height *
           (uint64_t)frame->channels;
}

static int allocate(leat__pixel_buffer *buffer, size_t bytes)
{
    leat__pixel_buffer_finish(buffer);
    buffer->block = leat__alloc_aligned(bytes + OFF_ALIGNMENT);
    if (!buffer->block)
        return LEAT_ENOMEM;
    buffer->bytes = buffer->block + OFF_ALIGNMENT;
    buffer->capacity = bytes;
    return LEAT_OK;
}

int leat__pixel_buffer_reserve(leat__pixel_buffer *buffer,
                               const leat__image_frame *frame)
{
    /* At most 4 bytes for each of LEAT_IMAGE_PIXELS_MAX. */
    size_t bytes = (size_t)leat__image_pixel_bytes(frame);
    size_t kept = leat__demand_record(&buffer->demand, bytes, buffer->capacity);
    if (kept == buffer->capacity && bytes <= kept)
        return LEAT_OK;
    return allocate(buffer, kept < buffer->capacity ? kept : bytes);
}

void leat__pixel_buffer_skip(leat__pixel_buffer *buffer)
{
    size_t kept = leat__demand_record(&buffer->demand, 0, buffer->capacity);
    if (kept < buffer->capacity)
        leat__pixel_buffer_finish(buffer);
}

void leat__pixel_buffer_finish(leat__pixel_buffer *buffer)
{
    leat__free(buffer->block);
    memset(buffer, 0, sizeof(*buffer));
}
