#include "tools/delivery/npy_header.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header's dictionary, as text, is shorter. */
enum { MAX_TEXT = 4096 };

static int malformed(const char *name, const char *expected)
{
    return leat_error(LEAT_EFORMAT, "%s: its .npy header has no %s", name,
                      expected);
}

/* Skips blanks and the letters if they come next. */
static bool skip(const char **at, const char *letters)
{
    const char *next = *at + strspn(*at, " \n");
    size_t length = strlen(letters);
    if (strncmp(next, letters, length) != 0)
        return false;
    *at = next + length;
    return true;
}

/* A text in quotes, of at most `size` - 1 letters. */
static bool read_string(const char **at, char *out, size_t size)
{
    const char *quote = skip(at, "'") ? "'" : skip(at, "\"") ? "\"" : NULL;
    size_t length = quote ? strcspn(*at, quote) : 0;
    if (!quote || length >= size || !(*at)[length])
        return false;
    memcpy(out, *at, length);
    out[length] = 0;
    *at += length + 1;
    return true;
}

/* Such as <f4: little-endian floats of 4 bytes. */
static int read_type(const char **at, const char *name, struct npy_header *out)
{
    static const char *const types[] = {"b1", "i1", "i2", "i4", "i8", "u1",
                                        "u2", "u4", "u8", "f2", "f4", "f8"};
    char text[16];
    if (!read_string(at, text, sizeof(text)))
        return leat_error(LEAT_EFORMAT, "%s: its elements are no plain numbers",
                          name);
    const char *type = text + (text[0] && strchr("<|=>", text[0]));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (!strcmp(type, types[i]) && (text[0] != '>' || type[1] == '1')) {
            out->kind = type[0];
            out->bytes = type[1] - '0';
            return LEAT_OK;
        }
    return leat_error(LEAT_EFORMAT, "%s: elements of type '%s' cannot be read",
                      name, text);
}

static int read_shape(const char **at, const char *name, struct npy_header *out)
{
    if (!skip(at, "("))
        return malformed(name, "shape");
    while (!skip(at, ")")) {
        char *end;
        if (out->ndim == NPY_MAX_DIMS)
            return leat_error(LEAT_EFORMAT, "%s: more than %d dimensions", name,
                              NPY_MAX_DIMS);
        skip(at, "");
        errno = 0;
        out->dim[out->ndim++] = strtoll(*at, &end, 10);
        if (errno || **at < '0' || **at > '9')
            return malformed(name, "shape");
        *at = end;
        if (!skip(at, ",") && **at != ')')
            return malformed(name, "shape");
    }
    return LEAT_OK;
}

static int read_dictionary(const char *at, const char *name,
                           struct npy_header *out)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    int seen[3] = {0};
    bool is_fortran = false;
    if (!skip(&at, "{"))
        return malformed(name, "dictionary");
    while (!skip(&at, "}")) {
        char key[16];
        int i = 0, status = LEAT_OK;
        if (!read_string(&at, key, sizeof(key)) || !skip(&at, ":"))
            return malformed(name, "key");
        while (i < 3 && strcmp(key, keys[i]) != 0)
            i++;
        if (i == 3 || seen[i]++)
            return malformed(name, "known key");
        if (i == 0)
            status = read_type(&at, name, out);
        else if (i == 2)
            status = read_shape(&at, name, out);
        else if (!(is_fortran = skip(&at, "True")) && !skip(&at, "False"))
            status = malformed(name, "order");
        if (status)
            return status;
        skip(&at, ",");
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return malformed(name, "descr, fortran_order and shape");
    if (is_fortran && out->ndim > 1)
        return leat_error(LEAT_EFORMAT, "%s: is in Fortran's order", name);
    return LEAT_OK;
}

/* Whether the file has as many elements as its shape. */
static int check_size(struct npy_header *header, const char *name, size_t size)
{
    size_t room = (size - header->offset) / (size_t)header->bytes;
    size_t count = 1;
    bool is_empty = false, is_huge = false;
    for (int i = 0; i < header->ndim; i++) {
        is_empty |= !header->dim[i];
        is_huge |=
            __builtin_mul_overflow(count, (size_t)header->dim[i], &count);
    }
    header->count = is_empty ? 0 : count;
    if (header->count > room || (is_huge && !is_empty))
        return leat_error(LEAT_EFORMAT,
                          "%s: truncated: it has room for %zu elements, its "
                          "shape is larger",
                          name, room);
    return LEAT_OK;
}

int npy_header_parse(struct npy_header *out, const char *name,
                     const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    struct npy_header header = {.bytes = 1};
    char text[MAX_TEXT];
    if (size < 12 || memcmp(at, "\x93NUMPY", 6) != 0)
        return leat_error(LEAT_EFORMAT, "%s: no .npy file", name);
    if (at[6] < 1 || at[6] > 3)
        return leat_error(LEAT_EFORMAT, "%s: .npy version %d, expected 1 to 3",
                          name, at[6]);
    size_t begin = at[6] == 1 ? 10 : 12;
    size_t length = at[8] | (size_t)at[9] << 8;
    if (at[6] > 1)
        length |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (length > size - begin)
        return leat_error(LEAT_EFORMAT, "%s: truncated in its header", name);
    header.offset = begin + length;
    snprintf(text, sizeof(text), "%.*s",
             (int)(length < MAX_TEXT ? length : MAX_TEXT),
             (const char *)at + begin);
    int status = read_dictionary(text, name, &header);
    if (!status)
        status = check_size(&header, name, size);
    if (!status)
        *out = header;
    return status;
}

struct npy_header npy_header_of(leat_dtype dtype, int ndim,
                                const int64_t shape[])
{
    static const char kinds[] = {
        [LEAT_BYTES] = 'u',   [LEAT_UINT8] = 'u',   [LEAT_INT32] = 'i',
        [LEAT_INT64] = 'i',   [LEAT_FLOAT16] = 'f', [LEAT_BFLOAT16] = 'u',
        [LEAT_FLOAT32] = 'f', [LEAT_FLOAT64] = 'f', [LEAT_UINT16] = 'u',
        [LEAT_INT8] = 'i',    [LEAT_INT16] = 'i',   [LEAT_UINT32] = 'u'};
    struct npy_header out = {.kind = kinds[dtype],
                             .bytes = (int)leat_dtype_size(dtype),
                             .is_bfloat16 = dtype == LEAT_BFLOAT16,
                             .ndim = ndim,
                             .count = 1};
    for (int i = 0; i < ndim; i++) {
        out.dim[i] = shape[i];
        out.count *= (size_t)shape[i];
    }
    return out;
}

/* IEEE's half precision. */
static long double half_value(uint64_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

long double npy_header_value(const struct npy_header *header, const void *data,
                             size_t i)
{
    size_t bytes = (size_t)header->bytes;
    const char *at = (const char *)data + i * bytes;
    uint64_t bits = 0;
    float single;
    double real;
    memcpy(&bits, at, bytes); /* Little-endian, as the machine. */
    if (header->kind == 'i') {
        uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
        return (int64_t)((bits ^ sign) - sign);
    }
    if (header->kind != 'f')
        return bits;
    if (bytes == 2)
        return half_value(bits);
    memcpy(&single, at, sizeof(single));
    if (bytes == 4)
        return (long double)single;
    memcpy(&real, at, sizeof(real));
    return real;
}

long double npy_header_bfloat16(const void *data, size_t i)
{
    uint16_t bits;
    float value;
    memcpy(&bits, (const char *)data + i * sizeof(bits), sizeof(bits));
    const uint32_t wide = (uint32_t)bits << 16;
    memcpy(&value, &wide, sizeof(value));
    return (long double)value;
}
