#include "readers/idx/idx_header.h"
#include "base/error.h"

#include <stdbool.h>

/* Before the dimensions. */
#define MAGIC_BYTES 4

/* A larger record is none of a file. */
#define RECORD_MAX ((uint64_t)1 << 40)

static int parse_type(leat_dtype *out, int code)
{
    static const leat_dtype types[] = {
        LEAT_UINT8,   LEAT_INT8,    /* 8, 9 */
        LEAT_BYTES,   LEAT_INT16,   /* -, 11 */
        LEAT_INT32,   LEAT_FLOAT32, /* 12, 13 */
        LEAT_FLOAT64,               /* 14 */
    };
    if (code < 8 || code > 14 || code == 10)
        return leat_error(LEAT_EFORMAT,
                          "not an IDX file: its elements have the type %d, "
                          "expected 8, 9 or 11 to 14",
                          code);
    *out = types[code - 8];
    return LEAT_OK;
}

static int parse_shape(leat__idx_header *out, const unsigned char *dims, int n)
{
    bool overflows = false;
    out->bytes = leat_dtype_size(out->dtype);
    out->count = leat__idx_big_endian(dims);
    out->ndim = n - 1;
    for (int i = 0; i < out->ndim; i++) {
        out->shape[i] = leat__idx_big_endian(dims + 4 * (i + 1));
        overflows = overflows ||
                    __builtin_mul_overflow(out->bytes, (uint64_t)out->shape[i],
                                           &out->bytes) ||
                    out->bytes > RECORD_MAX;
    }
    if (overflows || (out->bytes == 0 && out->count > 0))
        return leat_error(LEAT_EFORMAT,
                          "damaged: its %d dimensions are no shape of a record",
                          out->ndim);
    return LEAT_OK;
}

int leat__idx_header_parse(leat__idx_header *out, const unsigned char *bytes,
                           size_t size)
{
    out->size = MAGIC_BYTES;
    if (size < MAGIC_BYTES)
        return LEAT_AGAIN;
    int n = bytes[3];
    if (bytes[0] || bytes[1])
        return leat_error(LEAT_EFORMAT,
                          "not an IDX file: it begins with %02x%02x%02x%02x, "
                          "expected two zero bytes",
                          bytes[0], bytes[1], bytes[2], bytes[3]);
    int status = parse_type(&out->dtype, bytes[2]);
    if (status)
        return status;
    if (n < 1 || n > LEAT_MAX_DIMS)
        return leat_error(LEAT_EFORMAT,
                          "it has %d dimensions, expected 1 to %d", n,
                          LEAT_MAX_DIMS);
    out->size = MAGIC_BYTES + 4 * (size_t)n;
    return size < out->size ? LEAT_AGAIN
                            : parse_shape(out, bytes + MAGIC_BYTES, n);
}

int leat__idx_header_cut(size_t size)
{
    return leat_error(LEAT_EFORMAT, "ends in its header, after %zu bytes",
                      size);
}
