/* offsets.h: fields of offsets, which divide the rows of another field. */
#ifndef LEAT_DATA_OFFSETS_H
#define LEAT_DATA_OFFSETS_H

#include <leat/sample.h>

#include <stdbool.h>
#include <string.h>

/* Number `i` of the field, which need not be aligned. */
static inline int64_t leat__offset_at(const leat_field *field, int64_t i)
{
    int64_t value;
    memcpy(&value, (const char *)field->data + (size_t)i * sizeof(value),
           sizeof(value));
    return value;
}

/* Whether they are offsets, which ascend from 0 to `rows`. */
static inline bool leat__offsets_are_right(const leat_field *field,
                                           int64_t rows)
{
    bool is_right = field->dtype == LEAT_INT64 && field->ndim == 1 &&
                    field->shape[0] > 0 &&
                    field->bytes / sizeof(int64_t) >= (size_t)field->shape[0] &&
                    leat__offset_at(field, 0) == 0;
    for (int64_t i = 1; is_right && i < field->shape[0]; i++)
        is_right = leat__offset_at(field, i) >= leat__offset_at(field, i - 1);
    return is_right && leat__offset_at(field, field->shape[0] - 1) == rows;
}

#endif
