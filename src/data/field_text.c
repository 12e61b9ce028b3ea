#include "data/field_text.h"

#include <stdio.h>

const char *leat__field_text(char out[LEAT__FIELD_TEXT_MAX], leat_dtype dtype,
                             int ndim, const int64_t shape[])
{
    const size_t size = LEAT__FIELD_TEXT_MAX;
    int at = snprintf(out, size, "%s", leat_dtype_name(dtype));
    for (int i = 0; i < ndim && i < LEAT_MAX_DIMS; i++) {
        const char *before = i ? " x " : " ";
        if (shape[i] < 0)
            at += snprintf(out + at, size - (size_t)at, "%s?", before);
        else
            at += snprintf(out + at, size - (size_t)at, "%s%lld", before,
                           (long long)shape[i]);
    }
    if (ndim <= 0)
        snprintf(out + at, size - (size_t)at, "%s",
                 ndim ? " of any shape" : ", a scalar");
    return out;
}
