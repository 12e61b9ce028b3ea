#include "tools/delivery/npy_header.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <string.h>

/* What is still to be read of the header's dictionary. */
struct cursor {
    const char *name; /* of the file */
    const char *at;
    const char *end;
};

static int malformed(const struct cursor *cursor, const char *expected)
{
    return leat_error(LEAT_EFORMAT, "%s: its .npy header has no %s",
                      cursor->name, expected);
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end &&
           (*cursor->at == ' ' || *cursor->at == '\n'))
        cursor->at++;
}

/* Takes the text if it comes next. */
static int take(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);
    skip_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) < length ||
        memcmp(cursor->at, text, length) != 0)
        return 0;
    cursor->at += length;
    return 1;
}

/* Takes a text in single or double quotes, at most `size` - 1 letters of it. */
static int take_string(struct cursor *cursor, char *out, size_t size)
{
    char quote = take(cursor, "'") ? '\'' : take(cursor, "\"") ? '"' : 0;
    size_t n = 0;
    if (!quote)
        return 0;
    while (cursor->at < cursor->end && *cursor->at != quote)
        if (n + 1 < size)
            out[n++] = *cursor->at++;
        else
            return 0;
    out[n] = 0;
    return cursor->at < cursor->end && *cursor->at++ == quote;
}

static int take_number(struct cursor *cursor, int64_t *out)
{
    int64_t value = 0;
    const char *begin;
    skip_blanks(cursor);
    for (begin = cursor->at; cursor->at < cursor->end; cursor->at++) {
        int digit = *cursor->at - '0';
        if (digit < 0 || digit > 9)
            break;
        if (value > (INT64_MAX - digit) / 10)
            return 0;
        value = value * 10 + digit;
    }
    *out = value;
    return cursor->at > begin;
}

static int read_type(struct cursor *cursor, struct npy_header *out)
{
    char text[16];
    if (!take_string(cursor, text, sizeof(text)))
        return leat_error(LEAT_EFORMAT, "%s: its elements are no plain numbers",
                          cursor->name);
    const char *type = text + (strchr("<|=>", text[0]) && text[0]);
    int bytes = type[0] && type[1] ? type[1] - '0' : 0;
    int is_known = strlen(type) == 2 && strchr("biuf", type[0]) &&
                   (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) &&
                   !(type[0] == 'f' && bytes == 1) &&
                   !(type[0] == 'b' && bytes != 1);
    if (!is_known || (text[0] == '>' && bytes > 1))
        return leat_error(LEAT_EFORMAT,
                          "%s: elements of type '%s' cannot be read",
                          cursor->name, text);
    out->kind = type[0];
    out->bytes = bytes;
    return LEAT_OK;
}

static int read_order(struct cursor *cursor, int *is_fortran)
{
    *is_fortran = take(cursor, "True");
    return *is_fortran || take(cursor, "False") ? LEAT_OK
                                                : malformed(cursor, "order");
}

static int read_shape(struct cursor *cursor, struct npy_header *out)
{
    out->ndim = 0;
    if (!take(cursor, "("))
        return malformed(cursor, "shape");
    while (!take(cursor, ")")) {
        if (out->ndim == NPY_MOST_DIMS)
            return leat_error(LEAT_EFORMAT, "%s: more than %d dimensions",
                              cursor->name, NPY_MOST_DIMS);
        if (!take_number(cursor, &out->dim[out->ndim++]))
            return malformed(cursor, "shape");
        if (!take(cursor, ",") && cursor->at < cursor->end &&
            *cursor->at != ')')
            return malformed(cursor, "shape");
    }
    return LEAT_OK;
}

static int read_dictionary(struct cursor *cursor, struct npy_header *out)
{
    int has_type = 0, has_order = 0, has_shape = 0, is_fortran = 0;
    if (!take(cursor, "{"))
        return malformed(cursor, "dictionary");
    while (!take(cursor, "}")) {
        char key[16];
        int status = LEAT_OK;
        if (!take_string(cursor, key, sizeof(key)) || !take(cursor, ":"))
            return malformed(cursor, "key");
        if (!strcmp(key, "descr") && !has_type++)
            status = read_type(cursor, out);
        else if (!strcmp(key, "fortran_order") && !has_order++)
            status = read_order(cursor, &is_fortran);
        else if (!strcmp(key, "shape") && !has_shape++)
            status = read_shape(cursor, out);
        else
            status = malformed(cursor, "known key");
        if (status)
            return status;
        take(cursor, ",");
    }
    if (!has_type || !has_order || !has_shape)
        return malformed(cursor, "descr, fortran_order and shape");
    if (is_fortran && out->ndim > 1)
        return leat_error(LEAT_EFORMAT, "%s: is in Fortran's order",
                          cursor->name);
    return LEAT_OK;
}

/* Whether the elements fit into what the file has behind the header. */
static int check_size(struct npy_header *header, const char *name, size_t size)
{
    size_t most = (size - header->offset) / (size_t)header->bytes;
    size_t count = 1;
    int is_empty = 0, is_huge = 0;
    for (int i = 0; i < header->ndim; i++) {
        is_empty |= !header->dim[i];
        is_huge |=
            __builtin_mul_overflow(count, (size_t)header->dim[i], &count);
    }
    header->count = is_empty ? 0 : count;
    if (header->count > most || (is_huge && !is_empty))
        return leat_error(LEAT_EFORMAT,
                          "%s: truncated: it has room for %zu elements, its "
                          "shape is larger",
                          name, most);
    return LEAT_OK;
}

int npy_header_parse(struct npy_header *out, const char *name,
                     const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    struct npy_header header = {0};
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
    header.bytes = 1; /* until the type is read */
    struct cursor cursor = {name, (const char *)at + begin,
                            (const char *)at + begin + length};
    header.offset = begin + length;
    int status = read_dictionary(&cursor, &header);
    if (!status)
        status = check_size(&header, name, size);
    if (!status)
        *out = header;
    return status;
}

/* IEEE's half precision. */
static long double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

#define LOAD(type)                                                             \
    {                                                                          \
        type value;                                                            \
        memcpy(&value, at, sizeof(value));                                     \
        return (long double)value;                                             \
    }

long double npy_header_value(const struct npy_header *header, const void *data,
                             size_t i)
{
    const char *at = (const char *)data + i * (size_t)header->bytes;
    uint16_t half;
    switch (header->kind << 4 | header->bytes) {
    case 'i' << 4 | 1:
        LOAD(int8_t)
    case 'i' << 4 | 2:
        LOAD(int16_t)
    case 'i' << 4 | 4:
        LOAD(int32_t)
    case 'i' << 4 | 8:
        LOAD(int64_t)
    case 'u' << 4 | 2:
        LOAD(uint16_t)
    case 'u' << 4 | 4:
        LOAD(uint32_t)
    case 'u' << 4 | 8:
        LOAD(uint64_t)
    case 'f' << 4 | 2:
        memcpy(&half, at, sizeof(half));
        return half_value(half);
    case 'f' << 4 | 4:
        LOAD(float)
    case 'f' << 4 | 8:
        LOAD(double)
    default:
        LOAD(uint8_t)
    }
}
