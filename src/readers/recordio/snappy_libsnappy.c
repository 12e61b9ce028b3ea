#include "readers/recordio/snappy.h"
#include "base/error.h"

#include <snappy-c.h>

int leat__snappy_length(const void *bytes, size_t size, size_t *out)
{
    if (snappy_uncompressed_length(bytes, size, out) == SNAPPY_OK)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT, "no block of snappy");
}

int leat__snappy_unpack(const void *bytes, size_t size, void *out,
                        size_t length)
{
    if (snappy_uncompress(bytes, size, out, &length) == SNAPPY_OK)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT, "a damaged block of snappy");
}
