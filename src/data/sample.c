#include "data/sample.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* Contents below this part of a buffer are little. */
enum { SHARE = 8 };

static bool holds_little(const leat_sample *sample)
{
    return sample->taken < sample->buffer_size / SHARE;
}

static void free_buffer(leat_sample *sample)
{
    leat__free_to(sample->allocator, sample->buffer, sample->buffer_size,
                  LEAT__ALIGNMENT);
    sample->buffer = NULL;
    sample->buffer_size = 0;
    sample->idle = 0;
}

/* Uses in a row after which a buffer that held little is freed. */
enum { IDLE_USES = 16 };

/* Bytes from which a buffer is large where many samples are held. */
enum { ROOMY = 64 << 10 };

void leat__sample_trim(leat_sample *sample)
{
    if (!holds_little(sample))
        sample->idle = 0;
    else if (++sample->idle >= IDLE_USES)
        free_buffer(sample);
}

void leat__sample_count_use(leat_sample *sample)
{
    if (sample->buffer_size > ROOMY && sample->idle >= 0)
        sample->idle = holds_little(sample) ? sample->idle + 1 : 0;
}

void leat__sample_trim_ahead(leat_sample *sample)
{
    if (sample->buffer_size > ROOMY && sample->idle >= IDLE_USES)
        free_buffer(sample);
}

void leat__sample_release(leat_sample *sample)
{
    if (holds_little(sample))
        free_buffer(sample);
}

void leat_sample_clear(leat_sample *sample)
{
    leat__sample_clear(sample);
}

void leat_sample_swap(leat_sample *a, leat_sample *b)
{
    int64_t epoch[] = {a->from.epoch, b->from.epoch};
    int64_t position[] = {a->from.position, b->from.position};
    int nfields = a->nfields > b->nfields ? a->nfields : b->nfields;
    /* A sample that could not be read has any number. */
    if (nfields < 0 || nfields > LEAT_MAX_FIELDS)
        nfields = LEAT_MAX_FIELDS;
    size_t bytes =
        offsetof(leat_sample, field) + (size_t)nfields * sizeof(a->field[0]);
    leat_sample kept;
    memcpy(&kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, &kept, bytes);
    a->from.epoch = epoch[0];
    a->from.position = position[0];
    b->from.epoch = epoch[1];
    b->from.position = position[1];
}

int leat__sample_keep_line(leat_sample *sample, const char *line)
{
    size_t bytes = strlen(line) + 1;
    sample->nfields = 0;
    char *kept = leat_sample_take(sample, bytes);
    if (!kept)
        return LEAT_ENOMEM;
    memcpy(kept, line, bytes);
    const int64_t length = (int64_t)bytes;
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, &length, kept);
}

void leat__sample_refuse(leat_sample *sample, int status, const char *line)
{
    if (leat__sample_keep_line(sample, line))
        status = LEAT_ENOMEM;
    sample->at = (leat_position){LEAT__SAMPLE_REFUSED, status};
}

int leat__sample_refusal(leat_sample *sample)
{
    sample->at.epoch = -1;
    return leat_error((int)sample->at.index, "%s",
                      sample->nfields > 0 ? (const char *)sample->field[0].data
                                          : "no memory for an error's line");
}

/* Copies what `data` points to into the buffer of `to`. LEAT_ENOMEM. */
static int copy_view(leat_sample *to, const void **data, size_t bytes)
{
    if (!*data || bytes == 0)
        return LEAT_OK;
    void *copy = leat_sample_take(to, bytes);
    if (!copy)
        return LEAT_ENOMEM;
    memcpy(copy, *data, bytes);
    *data = copy;
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
        if (shape[i] < 0 || leat__multiply(*bytes, (size_t)shape[i], bytes) ||
            *bytes > PTRDIFF_MAX)
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

/* A sample that could not be read has any number of fields: none count. */
static int list_views(leat_sample *sample, view out[LEAT_MAX_FIELDS + 1])
{
    int n = 0;
    int nfields = sample->nfields <= LEAT_MAX_FIELDS ? sample->nfields : 0;
    for (int i = 0; i < nfields; i++)
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

/* Rounded up to the alignment of what is taken; 0: it overflows. */
static size_t aligned(size_t bytes)
{
    size_t more = LEAT__ALIGNMENT - 1;
    return bytes > SIZE_MAX - more ? 0 : (bytes + more) & ~more;
}

/* Points the views into the buffer to the same places in another. */
static void move_views(leat_sample *sample, const char *to)
{
    view views[LEAT_MAX_FIELDS + 1];
    int n = list_views(sample, views);
    for (int i = 0; i < n; i++)
        if (is_in_buffer(sample, &views[i]))
            *views[i].data =
                to + ((const char *)*views[i].data - (char *)sample->buffer);
}

/* Moves to a buffer of `bytes`, and the views into the old one along. */
static int move(leat_sample *sample, size_t bytes)
{
    char *buffer = leat__alloc_from(sample->allocator, bytes, LEAT__ALIGNMENT);
    if (!buffer)
        return LEAT_ENOMEM;
    char *old = sample->buffer;
    if (sample->taken)
        memcpy(buffer, old, sample->taken);
    move_views(sample, buffer);
    leat__free_to(sample->allocator, old, sample->buffer_size, LEAT__ALIGNMENT);
    sample->buffer = buffer;
    sample->buffer_size = bytes;
    return LEAT_OK;
}

int leat__sample_reserve(leat_sample *sample, size_t bytes)
{
    if (bytes <= sample->buffer_size)
        return LEAT_OK;
    /* Growing by half lets varying sizes settle early. */
    size_t half = bytes < SIZE_MAX / 2 ? sample->buffer_size / 2 : 0;
    return move(sample, bytes + half);
}

/* Exchanges the buffers of two samples, each with its contents in the other. */
static void swap_buffers(leat_sample *a, leat_sample *b)
{
    const leat_sample kept = {.buffer = a->buffer,
                              .buffer_size = a->buffer_size,
                              .allocator = a->allocator,
                              .idle = a->idle};
    move_views(a, b->buffer);
    move_views(b, a->buffer);
    a->buffer = b->buffer;
    a->buffer_size = b->buffer_size;
    a->allocator = b->allocator;
    a->idle = b->idle;
    b->buffer = kept.buffer;
    b->buffer_size = kept.buffer_size;
    b->allocator = kept.allocator;
    b->idle = kept.idle;
}

/* Whether a buffer is large for both contents. */
static bool is_roomy(const leat_sample *sample, const leat_sample *other)
{
    size_t part = sample->buffer_size / SHARE;
    return sample->buffer_size > ROOMY && sample->taken < part &&
           other->taken < part && sample->idle >= 0 && other->idle >= 0;
}

void leat__sample_exchange(leat_sample *held, leat_sample *callers)
{
    leat_sample_swap(held, callers);
    if (!is_roomy(held, callers) ||
        (held->taken > callers->buffer_size && move(callers, held->taken)))
        return;
    char *large = held->buffer, *small = callers->buffer;
    char *aside = large + held->buffer_size - callers->taken;
    if (callers->taken)
        memcpy(aside, small, callers->taken);
    if (held->taken)
        memcpy(small, large, held->taken);
    if (callers->taken)
        memmove(large, aside, callers->taken);
    swap_buffers(held, callers);
}

int leat_sample_move(leat_sample *to, leat_sample *from)
{
    if (to == from)
        return LEAT_OK;
    if (to->nfields == 0) {
        leat__sample_exchange(from, to);
        return LEAT_OK;
    }
    if (to->nfields + from->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "a sample has %d fields, and %d are added: expected "
                          "at most %d in sum",
                          to->nfields, from->nfields, LEAT_MAX_FIELDS);
    int status = LEAT_OK;
    for (int i = 0; i < from->nfields && !status; i++) {
        leat_field *field = &to->field[to->nfields];
        *field = from->field[i];
        if (!leat__sample_lasts(from, field->data))
            status = copy_view(to, &field->data, field->bytes);
        to->nfields += !status;
    }
    to->stable &= from->stable;
    to->from.source = from->from.source;
    to->from.record = from->from.record;
    to->from.key = from->from.key;
    to->from.key_size = from->from.key_size;
    to->from.key_cut = from->from.key_cut;
    if (!leat__sample_lasts(from, from->from.key) && !status)
        status = copy_view(to, &to->from.key, to->from.key_size);
    return status;
}

void *leat_sample_take(leat_sample *sample, size_t bytes)
{
    size_t at = sample->taken;
    size_t size = aligned(bytes > 0 ? bytes : 1);
    if (size == 0 || size > SIZE_MAX - at) {
        (void)leat_error(LEAT_ENOMEM, "a sample's buffer cannot have %zu bytes",
                         bytes);
        return NULL;
    }
    if (at + size > sample->buffer_size &&
        leat__sample_reserve(sample, at + size))
        return NULL;
    sample->taken = at + size;
    return (char *)sample->buffer + at;
}

/* The bytes that the views outside of the buffer need in it. Errors:
 * LEAT_ENOMEM. */
static int measure(const leat_sample *sample, const view *views, int n,
                   size_t *more)
{
    *more = 0;
    for (int i = 0; i < n; i++) {
        size_t bytes = aligned(views[i].bytes);
        if (is_in_buffer(sample, &views[i]))
            continue;
        if ((bytes == 0 && views[i].bytes > 0) ||
            __builtin_add_overflow(*more, bytes, more))
            return leat_error(LEAT_ENOMEM, "a sample's views overflow");
    }
    return LEAT_OK;
}

int leat_sample_own(leat_sample *sample)
{
    view views[LEAT_MAX_FIELDS + 1];
    size_t more;
    int n = list_views(sample, views);
    int status = measure(sample, views, n, &more);
    if (status || more == 0)
        return status;
    if (more > SIZE_MAX - sample->taken)
        return leat_error(LEAT_ENOMEM, "a sample's views overflow");
    status = leat__sample_reserve(sample, sample->taken + more);
    for (int i = 0; i < n && !status; i++) {
        if (is_in_buffer(sample, &views[i]) || !views[i].bytes)
            continue;
        void *to = leat_sample_take(sample, views[i].bytes);
        memcpy(to, *views[i].data, views[i].bytes);
        *views[i].data = to;
    }
    return status;
}
