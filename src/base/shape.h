/* shape.h: shapes of fields as texts, in pipelines and in lines of errors. */
#ifndef LEAT_BASE_SHAPE_H
#define LEAT_BASE_SHAPE_H

#include <leat/sample.h>

#include <stddef.h>
#include <stdint.h>

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
