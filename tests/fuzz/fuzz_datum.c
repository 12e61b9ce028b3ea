/* fuzz_datum.c: any bytes as a Datum. */
#include <leat/datum.h>

#include <stdlib.h>

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that a view lets one read. */
static unsigned touch(const void *view, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const unsigned char *)view)[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat_sample sample;
    leat_datum datum;
    if (leat_datum_parse(&datum, data, size) == LEAT_OK) {
        sink += touch(datum.data, datum.data_size);
        if (datum.float_data)
            sink += touch(datum.float_data, datum.float_count * sizeof(float));
    }
    leat_sample_clear(&sample);
    if (leat_datum_fields(&sample, data, size) == LEAT_OK) {
        const leat_field *field = &sample.field[0];
        size_t count = leat_dtype_size(field->dtype);
        for (int i = 0; i < field->ndim; i++)
            count *= (size_t)field->shape[i];
        if (count > field->bytes)
            abort();
        sink += touch(field->data, field->bytes);
    }
    return 0;
}
