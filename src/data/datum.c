#include "base/error.h"
#include "base/memory.h"
#include "data/datum_foreign.h"
#include "data/sample.h"
#include "data/wire.h"

#include <leat/datum.h>

#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "floats are viewed in wire order");

/* Datum's field numbers (proto/datum.proto). */
enum {
    CHANNELS = 1,
    HEIGHT = 2,
    WIDTH = 3,
    DATA = 4,
    LABEL = 5,
    FLOAT_DATA = 6,
    ENCODED = 7
};

static void take_varint(leat_datum *datum, const leat__wire_field *field)
{
    /* An int32 keeps the low half of its varint. */
    int32_t value = (int32_t)(uint32_t)field->value;
    switch (field->number) {
    case CHANNELS:
        datum->channels = value;
        break;
    case HEIGHT:
        datum->height = value;
        break;
    case WIDTH:
        datum->width = value;
        break;
    case LABEL:
        datum->label = value;
        break;
    case ENCODED:
        datum->encoded = field->value != 0;
        break;
    default:
        break;
    }
}

static bool is_floats(const leat__wire_field *field)
{
    return field->number == FLOAT_DATA && (field->type == LEAT__WIRE_BYTES ||
                                           field->type == LEAT__WIRE_FIXED32);
}

static int ragged_floats(size_t size)
{
    return leat_error(
        LEAT_EDATA, "float_data has %zu bytes, expected a multiple of 4", size);
}

/* Only a single packed piece can be viewed. */
static int take_floats(leat_datum *datum, const leat__wire_field *field)
{
    if (field->size % sizeof(float))
        return ragged_floats(field->size);
    if (!field->size)
        return LEAT_OK;
    bool alone = datum->float_count == 0 && field->type == LEAT__WIRE_BYTES;
    datum->float_data = alone ? field->bytes : NULL;
    datum->float_count += field->size / sizeof(float);
    return LEAT_OK;
}

/*
 * Parses a Datum as Caffe's tools write it, with exactly these fields in this
 * order, without a loop. Returns false for any other message.
 */
static bool parse_usual(leat_datum *out, leat__wire wire)
{
    uint32_t channels, height, width, size, label = 0, encoded = 0;
    if (!leat__wire_take(&wire, CHANNELS << 3, &channels) ||
        !leat__wire_take(&wire, HEIGHT << 3, &height) ||
        !leat__wire_take(&wire, WIDTH << 3, &width) ||
        !leat__wire_take(&wire, DATA << 3 | LEAT__WIRE_BYTES, &size) ||
        size > (size_t)(wire.end - wire.at))
        return false;
    const unsigned char *data = wire.at;
    wire.at += size;
    leat__wire_take(&wire, LABEL << 3, &label);
    leat__wire_take(&wire, ENCODED << 3, &encoded);
    if (wire.at != wire.end)
        return false;
    *out = (leat_datum){.channels = (int32_t)channels,
                        .height = (int32_t)height,
                        .width = (int32_t)width,
                        .label = (int32_t)label,
                        .encoded = encoded != 0,
                        .data = data,
                        .data_size = size};
    return true;
}

/* Any fields in any order. Not inlined, so that the usual case needs no stack.
 */
__attribute__((noinline)) static int parse_any(leat_datum *out, bool *has_label,
                                               leat__wire wire)
{
    leat_datum datum = {0};
    *has_label = false;
    leat__wire_field field;
    int status;
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        if (field.type == LEAT__WIRE_VARINT) {
            take_varint(&datum, &field);
            *has_label |= field.number == LABEL;
        } else if (field.number == DATA && field.type == LEAT__WIRE_BYTES) {
            datum.data = field.bytes;
            datum.data_size = field.size;
        } else if (is_floats(&field)) {
            if ((status = take_floats(&datum, &field)))
                return status;
        }
    }
    if (status < 0)
        return status;
    *out = datum;
    return LEAT_OK;
}

/* *has_label is unchanged if there are no floats. */
static inline int parse(leat_datum *out, bool *has_label, const void *bytes,
                        size_t size)
{
    leat__wire wire;
    leat__wire_init(&wire, bytes, size);
    return parse_usual(out, wire) ? LEAT_OK : parse_any(out, has_label, wire);
}

int leat_datum_parse(leat_datum *out, const void *bytes, size_t size)
{
    bool has_label;
    return parse(out, &has_label, bytes, size);
}

int leat_datum_floats(float *out, size_t count, const void *bytes, size_t size)
{
    leat__wire wire;
    leat__wire_field field;
    size_t done = 0;
    int status;
    leat__wire_init(&wire, bytes, size);
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        if (!is_floats(&field))
            continue;
        size_t n = field.size / sizeof(float);
        if (field.size % sizeof(float))
            return ragged_floats(field.size);
        if (n > count - done)
            break;
        memcpy(out + done, field.bytes, field.size);
        done += n;
    }
    if (status < 0)
        return status;
    if (status != LEAT_END || done != count)
        return leat_error(LEAT_EDATA, "float_data does not have %zu floats",
                          count);
    return LEAT_OK;
}

static int bad_dimensions(const leat_datum *datum, const char *what)
{
    return leat_error(LEAT_EDATA, "Datum of %d x %d x %d: %s", datum->channels,
                      datum->height, datum->width, what);
}

static int short_payload(const leat_datum *datum, const char *name, size_t has,
                         size_t needs, const char *unit)
{
    return leat_error(
        LEAT_EDATA, "Datum of %d x %d x %d needs %zu %s, %s has %zu",
        datum->channels, datum->height, datum->width, needs, unit, name, has);
}

/* Checks that the payload fills the shape, which has `*count` elements. */
static int check_payload(const leat_datum *datum, size_t *count)
{
    if (datum->encoded)
        return datum->data_size ? LEAT_OK
                                : leat_error(LEAT_EDATA, "encoded Datum "
                                                         "without data");
    if (datum->channels <= 0 || datum->height <= 0 || datum->width <= 0)
        return bad_dimensions(datum, "dimensions must be positive");
    size_t plane, bytes;
    if (leat__multiply((size_t)datum->height, (size_t)datum->width, &plane) ||
        leat__multiply(plane, (size_t)datum->channels, count) ||
        leat__multiply(*count, sizeof(float), &bytes) || bytes > INT64_MAX)
        return bad_dimensions(datum, "dimensions are too large");
    if (datum->data_size)
        return datum->data_size >= *count
                   ? LEAT_OK
                   : short_payload(datum, "data", datum->data_size, *count,
                                   "bytes");
    if (!datum->float_count)
        return leat_error(LEAT_EDATA, "Datum has neither data nor float_data");
    return datum->float_count >= *count
               ? LEAT_OK
               : short_payload(datum, "float_data", datum->float_count, *count,
                               "floats");
}

static void set_image_shape(leat_field *field, const leat_datum *datum)
{
    field->ndim = 3;
    field->shape[0] = datum->channels;
    field->shape[1] = datum->height;
    field->shape[2] = datum->width;
}

/* Floats in one piece are a view; scattered ones are gathered in the buffer. */
static int set_floats(leat_sample *sample, leat_field *field,
                      const leat_datum *datum, const void *bytes, size_t size)
{
    field->data = datum->float_data;
    field->dtype = LEAT_FLOAT32;
    field->bytes = datum->float_count * sizeof(float);
    set_image_shape(field, datum);
    if (datum->float_data)
        return LEAT_OK;
    float *floats = leat_sample_take(sample, field->bytes);
    field->data = floats;
    return floats ? leat_datum_floats(floats, datum->float_count, bytes, size)
                  : LEAT_ENOMEM;
}

static void set_bytes(leat_field *field, const leat_datum *datum)
{
    field->data = datum->data;
    field->bytes = datum->data_size;
    if (!datum->encoded) {
        field->dtype = LEAT_UINT8;
        set_image_shape(field, datum);
        return;
    }
    field->dtype = LEAT_BYTES;
    field->ndim = 1;
    field->shape[0] = (int64_t)datum->data_size;
}

/* The class, at offset `at` of the sample's buffer. */
static void set_label(leat_sample *sample, leat_field *field,
                      const leat_datum *datum, size_t at)
{
    void *label = (char *)sample->buffer + at;
    memcpy(label, &datum->label, sizeof(datum->label));
    field->dtype = LEAT_INT32;
    field->ndim = 0;
    field->data = label;
    field->bytes = sizeof(datum->label);
}

/* Several labels: the floats beside the pixels, copied to the buffer. */
__attribute__((noinline)) static int set_labels(leat_sample *sample,
                                                leat_field *field,
                                                const leat_datum *datum,
                                                const void *bytes, size_t size)
{
    size_t need = datum->float_count * sizeof(float);
    float *labels = leat_sample_take(sample, need);
    if (!labels)
        return LEAT_ENOMEM;
    *field = (leat_field){.dtype = LEAT_FLOAT32,
                          .ndim = 1,
                          .shape = {(int64_t)datum->float_count},
                          .data = labels,
                          .bytes = need};
    return leat_datum_floats(labels, datum->float_count, bytes, size);
}

int leat_datum_fields(leat_sample *sample, const void *bytes, size_t size)
{
    leat_datum datum;
    size_t count;
    bool has_label = true;
    if (sample->nfields > LEAT_MAX_FIELDS - 2)
        return leat_error(LEAT_EINVAL,
                          "a Datum has 2 fields, and the sample %d already: "
                          "expected at most %d in sum",
                          sample->nfields, LEAT_MAX_FIELDS);
    int status = parse(&datum, &has_label, bytes, size);
    if (status)
        return leat__datum_foreign(NULL, bytes, size, status);
    if ((status = check_payload(&datum, &count)))
        return leat__datum_foreign(&datum, bytes, size, status);
    /* The label's room: what follows may move the buffer. */
    size_t label_at = sample->taken;
    if (!leat__sample_take(sample, sizeof(datum.label)))
        return LEAT_ENOMEM;
    leat_field *field = &sample->field[sample->nfields];
    if (datum.data_size)
        set_bytes(field, &datum);
    else if ((status = set_floats(sample, field, &datum, bytes, size)))
        return status;
    if (!datum.data_size || !datum.float_count || has_label)
        set_label(sample, field + 1, &datum, label_at);
    else if ((status = set_labels(sample, field + 1, &datum, bytes, size)))
        return status;
    sample->nfields += 2;
    return LEAT_OK;
}

/* An encoded image without dimensions has none to write. */
static bool has_dimensions(const leat_datum *datum)
{
    return !datum->encoded || datum->channels || datum->height || datum->width;
}

/* A negative int32 is written as the int64 of the same value. */
static uint64_t extended(int32_t value)
{
    return (uint64_t)(int64_t)value;
}

/* Floats beside pixels are the labels if there is no class. */
static bool writes_label(const leat_datum *datum)
{
    return datum->label || !datum->data_size || !datum->float_data ||
           !datum->float_count;
}

size_t leat_datum_size(const leat_datum *datum)
{
    size_t size = writes_label(datum)
                      ? 1 + leat__wire_varint_size(extended(datum->label))
                      : 0;
    if (has_dimensions(datum))
        size += 3 + leat__wire_varint_size(extended(datum->channels)) +
                leat__wire_varint_size(extended(datum->height)) +
                leat__wire_varint_size(extended(datum->width));
    if (datum->data_size)
        size += 1 + leat__wire_varint_size(datum->data_size) + datum->data_size;
    if (datum->float_data)
        size += datum->float_count * (1 + sizeof(float));
    return size + (datum->encoded ? 2 : 0);
}

static unsigned char *put_int(unsigned char *out, int number, int32_t value)
{
    out = leat__wire_put_tag(out, number, LEAT__WIRE_VARINT);
    return leat__wire_put_varint(out, extended(value));
}

size_t leat_datum_write(const leat_datum *datum, void *out)
{
    unsigned char *at = out;
    if (has_dimensions(datum)) {
        at = put_int(at, CHANNELS, datum->channels);
        at = put_int(at, HEIGHT, datum->height);
        at = put_int(at, WIDTH, datum->width);
    }
    if (datum->data_size) {
        at = leat__wire_put_tag(at, DATA, LEAT__WIRE_BYTES);
        at = leat__wire_put_varint(at, datum->data_size);
        memcpy(at, datum->data, datum->data_size);
        at += datum->data_size;
    }
    if (writes_label(datum))
        at = put_int(at, LABEL, datum->label);
    for (size_t i = 0; datum->float_data && i < datum->float_count; i++) {
        at = leat__wire_put_tag(at, FLOAT_DATA, LEAT__WIRE_FIXED32);
        memcpy(at, datum->float_data + i * sizeof(float), sizeof(float));
        at += sizeof(float);
    }
    if (datum->encoded)
        at = put_int(at, ENCODED, 1);
    return (size_t)(at - (unsigned char *)out);
}
