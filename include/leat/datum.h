/* leat/datum.h: Caffe's record, read and written without copying. */
#ifndef LEAT_DATUM_H
#define LEAT_DATUM_H

#include <leat/sample.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Caffe's Datum (proto/datum.proto). Its bytes are views into what was parsed.
 *
 * Fields that the message lacks are 0, as in proto2 with its defaults. When
 * float_data is packed in one piece, `float_data` is a view of little-endian
 * floats, not necessarily aligned; when it is scattered (unpacked or in several
 * pieces), `float_data` is NULL and leat_datum_floats gathers it.
 */
typedef struct leat_datum {
    int32_t channels; /* of a raw image; an encoded image has its own */
    int32_t height;   /* pixels */
    int32_t width;    /* pixels */
    int32_t label;    /* the class */
    int encoded;      /* data holds an encoded image */
    const unsigned char
        *data;        /* channels x height x width bytes, or an image */
    size_t data_size; /* bytes */
    const unsigned char *float_data; /* the floats, or NULL: see above */
    size_t float_count;              /* floats, scattered ones included */
} leat_datum;

/**
 * Reads the Datum in `size` bytes of protobuf wire format.
 *
 * Checks the wire format only; leat_datum_fields checks the values. Unknown
 * fields are skipped; of a repeated scalar the last one counts. The views are
 * borrowed from `bytes`. Errors: LEAT_EDATA for a message cut short or
 * malformed. Thread safety: any thread.
 */
LEAT_API int leat_datum_parse(leat_datum *out, const void *bytes, size_t size);

/**
 * Copies the `count` floats of the Datum in `bytes` to `out`, however they are
 * laid out. `count` is the float_count that leat_datum_parse gave.
 * Errors: LEAT_EDATA. Thread safety: any thread.
 */
LEAT_API int leat_datum_floats(float *out, size_t count, const void *bytes,
                               size_t size);

/**
 * Appends the fields `data` and `label` to a sample, which leat_sample_clear
 * has emptied, from the Datum in `bytes`. Its provenance is left alone.
 *
 * `data` is LEAT_BYTES for an encoded image, else LEAT_UINT8 or LEAT_FLOAT32 of
 * channels x height x width; non-empty data wins over float_data. `label` is a
 * LEAT_INT32 scalar; of a Datum without `label`, but with float_data beside
 * non-empty data, it is the float_data, LEAT_FLOAT32 in one dimension: several
 * labels, as `leat import images --labels` writes them. Views of `bytes`, but
 * for scattered floats and the label, which lie in the sample's buffer.
 * Errors: LEAT_EDATA when the dimensions are not positive, their product
 * overflows or the payload is shorter than it; LEAT_EINVAL where the sample
 * has no room for them; LEAT_ENOMEM.
 * Thread safety: one caller a sample.
 */
LEAT_API int leat_datum_fields(leat_sample *sample, const void *bytes,
                               size_t size);

/**
 * The number of bytes that leat_datum_write writes. Thread safety: any thread.
 */
LEAT_API size_t leat_datum_size(const leat_datum *datum);

/**
 * Writes the Datum in wire format, fields in the order of their numbers, as
 * Caffe's tools do: label always, but for one of 0 where there are both data
 * and float_data, which is then several labels (leat_datum_fields); channels,
 * height and width too, 0 or not, but for an encoded image that has none of
 * them; data, float_data (each float by itself) and encoded where there is
 * something to write. `out` has leat_datum_size bytes. Returns the bytes
 * written. Thread safety: any thread.
 */
LEAT_API size_t leat_datum_write(const leat_datum *datum, void *out);

#ifdef __cplusplus
}
#endif
#endif
