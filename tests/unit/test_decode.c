/* Encoded images as pixels: test_image has the decoder itself. */
#include "base/memory.h"
#include "base/thread.h"
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static unsigned char file[1 << 16];
static int64_t file_size;

static void load(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/images/%s", LEAT_TEST_DATA, name);
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream, "%s", path);
    file_size = (int64_t)fread(file, 1, sizeof(file), stream);
    fclose(stream);
    ck_assert_int_gt(file_size, 0);
    ck_assert_int_lt(file_size, (int64_t)sizeof(file));
}

/* A sample of a label and the image's bytes. */
static leat_reader *open_image(const char *text)
{
    static const int32_t label = 4;
    const leat_memory_field fields[] = {
        {"label", LEAT_INT32, 0, {0}, &label},
        {"image", LEAT_BYTES, 1, {file_size}, file}};
    return map_fixture_open(fields, 2, 1, text);
}

/* What the decoder gives, in each order of channels and axes. */
static void check_pixels(const leat_sample *sample, const leat_image *image,
                         int is_rgb, int is_hwc)
{
    const leat_field *field = &sample->field[1];
    const unsigned char *pixels = field->data;
    int64_t n = (int64_t)image->height * image->width;
    ck_assert_int_eq(field->dtype, LEAT_UINT8);
    ck_assert_int_eq(field->ndim, 3);
    ck_assert_int_eq(field->shape[is_hwc ? 2 : 0], image->channels);
    ck_assert_int_eq(field->shape[is_hwc ? 0 : 1], image->height);
    ck_assert_int_eq(field->shape[is_hwc ? 1 : 2], image->width);
    ck_assert_uint_eq(field->bytes, (size_t)(n * image->channels));
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < image->channels; c++) {
            int from = is_rgb && c < 3 ? 2 - c : c;
            ck_assert_int_eq(
                pixels[is_hwc ? i * image->channels + c : c * n + i],
                image->pixels[i * image->channels + from]);
        }
}

static const char *const names[] = {"baseline-444.jpg", "exif-6.jpg",
                                    "rgba-8.png", "gray-8.png",
                                    "exif-6-gray.jpg"};

START_TEST(pixels_are_the_decoders_in_each_order)
{
    static const struct {
        const char *word;
        leat_color color;
    } colors[] = {{"NATIVE", LEAT_COLOR_NATIVE},
                  {"BGR", LEAT_COLOR_BGR},
                  {"GRAY", LEAT_COLOR_GRAY},
                  {"RGB", LEAT_COLOR_BGR}};
    leat_image_decoder *decoder;
    leat_sample sample;
    ck_assert_int_eq(leat_image_decoder_create(&decoder), LEAT_OK);
    leat_sample_init(&sample);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        load(names[i]);
        for (int c = 0; c < 4; c++)
            for (int hwc = 0; hwc < 2; hwc++) {
                char text[96];
                leat_image image;
                const leat_field_spec *spec;
                int n;
                snprintf(text, sizeof(text), "decode:image,color=%s,layout=%s",
                         colors[c].word, hwc ? "HWC" : "CHW");
                leat_reader *reader = open_image(text);
                ck_assert_msg(reader, "%s", leat_last_error());
                ck_assert_int_eq(leat_reader_fields(reader, &spec, &n),
                                 LEAT_OK);
                ck_assert_int_eq(spec[1].dtype, LEAT_UINT8);
                ck_assert_int_eq(leat_image_decode(decoder, file,
                                                   (size_t)file_size,
                                                   colors[c].color, &image),
                                 LEAT_OK);
                ck_assert(spec[1].shape[hwc ? 2 : 0] == -1 ||
                          spec[1].shape[hwc ? 2 : 0] == image.channels);
                ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
                check_pixels(&sample, &image, c == 3, hwc);
                int64_t before = leat__alloc_count();
                for (int k = 0; k < 20; k++)
                    ck_assert_int_eq(map_fixture_read(reader, 0, &sample),
                                     LEAT_OK);
                ck_assert_int_eq(leat__alloc_count(), before);
                leat_reader_close(reader);
            }
    }
    leat_sample_finish(&sample);
    leat_image_decoder_destroy(decoder);
}
END_TEST

START_TEST(fields_after_the_image_stay)
{
    leat_sample sample;
    load(names[0]);
    leat_reader *reader =
        open_image("select:image,label,again=image | decode:image");
    ck_assert_msg(reader, "%s", leat_last_error());
    leat_sample_init(&sample);
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
    ck_assert_int_eq(sample.nfields, 3);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(*(const int32_t *)sample.field[1].data, 4);
    ck_assert_uint_eq(sample.field[2].bytes, (size_t)file_size);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(what_is_no_image_is_bad_or_refused)
{
    leat_sample sample;
    leat_sample_init(&sample);
    load(names[0]);
    leat_reader *reader = open_image("decode:image,max_image_bytes=10");
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_image_bytes"));
    leat_reader_close(reader);
    file[0] ^= 1;
    reader = open_image("decode");
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                 "decode: memory: record 0: field \"image\": "
                                 "neither JPEG nor PNG"));
    leat_reader_close(reader);
    ck_assert_ptr_null(open_image("decode:label"));
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(),
               "decode: field \"label\" is int32: expected an encoded image"));
    ck_assert_ptr_null(open_image("select:label | decode"));
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "none of the fields label is of bytes"));
    leat_sample_finish(&sample);
}
END_TEST

/* Each thread decodes at once, with a decoder of its own. */
static leat_reader *shared;

static void *read_many(void *failures)
{
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 50; i++)
        *(int *)failures += map_fixture_read(shared, 0, &sample) != LEAT_OK ||
                            sample.field[1].ndim != 3;
    leat_sample_finish(&sample);
    return NULL;
}

START_TEST(threads_decode_in_parallel_and_their_memory_is_reported)
{
    leat__thread threads[4];
    int failures[4] = {0};
    load(names[0]);
    shared = open_image("decode");
    memset(threads, 0, sizeof(threads));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat__thread_start(&threads[i], "decoder", read_many, &failures[i]),
            LEAT_OK);
    for (int i = 0; i < 4; i++) {
        leat__thread_join(&threads[i]);
        ck_assert_int_eq(failures[i], 0);
    }
    ck_assert_int_gt(shared->ops->memory(shared), 0);
    leat_reader_close(shared);
}
END_TEST

static int read_with_fault(leat_pipeline *pipeline, int64_t n)
{
    leat_reader *reader = NULL;
    leat_sample sample;
    leat_sample_init(&sample);
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    int status = leat_pipeline_open(pipeline, &reader);
    if (!status)
        status = leat_reader_next(reader, &sample);
    leat__alloc_fail_at(-1);
    ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%s",
                  leat_last_error());
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

START_TEST(code_and_text_make_equal_pipelines_that_survive_without_memory)
{
    leat_pipeline *base, *made;
    load(names[0]);
    const leat_memory_field field = {"a=b", LEAT_BYTES, 1, {file_size}, file};
    leat_decode_options options = LEAT_DECODE_OPTIONS_INIT;
    options.field = "a=b";
    options.color = LEAT_DECODE_RGB;
    options.layout = LEAT_NHWC;
    ck_assert_int_eq(leat_pipeline_memory(&base, &field, 1, 1), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_decode(&made, base, &options), LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made), "decode:a\\=b,color=RGB,layout=HWC"));
    for (int64_t n = 0; read_with_fault(made, n);)
        n++;
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_decode(&made, base, NULL), LEAT_OK);
    leat_pipeline_unref(made);
    options.color = (leat_decode_color)9;
    ck_assert_int_eq(leat_pipeline_decode(&made, base, &options), LEAT_EINVAL);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decode");
    TCase *tcase = tcase_create("decode");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, pixels_are_the_decoders_in_each_order);
    tcase_add_test(tcase, fields_after_the_image_stay);
    tcase_add_test(tcase, what_is_no_image_is_bad_or_refused);
    tcase_add_test(tcase,
                   threads_decode_in_parallel_and_their_memory_is_reported);
    tcase_add_test(
        tcase, code_and_text_make_equal_pipelines_that_survive_without_memory);
    return suite_run(suite);
}
