#include "base/random.h"
#include "device/transform_reference.h"
#include "device/transform_top.h"
#include "support/suite.h"

#include <leat/log.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define GUARD 64
#define GUARD_BYTE 0xa5

static const char *const sets[] = {"c", "avx2", "avx512"};
#define SETS (sizeof(sets) / sizeof(sets[0]))

enum { MEAN_NONE, MEAN_ONE_VALUE, MEAN_VALUES, MEAN_IMAGE, MEANS };

/* One way through the kernels, and one image that goes it. */
typedef struct trial {
    leat__transform_job job;
    leat__transform_image image;
    unsigned char *pixels; /* of exactly the image's bytes after the shift */
    void *mean;
    unsigned char *expected; /* between two guards, as is `found` */
    unsigned char *found;
    size_t shift;     /* bytes before the first pixel */
    size_t top_shift; /* bytes before the first element */
    size_t top_bytes;
} trial;

static uint32_t next_word;

static uint32_t draw(uint32_t n)
{
    uint32_t counter[4] = {next_word++, 0, 0, 0};
    uint32_t key[2] = {7, 7};
    uint32_t words[4];
    leat__philox(counter, key, words);
    return leat__random_below(words[0], n);
}

/* Sizes around the widths of vectors, and now and then beyond a tile. */
static int draw_size(void)
{
    static const int around[] = {1,  2,  3,  4,  7,  8,  9,  15,  16, 17,
                                 31, 32, 33, 47, 63, 64, 65, 100, 5,  28};
    return around[draw(sizeof(around) / sizeof(around[0]))];
}

static int draw_width(void)
{
    return draw(40) ? draw_size() : 500 + (int)draw(700);
}

/* Any bits at all, and often those that a careless kernel loses. */
static float draw_float(void)
{
    static const uint32_t special[] = {
        0x80000000, 0x00000001, 0x807fffff, 0x7f800000, 0xff800000,
        0x7fc00001, 0x7f800001, 0xffc12345, 0x7f7fffff, 0x00800000};
    uint32_t bits = draw(0xffffffff);
    if (draw(4) == 0)
        bits = special[draw(sizeof(special) / sizeof(special[0]))];
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void *need(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void make_pixels(trial *t)
{
    leat__transform_image *image = &t->image;
    size_t count =
        (size_t)image->channels * (size_t)image->height * (size_t)image->width;
    size_t size = leat_dtype_size(image->type);
    t->shift = draw(8);
    t->pixels = need(t->shift + count * size);
    image->pixels = t->pixels + t->shift;
    for (size_t i = 0; i < count; i++) {
        float value = draw_float();
        if (image->type == LEAT_FLOAT32)
            memcpy(t->pixels + t->shift + i * size, &value, size);
        else
            t->pixels[t->shift + i] = (unsigned char)draw(256);
    }
}

/* `count` numbers in the type that the top is computed in. */
static void *make_means(const trial *t, size_t count)
{
    double *means = need(count * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        double value = (double)draw(1 << 20) / 4099.0 - 100;
        if (t->job.top_type == LEAT_FLOAT64)
            means[i] = value;
        else
            ((float *)(void *)means)[i] = (float)value;
    }
    return means;
}

static void make_mean(trial *t, int kind)
{
    leat__transform_job *job = &t->job;
    job->mean_height = t->image.height;
    job->mean_width = t->image.width;
    if (kind == MEAN_IMAGE) {
        t->mean =
            make_means(t, (size_t)job->channels * (size_t)job->mean_height *
                              (size_t)job->mean_width);
        job->mean = t->mean;
    } else if (kind != MEAN_NONE) {
        job->mean_values = kind == MEAN_VALUES ? job->channels : 1;
        t->mean = make_means(t, (size_t)job->mean_values);
        job->mean_value = t->mean;
    }
}

static void make_top(trial *t)
{
    const leat__transform_job *job = &t->job;
    size_t size = leat_dtype_size(job->top_type);
    t->top_shift = GUARD + draw(8) * size;
    t->top_bytes =
        (size_t)job->channels * (size_t)job->height * (size_t)job->width * size;
    size_t bytes = t->top_shift + t->top_bytes + GUARD;
    t->expected = need(bytes);
    t->found = need(bytes);
    memset(t->expected, GUARD_BYTE, bytes);
    leat__transform_reference(&t->job, &t->image, t->expected + t->top_shift);
}

/* Uncropped along an axis in one trial of three. */
static int draw_margin(void)
{
    return draw(3) ? (int)draw(6) : 0;
}

static void make_trial(trial *t, int mean, int has_scale)
{
    t->job.channels = t->image.channels;
    t->job.height = draw_size() % 20 + 1;
    t->job.width = draw_width();
    t->job.scale = has_scale ? (double)0.00390625f * 1.5f : 1;
    int below = draw_margin();
    int right = draw_margin();
    t->image.height = t->job.height + below;
    t->image.width = t->job.width + right;
    t->image.h_off = (int)draw((uint32_t)below + 1);
    t->image.w_off = (int)draw((uint32_t)right + 1);
    make_pixels(t);
    make_mean(t, mean);
    make_top(t);
}

static void free_trial(trial *t)
{
    free(t->pixels);
    free(t->mean);
    free(t->expected);
    free(t->found);
}

static void compare(trial *t, const char *set, int mean)
{
    const leat__row_kernels *kernels = leat__row_kernels_find(set);
    if (!kernels)
        return;
    size_t bytes = t->top_shift + t->top_bytes + GUARD;
    memset(t->found, GUARD_BYTE, bytes);
    leat__transform_top(kernels, &t->job, &t->image, t->found + t->top_shift);
    ck_assert_msg(
        memcmp(t->expected, t->found, bytes) == 0,
        "%s: %s (layout %d) %d x %d x %d at %d, %d to %s (layout %d) "
        "%d x %d, mirror %d, mean %d, scale %g",
        set, leat_dtype_name(t->image.type), (int)t->image.layout,
        t->image.channels, t->image.height, t->image.width, t->image.h_off,
        t->image.w_off, leat_dtype_name(t->job.top_type), (int)t->job.layout,
        t->job.height, t->job.width, t->image.mirror, mean, t->job.scale);
}

static void try_all(const trial *model)
{
    int is_bytes = model->job.top_type == LEAT_UINT8;
    for (int mean = MEAN_NONE; mean < (is_bytes ? MEAN_ONE_VALUE : MEANS);
         mean++) {
        for (int has_scale = 0; has_scale < (is_bytes ? 1 : 2); has_scale++) {
            for (int repeat = 0; repeat < 6; repeat++) {
                trial t = *model;
                make_trial(&t, mean, has_scale);
                for (size_t i = 0; i < SETS; i++)
                    compare(&t, sets[i], mean);
                free_trial(&t);
            }
        }
    }
}

/* Both layouts of source and top, mirrored and not, for 1 to 5 channels. */
static void try_layouts(leat_dtype source, leat_dtype top)
{
    for (int i = 0; i < 40; i++) {
        trial model = {0};
        model.image.type = source;
        model.job.top_type = top;
        model.image.layout = i & 1 ? LEAT_NHWC : LEAT_NCHW;
        model.job.layout = i & 2 ? LEAT_NHWC : LEAT_NCHW;
        model.image.mirror = i >> 2 & 1;
        model.image.channels = i / 8 + 1;
        try_all(&model);
    }
}

START_TEST(bytes_become_floats_as_the_reference_says)
{
    try_layouts(LEAT_UINT8, LEAT_FLOAT32);
}
END_TEST

START_TEST(bytes_become_doubles_as_the_reference_says)
{
    try_layouts(LEAT_UINT8, LEAT_FLOAT64);
}
END_TEST

START_TEST(bytes_stay_bytes_as_the_reference_says)
{
    try_layouts(LEAT_UINT8, LEAT_UINT8);
}
END_TEST

START_TEST(floats_become_floats_as_the_reference_says)
{
    try_layouts(LEAT_FLOAT32, LEAT_FLOAT32);
}
END_TEST

START_TEST(floats_become_doubles_as_the_reference_says)
{
    try_layouts(LEAT_FLOAT32, LEAT_FLOAT64);
}
END_TEST

START_TEST(halves_are_as_the_reference_says)
{
    try_layouts(LEAT_UINT8, LEAT_FLOAT16);
    try_layouts(LEAT_FLOAT32, LEAT_FLOAT16);
}
END_TEST

START_TEST(bfloat16_is_as_the_reference_says)
{
    try_layouts(LEAT_UINT8, LEAT_BFLOAT16);
    try_layouts(LEAT_FLOAT32, LEAT_BFLOAT16);
}
END_TEST

/* A row too wide for a band goes another way. */
START_TEST(very_wide_halves_are_as_the_reference_says)
{
    trial t = {.image = {.type = LEAT_UINT8,
                         .channels = 3,
                         .height = 2,
                         .width = 3000,
                         .mirror = 1},
               .job = {.top_type = LEAT_FLOAT16,
                       .channels = 3,
                       .height = 2,
                       .width = 3000,
                       .scale = 0.1f}};
    make_pixels(&t);
    make_top(&t);
    for (size_t i = 0; i < SETS; i++)
        compare(&t, sets[i], MEAN_NONE);
    free_trial(&t);
}
END_TEST

/* An answer worked out by hand, so that the reference is no oracle of itself.
 */
START_TEST(the_reference_crops_mirrors_and_rounds_as_caffe_does)
{
    const unsigned char pixels[] = {0, 1, 2, 3, 4, 5, 6, 7, 250, 9, 10, 11};
    const float mean[] = {1, 1, 1, 1, 1, 1, 0.1f, 2, 3, 1, 1, 1};
    leat__transform_job job = {.top_type = LEAT_FLOAT32,
                               .channels = 1,
                               .height = 2,
                               .width = 2,
                               .scale = 0.1f,
                               .mean = mean,
                               .mean_height = 3,
                               .mean_width = 4};
    leat__transform_image image = {.pixels = pixels,
                                   .type = LEAT_UINT8,
                                   .channels = 1,
                                   .height = 3,
                                   .width = 4,
                                   .h_off = 1,
                                   .w_off = 2,
                                   .mirror = 1};
    float top[4];
    leat__transform_reference(&job, &image, top);
    volatile float difference = 6 - 0.1f;
    ck_assert_float_eq(top[0], (7.0f - 2.0f) * 0.1f);
    ck_assert_float_eq(top[1], difference * 0.1f);
    ck_assert_float_eq(top[2], (11.0f - 1.0f) * 0.1f);
    ck_assert_float_eq(top[3], (10.0f - 1.0f) * 0.1f);
}
END_TEST

static void keep_line(void *user, leat_log_level level, const char *line)
{
    (void)level;
    snprintf(user, 512, "%s", line);
}

START_TEST(the_environment_names_the_instruction_set)
{
    char line[512] = "";
    leat_log_set(keep_line, line, LEAT_LOG_WARNING);
    unsetenv("LEAT_LOG_LEVEL");
    unsetenv("LEAT_ISA");
    const char *best = leat__row_kernels_choose()->name;
    for (size_t i = 0; i < SETS; i++) {
        setenv("LEAT_ISA", sets[i], 1);
        const char *expected = leat__row_kernels_find(sets[i]) ? sets[i] : best;
        ck_assert_str_eq(leat__row_kernels_choose()->name, expected);
    }
    ck_assert_ptr_nonnull(leat__row_kernels_find("c"));
    line[0] = 0;
    setenv("LEAT_ISA", "mmx", 1);
    ck_assert_str_eq(leat__row_kernels_choose()->name, best);
    ck_assert_ptr_nonnull(strstr(line, "LEAT_ISA=mmx"));
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

int main(void)
{
    for (size_t i = 0; i < SETS; i++) {
        if (!leat__row_kernels_find(sets[i]))
            printf("skipped: this processor has no %s\n", sets[i]);
    }
    Suite *suite = suite_create("transform_rows");
    TCase *tcase = tcase_create("transform_rows");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, bytes_become_floats_as_the_reference_says);
    tcase_add_test(tcase, bytes_become_doubles_as_the_reference_says);
    tcase_add_test(tcase, bytes_stay_bytes_as_the_reference_says);
    tcase_add_test(tcase, floats_become_floats_as_the_reference_says);
    tcase_add_test(tcase, floats_become_doubles_as_the_reference_says);
    tcase_add_test(tcase, halves_are_as_the_reference_says);
    tcase_add_test(tcase, bfloat16_is_as_the_reference_says);
    tcase_add_test(tcase, very_wide_halves_are_as_the_reference_says);
    tcase_add_test(tcase, the_reference_crops_mirrors_and_rounds_as_caffe_does);
    tcase_add_test(tcase, the_environment_names_the_instruction_set);
    return suite_run(suite);
}
