#include "data/jpeg/jpeg_kernels.h"
#include "device/transform_rows.h"
#include "support/jpeg_pair.h"
#include "support/jpeg_source.h"
#include "support/suite.h"

#include <leat/log.h>
#include <stdio.h>
#include <string.h>

/* Sampling, width and height, components, their factors. */
static const jpeg_source kinds[] = {
    {"4:2:0", 107, 93, 3, {2, 1, 1}, {2, 1, 1}, .quality = 60},
    {"4:2:0 with restarts",
     64,
     80,
     3,
     {2, 1, 1},
     {2, 1, 1},
     .quality = 60,
     .restart_rows = 1},
    {"4:2:2", 67, 45, 3, {2, 1, 1}, {1, 1, 1}, .quality = 60},
    {"4:4:0", 45, 67, 3, {1, 1, 1}, {2, 1, 1}, .quality = 60},
    {"4:4:4", 50, 41, 3, {1, 1, 1}, {1, 1, 1}, .quality = 60},
    {"4:1:1", 131, 33, 3, {4, 1, 1}, {1, 1, 1}, .quality = 60},
    {"4:1:0", 99, 49, 3, {4, 1, 1}, {2, 1, 1}, .quality = 60},
    {"chroma unlike each other",
     66,
     65,
     3,
     {2, 2, 1},
     {2, 1, 2},
     .quality = 60},
    {"luma below chroma", 55, 58, 3, {1, 2, 2}, {1, 2, 2}, .quality = 60},
    {"gray", 60, 52, 1, {1}, {1}, .quality = 60},
    {"gray with odd factors", 51, 60, 1, {2}, {2}, .quality = 60},
    {"narrow", 4, 70, 3, {2, 1, 1}, {2, 1, 1}, .quality = 60},
    {"low", 70, 4, 3, {2, 1, 1}, {2, 1, 1}, .quality = 60},
    {"progressive",
     70,
     50,
     3,
     {2, 1, 1},
     {2, 1, 1},
     .quality = 60,
     .is_progressive = true},
    {"arithmetic",
     70,
     50,
     3,
     {2, 1, 1},
     {2, 1, 1},
     .quality = 60,
     .is_arithmetic = true},
};
#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

static made_jpeg make_jpeg(const jpeg_source *kind, jpeg_content content)
{
    jpeg_source source = *kind;
    source.content = content;
    return jpeg_source_make(&source);
}

/* Two decoders that are given the same; `part` decodes regions only. */
typedef struct pair {
    leat_image_decoder *whole;
    leat_image_decoder *part;
} pair;

static pair open_pair(void)
{
    pair two;
    ck_assert_int_eq(leat_image_decoder_create(&two.whole), LEAT_OK);
    ck_assert_int_eq(leat_image_decoder_create(&two.part), LEAT_OK);
    return two;
}

static void close_pair(pair two)
{
    leat_image_decoder_destroy(two.whole);
    leat_image_decoder_destroy(two.part);
}

/*
 * Status, error line, count of warnings and pixels: nothing may differ, but
 * that with restart markers damage far from the region is met by `whole` alone.
 */
static void check_region(pair two, const jpeg_source *kind, const void *bytes,
                         size_t size, leat_color color,
                         const leat__image_region *region)
{
    const char *name = kind->name;
    int64_t more =
        leat_image_warnings(two.part) - leat_image_warnings(two.whole);
    leat_image whole, part;
    int expected = leat_image_decode(two.whole, bytes, size, color, &whole);
    char line[512] = "";
    if (expected < 0)
        snprintf(line, sizeof(line), "%s", leat_last_error());
    int status =
        jpeg_decode_region(two.part, bytes, size, color, region, &part);
    ck_assert_msg(status == expected, "%s: %d, not %d (%s)", name, status,
                  expected, line);
    if (expected < 0)
        ck_assert_str_eq(leat_last_error(), line);
    else
        ck_assert_msg(jpeg_other_row(&whole, &part, region) < 0,
                      "%s: %d x %d at %d, %d: row %d differs", name,
                      region->rows, region->columns, region->row,
                      region->column, jpeg_other_row(&whole, &part, region));
    more =
        leat_image_warnings(two.part) - leat_image_warnings(two.whole) - more;
    ck_assert_msg(kind->restart_rows ? more <= 0 : more == 0,
                  "%s: other warnings", name);
}

START_TEST(a_region_has_the_pixels_of_the_whole)
{
    const jpeg_source *kind = &kinds[_i];
    made_jpeg image = make_jpeg(kind, JPEG_PHOTO),
              black = make_jpeg(kind, JPEG_BLACK);
    pair two = open_pair();
    for (int i = 0; i < 400; i++) {
        leat__image_region region =
            jpeg_region_pick(kind->height, kind->width, (uint64_t)i);
        leat_color color = (leat_color)(i % 3);
        /* What the last region left behind must not pass for this one. */
        leat_image left;
        ck_assert_int_eq(
            leat_image_decode(two.part, black.bytes, black.size, color, &left),
            LEAT_OK);
        check_region(two, kind, image.bytes, image.size, color, &region);
    }
    close_pair(two);
    free(image.bytes);
    free(black.bytes);
}
END_TEST

/* A region at each side of the image, and one in the middle. */
static leat__image_region side_region(const jpeg_source *kind, size_t i)
{
    int rows = (kind->height + 2) / 3, columns = (kind->width + 2) / 3;
    int row = (kind->height - rows) / 2, column = (kind->width - columns) / 2;
    static const int sides[5][2] = {{0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 1}};
    return (leat__image_region){.rows = rows,
                                .columns = columns,
                                .row = row * sides[i % 5][0],
                                .column = column * sides[i % 5][1]};
}

START_TEST(a_cut_is_judged_alike_wherever_the_region_lies)
{
    const jpeg_source *kind = &kinds[_i];
    made_jpeg image = make_jpeg(kind, JPEG_PHOTO);
    pair two = open_pair();
    for (size_t size = 0; size < image.size; size++) {
        /* Of exactly its size, so that a sanitizer sees a read after it. */
        unsigned char *cut = malloc(size + 1);
        memcpy(cut, image.bytes, size);
        leat__image_region region = side_region(kind, size);
        check_region(two, kind, cut, size, (leat_color)(size % 3), &region);
        free(cut);
    }
    close_pair(two);
    free(image.bytes);
}
END_TEST

START_TEST(damage_is_judged_alike_wherever_the_region_lies)
{
    const jpeg_source *kind = &kinds[_i];
    made_jpeg image = make_jpeg(kind, JPEG_PHOTO);
    pair two = open_pair();
    for (size_t i = 0; i < image.size * 2; i++) {
        unsigned char *byte = image.bytes + i / 2, was = *byte;
        uint64_t state = i;
        *byte = (unsigned char)(i % 2 ? was ^ 1u << jpeg_random_below(&state, 8)
                                      : jpeg_random(&state));
        leat__image_region region = side_region(kind, i);
        leat_color color = (leat_color)(i % 3);
        leat_image header;
        /* Damage in the header may have made it another image. */
        if (leat_image_probe(two.whole, image.bytes, image.size, color,
                             &header) == LEAT_OK &&
            header.height == kind->height && header.width == kind->width)
            check_region(two, kind, image.bytes, image.size, color, &region);
        *byte = was;
    }
    ck_assert_int_gt(leat_image_warnings(two.whole), 0);
    close_pair(two);
    free(image.bytes);
}
END_TEST

START_TEST(a_region_outside_of_the_image_is_all_of_it)
{
    const jpeg_source *kind = &kinds[0];
    made_jpeg image = make_jpeg(kind, JPEG_PHOTO);
    static const leat__image_region outside[] = {
        {-1, 0, 5, 5}, {0, -1, 5, 5},  {0, 0, 94, 5}, {0, 0, 5, 108},
        {90, 0, 4, 4}, {0, 104, 4, 4}, {0, 0, 0, 5},  {0, 0, 5, 0},
    };
    pair two = open_pair();
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        leat_image whole, part;
        ck_assert_int_eq(leat_image_decode(two.whole, image.bytes, image.size,
                                           LEAT_COLOR_BGR, &whole),
                         LEAT_OK);
        ck_assert_int_eq(jpeg_decode_region(two.part, image.bytes, image.size,
                                            LEAT_COLOR_BGR, &outside[i], &part),
                         LEAT_OK);
        leat__image_region all = {.rows = kind->height, .columns = kind->width};
        ck_assert_int_eq(jpeg_other_row(&whole, &part, &all), -1);
    }
    close_pair(two);
    free(image.bytes);
}
END_TEST

START_TEST(an_opened_image_need_not_be_read)
{
    made_jpeg image = make_jpeg(&kinds[0], JPEG_PHOTO);
    pair two = open_pair();
    leat_image header;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat__image_open(two.part, image.bytes, image.size,
                                          LEAT_COLOR_BGR, &header),
                         LEAT_OK);
    leat__image_region region = side_region(&kinds[0], 0);
    check_region(two, &kinds[0], image.bytes, image.size, LEAT_COLOR_BGR,
                 &region);
    ck_assert_int_eq(leat__image_open(two.part, image.bytes, image.size,
                                      LEAT_COLOR_BGR, &header),
                     LEAT_OK);
    close_pair(two);
    free(image.bytes);
}
END_TEST

START_TEST(the_environment_names_the_instruction_set)
{
    ck_assert_ptr_nonnull(leat__row_kernels_find("c"));
    for (int i = 0; i < JPEG_ISAS; i++) {
        if (!leat__row_kernels_find(jpeg_isas[i]))
            continue;
        setenv("LEAT_ISA", jpeg_isas[i], 1);
        const char *name = leat__jpeg_kernels_choose()->name;
        /* These kernels need more of AVX-512 than the transform's. */
        if (strcmp(jpeg_isas[i], "avx512") != 0 || strcmp(name, "avx2") != 0)
            ck_assert_str_eq(name, jpeg_isas[i]);
    }
    unsetenv("LEAT_ISA");
}
END_TEST

static void keep_line(void *user, leat_log_level level, const char *line)
{
    (void)level;
    snprintf(user, 512, "%s", line);
}

/* Of a plain image, by a decoder made with that value of LEAT_JPEG. */
static leat__jpeg_counts count_with(const char *name)
{
    made_jpeg image = make_jpeg(&kinds[0], JPEG_PHOTO);
    leat_image_decoder *decoder;
    leat_image decoded;
    setenv("LEAT_JPEG", name, 1);
    setenv("LEAT_ISA", "c", 1);
    ck_assert_int_eq(leat_image_decoder_create(&decoder), LEAT_OK);
    unsetenv("LEAT_ISA");
    unsetenv("LEAT_JPEG");
    ck_assert_int_eq(leat_image_decode(decoder, image.bytes, image.size,
                                       LEAT_COLOR_BGR, &decoded),
                     LEAT_OK);
    leat__jpeg_counts counts = leat__image_jpeg_counts(decoder);
    leat_image_decoder_destroy(decoder);
    free(image.bytes);
    return counts;
}

START_TEST(the_environment_leaves_all_images_to_libjpeg)
{
    char line[512] = "";
    leat_log_set(keep_line, line, LEAT_LOG_WARNING);
    unsetenv("LEAT_LOG_LEVEL");
    ck_assert_int_eq(count_with("").fast, 1);
    ck_assert_int_eq(count_with("libjpeg").library, 1);
    ck_assert_str_eq(line, "");
    ck_assert_int_eq(count_with("mozjpeg").fast, 1);
    ck_assert_ptr_nonnull(strstr(line, "LEAT_JPEG=mozjpeg"));
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_jpeg");
    TCase *tcase = tcase_create("image_jpeg");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_region_has_the_pixels_of_the_whole, 0, KINDS);
    tcase_add_loop_test(tcase, a_cut_is_judged_alike_wherever_the_region_lies,
                        0, KINDS);
    tcase_add_loop_test(tcase, damage_is_judged_alike_wherever_the_region_lies,
                        0, KINDS);
    tcase_add_test(tcase, a_region_outside_of_the_image_is_all_of_it);
    tcase_add_test(tcase, an_opened_image_need_not_be_read);
    tcase_add_test(tcase, the_environment_names_the_instruction_set);
    tcase_add_test(tcase, the_environment_leaves_all_images_to_libjpeg);
    return suite_run(suite);
}
