#include "base/memory.h"
#include "base/random.h"
#include "data/transform.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Caffe's fixture: 3 x 4 x 5, every byte its index, or all the label. */
#define CHANNELS 3
#define HEIGHT 4
#define WIDTH 5
#define COUNT (CHANNELS * HEIGHT * WIDTH)

static const int whole[3] = {CHANNELS, HEIGHT, WIDTH};
static unsigned char unique[COUNT];
static unsigned char flat[COUNT];
static char mean_path[64];

static leat__transform_image image_of(const void *pixels)
{
    leat__transform_image image = {.pixels = pixels,
                                   .type = LEAT_UINT8,
                                   .layout = LEAT_NCHW,
                                   .channels = CHANNELS,
                                   .height = HEIGHT,
                                   .width = WIDTH};
    return image;
}

static void set_up(void)
{
    for (int i = 0; i < COUNT; i++) {
        unique[i] = (unsigned char)i;
        flat[i] = 7;
    }
    snprintf(mean_path, sizeof(mean_path), "/tmp/test_transform_XXXXXX");
    int file = mkstemp(mean_path);
    ck_assert_int_ge(file, 0);
    close(file);
}

static void tear_down(void)
{
    unlink(mean_path);
}

/* A mean image of any shape whose values are their indices. */
static const char *save_mean(int channels, int height, int width)
{
    float values[2 * COUNT];
    for (int i = 0; i < channels * height * width; i++)
        values[i] = (float)i;
    ck_assert_int_eq(leat_mean_save(mean_path, channels, height, width, values),
                     LEAT_OK);
    return mean_path;
}

static leat__transform *make(const leat_transform_options *options,
                             leat_phase phase)
{
    leat__transform *transform;
    ck_assert_msg(leat__transform_create(&transform, options, phase,
                                         LEAT_FLOAT32, LEAT_NCHW) == LEAT_OK,
                  "%s", leat_last_error());
    return transform;
}

/* Chooses by the words of `position` and applies; returns what was chosen. */
static leat__transform_image run(const leat__transform *transform,
                                 const unsigned char *pixels, int64_t position,
                                 float *top)
{
    leat__transform_image image = image_of(pixels);
    uint32_t words[4];
    int shape[3];
    leat__random_words(1701, 0, position, 0, words);
    leat__transform_choose(transform, LEAT_RNG_LEAT, words, &image);
    ck_assert_int_eq(leat__transform_shape(transform, whole, shape), LEAT_OK);
    ck_assert_msg(leat__transform_apply(transform, &image, shape, top) ==
                      LEAT_OK,
                  "%s", leat_last_error());
    return image;
}

START_TEST(without_options_the_bytes_become_floats)
{
    leat__transform *transform = make(NULL, LEAT_TRAIN);
    float top[COUNT];
    run(transform, unique, 0, top);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(top[i], (float)i);
    ck_assert_int_eq(leat__transform_words_per_image(transform), 0);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(a_crop_is_square)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 2;
    leat__transform *transform = make(&options, LEAT_TRAIN);
    int shape[3];
    ck_assert_int_eq(leat__transform_shape(transform, whole, shape), LEAT_OK);
    ck_assert_int_eq(shape[0], 3);
    ck_assert_int_eq(shape[1], 2);
    ck_assert_int_eq(shape[2], 2);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(in_test_the_crop_is_the_centre)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 1;
    options.scale = 3;
    leat__transform *transform = make(&options, LEAT_TEST);
    const int shape[3] = {2, 1, 1};
    for (int i = 0; i < 4; i++) {
        leat__transform_image image = image_of(unique);
        uint32_t words[4] = {(uint32_t)i << 30, (uint32_t)i << 30, 0, 0};
        image.channels = 2;
        image.height = 3;
        image.width = 4;
        float top[2];
        leat__transform_choose(transform, LEAT_RNG_LEAT, words, &image);
        ck_assert_int_eq(leat__transform_apply(transform, &image, shape, top),
                         LEAT_OK);
        ck_assert_float_eq(top[0], 3 * 5);
        ck_assert_float_eq(top[1], 3 * 17);
    }
    ck_assert_int_eq(leat__transform_words_per_image(transform), 0);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(in_train_every_place_of_the_crop_is_met)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 2;
    leat__transform *transform = make(&options, LEAT_TRAIN);
    int met[HEIGHT - 1][WIDTH - 1] = {{0}};
    for (int i = 0; i < 300; i++) {
        float top[CHANNELS * 2 * 2];
        leat__transform_image image = run(transform, unique, i, top);
        int first = image.h_off * WIDTH + image.w_off;
        ck_assert_float_eq(top[0], (float)first);
        ck_assert_float_eq(top[3], (float)(first + WIDTH + 1));
        ck_assert_float_eq(top[8], (float)(first + 2 * HEIGHT * WIDTH));
        met[image.h_off][image.w_off] = 1;
    }
    for (int i = 0; i < (HEIGHT - 1) * (WIDTH - 1); i++)
        ck_assert(met[i / (WIDTH - 1)][i % (WIDTH - 1)]);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(mirror_is_random_in_both_phases)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mirror = 1;
    leat__transform *transform = make(&options, (leat_phase)_i);
    int mirrored = 0;
    for (int i = 0; i < 100; i++) {
        float top[COUNT];
        int is_mirrored = run(transform, unique, i, top).mirror;
        ck_assert_float_eq(top[0], is_mirrored ? WIDTH - 1 : 0);
        ck_assert_float_eq(top[WIDTH], is_mirrored ? 2 * WIDTH - 1 : WIDTH);
        mirrored += is_mirrored;
    }
    ck_assert_int_gt(mirrored, 25);
    ck_assert_int_lt(mirrored, 75);
    ck_assert_int_eq(leat__transform_words_per_image(transform), 1);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(one_mean_value_serves_any_number_of_channels)
{
    const float mean = 2;
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_value = &mean;
    options.mean_values = 1;
    leat__transform *transform = make(&options, LEAT_TRAIN);
    float top[COUNT];
    run(transform, flat, 0, top);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(top[i], 5);
    leat__transform_image image = image_of(flat);
    image.channels = 1;
    const int shape[3] = {1, HEIGHT, WIDTH};
    ck_assert_int_eq(leat__transform_apply(transform, &image, shape, top),
                     LEAT_OK);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(several_mean_values_are_one_for_each_channel)
{
    const float means[] = {0, 1, 2};
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_value = means;
    options.mean_values = 3;
    leat__transform *transform = make(&options, LEAT_TRAIN);
    float top[COUNT];
    run(transform, flat, 0, top);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(top[i], 7 - means[i / (HEIGHT * WIDTH)]);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(a_mean_image_is_cropped_with_the_image_and_not_mirrored)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_file = save_mean(CHANNELS, HEIGHT, WIDTH);
    options.crop_size = 2;
    options.mirror = 1;
    leat__transform *transform = make(&options, LEAT_TRAIN);
    for (int i = 0; i < 50; i++) {
        float top[CHANNELS * 2 * 2];
        run(transform, unique, i, top);
        for (int j = 0; j < CHANNELS * 2 * 2; j++)
            ck_assert_float_eq(top[j], 0);
    }
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(the_mean_comes_before_the_scale)
{
    const float mean = 2;
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_value = &mean;
    options.mean_values = 1;
    options.scale = 0.1f;
    leat__transform *transform = make(&options, LEAT_TRAIN);
    float top[COUNT];
    run(transform, flat, 0, top);
    ck_assert_float_eq(top[0], 5.0f * 0.1f);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(a_float64_top_is_computed_in_double)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    const float mean = 0.3f;
    options.mean_value = &mean;
    options.mean_values = 1;
    options.scale = 0.1f;
    leat__transform *transform;
    ck_assert_int_eq(leat__transform_create(&transform, &options, LEAT_TRAIN,
                                            LEAT_FLOAT64, LEAT_NHWC),
                     LEAT_OK);
    leat__transform_image image = image_of(unique);
    double top[COUNT];
    ck_assert_int_eq(leat__transform_apply(transform, &image, whole, top),
                     LEAT_OK);
    ck_assert_double_eq(top[1], (20 - (double)0.3f) * (double)0.1f);
    leat__transform_destroy(transform);

    options.mean_values = 0;
    options.mean_file = save_mean(CHANNELS, HEIGHT, WIDTH);
    ck_assert_int_eq(leat__transform_create(&transform, &options, LEAT_TRAIN,
                                            LEAT_FLOAT64, LEAT_NCHW),
                     LEAT_OK);
    image.pixels = flat;
    ck_assert_int_eq(leat__transform_apply(transform, &image, whole, top),
                     LEAT_OK);
    ck_assert_double_eq(top[4], 3 * (double)0.1f);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(caffes_draws_are_taken_in_its_order_by_modulo)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 2;
    const uint32_t words[4] = {7, 11, 4294967295u, 0};
    leat__transform_image image = image_of(unique);
    leat__transform *transform = make(&options, LEAT_TRAIN);
    ck_assert_int_eq(leat__transform_words_per_image(transform), 2);
    leat__transform_choose(transform, LEAT_RNG_CAFFE, words, &image);
    ck_assert_int_eq(image.mirror, 0);
    ck_assert_int_eq(image.h_off, 7 % 3);
    ck_assert_int_eq(image.w_off, 11 % 4);
    leat__transform_destroy(transform);

    options.mirror = 1;
    transform = make(&options, LEAT_TRAIN);
    ck_assert_int_eq(leat__transform_words_per_image(transform), 3);
    leat__transform_choose(transform, LEAT_RNG_CAFFE, words, &image);
    ck_assert_int_eq(image.mirror, 1);
    ck_assert_int_eq(image.h_off, 11 % 3);
    ck_assert_int_eq(image.w_off, 4294967295u % 4);
    image.height = 2;
    leat__transform_choose(transform, LEAT_RNG_CAFFE, words, &image);
    ck_assert_int_eq(image.h_off, 0);
    ck_assert_int_eq(image.w_off, 4294967295u % 4);
    leat__transform_destroy(transform);

    transform = make(&options, LEAT_TEST);
    ck_assert_int_eq(leat__transform_words_per_image(transform), 1);
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(leats_words_have_their_places_by_their_high_bits)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 2;
    const uint32_t words[4] = {0x80000000, 0xffffffff, 0x40000000, 0};
    leat__transform_image image = image_of(unique);
    for (int mirror = 0; mirror < 2; mirror++) {
        options.mirror = mirror;
        leat__transform *transform = make(&options, LEAT_TRAIN);
        leat__transform_choose(transform, LEAT_RNG_LEAT, words, &image);
        ck_assert_int_eq(image.mirror, mirror);
        ck_assert_int_eq(image.h_off, 2);
        ck_assert_int_eq(image.w_off, 1);
        leat__transform_destroy(transform);
    }
}
END_TEST

START_TEST(images_of_many_sizes_fit_a_batch_when_they_are_cropped)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 2;
    leat__transform *transform = make(&options, LEAT_TEST);
    const int shape[3] = {1, 2, 2};
    const uint32_t words[4] = {0};
    for (int height = 2; height < 6; height++) {
        leat__transform_image image = image_of(unique);
        float top[4];
        image.channels = 1;
        image.height = height;
        image.width = 8 - height;
        leat__transform_choose(transform, LEAT_RNG_LEAT, words, &image);
        ck_assert_int_eq(leat__transform_apply(transform, &image, shape, top),
                         LEAT_OK);
        int first = (height - 2) / 2 * image.width + (image.width - 2) / 2;
        ck_assert_float_eq(top[0], (float)first);
    }
    leat__transform_destroy(transform);
}
END_TEST

static const float two_values[] = {1, 2};

/* Options that contradict themselves or the top, and a word of the error. */
static const struct {
    leat_transform_options options;
    leat_dtype top;
    const char *says;
} wrong_options[] = {
    {{sizeof(leat_transform_options), -1, 0, 1, 0, NULL, NULL, 0, 0, 0},
     LEAT_FLOAT32,
     "crop_size is -1"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, "m", two_values, 2, 0, 0},
     LEAT_FLOAT32,
     "mean_file \"m\" and 2 mean_value"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, NULL, NULL, 2, 0, 0},
     LEAT_FLOAT32,
     "mean_value is NULL"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, NULL, two_values, -2, 0, 0},
     LEAT_FLOAT32,
     "mean_values is -2"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, NULL, NULL, 0, 1, 1},
     LEAT_FLOAT32,
     "force_color and force_gray"},
    {{sizeof(leat_transform_options), 0, 0, 0.5f, 0, NULL, NULL, 0, 0, 0},
     LEAT_UINT8,
     "found 0.5"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, NULL, two_values, 2, 0, 0},
     LEAT_UINT8,
     "mean_value cannot"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, "m", NULL, 0, 0, 0},
     LEAT_UINT8,
     "mean_file cannot"},
    {{sizeof(leat_transform_options), 0, 0, 1, 0, NULL, NULL, 0, 0, 0},
     LEAT_INT32,
     "int32"},
    {{1, 0, 0, 1, 0, NULL, NULL, 0, 0, 0}, LEAT_FLOAT32, "size 1"},
};

START_TEST(options_that_cannot_be_met_are_refused)
{
    leat__transform *transform = NULL;
    ck_assert_int_eq(
        leat__transform_create(&transform, &wrong_options[_i].options,
                               LEAT_TRAIN, wrong_options[_i].top, LEAT_NCHW),
        LEAT_EINVAL);
    ck_assert_ptr_null(transform);
    ck_assert_msg(strstr(leat_last_error(), wrong_options[_i].says) != NULL,
                  "%s", leat_last_error());
}
END_TEST

START_TEST(a_mean_file_that_is_missing_is_named)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    leat__transform *transform = NULL;
    options.mean_file = "/nonexistent/mean.binaryproto";
    ck_assert_int_eq(leat__transform_create(&transform, &options, LEAT_TRAIN,
                                            LEAT_FLOAT32, LEAT_NCHW),
                     LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), options.mean_file));
    ck_assert_ptr_null(transform);
}
END_TEST

/* Options short of the fields that an older caller does not know. */
START_TEST(fields_beyond_the_options_size_take_their_defaults)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.size = offsetof(leat_transform_options, scale);
    options.crop_size = 2;
    options.scale = 0;
    options.has_scale = 1;
    leat__transform *transform = make(&options, LEAT_TEST);
    float top[CHANNELS * 2 * 2];
    run(transform, flat, 0, top);
    ck_assert_float_eq(top[0], 7);
    leat__transform_destroy(transform);
}
END_TEST

/* The same fault must be found for the batch's shape and for each image. */
static void expect_misfit(leat_transform_options *options, const int shape[3],
                          const char *says)
{
    /* A mean that does not fit is no fault of the image. */
    int status = options->mean_file ? LEAT_EINVAL : LEAT_EDATA;
    leat__transform *transform = make(options, LEAT_TEST);
    int out[3] = {-1, -1, -1};
    ck_assert_int_eq(leat__transform_shape(transform, shape, out), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    ck_assert_int_eq(out[0], -1);
    leat__transform_image image = image_of(unique);
    image.channels = shape[0];
    image.height = shape[1];
    image.width = shape[2];
    const uint32_t words[4] = {0};
    leat__transform_choose(transform, LEAT_RNG_CAFFE, words, &image);
    float top[2 * COUNT];
    top[0] = -1;
    ck_assert_int_eq(leat__transform_apply(transform, &image, shape, top),
                     status);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    ck_assert(!options->mean_file ||
              strstr(leat_last_error(), options->mean_file));
    ck_assert_float_eq(top[0], -1);
    leat__transform_destroy(transform);
}

START_TEST(images_that_do_not_fit_the_options_are_refused)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 5;
    expect_misfit(&options, whole, "only 4 x 5");
    expect_misfit(&options, (const int[]){3, 6, 4}, "only 6 x 4");
    options.crop_size = 0;
    expect_misfit(&options, (const int[]){3, 0, 5}, "3 x 0 x 5");
    options.mean_value = two_values;
    options.mean_values = 2;
    expect_misfit(&options, whole, "2 mean_value are given, the image has 3");
    options.mean_values = 0;
    options.mean_file = save_mean(1, HEIGHT, WIDTH);
    expect_misfit(&options, whole, "1 x 4 x 5, the image of 3 x 4 x 5");
    options.mean_file = save_mean(CHANNELS, HEIGHT, WIDTH + 1);
    expect_misfit(&options, whole, "3 x 4 x 6");
    options.mean_file = save_mean(CHANNELS, HEIGHT + 1, WIDTH);
    expect_misfit(&options, whole, "3 x 5 x 5");
    options.crop_size = 2;
    options.mean_file = save_mean(CHANNELS, 2, 2);
    expect_misfit(&options, whole, "3 x 2 x 2");
}
END_TEST

static void expect_refusal(const leat__transform *transform,
                           const leat__transform_image *image,
                           const int shape[3], const char *says)
{
    float top[COUNT] = {-1};
    ck_assert_int_eq(leat__transform_apply(transform, image, shape, top),
                     LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    ck_assert_float_eq(top[0], -1);
}

START_TEST(images_unlike_their_batch_are_refused)
{
    leat__transform *transform = make(NULL, LEAT_TRAIN);
    leat__transform_image image = image_of(unique);
    expect_refusal(transform, &image, (const int[]){1, HEIGHT, WIDTH},
                   "has 3 channels, its batch 1");
    expect_refusal(transform, &image, (const int[]){3, WIDTH, HEIGHT},
                   "3 x 4 x 5, its batch's are 3 x 5 x 4");
    image.type = LEAT_INT32;
    expect_refusal(transform, &image, whole, "int32");
    leat__transform_destroy(transform);

    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = 4;
    transform = make(&options, LEAT_TRAIN);
    image = image_of(unique);
    image.w_off = 2;
    expect_refusal(transform, &image, (const int[]){3, 4, 4}, "at 0, 2");
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(a_uint8_top_takes_bytes_only)
{
    leat__transform *transform;
    ck_assert_int_eq(leat__transform_create(&transform, NULL, LEAT_TRAIN,
                                            LEAT_UINT8, LEAT_NCHW),
                     LEAT_OK);
    leat__transform_image image = image_of(unique);
    unsigned char top[COUNT];
    ck_assert_int_eq(leat__transform_apply(transform, &image, whole, top),
                     LEAT_OK);
    ck_assert_mem_eq(top, unique, sizeof(top));
    image.type = LEAT_FLOAT32;
    expect_refusal(transform, &image, whole, "float32, the top of uint8");
    leat__transform_destroy(transform);
}
END_TEST

START_TEST(create_survives_every_failed_allocation)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    if (_i)
        options.mean_file = save_mean(CHANNELS, HEIGHT, WIDTH);
    options.mean_value = two_values;
    options.mean_values = _i ? 0 : 2;
    leat__transform *transform = NULL;
    int failures = 0;
    int status;
    do {
        leat__alloc_fail_at(failures++);
        status = leat__transform_create(&transform, &options, LEAT_TRAIN,
                                        LEAT_FLOAT32, LEAT_NCHW);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert(status == LEAT_OK || !transform);
    } while (status);
    ck_assert_int_gt(failures, 2);
    leat__transform_destroy(transform);
    leat__transform_destroy(NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, without_options_the_bytes_become_floats);
    tcase_add_test(tcase, a_crop_is_square);
    tcase_add_test(tcase, in_test_the_crop_is_the_centre);
    tcase_add_test(tcase, in_train_every_place_of_the_crop_is_met);
    tcase_add_loop_test(tcase, mirror_is_random_in_both_phases, 0, 2);
    tcase_add_test(tcase, one_mean_value_serves_any_number_of_channels);
    tcase_add_test(tcase, several_mean_values_are_one_for_each_channel);
    tcase_add_test(tcase,
                   a_mean_image_is_cropped_with_the_image_and_not_mirrored);
    tcase_add_test(tcase, the_mean_comes_before_the_scale);
    tcase_add_test(tcase, a_float64_top_is_computed_in_double);
    tcase_add_test(tcase, caffes_draws_are_taken_in_its_order_by_modulo);
    tcase_add_test(tcase, leats_words_have_their_places_by_their_high_bits);
    tcase_add_test(tcase,
                   images_of_many_sizes_fit_a_batch_when_they_are_cropped);
    tcase_add_loop_test(tcase, options_that_cannot_be_met_are_refused, 0,
                        sizeof(wrong_options) / sizeof(wrong_options[0]));
    tcase_add_test(tcase, a_mean_file_that_is_missing_is_named);
    tcase_add_test(tcase, fields_beyond_the_options_size_take_their_defaults);
    tcase_add_test(tcase, images_that_do_not_fit_the_options_are_refused);
    tcase_add_test(tcase, images_unlike_their_batch_are_refused);
    tcase_add_test(tcase, a_uint8_top_takes_bytes_only);
    tcase_add_loop_test(tcase, create_survives_every_failed_allocation, 0, 2);
}

START_TEST(a_zeroed_struct_with_its_size_changes_nothing)
{
    leat_transform_options zeros = {.size = sizeof(zeros)};
    leat_transform_options written = {.size = sizeof(written)};
    leat_transform_options one, other;
    ck_assert_int_eq(leat_transform_options_init(&written), LEAT_OK);
    ck_assert(written.scale == 1);
    memset(&one, 0, sizeof(one));
    memset(&other, 0, sizeof(other));
    ck_assert_int_eq(leat__transform_options_copy(&one, &zeros), LEAT_OK);
    ck_assert_int_eq(leat__transform_options_copy(&other, &written), LEAT_OK);
    ck_assert_mem_eq(&one, &other, sizeof(one));
    zeros.has_scale = 1;
    ck_assert_int_eq(leat__transform_options_copy(&one, &zeros), LEAT_OK);
    ck_assert(one.scale == 0);
    zeros.size = 0;
    ck_assert_int_eq(leat_transform_options_init(&zeros), LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transform");
    TCase *tcase = tcase_create("transform");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    add_tests(tcase);
    tcase_add_test(tcase, a_zeroed_struct_with_its_size_changes_nothing);
    return suite_run(suite);
}
