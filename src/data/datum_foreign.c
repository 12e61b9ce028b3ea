#include "data/datum_foreign.h"
#include "base/error.h"
#include "data/wire.h"

#include <stdbool.h>
#include <string.h>

/* "JPEG" or "PNG" by the first bytes; NULL: neither. */
static const char *image_format(const unsigned char *bytes, size_t size)
{
    if (size >= 3 && !memcmp(bytes, "\xff\xd8\xff", 3))
        return "JPEG";
    if (size >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8))
        return "PNG";
    return NULL;
}

/* A message's fields by number, 1 to 15, and wire type. */
typedef struct outline {
    unsigned varints; /* a bit for each number */
    unsigned bytes;
    unsigned others; /* other types, and numbers from 16 on as bit 0 */
    const unsigned char
        *first; /* contents of the first field 1 of type bytes */
    size_t first_size;
} outline;

/* Whether the bytes are a message with at least one field. */
static bool read_outline(outline *out, const void *bytes, size_t size)
{
    leat__wire wire;
    leat__wire_field field;
    int status;
    *out = (outline){0};
    leat__wire_init(&wire, bytes, size);
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        unsigned bit = field.number < 16 ? 1u << field.number : 1;
        if (field.number < 16 && field.type == LEAT__WIRE_VARINT) {
            out->varints |= bit;
        } else if (field.number < 16 && field.type == LEAT__WIRE_BYTES) {
            if (field.number == 1 && !(out->bytes & bit)) {
                out->first = field.bytes;
                out->first_size = field.size;
            }
            out->bytes |= bit;
        } else {
            out->others |= bit;
        }
    }
    return status == LEAT_END && size > 0;
}

#define BIT(number) (1u << (number))

/* SSD: datum = 1, type = 2 (an enum), annotation_group = 3. */
static bool is_annotated(const outline *record)
{
    outline datum;
    if ((record->varints & ~BIT(2)) || (record->bytes & ~(BIT(1) | BIT(3))) ||
        record->others || !record->first ||
        !read_outline(&datum, record->first, record->first_size))
        return false;
    /* Of a Datum: data, and width, label or encoded, which are numbers. */
    return (datum.bytes & BIT(4)) && !(datum.bytes & ~(BIT(4) | BIT(6))) &&
           (datum.varints & (BIT(3) | BIT(5) | BIT(7)));
}

/*
 * Caffe2: tensors = 1, each with dims = 1, data_type = 2, the elements in one
 * of 3 to 6, 9 and 10, and name = 7. What would be a Datum's width, label and
 * encoded are no varints there.
 */
static bool is_tensors(const outline *record)
{
    const unsigned elements =
        BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(9) | BIT(10);
    outline tensor;
    if (record->varints || record->bytes != BIT(1) || record->others ||
        !read_outline(&tensor, record->first, record->first_size))
        return false;
    return (tensor.varints & (BIT(1) | BIT(2))) &&
           !(tensor.varints & (BIT(3) | BIT(5) | BIT(7))) &&
           ((tensor.bytes | tensor.others) & elements);
}

/* Whether a new error line was set. */
static bool name_foreign(const leat_datum *datum, const void *bytes,
                         size_t size, int status)
{
    outline record;
    const char *format =
        datum ? image_format(datum->data, datum->data_size) : NULL;
    if (format && !datum->encoded) {
        leat_error(status,
                   "Datum of %d x %d x %d: its data is a %s file, but encoded "
                   "is not set: write the records with encoded: true",
                   datum->channels, datum->height, datum->width, format);
        return true;
    }
    format = image_format(bytes, size);
    if (format) {
        leat_error(status,
                   "expected a Datum, found a %s file: make an LMDB of the "
                   "images with leat import images",
                   format);
        return true;
    }
    if (!read_outline(&record, bytes, size))
        return false;
    if (is_annotated(&record)) {
        leat_error(status, "expected a Datum, found SSD's AnnotatedDatum, an "
                           "image with boxes: write the Datum within each as "
                           "the record");
        return true;
    }
    if (is_tensors(&record)) {
        leat_error(status, "expected Caffe's Datum, found Caffe2's "
                           "TensorProtos: write the image and label of each as "
                           "a Datum");
        return true;
    }
    return false;
}

int leat__datum_foreign(const leat_datum *datum, const void *bytes, size_t size,
                        int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    /* Parsing may set other lines. */
    if (status == LEAT_EDATA && !name_foreign(datum, bytes, size, status))
        leat_error(status, "%s", line);
    return status;
}
