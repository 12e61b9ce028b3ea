/* The next sample of a reader as blobs, one for each field. */
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/reader_state.h"

#include <leat/blob.h>

#include <stdbool.h>
#include <string.h>

/* A scalar is one element: without axes a blob has none. Groups of bytes have
   axes of their own. */
static int copy_field(leat_blob *blob, const leat_field *field)
{
    static const int64_t one[] = {1};
    const int64_t bytes[] = {(int64_t)field->bytes};
    bool is_flat = field->dtype == LEAT_BYTES && field->ndim < 2;
    const int64_t *shape = is_flat            ? bytes
                           : field->ndim == 0 ? one
                                              : field->shape;
    int ndim = is_flat || field->ndim == 0 ? 1 : field->ndim;
    int status = leat_blob_reshape(blob, field->dtype, ndim, shape);
    size_t size = leat_blob_bytes(blob);
    if (status || size == 0)
        return status;
    if (size > field->bytes)
        return leat_error(LEAT_EDATA,
                          "its %zu bytes are fewer than its shape "
                          "needs",
                          field->bytes);
    void *to = leat_blob_mutable_cpu_data(blob);
    if (!to)
        return LEAT_ENOMEM;
    memcpy(to, field->data, size);
    return LEAT_OK;
}

int leat_read(leat_reader *reader, leat_blob *const blobs[], int n)
{
    leat_sample *sample = &reader->state->scratch;
    const leat_field_spec *spec;
    int nfields;
    int status = leat_reader_fields(reader, &spec, &nfields);
    if (!status && n != nfields)
        return leat_error(LEAT_EINVAL,
                          "%d blobs for %d fields: expected one for each, NULL "
                          "for those that are left out",
                          n, nfields);
    if (!status)
        status = leat_reader_next(reader, sample);
    if (!status && sample->nfields < n)
        status = leat_error(LEAT_EDATA, "a sample has %d fields, expected %d",
                            sample->nfields, n);
    for (int i = 0; i < n && !status; i++) {
        if (blobs[i])
            status = copy_field(blobs[i], &sample->field[i]);
        if (status)
            status = leat__error_context(status, "field \"%s\"", spec[i].name);
    }
    return status;
}
