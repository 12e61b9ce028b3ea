#include "support/suite.h"
#include "tools/image/resize.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A line of digests.txt: what OpenCV makes of an image of ours. */
struct digest {
    int channels;
    int from[2];
    int to[2];
    unsigned long sum;
};

static struct resizer resizer;

static void forget_tables(void)
{
    resizer_finish(&resizer);
}

/* Of exactly its size, so that a sanitizer sees a read after the end. */
static leat_image make_noise(int channels, const int size[2])
{
    leat_image image = {channels, size[0], size[1], NULL};
    size_t bytes = (size_t)channels * (size_t)size[0] * (size_t)size[1];
    unsigned char *pixels = malloc(bytes);
    uint32_t state = (uint32_t)size[0] * 65536 + (uint32_t)size[1];
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525 + 1013904223;
        pixels[i] = (unsigned char)(state >> 24);
    }
    image.pixels = pixels;
    return image;
}

/* The image resized, its planes interleaved again. */
static unsigned char *resize(const leat_image *image, const int to[2])
{
    size_t plane = (size_t)to[0] * (size_t)to[1];
    size_t channels = (size_t)image->channels;
    unsigned char *planes = malloc(channels * plane);
    unsigned char *pixels = malloc(channels * plane);
    ck_assert_int_eq(resizer_apply(&resizer, image, to, planes), LEAT_OK);
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < plane; i++)
            pixels[i * channels + c] = planes[c * plane + i];
    free(planes);
    return pixels;
}

static void check_digest(const struct digest *digest)
{
    leat_image image = make_noise(digest->channels, digest->from);
    unsigned char *pixels = resize(&image, digest->to);
    size_t bytes = (size_t)digest->channels * (size_t)digest->to[0] *
                   (size_t)digest->to[1];
    ck_assert_msg(crc32_z(0, pixels, bytes) == digest->sum,
                  "%d channels, %d x %d to %d x %d: other pixels than OpenCV's",
                  digest->channels, digest->from[0], digest->from[1],
                  digest->to[0], digest->to[1]);
    free(pixels);
    free((void *)image.pixels);
}

START_TEST(the_pixels_are_those_of_opencv)
{
    FILE *list = fopen(LEAT_TEST_DATA "/resize/digests.txt", "r");
    ck_assert_ptr_nonnull(list);
    char line[256];
    int checked = 0;
    while (fgets(line, sizeof(line), list)) {
        struct digest digest;
        if (sscanf(line, "%d %d %d %d %d %lx", &digest.channels,
                   &digest.from[0], &digest.from[1], &digest.to[0],
                   &digest.to[1], &digest.sum) != 6)
            continue;
        check_digest(&digest);
        checked++;
    }
    fclose(list);
    ck_assert_int_ge(checked, 200);
}
END_TEST

START_TEST(an_image_of_the_same_size_stays_as_it_is)
{
    const int size[2] = {13, 29};
    leat_image image = make_noise(3, size);
    unsigned char *pixels = resize(&image, size);
    ck_assert_mem_eq(pixels, image.pixels, 3 * 13 * 29);
    free(pixels);
    free((void *)image.pixels);
}
END_TEST

START_TEST(a_uniform_image_stays_uniform)
{
    const int from[2] = {7, 5};
    for (int value = 0; value < 256; value++) {
        unsigned char pixels[7 * 5];
        memset(pixels, value, sizeof(pixels));
        leat_image image = {1, from[0], from[1], pixels};
        const int to[2] = {1 + value % 23, 1 + value % 19};
        unsigned char *made = resize(&image, to);
        for (int i = 0; i < to[0] * to[1]; i++)
            ck_assert_int_le(abs(made[i] - value), 1);
        free(made);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resize");
    TCase *resizing = tcase_create("resizing");
    tcase_add_checked_fixture(resizing, NULL, forget_tables);
    tcase_add_test(resizing, the_pixels_are_those_of_opencv);
    tcase_add_test(resizing, an_image_of_the_same_size_stays_as_it_is);
    tcase_add_test(resizing, a_uniform_image_stays_uniform);
    suite_add_tcase(suite, resizing);
    return suite_run(suite);
}
