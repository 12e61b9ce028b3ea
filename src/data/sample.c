#include "data/sample.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

void leat_sample_init(leat_sample *sample)
{
    memset(sample, 0, sizeof(*sample));
}

void leat_sample_finish(leat_sample *sample)
{
    if (!sample)
        return;
    leat__free_to(sample->allocator, sample->buffer, sample->buffer_size,
                  LEAT__ALIGNMENT);
    leat_sample_init(sample);
}

int leat_sample_reserve(leat_sample *sample, size_t bytes)
{
    if (bytes <= sample->buffer_size)
        return LEAT_OK;
    /* Growing by half lets varying sizes settle early. */
    size_t size = bytes + (bytes < SIZE_MAX / 2 ? sample->buffer_size / 2 : 0);
    void *buffer = leat__alloc_from(sample->allocator, size, LEAT__ALIGNMENT);
    if (!buffer)
        return LEAT_ENOMEM;
    leat__free_to(sample->allocator, sample->buffer, sample->buffer_size,
                  LEAT__ALIGNMENT);
    sample->buffer = buffer;
    sample->buffer_size = size;
    return LEAT_OK;
}

/* Checks the shape; `*bytes` is the size of its elements. Errors: LEAT_EINVAL.
 */
static int measure_shape(leat_dtype dtype, int ndim, const int64_t shape[],
                         size_t *bytes)
{
    *bytes = leat_dtype_size(dtype);
    if (*bytes == 0)
        return leat_error(LEAT_EINVAL, "unknown dtype %d", (int)dtype);
    if (ndim < 0 || ndim > LEAT_MAX_DIMS || (ndim > 0 && !shape))
        return leat_error(
            LEAT_EINVAL, "ndim is %d%s: expected 0 to %d dimensions", ndim,
            ndim > 0 && !shape ? " without a shape" : "", LEAT_MAX_DIMS);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0 || leat__multiply(*bytes, (size_t)shape[i], bytes))
            return leat_error(LEAT_EINVAL,
                              "dimension %d is %lld: expected 0 or more, and "
                              "no more bytes than memory can have",
                              i, (long long)shape[i]);
    return LEAT_OK;
}

int leat_sample_set(leat_sample *sample, int i, leat_dtype dtype, int ndim,
                    const int64_t shape[], const void *data)
{
    size_t bytes;
    if (i < 0 || i >= LEAT_MAX_FIELDS || i > sample->nfields)
        return leat_error(LEAT_EINVAL,
                          "field %d is set after %d fields: expected the "
                          "fields in order, at most %d",
                          i, sample->nfields, LEAT_MAX_FIELDS);
    int status = measure_shape(dtype, ndim, shape, &bytes);
    if (status)
        return leat__error_context(status, "field %d", i);
    if (!data && bytes > 0)
        return leat_error(LEAT_EINVAL,
                          "field %d: data is NULL, expected %zu "
                          "bytes",
                          i, bytes);
    leat_field *field = &sample->field[i];
    *field = (leat_field){
        .dtype = dtype, .ndim = ndim, .data = data, .bytes = bytes};
    if (ndim > 0)
        memcpy(field->shape, shape, (size_t)ndim * sizeof(shape[0]));
    sample->nfields = i + 1;
    return LEAT_OK;
}

/* A view of a sample: one of its fields, or its key. */
typedef struct view {
    const void **data;
    size_t bytes;
} view;

static int list_views(leat_sample *sample, view out[LEAT_MAX_FIELDS + 1])
{
    int n = 0;
    for (int i = 0; i < sample->nfields; i++)
        out[n++] = (view){&sample->field[i].data, sample->field[i].bytes};
    if (sample->from.key)
        out[n++] = (view){&sample->from.key, sample->from.key_size};
    return n;
}

static bool is_in_buffer(const leat_sample *sample, const view *one)
{
    uintptr_t offset = (uintptr_t)*one->data - (uintptr_t)sample->buffer;
    return sample->buffer && offset < sample->buffer_size;
}

/* The end of the views in the buffer, and the bytes to append after it. */
static int measure(const leat_sample *sample, const view *views, int n,
                   size_t *used, size_t *more)
{
    *used = *more = 0;
    for (int i = 0; i < n; i++) {
        size_t bytes = views[i].bytes;
        if (is_in_buffer(sample, &views[i])) {
            size_t end = (size_t)((const char *)*views[i].data -
                                  (const char *)sample->buffer) +
                         bytes;
            *used = end > *used ? end : *used;
        } else if (__builtin_add_overflow(bytes, LEAT__ALIGNMENT, &bytes) ||
                   __builtin_add_overflow(*more, bytes, more)) {
            return leat_error(LEAT_ENOMEM, "a sample's views overflow");
        }
    }
    *used = (*used + LEAT__ALIGNMENT - 1) & ~(size_t)(LEAT__ALIGNMENT - 1);
    if (*used > SIZE_MAX - *more)
        return leat_error(LEAT_ENOMEM, "a sample's views overflow");
    return LEAT_OK;
}

/* Enlarges the buffer; views into it are moved along. */
static int grow_buffer(leat_sample *sample, const view *views, int n,
                       size_t bytes)
{
    char *buffer = leat__alloc_from(sample->allocator, bytes, LEAT__ALIGNMENT);
    if (!buffer)
        return LEAT_ENOMEM;
    char *old = sample->buffer;
    if (old)
        memcpy(buffer, old, sample->buffer_size);
    for (int i = 0; i < n; i++)
        if (is_in_buffer(sample, &views[i]))
            *views[i].data = buffer + ((const char *)*views[i].data - old);
    leat__free_to(sample->allocator, old, sample->buffer_size, LEAT__ALIGNMENT);
    sample->buffer = buffer;
    sample->buffer_size = bytes;
    return LEAT_OK;
}

int leat__sample_own(leat_sample *sample)
{
    view views[LEAT_MAX_FIELDS + 1];
    int n = list_views(sample, views);
    size_t used, more;
    int status = measure(sample, views, n, &used, &more);
    if (status || more == 0)
        return status;
    size_t bytes = used + more;
    if (bytes > sample->buffer_size)
        status = grow_buffer(sample, views, n, bytes + bytes / 2);
    if (status)
        return status;
    for (int i = 0; i < n; i++) {
        if (is_in_buffer(sample, &views[i]) || !views[i].bytes)
            continue;
        char *to = (char *)sample->buffer + used;
        memcpy(to, *views[i].data, views[i].bytes);
        *views[i].data = to;
        used += (views[i].bytes + LEAT__ALIGNMENT - 1) &
                ~(size_t)(LEAT__ALIGNMENT - 1);
    }
    return LEAT_OK;
}
