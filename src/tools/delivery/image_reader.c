#include "tools/delivery/image_reader.h"

#include "base/error.h"
#include "tools/database/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `out` is initialised; the reader was opened unless there is a status. */
static int begin(struct image_reader *out, int status, size_t max_image_bytes)
{
    if (!status)
        status = leat_transformer_create(&out->transformer, NULL, LEAT_TEST,
                                         LEAT_FLOAT32, LEAT_NCHW);
    if (status)
        image_reader_close(out);
    else
        leat_transformer_set_max_image_bytes(out->transformer, max_image_bytes);
    return status;
}

int image_reader_open(struct image_reader *out, const char *path,
                      size_t max_image_bytes)
{
    memset(out, 0, sizeof(*out));
    leat_sample_init(&out->sample);
    return begin(out, database_open(&out->reader, path), max_image_bytes);
}

int image_reader_open_pipeline(struct image_reader *out,
                               const leat_pipeline *pipeline)
{
    memset(out, 0, sizeof(*out));
    leat_sample_init(&out->sample);
    return begin(out, leat_pipeline_open(pipeline, &out->reader), 0);
}

void image_reader_close(struct image_reader *reader)
{
    leat_sample_finish(&reader->sample);
    leat_reader_close(reader->reader);
    leat_transformer_destroy(reader->transformer);
    free(reader->image);
    memset(reader, 0, sizeof(*reader));
}

int image_reader_decode(struct image_reader *reader, int shape[3])
{
    static const uint32_t words[4] = {0};
    const leat_field *field = &reader->sample.field[0];
    int status = leat_transformer_shape(reader->transformer, field, shape);
    if (status)
        return status;
    size_t n = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    if (n > reader->capacity) {
        float *grown = realloc(reader->image, n * sizeof(*grown));
        if (!grown)
            return leat_error(LEAT_ENOMEM,
                              "out of memory for an image of %zu pixels", n);
        reader->image = grown;
        reader->capacity = n;
    }
    return leat_transformer_apply(reader->transformer, field, LEAT_RNG_LEAT,
                                  words, shape, reader->image);
}

const char *image_reader_encoding(const leat_field *data)
{
    if (data->dtype == LEAT_UINT8)
        return "raw";
    if (data->dtype != LEAT_BYTES)
        return "float";
    if (data->bytes >= 2 && !memcmp(data->data, "\xff\xd8", 2))
        return "jpeg";
    if (data->bytes >= 4 && !memcmp(data->data, "\x89PNG", 4))
        return "png";
    return "other";
}

int image_reader_name(int status, const char *source, int64_t number,
                      const void *key, size_t key_size)
{
    char record[32] = "", text[LEAT__KEY_TEXT_MAX] = "";
    if (number >= 0)
        snprintf(record, sizeof(record), "record %lld", (long long)number);
    if (key)
        leat__key_text(text, key, key_size);
    return leat__error_context(
        status, "%s%s%s%s%s%s", source ? source : "", source ? ": " : "",
        record, key && *record ? ", " : "", key ? "key " : "", text);
}
