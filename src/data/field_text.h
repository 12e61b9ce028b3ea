/* field_text.h: the type and shape of a field as a line of errors shows it. */
#ifndef LEAT_DATA_FIELD_TEXT_H
#define LEAT_DATA_FIELD_TEXT_H

#include <leat/sample.h>

/*
 * Writes "float32 3 x ? x 5" to `out`, whose size is LEAT__FIELD_TEXT_MAX, and
 * returns it; below 0 a dimension varies, or with `ndim` their number.
 */
#define LEAT__FIELD_TEXT_MAX 256
const char *leat__field_text(char out[LEAT__FIELD_TEXT_MAX], leat_dtype dtype,
                             int ndim, const int64_t shape[]);

#endif
