#include "data/pad.h"
#include "data/cast.h"

#include <string.h>

void leat__padding_init(leat__padding *padding, leat_dtype dtype, int ndim,
                        const int64_t shape[], double value)
{
    *padding = (leat__padding){.dtype = dtype,
                               .ndim = ndim,
                               .shape = shape,
                               .bytes = leat_dtype_size(dtype)};
    leat__cast(padding->element, dtype, &value, LEAT_FLOAT64, 1);
}

/* Writes `n` elements; each copy doubles what is there. */
static void fill(const leat__padding *padding, char *to, size_t n)
{
    size_t each = padding->bytes, all = n * each, done = each;
    bool is_one_byte = true;
    for (size_t i = 1; i < each; i++)
        is_one_byte &= padding->element[i] == padding->element[0];
    if (is_one_byte)
        memset(to, padding->element[0], all);
    if (is_one_byte || n == 0)
        return;
    memcpy(to, padding->element, each);
    for (; done < all; done *= 2)
        memcpy(to + done, to, done < all - done ? done : all - done);
}

/* Elements of the axes from `k` on. */
static size_t count(int ndim, const int64_t shape[], int k)
{
    size_t n = 1;
    for (; k < ndim; k++)
        n *= (size_t)shape[k];
    return n;
}

/* Axis `k`, and within it those up to `last`, whose rows are contiguous. */
static void put_axis(const leat__padding *padding, const leat_field *field,
                     int k, int last, const char *from, char *to)
{
    size_t rows = (size_t)field->shape[k];
    size_t missing = (size_t)padding->shape[k] - rows;
    size_t in = count(field->ndim, field->shape, k + 1);
    size_t out = count(padding->ndim, padding->shape, k + 1);
    size_t in_bytes = in * leat_dtype_size(field->dtype);
    size_t out_bytes = out * padding->bytes;
    if (k == last)
        leat__cast(to, padding->dtype, from, field->dtype, rows * in);
    for (size_t i = 0; i < rows && k < last; i++)
        put_axis(padding, field, k + 1, last, from + i * in_bytes,
                 to + i * out_bytes);
    fill(padding, to + rows * out_bytes, missing * out);
}

void leat__padding_put(const leat__padding *padding, const leat_field *field,
                       void *to)
{
    int last = 0;
    if (!field || count(field->ndim, field->shape, 0) == 0) {
        fill(padding, to, count(padding->ndim, padding->shape, 0));
        return;
    }
    for (int k = 0; k < field->ndim; k++)
        if (field->shape[k] != padding->shape[k])
            last = k;
    put_axis(padding, field, 0, last, field->data, to);
}
