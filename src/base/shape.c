#include "base/shape.h"
#include "base/decimal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char scalar[] = "scalar";

static bool read_dimension(const char *text, size_t size, int64_t *out)
{
    bool is_open = size == 2 && memcmp(text, "-1", 2) == 0;
    bool is_digit = size > 0 && *text >= '0' && *text <= '9';
    return (is_open || is_digit) && leat__decimal_integer(text, size, out);
}

int leat__shape_parse(const char *text, size_t size,
                      int64_t shape[LEAT_MAX_DIMS])
{
    const char *end = text + size;
    int ndim = 0;
    if (size == strlen(scalar) && memcmp(text, scalar, size) == 0)
        return 0;
    for (;;) {
        const char *x = memchr(text, 'x', (size_t)(end - text));
        size_t letters = (size_t)((x ? x : end) - text);
        if (ndim == LEAT_MAX_DIMS ||
            !read_dimension(text, letters, &shape[ndim++]))
            return -1;
        if (!x)
            return ndim;
        text = x + 1;
    }
}

const char *leat__shape_text(char out[LEAT__SHAPE_TEXT_MAX], int ndim,
                             const int64_t shape[])
{
    const size_t size = LEAT__SHAPE_TEXT_MAX;
    size_t used = 0;
    if (ndim <= 0)
        snprintf(out, size, "%s", ndim ? "of any shape" : scalar);
    for (int i = 0; i < ndim && i < LEAT_MAX_DIMS; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld",
                                 i ? "x" : "", (long long)shape[i]);
    return out;
}

const char *leat__field_text(char out[LEAT__FIELD_TEXT_MAX], leat_dtype dtype,
                             int ndim, const int64_t shape[])
{
    char text[LEAT__SHAPE_TEXT_MAX];
    snprintf(out, LEAT__FIELD_TEXT_MAX, "%s %s", leat_dtype_name(dtype),
             leat__shape_text(text, ndim, shape));
    return out;
}
