/* shape.h: shapes of fields: what they take, and their texts in pipelines and
 * in lines of errors. */
#ifndef LEAT_BASE_SHAPE_H
#define LEAT_BASE_SHAPE_H

#include "base/memory.h"

#include <leat/sample.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bytes of an array whose elements have `each`. False: that is 0, as of an
 * unknown type, there is no such shape, or memory cannot have as many.
 */
static inline bool leat__shape_bytes(int ndim, const int64_t shape[],
                                     size_t each, size_t *bytes)
{
    bool is_shape = each > 0 && ndim >= 0 && ndim <= LEAT_MAX_DIMS;
    *bytes = each;
    for (int i = 0; i < ndim && is_shape; i++)
        is_shape =
            shape[i] >= 0 && !leat__multiply(*bytes, (size_t)shape[i], bytes);
    return is_shape;
}

/*
 * Reads "3x32x32", or "scalar", of which a dimension may be -1; `size` letters,
 * all of them. Returns the number of dimensions; -1: the text is no shape.
 */
int leat__shape_parse(const char *text, size_t size,
                      int64_t shape[LEAT_MAX_DIMS]);

/* Writes the same; `ndim` below 0 is "of any shape". Returns `out`. */
#define LEAT__SHAPE_TEXT_MAX 192
const char *leat__shape_text(char out[LEAT__SHAPE_TEXT_MAX], int ndim,
                             const int64_t shape[]);

/* The same after the type: "float32 3x-1x5". Returns `out`. */
#define LEAT__FIELD_TEXT_MAX 256
const char *leat__field_text(char out[LEAT__FIELD_TEXT_MAX], leat_dtype dtype,
                             int ndim, const int64_t shape[]);

#endif
