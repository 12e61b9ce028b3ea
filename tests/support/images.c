#include "support/images.h"

#include <leat/datum.h>

void images_record(int number, fixture_record *out)
{
    unsigned char pixels[20];
    memset(pixels, number, sizeof(pixels));
    leat_datum datum = {1, 4, 5, number, 0, pixels, sizeof(pixels), NULL, 0};
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

const char *images_write(char directory[FIXTURE_PATH], fixture_maker *make,
                         int n)
{
    fixture_directory(directory);
    fixture_write(directory, make, n);
    return directory;
}

const char *images_in(const char *directory, const char *name)
{
    static char path[2 * FIXTURE_PATH];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

leat_reader *images_open(const char *path)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

leat_reader *images_begin(char directory[FIXTURE_PATH], fixture_maker *make,
                          int n)
{
    return images_open(images_write(directory, make, n));
}

void images_end(leat_reader *reader, const char *directory)
{
    leat_reader_close(reader);
    fixture_remove(directory);
}

void images_boxes_init(leat_sample buffer[], leat_sample *out[], int n)
{
    for (int i = 0; i < n; i++) {
        leat_sample_init(&buffer[i]);
        out[i] = &buffer[i];
    }
}

void images_boxes_finish(leat_sample buffer[], int n)
{
    for (int i = 0; i < n; i++)
        leat_sample_finish(&buffer[i]);
}

int images_status(const char *path)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status == LEAT_OK)
        leat_reader_close(reader);
    return status;
}

int32_t images_label(const leat_sample *sample)
{
    int32_t label;
    memcpy(&label, sample->field[1].data, sizeof(label));
    return label;
}

void images_assert(const leat_sample *sample, int64_t record)
{
    char key[16];
    sprintf(key, "%08d", (int)record);
    ck_assert_int_eq(sample->nfields, 2);
    ck_assert_int_eq(sample->stable, 1);
    ck_assert_int_eq(sample->field[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(sample->field[0].shape[1], 4);
    ck_assert_int_eq(*(const unsigned char *)sample->field[0].data,
                     (unsigned char)record);
    ck_assert_int_eq(images_label(sample), (int32_t)record);
    ck_assert_int_eq(sample->from.record, record);
    ck_assert_uint_eq(sample->from.key_size, 8);
    ck_assert_mem_eq(sample->from.key, key, 8);
}

int64_t images_count(leat_reader *reader)
{
    leat_sample sample;
    int64_t n = 0;
    int status;
    leat_sample_init(&sample);
    while (!(status = leat_reader_next(reader, &sample)))
        images_assert(&sample, n++);
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    leat_sample_finish(&sample);
    return n;
}
