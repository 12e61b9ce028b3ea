#include "tools/cli/buffer.h"

#include <leat/ext/reader.h>

#include <stdlib.h>

int buffer_reserve(struct buffer *buffer, size_t size)
{
    if (size <= buffer->size)
        return LEAT_OK;
    size_t wanted = size + size / 4;
    unsigned char *bytes = realloc(buffer->bytes, wanted);
    if (!bytes)
        return leat_error(LEAT_ENOMEM, "out of memory for %zu bytes", size);
    buffer->bytes = bytes;
    buffer->size = wanted;
    return LEAT_OK;
}

void buffer_trim(struct buffer *buffer, size_t most)
{
    if (buffer->size <= most)
        return;
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
