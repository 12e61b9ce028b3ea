#include "base/error.h"
#include "base/random.h"
#include "data/image.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* How a made image is written. */
typedef struct jpeg_kind {
    const char *name;
    int components;
    int h[3], v[3]; /* sampling factors */
    int restart_rows;
    int is_progressive;
    int is_arithmetic;
    int width, height;
} jpeg_kind;

static const jpeg_kind kinds[] = {
    {"4:2:0", 3, {2, 1, 1}, {2, 1, 1}, 0, 0, 0, 107, 93},
    {"4:2:0 with restarts", 3, {2, 1, 1}, {2, 1, 1}, 1, 0, 0, 64, 80},
    {"4:2:2", 3, {2, 1, 1}, {1, 1, 1}, 0, 0, 0, 67, 45},
    {"4:4:0", 3, {1, 1, 1}, {2, 1, 1}, 0, 0, 0, 45, 67},
    {"4:4:4", 3, {1, 1, 1}, {1, 1, 1}, 0, 0, 0, 50, 41},
    {"4:1:1", 3, {4, 1, 1}, {1, 1, 1}, 0, 0, 0, 131, 33},
    {"4:1:0", 3, {4, 1, 1}, {2, 1, 1}, 0, 0, 0, 99, 49},
    {"chroma unlike each other", 3, {2, 2, 1}, {2, 1, 2}, 0, 0, 0, 66, 65},
    {"luma below chroma", 3, {1, 2, 2}, {1, 2, 2}, 0, 0, 0, 55, 58},
    {"gray", 1, {1}, {1}, 0, 0, 0, 60, 52},
    {"gray with odd factors", 1, {2}, {2}, 0, 0, 0, 51, 60},
    {"narrow", 3, {2, 1, 1}, {2, 1, 1}, 0, 0, 0, 4, 70},
    {"low", 3, {2, 1, 1}, {2, 1, 1}, 0, 0, 0, 70, 4},
    {"progressive", 3, {2, 1, 1}, {2, 1, 1}, 0, 1, 0, 70, 50},
    {"arithmetic", 3, {2, 1, 1}, {2, 1, 1}, 0, 0, 1, 70, 50},
};
#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

typedef struct made_jpeg {
    unsigned char *bytes;
    unsigned long size;
} made_jpeg;

/* A row of broad shapes and grain; `seed` 0 is black. */
static void draw_row(unsigned char *row, int samples, int y, uint32_t seed)
{
    for (int x = 0; x < samples; x++) {
        uint32_t words[4] = {0};
        if (seed)
            leat__random_words(seed, 0, (int64_t)y * samples + x, 0, words);
        row[x] =
            (unsigned char)(seed ? (x * 2 + y * 3) % 190 + words[0] % 64 : 0);
    }
}

static made_jpeg make_jpeg(const jpeg_kind *kind, uint32_t seed)
{
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    made_jpeg made = {0};
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &made.bytes, &made.size);
    codec.image_width = (JDIMENSION)kind->width;
    codec.image_height = (JDIMENSION)kind->height;
    codec.input_components = kind->components;
    codec.in_color_space = kind->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&codec);
    jpeg_set_quality(&codec, 60, TRUE);
    for (int i = 0; i < kind->components; i++) {
        codec.comp_info[i].h_samp_factor = kind->h[i];
        codec.comp_info[i].v_samp_factor = kind->v[i];
    }
    codec.restart_in_rows = kind->restart_rows;
    codec.arith_code = kind->is_arithmetic;
    if (kind->is_progressive)
        jpeg_simple_progression(&codec);
    jpeg_start_compress(&codec, TRUE);
    unsigned char pixels[3 * 256];
    JSAMPROW row = pixels;
    for (int y = 0; y < kind->height; y++) {
        draw_row(pixels, kind->width * kind->components, y, seed);
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    return made;
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

static void check_pixels(const char *name, const leat_image *whole,
                         const leat_image *part,
                         const leat__image_region *region)
{
    ck_assert_int_eq(part->channels, whole->channels);
    ck_assert_int_eq(part->height, whole->height);
    ck_assert_int_eq(part->width, whole->width);
    size_t channels = (size_t)whole->channels;
    for (int row = region->row; row < region->row + region->rows; row++) {
        size_t place =
            ((size_t)row * (size_t)whole->width + (size_t)region->column) *
            channels;
        ck_assert_msg(memcmp(whole->pixels + place, part->pixels + place,
                             (size_t)region->columns * channels) == 0,
                      "%s: %d x %d at %d, %d: row %d differs", name,
                      region->rows, region->columns, region->row,
                      region->column, row);
    }
}

/*
 * Status, error line, count of warnings and pixels: nothing may differ, but
 * that with restart markers damage far from the region is met by `whole` alone.
 */
static void check_region(pair two, const jpeg_kind *kind, const void *bytes,
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
    int status = leat__image_open(two.part, bytes, size, color, &part);
    if (status == LEAT_OK)
        status = leat__image_read(two.part, region, &part);
    ck_assert_msg(status == expected, "%s: %d, not %d (%s)", name, status,
                  expected, line);
    if (expected < 0)
        ck_assert_str_eq(leat_last_error(), line);
    else
        check_pixels(name, &whole, &part, region);
    more =
        leat_image_warnings(two.part) - leat_image_warnings(two.whole) - more;
    ck_assert_msg(kind->restart_rows ? more <= 0 : more == 0,
                  "%s: other warnings", name);
}

static leat__image_region pick_region(int height, int width, int i)
{
    uint32_t words[4];
    leat__random_words(5, 0, i, 0, words);
    leat__image_region region = {
        .rows = 1 + (int)leat__random_below(words[0], (uint32_t)height),
        .columns = 1 + (int)leat__random_below(words[1], (uint32_t)width)};
    region.row =
        (int)leat__random_below(words[2], (uint32_t)(height - region.rows + 1));
    region.column = (int)leat__random_below(
        words[3], (uint32_t)(width - region.columns + 1));
    return region;
}

START_TEST(a_region_has_the_pixels_of_the_whole)
{
    const jpeg_kind *kind = &kinds[_i];
    made_jpeg image = make_jpeg(kind, 1), black = make_jpeg(kind, 0);
    pair two = open_pair();
    for (int i = 0; i < 400; i++) {
        leat__image_region region = pick_region(kind->height, kind->width, i);
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
static leat__image_region side_region(const jpeg_kind *kind, size_t i)
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
    const jpeg_kind *kind = &kinds[_i];
    made_jpeg image = make_jpeg(kind, 1);
    pair two = open_pair();
    for (size_t size = 0; size < image.size; size++) {
        /* Of exactly its size, so that a sanitizer sees a read behind it. */
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
    const jpeg_kind *kind = &kinds[_i];
    made_jpeg image = make_jpeg(kind, 1);
    pair two = open_pair();
    for (size_t i = 0; i < image.size * 2; i++) {
        unsigned char *byte = image.bytes + i / 2, was = *byte;
        uint32_t words[4];
        leat__random_words(6, 0, (int64_t)i, 0, words);
        *byte = (unsigned char)(i % 2 ? was ^ 1u << words[0] % 8 : words[1]);
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
    const jpeg_kind *kind = &kinds[0];
    made_jpeg image = make_jpeg(kind, 1);
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
        ck_assert_int_eq(leat__image_open(two.part, image.bytes, image.size,
                                          LEAT_COLOR_BGR, &part),
                         LEAT_OK);
        ck_assert_int_eq(leat__image_read(two.part, &outside[i], &part),
                         LEAT_OK);
        leat__image_region all = {.rows = kind->height, .columns = kind->width};
        check_pixels(kind->name, &whole, &part, &all);
    }
    close_pair(two);
    free(image.bytes);
}
END_TEST

START_TEST(an_opened_image_need_not_be_read)
{
    made_jpeg image = make_jpeg(&kinds[0], 1);
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
    return suite_run(suite);
}
