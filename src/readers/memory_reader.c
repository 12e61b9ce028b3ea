/* Samples in memory, sliced along the first axis. */
#include "base/error.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Owned by the pipeline: the fields, with copies of their names. */
typedef struct memory_slices {
    int64_t count;
    int nfields;
    leat_memory_field field[LEAT_MAX_FIELDS];
    leat_field_spec spec[LEAT_MAX_FIELDS];
    size_t bytes[LEAT_MAX_FIELDS]; /* of one sample */
    char name[LEAT_MAX_FIELDS][64];
} memory_slices;

typedef struct memory_reader {
    leat_reader reader;
    const memory_slices *slices; /* borrowed from the pipeline */
    int64_t next;                /* used by one caller at a time */
    atomic_bool cancelled;
} memory_reader;

static int memory_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    const memory_reader *memory = (const memory_reader *)reader;
    *out = memory->slices->spec;
    *n = memory->slices->nfields;
    return LEAT_OK;
}

static void fill(const memory_slices *slices, int64_t index,
                 leat_sample *sample)
{
    leat_field *field = &sample->field[sample->nfields];
    sample->nfields += slices->nfields;
    for (int i = 0; i < slices->nfields; i++, field++) {
        const leat_memory_field *from = &slices->field[i];
        field->dtype = from->dtype;
        field->ndim = from->ndim;
        for (int k = 0; k < from->ndim; k++)
            field->shape[k] = from->shape[k];
        field->bytes = slices->bytes[i];
        /* Without elements, data may be NULL. */
        field->data = from->data;
        if (field->bytes > 0)
            field->data =
                (const char *)from->data + (size_t)index * slices->bytes[i];
    }
    sample->from.source = "memory";
    sample->from.record = index;
}

static int check_running(memory_reader *memory)
{
    if (!atomic_load_explicit(&memory->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "memory: reading was cancelled");
}

static int memory_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    memory_reader *memory = (memory_reader *)reader;
    int status = check_running(memory);
    if (status)
        return status;
    for (int i = 0; i < n; i++)
        fill(memory->slices, at[i].index, out[i]);
    *got = n;
    return LEAT_OK;
}

static int memory_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    memory_reader *memory = (memory_reader *)reader;
    int status = check_running(memory);
    if (status)
        return status;
    while (*got < n && memory->next < memory->slices->count)
        fill(memory->slices, memory->next++, out[(*got)++]);
    return *got == n ? LEAT_OK : LEAT_END;
}

static void memory_cancel(leat_reader *reader)
{
    atomic_store(&((memory_reader *)reader)->cancelled, 1);
}

static void memory_close(leat_reader *reader)
{
    leat__free(reader);
}

static int memory_count(leat_reader *reader, int64_t *out)
{
    *out = ((memory_reader *)reader)->slices->count;
    return LEAT_OK;
}

static int memory_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    memory_reader *memory = (memory_reader *)reader;
    (void)mark;
    if (position.index > memory->slices->count)
        return leat_error(
            LEAT_EINVAL, "sample %lld is out of range: there are %lld",
            (long long)position.index, (long long)memory->slices->count);
    memory->next = position.index;
    return LEAT_OK;
}

static int memory_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    memory_reader *memory = (memory_reader *)reader;
    int64_t left = memory->slices->count - memory->next;
    int status = check_running(memory);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    memory->next += *skipped;
    return *skipped == n ? LEAT_OK : LEAT_END;
}

static int memory_save(leat_reader *reader, leat_token *token)
{
    int64_t count = ((memory_reader *)reader)->slices->count;
    return leat_token_put(token, &count, sizeof(count));
}

static int memory_restore(leat_reader *reader, leat_token *token)
{
    int64_t count;
    int status = leat_token_get(token, &count, sizeof(count));
    if (status)
        return status;
    int64_t here = ((memory_reader *)reader)->slices->count;
    if (count != here)
        return leat_error(LEAT_EINVAL,
                          "the resume token is of another data set, of %lld "
                          "samples; this one has %lld",
                          (long long)count, (long long)here);
    return memory_seek(reader, (leat_position){0, 0}, NULL);
}

static const leat_reader_ops memory_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "memory",
    .fields = memory_fields,
    .next = memory_next,
    .seek = memory_seek,
    .cancel = memory_cancel,
    .close = memory_close,
    .count = memory_count,
    .read_at = memory_read_at,
    .skip = memory_skip,
    .save = memory_save,
    .restore = memory_restore,
};

static int memory_open(const leat_open *open, leat_reader **out)
{
    memory_reader *memory = leat__alloc_zero(1, sizeof(*memory));
    if (!memory)
        return LEAT_ENOMEM;
    memory->reader.ops = &memory_ops;
    memory->slices = leat_args_object(open->args);
    *out = &memory->reader;
    return LEAT_OK;
}

static const leat_reader_type memory_type = {
    .size = sizeof(leat_reader_type),
    .name = "memory",
    .open = memory_open,
};

static int add_field(memory_slices *slices, int i,
                     const leat_memory_field *field)
{
    size_t bytes = leat_dtype_size(field->dtype);
    if (bytes == 0 || field->ndim < 0 || field->ndim > LEAT_MAX_DIMS)
        return leat_error(LEAT_EINVAL,
                          "field %d: unknown type or number of dimensions", i);
    for (int k = 0; k < field->ndim; k++) {
        if (field->shape[k] < 0 ||
            leat__multiply(bytes, (size_t)field->shape[k], &bytes))
            return leat_error(LEAT_EINVAL, "field %d: dimension %d is %lld", i,
                              k, (long long)field->shape[k]);
    }
    size_t whole;
    if (leat__multiply(bytes, (size_t)slices->count, &whole))
        return leat_error(LEAT_EINVAL, "field %d: its size overflows", i);
    if (!field->data && whole > 0)
        return leat_error(LEAT_EINVAL, "field %d: its data is NULL", i);
    slices->field[i] = *field;
    slices->bytes[i] = bytes;
    snprintf(slices->name[i], sizeof(slices->name[i]), "%s",
             field->name ? field->name : "");
    leat_field_spec *spec = &slices->spec[i];
    spec->name = slices->name[i];
    spec->dtype = field->dtype;
    spec->ndim = field->ndim;
    memcpy(spec->shape, field->shape, sizeof(spec->shape));
    return LEAT_OK;
}

int leat_pipeline_memory(leat_pipeline **out, const leat_memory_field fields[],
                         int nfields, int64_t count)
{
    if (!fields || nfields < 1 || nfields > LEAT_MAX_FIELDS || count < 0)
        return leat_error(LEAT_EINVAL,
                          "expected 1 to %d fields and a count from 0, got %d "
                          "and %lld",
                          LEAT_MAX_FIELDS, nfields, (long long)count);
    memory_slices *slices = leat__alloc_zero(1, sizeof(*slices));
    if (!slices)
        return LEAT_ENOMEM;
    slices->count = count;
    slices->nfields = nfields;
    for (int i = 0; i < nfields; i++) {
        int status = add_field(slices, i, &fields[i]);
        if (status) {
            leat__free(slices);
            return status;
        }
    }
    return leat_pipeline_create(out, &memory_type, NULL, slices, leat__free,
                                NULL, 0);
}
