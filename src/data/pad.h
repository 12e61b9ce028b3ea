/* pad.h: a sample's elements in an array that is larger than it. */
#ifndef LEAT_DATA_PAD_H
#define LEAT_DATA_PAD_H

#include <leat/sample.h>

#include <stdbool.h>

/* The array: its elements, and the one that fills it up. */
typedef struct leat__padding {
    leat_dtype dtype;
    int ndim;
    const int64_t *shape;
    unsigned char element[8];
    size_t bytes; /* of an element */
} leat__padding;

void leat__padding_init(leat__padding *padding, leat_dtype dtype, int ndim,
                        const int64_t shape[], double value);

/*
 * Writes the field, whose dimensions are as many and no greater, to the array
 * `to`, and fills up the rest; NULL: all of it. The field has as many bytes as
 * its shape needs.
 */
void leat__padding_put(const leat__padding *padding, const leat_field *field,
                       void *to);

#endif
