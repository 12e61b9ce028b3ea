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

int leat__pixel_buffer_reserve(leat__pixel_buffer *buffer,
                               const leat__image_frame *frame)
{
    size_t row, bytes;
    if (leat__multiply((size_t)frame->width, (size_t)frame->channels, &row) ||
        leat__multiply(row, (size_t)frame->height, &bytes))
        return leat__error_memory(SIZE_MAX);
    if (bytes <= buffer->capacity)
        return LEAT_OK;
    leat__pixel_buffer_finish(buffer);
    buffer->block = leat__alloc_aligned(bytes + OFF_ALIGNMENT);
    if (!buffer->block)
        return LEAT_ENOMEM;
    buffer->bytes = buffer->block + OFF_ALIGNMENT;
    buffer->capacity = bytes;
    return LEAT_OK;
}

void leat__pixel_buffer_finish(leat__pixel_buffer *buffer)
{
    leat__free(buffer->block);
    memset(buffer, 0, sizeof(*buffer));
}
