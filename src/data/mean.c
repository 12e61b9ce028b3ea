#include "data/mean.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/wire.h"

#include <leat/transform.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are copied in wire order");

/* protobuf's limit for a message, which is also Caffe's. */
#define MEAN_BYTES_MAX ((size_t)INT_MAX)

/* Bytes of a BlobProto beside its values: of its shape. */
#define MEAN_REST_MAX ((size_t)64 << 10)
/* Bytes of a value: in data, diff, double_data and double_diff, with tags. */
#define MEAN_VALUE_MAX (5 + 5 + 9 + 9)

/* BlobProto's field numbers, and BlobShape's (proto/net.proto). */
enum {
    NUM = 1,
    CHANNELS = 2,
    HEIGHT = 3,
    WIDTH = 4,
    DATA = 5,
    DIFF = 6,
    SHAPE = 7,
    DOUBLE_DATA = 8,
    DOUBLE_DIFF = 9
};
enum { DIM = 1 };

/* A summary of a BlobProto; its values are not copied. */
typedef struct blob_summary {
    bool has_old_shape;
    int64_t old_shape[4]; /* num, channels, height, width */
    bool has_shape;
    int64_t dim[4]; /* the first axes of the new shape */
    size_t axes;
    size_t floats;
    size_t doubles;
} blob_summary;

static void add_axis(blob_summary *blob, uint64_t dim)
{
    if (blob->axes < 4)
        blob->dim[blob->axes] = (int64_t)dim;
    blob->axes++;
}

/* A BlobShape; of several in one message, the axes are joined. */
static int take_shape(blob_summary *blob, const leat__wire_field *shape)
{
    leat__wire wire, packed;
    leat__wire_field field;
    uint64_t dim;
    int status;
    blob->has_shape = true;
    leat__wire_init(&wire, shape->bytes, shape->size);
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        if (field.number != DIM)
            continue;
        if (field.type == LEAT__WIRE_VARINT)
            add_axis(blob, field.value);
        if (field.type != LEAT__WIRE_BYTES)
            continue;
        leat__wire_init(&packed, field.bytes, field.size);
        while (packed.at != packed.end) {
            status = leat__wire_varint(&packed, &dim);
            if (status)
                return status;
            add_axis(blob, dim);
        }
    }
    return status < 0 ? status : LEAT_OK;
}

/* Bytes of each value in a field, packed or single; 0: it holds none. */
static size_t value_size(const leat__wire_field *field)
{
    size_t size = 0;
    if (field->number == DATA || field->number == DIFF)
        size = sizeof(float);
    else if (field->number == DOUBLE_DATA || field->number == DOUBLE_DIFF)
        size = sizeof(double);
    leat__wire_type single =
        size == sizeof(float) ? LEAT__WIRE_FIXED32 : LEAT__WIRE_FIXED64;
    return field->type == LEAT__WIRE_BYTES || field->type == single ? size : 0;
}

static int take_blob_field(blob_summary *blob, const leat__wire_field *field)
{
    size_t size = value_size(field);
    if (size && field->size % size)
        return leat_error(LEAT_EDATA, "packed values end within one");
    if (field->number == DATA && size) {
        blob->floats += field->size / size;
    } else if (field->number == DOUBLE_DATA && size) {
        blob->doubles += field->size / size;
    } else if (field->number == SHAPE && field->type == LEAT__WIRE_BYTES) {
        return take_shape(blob, field);
    } else if (field->number <= WIDTH && field->type == LEAT__WIRE_VARINT) {
        blob->has_old_shape = true;
        /* An int32 keeps the low half of its varint. */
        blob->old_shape[field->number - NUM] = (int32_t)(uint32_t)field->value;
    }
    return LEAT_OK;
}

/*
 * Reads the message without copying it. As in protobuf's C++ parser, which
 * Caffe has, unknown fields, groups and known fields of another wire type are
 * skipped. Errors: LEAT_EDATA.
 */
static int read_blob(blob_summary *out, const void *bytes, size_t size)
{
    leat__wire wire;
    leat__wire_field field;
    int status;
    memset(out, 0, sizeof(*out));
    leat__wire_init(&wire, bytes, size);
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK)
        if ((status = take_blob_field(out, &field)))
            return status;
    return status < 0 ? status : LEAT_OK;
}

/*
 * The shape as Caffe takes it: the old fields if any of them is there. Of
 * several images (num) the first is the mean.
 */
static int read_shape(const char *name, const blob_summary *blob,
                      int64_t shape[4])
{
    if (blob->has_old_shape)
        memcpy(shape, blob->old_shape, sizeof(blob->old_shape));
    else if (!blob->has_shape)
        return leat_error(LEAT_EFORMAT,
                          "%s: expected a mean image (BlobProto), found no "
                          "shape in it",
                          name);
    else if (blob->axes != 4)
        return leat_error(LEAT_EFORMAT,
                          "%s: expected a mean of 4 axes, found %zu", name,
                          blob->axes);
    else
        memcpy(shape, blob->dim, sizeof(blob->dim));
    for (int i = 0; i < 4; i++)
        if (shape[i] < 1 || shape[i] > INT_MAX)
            return leat_error(LEAT_EFORMAT,
                              "%s: expected a mean of 1 x C x H x W, found "
                              "%lld x %lld x %lld x %lld",
                              name, (long long)shape[0], (long long)shape[1],
                              (long long)shape[2], (long long)shape[3]);
    return LEAT_OK;
}

/* The number of values of one image; the blob must have as many as its shape.
 */
static int count_values(const char *name, const blob_summary *blob,
                        const int64_t shape[4], size_t *out)
{
    size_t found = blob->doubles > 0 ? blob->doubles : blob->floats;
    size_t plane, image, all;
    if (leat__multiply((size_t)shape[2], (size_t)shape[3], &plane) ||
        leat__multiply(plane, (size_t)shape[1], &image) ||
        leat__multiply(image, (size_t)shape[0], &all) || all != found)
        return leat_error(LEAT_EFORMAT,
                          "%s: expected %lld x %lld x %lld x %lld values, "
                          "found %zu",
                          name, (long long)shape[0], (long long)shape[1],
                          (long long)shape[2], (long long)shape[3], found);
    *out = image;
    return LEAT_OK;
}

/* The first `n` values of the fields `number` of a message that was read. */
static void copy_values(double *to, size_t n, uint32_t number,
                        const void *bytes, size_t size)
{
    leat__wire wire;
    leat__wire_field field;
    leat__wire_init(&wire, bytes, size);
    while (n > 0 && leat__wire_next(&wire, &field) == LEAT_OK) {
        size_t step = value_size(&field);
        if (field.number != number || !step)
            continue;
        for (size_t at = 0; at < field.size && n > 0; at += step, n--) {
            float single = 0;
            if (step == sizeof(double)) {
                memcpy(to++, field.bytes + at, step);
                continue;
            }
            memcpy(&single, field.bytes + at, step);
            *to++ = single;
        }
    }
}

int leat__mean_parse(leat__mean *out, const char *name, const void *bytes,
                     size_t size)
{
    blob_summary blob;
    int64_t shape[4];
    size_t n = 0;
    if (read_blob(&blob, bytes, size))
        return leat_error(LEAT_EFORMAT,
                          "%s: expected a mean image (BlobProto), found "
                          "%zu bytes of something else",
                          name, size);
    int status = read_shape(name, &blob, shape);
    if (!status)
        status = count_values(name, &blob, shape, &n);
    if (status)
        return status;
    double *values = leat__alloc_zero(n, sizeof(*values));
    if (!values)
        return LEAT_ENOMEM;
    copy_values(values, n, blob.doubles > 0 ? DOUBLE_DATA : DATA, bytes, size);
    *out = (leat__mean){(int)shape[1], (int)shape[2], (int)shape[3], values};
    return LEAT_OK;
}

/* A varint at *at, which moves on; 0 where the bytes end within it. */
static bool take_varint(const char *bytes, size_t size, size_t *at,
                        uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *at < size; shift += 7) {
        unsigned char byte = (unsigned char)bytes[(*at)++];
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The beginning of a BlobProto, to bound its size. */
typedef struct beginning {
    uint64_t dim[4];  /* of the old form: num, channels, height, width */
    uint64_t rest;    /* bytes of all fields but the values */
    uint64_t claimed; /* bytes up to the end of the last field */
} beginning;

/* Takes a field; 0 where the bytes end within it, below 0 for none. */
static int take_field(beginning *found, const char *bytes, size_t size,
                      size_t *at)
{
    static const uint64_t fixed[8] = {[1] = 8, [5] = 4};
    size_t first = *at;
    uint64_t tag, length = 0;
    if (!take_varint(bytes, size, at, &tag))
        return 0;
    uint64_t number = tag >> 3;
    int type = (int)(tag & 7);
    if (number == 0 || (type != 0 && type != 2 && !fixed[type]))
        return -1;
    if ((type == 0 || type == 2) && !take_varint(bytes, size, at, &length))
        return 0;
    if (type == 0 && number <= 4)
        found->dim[number - 1] = length;
    length = type == 0 ? 0 : type == 2 ? length : fixed[type];
    if (length > MEAN_BYTES_MAX)
        return -1;
    /* data, diff, double_data and double_diff */
    if (number != 5 && number != 6 && number != 8 && number != 9)
        found->rest += *at - first + length;
    found->claimed = *at + length;
    *at += length < size - *at ? length : size - *at;
    return *at == found->claimed;
}

/*
 * A pipe has no size and may have other contents: reading stops if they are not
 * a BlobProto, and at the size that its shape needs, or, if the shape follows
 * the values, that the values claim. Unpacked values claim only themselves: as
 * many again may follow.
 */
static int bound_mean(const char *path, const char *bytes, size_t size,
                      size_t *limit)
{
    beginning found = {.rest = 0};
    size_t at = 0, most = 1;
    int going = 1;
    while (going > 0 && at < size)
        going = take_field(&found, bytes, size, &at);
    if (going < 0 || found.rest > MEAN_REST_MAX)
        return leat_error(LEAT_EFORMAT,
                          "%s: expected a mean image (BlobProto), found "
                          "something else in the first %zu bytes",
                          path, size);
    for (int i = 0; i < 4; i++)
        if (leat__multiply(most, found.dim[i], &most))
            most = SIZE_MAX;
    if (most == 0)
        most = found.claimed + size;
    else if (leat__multiply(most, MEAN_VALUE_MAX, &most))
        most = SIZE_MAX;
    if (most < *limit - MEAN_REST_MAX)
        *limit = most + MEAN_REST_MAX;
    return LEAT_OK;
}

int leat__mean_load(leat__mean *out, const char *path)
{
    char *bytes;
    size_t size;
    int status = leat__file_read_bounded(&bytes, &size, path, MEAN_BYTES_MAX,
                                         bound_mean);
    if (status)
        return status;
    status = leat__mean_parse(out, path, bytes, size);
    leat__free(bytes);
    return status;
}

void leat__mean_finish(leat__mean *mean)
{
    leat__free(mean->values);
    mean->values = NULL;
}

/* Bytes of the tags and varints of a BlobProto, at most. */
#define MEAN_HEAD_MAX 64

static unsigned char *put_int(unsigned char *out, int number, uint64_t value)
{
    out = leat__wire_put_tag(out, number, LEAT__WIRE_VARINT);
    return leat__wire_put_varint(out, value);
}

static size_t put_blob(unsigned char *out, int channels, int height, int width,
                       const float *values, size_t bytes)
{
    unsigned char *at = put_int(out, NUM, 1);
    at = put_int(at, CHANNELS, (uint64_t)channels);
    at = put_int(at, HEIGHT, (uint64_t)height);
    at = put_int(at, WIDTH, (uint64_t)width);
    at = leat__wire_put_tag(at, DATA, LEAT__WIRE_BYTES);
    at = leat__wire_put_varint(at, bytes);
    memcpy(at, values, bytes);
    return (size_t)(at - out) + bytes;
}

int leat_mean_save(const char *path, int channels, int height, int width,
                   const float *values)
{
    size_t plane, n, bytes;
    if (channels < 1 || height < 1 || width < 1 || !values)
        return leat_error(LEAT_EINVAL,
                          "%s: expected a mean with values, found %d x %d x %d",
                          path, channels, height, width);
    if (leat__multiply((size_t)height, (size_t)width, &plane) ||
        leat__multiply(plane, (size_t)channels, &n) ||
        leat__multiply(n, sizeof(*values), &bytes) ||
        bytes > MEAN_BYTES_MAX - MEAN_HEAD_MAX)
        return leat_error(LEAT_EINVAL,
                          "%s: a mean of %d x %d x %d is too large for a "
                          "BlobProto",
                          path, channels, height, width);
    unsigned char *blob = leat__alloc(bytes + MEAN_HEAD_MAX);
    if (!blob)
        return LEAT_ENOMEM;
    size_t size = put_blob(blob, channels, height, width, values, bytes);
    int status = leat__file_write(path, blob, size);
    leat__free(blob);
    return status;
}
