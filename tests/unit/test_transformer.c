/* Decoding and transforming through the public face. */
#include "base/memory.h"
#include "base/thread.h"
#include "data/transformer.h"
#include "lmdb_fixture.h"
#include "support/suite.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static leat_transform_options options;
static leat_transformer *transformer;
static unsigned char pixels[2 * 3 * 4];
static const uint32_t words[4] = {0, 0, 0, 0};

static void set_up(void)
{
    const leat_transform_options defaults = LEAT_TRANSFORM_OPTIONS_INIT;
    options = defaults;
    transformer = NULL;
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (unsigned char)i;
}

static void tear_down(void)
{
    leat_transformer_destroy(transformer);
}

static void create(leat_phase phase, leat_dtype top_type)
{
    int status = leat_transformer_create(&transformer, &options, phase,
                                         top_type, LEAT_NCHW);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

static leat_field raw_field(void)
{
    return (leat_field){.dtype = LEAT_UINT8,
                        .ndim = 3,
                        .shape = {2, 3, 4},
                        .data = pixels,
                        .bytes = sizeof(pixels)};
}

static int apply(const leat_field *field, const int shape[3], void *top)
{
    return leat_transformer_apply(transformer, field, LEAT_RNG_LEAT, words,
                                  shape, top);
}

START_TEST(without_options_pixels_stay_as_they_are)
{
    ck_assert_int_eq(leat_transformer_create(&transformer, NULL, LEAT_TEST,
                                             LEAT_FLOAT32, LEAT_NCHW),
                     LEAT_OK);
    leat_field field = raw_field();
    int shape[3];
    float top[24];
    ck_assert_int_eq(leat_transformer_shape(transformer, &field, shape),
                     LEAT_OK);
    ck_assert(shape[0] == 2 && shape[1] == 3 && shape[2] == 4);
    ck_assert_int_eq(apply(&field, shape, top), LEAT_OK);
    for (int i = 0; i < 24; i++)
        ck_assert(top[i] == (float)i);
    leat_transformer_destroy(NULL);
}
END_TEST

/* Small and large, past the caches and through them, at any place. */
START_TEST(a_whole_image_for_a_device_stays_as_it_is)
{
    static const int sides[] = {1, 26, 27, 64}; /* 2028 and 2187 bytes */
    static unsigned char large[3 * 64 * 64];
    unsigned char crop[sizeof(large) + 128];
    create(LEAT_TEST, LEAT_FLOAT32);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (unsigned char)(i * 7 + i / 251);
    for (int k = 0; k < 4 * 2 * 64; k++) {
        int side = sides[k % 4], offset = k / 8;
        const int shape[3] = {3, side, side};
        size_t bytes = (size_t)(3 * side * side);
        const leat_field field = {.dtype = LEAT_UINT8,
                                  .ndim = 3,
                                  .shape = {3, side, side},
                                  .data = large,
                                  .bytes = bytes};
        leat_device_choice choice;
        memset(crop, 0x5c, sizeof(crop));
        ck_assert_int_eq(leat__transformer_crop(
                             transformer, &field, LEAT_RNG_LEAT, words, shape,
                             LEAT_NCHW, k / 4 % 2, crop + offset, &choice),
                         LEAT_OK);
        ck_assert_mem_eq(crop + offset, large, bytes);
        for (size_t i = 0; i < sizeof(crop); i++)
            ck_assert((i >= (size_t)offset && i < (size_t)offset + bytes) ||
                      crop[i] == 0x5c);
        ck_assert(choice.h_off == 0 && choice.w_off == 0 && !choice.mirror &&
                  !choice.is_zero);
    }
}
END_TEST

START_TEST(crop_mean_and_scale_come_together)
{
    const float mean[] = {1, 2};
    options.crop_size = 2;
    options.scale = 0.5f;
    options.mean_value = mean;
    options.mean_values = 2;
    create(LEAT_TEST, LEAT_FLOAT64);
    leat_field field = raw_field();
    int shape[3];
    double top[8];
    ck_assert_int_eq(leat_transformer_shape(transformer, &field, shape),
                     LEAT_OK);
    ck_assert(shape[0] == 2 && shape[1] == 2 && shape[2] == 2);
    ck_assert_int_eq(apply(&field, shape, top), LEAT_OK);
    /* The centre of 3 x 4 begins at row 0, column 1. */
    const int source[] = {1, 2, 5, 6, 13, 14, 17, 18};
    for (int i = 0; i < 8; i++)
        ck_assert(top[i] == (source[i] - (i < 4 ? 1 : 2)) * 0.5);
    ck_assert_int_eq(leat__transformer_words_per_image(transformer), 0);
}
END_TEST

/* Applies a good image, and then one that is not like it. */
static void refuse_after_a_good_one(const leat_field *field, const int shape[3])
{
    const leat_field good = raw_field();
    const int place[3] = {2, 3, 4};
    float top[128], before[128];
    ck_assert_int_eq(apply(&good, place, top), LEAT_OK);
    memset(top, 0x55, sizeof(top));
    memcpy(before, top, sizeof(top));
    /* It is bad again when it comes again. */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(apply(field, shape, top), LEAT_EDATA);
        ck_assert_mem_eq(top, before, sizeof(top));
    }
}

START_TEST(what_follows_a_good_image_is_checked_as_well)
{
    create(LEAT_TEST, LEAT_FLOAT32);
    const int place[3] = {2, 3, 4};
    leat_field field = raw_field();
    field.bytes--;
    refuse_after_a_good_one(&field, place);
    field = raw_field();
    field.dtype = LEAT_FLOAT32;
    refuse_after_a_good_one(&field, place);
    field.dtype = LEAT_INT32;
    refuse_after_a_good_one(&field, place);
    field.dtype = LEAT_BYTES;
    refuse_after_a_good_one(&field, place);
    field = raw_field();
    field.ndim = 2;
    refuse_after_a_good_one(&field, place);
    for (int i = 0; i < 3; i++) {
        for (int by = -1; by <= 1; by += 2) {
            int other[3] = {2, 3, 4};
            other[i] += by;
            field = raw_field();
            refuse_after_a_good_one(&field, other);
            field.shape[i] += by;
            refuse_after_a_good_one(&field, place);
        }
    }
}
END_TEST

/* What is asked for, and whether images alike come out in different places. */
static const struct {
    int crop;
    int mirror;
    int mean_values;
    leat_dtype top_type;
    int is_chosen;
} kinds[] = {
    {2, 1, 0, LEAT_FLOAT32, 1},  {2, 0, 1, LEAT_FLOAT64, 1},
    {0, 1, 0, LEAT_FLOAT32, 1},  {0, 1, 1, LEAT_BFLOAT16, 1},
    {0, 0, 0, LEAT_FLOAT32, 0},  {0, 0, 1, LEAT_FLOAT64, 0},
    {0, 0, 2, LEAT_FLOAT32, 0},  {0, 0, 0, LEAT_UINT8, 0},
    {0, 0, 1, LEAT_BFLOAT16, 0},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), TOP_BYTES = 24 * 8 };

/* The same by one that has seen no image before. */
static void apply_first(const leat_field *field, leat_dtype top_type,
                        const uint32_t random[4], const int place[3],
                        unsigned char first[TOP_BYTES])
{
    leat_transformer *lasting = transformer;
    create(LEAT_TRAIN, top_type);
    ck_assert_int_eq(leat_transformer_apply(transformer, field, LEAT_RNG_LEAT,
                                            random, place, first),
                     LEAT_OK);
    leat_transformer_destroy(transformer);
    transformer = lasting;
}

START_TEST(an_image_like_the_last_gets_what_the_first_gets)
{
    const float mean[] = {3, 7};
    leat_dtype type = kinds[_i].top_type;
    options.crop_size = kinds[_i].crop;
    options.mirror = kinds[_i].mirror;
    options.mean_value = mean;
    options.mean_values = kinds[_i].mean_values;
    create(LEAT_TRAIN, type);
    unsigned char whole[TOP_BYTES] = {0};
    int moves = 0;
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t random[4] = {i << 31, i * 2654435769U, i * 2246822507U,
                                    0};
        unsigned char moved[sizeof(pixels)];
        unsigned char tops[2][TOP_BYTES] = {{0}}, first[TOP_BYTES] = {0};
        unsigned char *top = tops[i % 2];
        leat_field field = raw_field();
        int place[3];
        for (int k = 0; k < 24; k++) {
            pixels[k] = (unsigned char)(i / 2 * 5 + (uint32_t)k * 9 + 1);
            moved[k] = pixels[k];
            if (i % 2)
                pixels[k] = (unsigned char)~pixels[k];
        }
        if (i % 2)
            field.data = moved;
        ck_assert_int_eq(leat_transformer_shape(transformer, &field, place),
                         LEAT_OK);
        ck_assert_int_eq(leat_transformer_apply(transformer, &field,
                                                LEAT_RNG_LEAT, random, place,
                                                top),
                         LEAT_OK);
        apply_first(&field, type, random, place, first);
        ck_assert_mem_eq(top, first, TOP_BYTES);
        /* Pairs of images are the same: were they given the same choices? */
        moves += i % 2 && memcmp(top, whole, TOP_BYTES);
        memcpy(whole, top, TOP_BYTES);
    }
    ck_assert_int_eq(moves > 8, kinds[_i].is_chosen);
}
END_TEST

START_TEST(what_is_no_image_is_a_row)
{
    create(LEAT_TEST, LEAT_FLOAT32);
    const float values[] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
    leat_field field = {.dtype = LEAT_FLOAT32,
                        .data = values,
                        .bytes = sizeof(values),
                        .shape = {2, 3}};
    const int widths[] = {1, 2, 6};
    for (field.ndim = 0; field.ndim < 3; field.ndim++) {
        int shape[3];
        float top[6] = {0};
        ck_assert_int_eq(leat_transformer_shape(transformer, &field, shape),
                         LEAT_OK);
        ck_assert(shape[0] == 1 && shape[1] == 1);
        ck_assert_int_eq(shape[2], widths[field.ndim]);
        ck_assert_int_eq(apply(&field, shape, top), LEAT_OK);
        ck_assert_mem_eq(top, values,
                         sizeof(float) * (size_t)widths[field.ndim]);
    }
}
END_TEST

/* A field that cannot be transformed leaves the top alone. */
static void refuse(const leat_field *field)
{
    const int shape[3] = {2, 3, 4};
    float top[24];
    memset(top, 0x11, sizeof(top));
    ck_assert_int_eq(apply(field, shape, top), LEAT_EDATA);
    for (size_t i = 0; i < sizeof(top); i++)
        ck_assert_uint_eq(((unsigned char *)top)[i], 0x11);
}

START_TEST(a_field_of_another_type_or_shape_is_bad_data)
{
    create(LEAT_TEST, LEAT_FLOAT32);
    const leat_dtype wrong[] = {LEAT_INT32, LEAT_INT64, LEAT_FLOAT64,
                                LEAT_FLOAT16};
    static double zeros[24];
    for (int i = 0; i < 4; i++) {
        leat_field field = raw_field();
        field.dtype = wrong[i];
        field.data = zeros;
        field.bytes = sizeof(zeros);
        refuse(&field);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), leat_dtype_name(wrong[i])));
    }
    const int64_t shapes[][3] = {
        {2, 4, 3}, {1, 3, 4}, {-2, 3, 4}, {2, 3, INT64_MAX}, {0, 3, 4}};
    for (int i = 0; i < 5; i++) {
        leat_field field = raw_field();
        memcpy(field.shape, shapes[i], sizeof(shapes[i]));
        refuse(&field);
    }
    leat_field field = raw_field();
    field.ndim = 2;
    field.shape[0] = field.shape[1] = INT64_MAX / 2;
    refuse(&field);
}
END_TEST

START_TEST(a_field_shorter_than_its_shape_is_bad_data)
{
    create(LEAT_TEST, LEAT_FLOAT32);
    leat_field field = raw_field();
    field.bytes--;
    refuse(&field);
    ck_assert_str_eq(leat_last_error(), "an image of 2 x 3 x 4 uint8 needs 24 "
                                        "bytes, there are 23");
}
END_TEST

START_TEST(bytes_that_are_no_image_are_bad_data)
{
    create(LEAT_TEST, LEAT_FLOAT32);
    leat_field field = {.dtype = LEAT_BYTES, .data = "hello", .bytes = 5};
    int shape[3] = {7, 7, 7};
    refuse(&field);
    ck_assert_int_eq(leat_transformer_shape(transformer, &field, shape),
                     LEAT_EDATA);
    ck_assert_int_eq(shape[0], 7);
}
END_TEST

/* The checksum of what a transformer makes of baseline-420.jpg. */
static uint32_t sum_of_jpeg(leat_transformer *with, int shape[3])
{
    size_t size;
    unsigned char *bytes =
        fixture_load(LEAT_TEST_DATA "/images/baseline-420.jpg", &size);
    leat_field field = {.dtype = LEAT_BYTES, .data = bytes, .bytes = size};
    unsigned char top[3 * 13 * 17];
    uint32_t sum = 0;
    ck_assert_int_eq(leat_transformer_shape(with, &field, shape), LEAT_OK);
    ck_assert_int_eq(
        leat_transformer_apply(with, &field, LEAT_RNG_LEAT, words, shape, top),
        LEAT_OK);
    for (int i = 0; i < shape[0] * shape[1] * shape[2]; i++)
        sum = sum * 31 + top[i];
    free(bytes);
    return sum;
}

START_TEST(an_encoded_image_is_decoded_as_wanted)
{
    int shape[3];
    create(LEAT_TEST, LEAT_UINT8);
    uint32_t native = sum_of_jpeg(transformer, shape);
    ck_assert(shape[0] == 3 && shape[1] == 13 && shape[2] == 17);
    leat_transformer_destroy(transformer);
    options.force_color = 1;
    create(LEAT_TEST, LEAT_UINT8);
    ck_assert_uint_eq(sum_of_jpeg(transformer, shape), native);
    leat_transformer_destroy(transformer);
    options.force_color = 0;
    options.force_gray = 1;
    create(LEAT_TEST, LEAT_UINT8);
    ck_assert_uint_ne(sum_of_jpeg(transformer, shape), native);
    ck_assert_int_eq(shape[0], 1);
    leat__image_counts counts = {0};
    leat__transformer_count(transformer, &counts);
    ck_assert_int_eq(counts.warnings, 0);
    ck_assert_int_gt(counts.jpeg_fast + counts.jpeg_library, 0);
}
END_TEST

/* A JPEG of 3 x 13 x 17 in a batch of other images: its pixels are not read. */
START_TEST(an_encoded_image_that_the_mean_does_not_fit_is_not_bad)
{
    static const float values[3 * 12 * 17];
    char path[] = "/tmp/test_transformer_XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(leat_mean_save(path, 3, 12, 17, values), LEAT_OK);
    options.mean_file = path;
    create(LEAT_TEST, LEAT_FLOAT32);
    (void)remove(path);
    size_t size;
    unsigned char *bytes =
        fixture_load(LEAT_TEST_DATA "/images/baseline-420.jpg", &size);
    leat_field field = {.dtype = LEAT_BYTES, .data = bytes, .bytes = size};
    const int shape[3] = {3, 12, 17};
    float top[3 * 12 * 17];
    ck_assert_int_eq(apply(&field, shape, top), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "3 x 12 x 17"));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "3 x 13 x 17"));
    free(bytes);
}
END_TEST

/* A JPEG takes more than a byte: both before a decoder is made and behind. */
START_TEST(an_image_over_the_bound_is_bad_data)
{
    leat_transformer *clone;
    int shape[3];
    size_t size;
    unsigned char *bytes =
        fixture_load(LEAT_TEST_DATA "/images/baseline-420.jpg", &size);
    leat_field field = {.dtype = LEAT_BYTES, .data = bytes, .bytes = size};
    create(LEAT_TEST, LEAT_UINT8);
    leat_transformer_set_max_image_bytes(transformer, 1);
    ck_assert_int_eq(leat_transformer_clone(&clone, transformer), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            leat_transformer_shape(i ? clone : transformer, &field, shape),
            LEAT_EDATA);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "max_image_bytes allows 1"));
    leat_transformer_set_max_image_bytes(transformer, 0);
    ck_assert_int_eq(leat_transformer_shape(transformer, &field, shape),
                     LEAT_OK);
    leat_transformer_set_max_image_bytes(transformer, 1);
    ck_assert_int_eq(leat_transformer_shape(transformer, &field, shape),
                     LEAT_EDATA);
    leat_transformer_destroy(clone);
    free(bytes);
}
END_TEST

typedef struct decoding {
    leat_transformer *transformer;
    uint32_t sum;
} decoding;

static void *decode_often(void *argument)
{
    decoding *self = argument;
    int shape[3];
    for (int i = 0; i < 20; i++)
        self->sum = sum_of_jpeg(self->transformer, shape);
    leat_transformer_destroy(self->transformer);
    return NULL;
}

START_TEST(clones_work_at_once_and_outlive_the_first)
{
    decoding all[4];
    leat__thread threads[4] = {{0}};
    int shape[3];
    create(LEAT_TEST, LEAT_UINT8);
    uint32_t sum = sum_of_jpeg(transformer, shape);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat_transformer_clone(&all[i].transformer, transformer), LEAT_OK);
    leat_transformer_destroy(transformer);
    transformer = NULL;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat__thread_start(&threads[i], "decode", decode_often, &all[i]),
            LEAT_OK);
    for (int i = 0; i < 4; i++) {
        leat__thread_join(&threads[i]);
        ck_assert_uint_eq(all[i].sum, sum);
    }
}
END_TEST

START_TEST(options_of_an_older_header_end_earlier)
{
    size_t size = offsetof(leat_transform_options, mean_file);
    leat_transform_options *older = malloc(size);
    ck_assert_ptr_nonnull(older);
    options.size = size;
    options.force_gray = 1;
    memcpy(older, &options, size);
    ck_assert_int_eq(leat_transformer_create(&transformer, older, LEAT_TEST,
                                             LEAT_UINT8, LEAT_NCHW),
                     LEAT_OK);
    free(older);
    int shape[3];
    (void)sum_of_jpeg(transformer, shape);
    ck_assert_int_eq(shape[0], 3);
}
END_TEST

START_TEST(making_one_survives_every_failing_allocation)
{
    leat_transformer *clone = NULL;
    int status;
    int n = 0;
    options.mean_value = (const float[]){1, 2};
    options.mean_values = 2;
    do {
        leat__alloc_fail_at(n++);
        status = leat_transformer_create(&transformer, &options, LEAT_TRAIN,
                                         LEAT_FLOAT32, LEAT_NCHW);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status);
    ck_assert_int_ge(n, 3);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_transformer_clone(&clone, transformer), LEAT_ENOMEM);
    ck_assert_ptr_null(clone);
}
END_TEST

START_TEST(options_that_contradict_themselves_are_refused)
{
    options.force_color = options.force_gray = 1;
    ck_assert_int_eq(leat_transformer_create(&transformer, &options, LEAT_TEST,
                                             LEAT_FLOAT32, LEAT_NCHW),
                     LEAT_EINVAL);
    ck_assert_ptr_null(transformer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transformer");
    TCase *tcase = tcase_create("transformer");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, without_options_pixels_stay_as_they_are);
    tcase_add_test(tcase, a_whole_image_for_a_device_stays_as_it_is);
    tcase_add_test(tcase, crop_mean_and_scale_come_together);
    tcase_add_test(tcase, what_follows_a_good_image_is_checked_as_well);
    tcase_add_loop_test(tcase, an_image_like_the_last_gets_what_the_first_gets,
                        0, KINDS);
    tcase_add_test(tcase, what_is_no_image_is_a_row);
    tcase_add_test(tcase, a_field_of_another_type_or_shape_is_bad_data);
    tcase_add_test(tcase, a_field_shorter_than_its_shape_is_bad_data);
    tcase_add_test(tcase, bytes_that_are_no_image_are_bad_data);
    tcase_add_test(tcase, an_encoded_image_is_decoded_as_wanted);
    tcase_add_test(tcase,
                   an_encoded_image_that_the_mean_does_not_fit_is_not_bad);
    tcase_add_test(tcase, an_image_over_the_bound_is_bad_data);
    tcase_add_test(tcase, clones_work_at_once_and_outlive_the_first);
    tcase_add_test(tcase, options_of_an_older_header_end_earlier);
    tcase_add_test(tcase, making_one_survives_every_failing_allocation);
    tcase_add_test(tcase, options_that_contradict_themselves_are_refused);
    return suite_run(suite);
}
