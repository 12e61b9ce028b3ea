/* PNG by PNG: what the header tells, which chunks count, what pixels become. */
#include "data/image_codec.h"
#include "support/image_bombs.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat__arena arena;
static leat__png *png;
static leat__image_source source;
static leat__image_frame frame;
static unsigned char pixels[4096];

static void set_up(void)
{
    arena = (leat__arena){0};
    ck_assert_int_eq(leat__png_create(&png, &arena), LEAT_OK);
}

static void tear_down(void)
{
    leat__png_destroy(png);
    leat__arena_finish(&arena);
}

static int open_sized(const bomb *image, size_t size, leat_color color)
{
    source = (leat__image_source){image->bytes, size, color};
    memset(&frame, 0, sizeof(frame));
    return leat__png_open(png, &source, &frame);
}

static int open_image(const bomb *image, leat_color color)
{
    return open_sized(image, image->size, color);
}

/* Decodes it; the pixels and the frame stand above. */
static int decode(const bomb *image, leat_color color)
{
    memset(pixels, 0xa5, sizeof(pixels));
    int status = open_image(image, color);
    if (status == LEAT_OK) {
        ck_assert_uint_lt(leat__image_pixel_bytes(&frame), sizeof(pixels));
        status = leat__png_read(png, pixels, &frame);
        ck_assert_uint_eq(pixels[leat__image_pixel_bytes(&frame)], 0xa5);
    }
    leat__png_close(png);
    return status;
}

/* How a row of two pixels is stored, and what it is in each colour. */
typedef struct row_case {
    const char *name;
    int depth;
    int color_type;
    const char *palette; /* of 4 entries, or NULL */
    int transparent;     /* bytes of tRNS; 0: none */
    int stored;          /* bytes of the row */
    unsigned char row[17];
    int channels; /* natively; 0: refused */
    unsigned char native[8];
    unsigned char bgr[6];
    unsigned char gray[2];
} row_case;

#define PALETTE "\x01\x02\x03\x0a\x14\x1e\xff\x00\x00\x00\x00\xff"

static const row_case rows[] = {
    {"gray, 1 bit",
     1,
     0,
     NULL,
     0,
     1,
     {0x40},
     1,
     {0, 255},
     {0, 0, 0, 255, 255, 255},
     {0, 255}},
    {"gray, 2 bits",
     2,
     0,
     NULL,
     0,
     1,
     {0x60},
     1,
     {85, 170},
     {85, 85, 85, 170, 170, 170},
     {85, 170}},
    {"gray, 4 bits",
     4,
     0,
     NULL,
     0,
     1,
     {0x3e},
     1,
     {51, 238},
     {51, 51, 51, 238, 238, 238},
     {51, 238}},
    {"gray, 8 bits",
     8,
     0,
     NULL,
     0,
     2,
     {7, 200},
     1,
     {7, 200},
     {7, 7, 7, 200, 200, 200},
     {7, 200}},
    {"gray with a transparent value",
     8,
     0,
     NULL,
     2,
     2,
     {7, 200},
     1,
     {7, 200},
     {7, 7, 7, 200, 200, 200},
     {7, 200}},
    {"gray, 16 bits",
     16,
     0,
     NULL,
     0,
     4,
     {7, 255, 200, 0},
     0,
     {0},
     {7, 7, 7, 200, 200, 200},
     {7, 200}},
    {"colour",
     8,
     2,
     NULL,
     0,
     6,
     {255, 0, 0, 10, 20, 30},
     3,
     {0, 0, 255, 30, 20, 10},
     {0, 0, 255, 30, 20, 10},
     {76, 18}},
    {"colour with a transparent one",
     8,
     2,
     NULL,
     6,
     6,
     {0, 0, 0, 2, 0, 3},
     4,
     {0, 0, 0, 0, 3, 0, 2, 255},
     {0, 0, 0, 3, 0, 2},
     {0, 0}},
    {"colour, 16 bits",
     16,
     2,
     NULL,
     0,
     12,
     {255, 9, 0, 9, 0, 9, 10, 9, 20, 9, 30, 9},
     0,
     {0},
     {0, 0, 255, 30, 20, 10},
     {76, 18}},
    {"palette, 1 bit",
     1,
     3,
     PALETTE,
     0,
     1,
     {0x40},
     3,
     {3, 2, 1, 30, 20, 10},
     {3, 2, 1, 30, 20, 10},
     {1, 18}},
    {"palette, 2 bits",
     2,
     3,
     PALETTE,
     0,
     1,
     {0xb0},
     3,
     {0, 0, 255, 255, 0, 0},
     {0, 0, 255, 255, 0, 0},
     {76, 29}},
    {"palette, 8 bits",
     8,
     3,
     PALETTE,
     0,
     2,
     {1, 3},
     3,
     {30, 20, 10, 255, 0, 0},
     {30, 20, 10, 255, 0, 0},
     {18, 29}},
    {"palette with transparent entries",
     8,
     3,
     PALETTE,
     2,
     2,
     {1, 3},
     4,
     {30, 20, 10, 0, 255, 0, 0, 255},
     {30, 20, 10, 255, 0, 0},
     {18, 29}},
    {"gray and alpha",
     8,
     4,
     NULL,
     0,
     4,
     {7, 100, 200, 50},
     4,
     {7, 7, 7, 100, 200, 200, 200, 50},
     {7, 7, 7, 200, 200, 200},
     {7, 200}},
    {"gray and alpha, 16 bits",
     16,
     4,
     NULL,
     0,
     8,
     {7, 1, 100, 1, 200, 1, 50, 1},
     0,
     {0},
     {7, 7, 7, 200, 200, 200},
     {7, 200}},
    {"colour and alpha",
     8,
     6,
     NULL,
     0,
     8,
     {255, 0, 0, 40, 10, 20, 30, 50},
     4,
     {0, 0, 255, 40, 30, 20, 10, 50},
     {0, 0, 255, 30, 20, 10},
     {76, 18}},
    {"colour and alpha, 16 bits",
     16,
     6,
     NULL,
     0,
     16,
     {255, 1, 0, 1, 0, 1, 40, 1, 10, 1, 20, 1, 30, 1, 50, 1},
     0,
     {0},
     {0, 0, 255, 30, 20, 10},
     {76, 18}},
};
#define ROWS (int)(sizeof(rows) / sizeof(rows[0]))

/* An image of one such row; without its end. */
static bomb begin_image(const row_case *row)
{
    static const unsigned char transparent[6] = {0, 0};
    unsigned char filtered[20] = {0};
    bomb image = {0};
    bomb_png(&image, 2, 1, row->depth, row->color_type);
    if (row->palette)
        bomb_chunk(&image, "PLTE", row->palette, row->depth == 1 ? 6 : 12);
    if (row->transparent)
        bomb_chunk(&image, "tRNS", transparent, (size_t)row->transparent);
    memcpy(filtered + 1, row->row, (size_t)row->stored);
    bomb_deflated_chunk(&image, "IDAT", NULL, 0, filtered,
                        (size_t)row->stored + 1);
    return image;
}

static bomb make_image(const row_case *row)
{
    bomb image = begin_image(row);
    bomb_chunk(&image, "IEND", "", 0);
    return image;
}

static void check_row(const row_case *row, const bomb *image, leat_color color,
                      int channels, const unsigned char *expected)
{
    ck_assert_msg(decode(image, color) == LEAT_OK, "%s: %s", row->name,
                  leat_last_error());
    ck_assert_int_eq(frame.channels, channels);
    ck_assert_int_eq(frame.width, 2);
    ck_assert_int_eq(frame.height, 1);
    ck_assert_int_eq(frame.orientation, 1);
    ck_assert_ptr_null(frame.warning);
    for (int i = 0; i < 2 * channels; i++)
        ck_assert_msg(pixels[i] == expected[i],
                      "%s in colour %d: byte %d is %d, not %d", row->name,
                      (int)color, i, pixels[i], expected[i]);
}

START_TEST(every_kind_of_pixel_becomes_bytes_in_each_colour)
{
    const row_case *row = &rows[_i];
    bomb image = make_image(row);
    if (row->channels) {
        check_row(row, &image, LEAT_COLOR_NATIVE, row->channels, row->native);
    } else {
        ck_assert_int_eq(decode(&image, LEAT_COLOR_NATIVE), LEAT_EDATA);
        ck_assert_str_eq(leat_last_error(),
                         "PNG of 16 bits per channel; force_color or "
                         "force_gray makes it 8");
    }
    check_row(row, &image, LEAT_COLOR_BGR, 3, row->bgr);
    check_row(row, &image, LEAT_COLOR_GRAY, 1, row->gray);
    free(image.bytes);
}
END_TEST

#define GRAY (&rows[3])

START_TEST(an_image_that_is_cut_anywhere_ends_early)
{
    bomb image = make_image(&rows[6]);
    for (size_t size = 8; size < image.size; size++) {
        unsigned char *exact = malloc(size);
        memcpy(exact, image.bytes, size);
        bomb cut = {exact, size};
        char line[64];
        snprintf(line, sizeof(line), "PNG ends early, after %zu bytes", size);
        ck_assert_int_eq(decode(&cut, LEAT_COLOR_BGR), LEAT_EDATA);
        ck_assert_str_eq(leat_last_error(), line);
        free(exact);
    }
    /* A failure is no fault of the next image. */
    ck_assert_int_eq(decode(&image, LEAT_COLOR_BGR), LEAT_OK);
    free(image.bytes);
}
END_TEST

/* A chunk between signature and header. */
static int decode_with_early(const char *name)
{
    bomb whole = make_image(GRAY), image = {0};
    bomb_put(&image, whole.bytes, 8);
    bomb_chunk(&image, name, "a\0b", 3);
    bomb_put(&image, whole.bytes + 8, whole.size - 8);
    int status = decode(&image, LEAT_COLOR_NATIVE);
    free(whole.bytes);
    free(image.bytes);
    return status;
}

/* libpng does not look at texts, and so does not see that they come early. */
START_TEST(a_text_before_the_header_is_refused)
{
    static const char *const texts[] = {"tEXt", "zTXt", "iTXt", "sPLT"};
    static const char *const others[] = {"tEXu", "aEXt", "sPLt", "teXt"};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(decode_with_early(texts[i]), LEAT_EDATA);
        ck_assert_str_eq(leat_last_error(),
                         "PNG: a text comes before the header");
        /* What neither of us knows is no fault. */
        ck_assert_msg(decode_with_early(others[i]) == LEAT_OK, "%s: %s",
                      others[i], leat_last_error());
    }
}
END_TEST

START_TEST(texts_after_the_header_may_be_anything)
{
    static const char *const texts[] = {"tEXt", "zTXt", "iTXt", "sPLT"};
    bomb whole = make_image(GRAY), image = {0};
    bomb_put(&image, whole.bytes, 8 + 25);
    for (int i = 0; i < 4; i++)
        bomb_chunk(&image, texts[i], "", 0);
    bomb_put(&image, whole.bytes + 8 + 25, whole.size - 8 - 25);
    ck_assert_int_eq(decode(&image, LEAT_COLOR_NATIVE), LEAT_OK);
    ck_assert_ptr_null(frame.warning);
    free(whole.bytes);
    free(image.bytes);
}
END_TEST

/* A block that turns the image, as far as its first bytes are as given. */
static void put_exif(bomb *image, const char *name, const char *order,
                     unsigned char orientation, size_t size)
{
    unsigned char big[] = {'M', 'M', 0, 0x2a, 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                           3,   0,   0, 0,    1, 0, 0, 0, 0, 0, 0, 0,    0};
    unsigned char little[] = {'I', 'I', 0x2a, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,
                              0,   1,   0,    0, 0, 0, 0, 0, 0, 0, 0,    0, 0};
    unsigned char *block = order[1] == 'I' ? little : big;
    block[order[1] == 'I' ? 18 : 19] = orientation;
    memcpy(block, order, 2);
    bomb_chunk(image, name, block, size);
}

/* The orientation of an image with such a chunk after its pixels. */
static int turned_by(const char *name, const char *order, size_t size,
                     leat_color color)
{
    bomb image = begin_image(GRAY);
    put_exif(&image, name, order, 6, size);
    bomb_chunk(&image, "IEND", "", 0);
    ck_assert_int_eq(open_image(&image, color), LEAT_OK);
    leat__png_close(png);
    free(image.bytes);
    return frame.orientation;
}

START_TEST(a_valid_exif_chunk_turns_the_image)
{
    ck_assert_int_eq(turned_by("eXIf", "MM", 26, LEAT_COLOR_BGR), 6);
    ck_assert_int_eq(turned_by("eXIf", "II", 26, LEAT_COLOR_BGR), 6);
    ck_assert_int_eq(turned_by("eXIf", "MM", 26, LEAT_COLOR_GRAY), 6);
    ck_assert_int_eq(turned_by("eXIf", "MM", 26, LEAT_COLOR_NATIVE), 1);
    ck_assert_int_eq(turned_by("eXIf", "MI", 26, LEAT_COLOR_BGR), 1);
    ck_assert_int_eq(turned_by("eXIf", "IM", 26, LEAT_COLOR_BGR), 1);
    ck_assert_int_eq(turned_by("eXIf", "NN", 26, LEAT_COLOR_BGR), 1);
    ck_assert_int_eq(turned_by("eXIf", "MM", 2, LEAT_COLOR_BGR), 1);
    ck_assert_int_eq(turned_by("eXIf", "MM", 1, LEAT_COLOR_BGR), 1);
    ck_assert_int_eq(turned_by("eXIf", "MM", 0, LEAT_COLOR_BGR), 1);
    ck_assert_int_eq(turned_by("eXIg", "MM", 26, LEAT_COLOR_BGR), 1);
}
END_TEST

START_TEST(the_first_valid_exif_chunk_counts)
{
    bomb image = begin_image(GRAY);
    put_exif(&image, "eXIf", "MM", 2, 26);
    image.bytes[image.size - 1] ^= 1; /* its checksum is wrong */
    put_exif(&image, "eXIf", "XX", 3, 26);
    put_exif(&image, "eXIf", "II", 4, 26);
    put_exif(&image, "eXIf", "MM", 5, 26);
    bomb_chunk(&image, "IEND", "", 0);
    ck_assert_int_eq(open_image(&image, LEAT_COLOR_BGR), LEAT_OK);
    ck_assert_int_eq(frame.orientation, 4);
    leat__png_close(png);
    free(image.bytes);
    /* Two bytes are valid, and say nothing. */
    for (size_t size = 0; size < 4; size++) {
        image = begin_image(GRAY);
        put_exif(&image, "eXIf", "II", 4, size);
        put_exif(&image, "eXIf", "MM", 5, 26);
        ck_assert_int_eq(open_image(&image, LEAT_COLOR_BGR), LEAT_OK);
        ck_assert_int_eq(frame.orientation, size < 2 ? 5 : 1);
        leat__png_close(png);
        free(image.bytes);
    }
    /* Behind the end there is nothing. */
    image = make_image(GRAY);
    put_exif(&image, "eXIf", "MM", 5, 26);
    ck_assert_int_eq(open_image(&image, LEAT_COLOR_BGR), LEAT_OK);
    ck_assert_int_eq(frame.orientation, 1);
    leat__png_close(png);
    free(image.bytes);
}
END_TEST

/* Chunks are walked as far as they are there; whole files end in any way. */
START_TEST(a_last_chunk_counts_if_it_is_whole)
{
    bomb image = begin_image(GRAY);
    put_exif(&image, "eXIf", "MM", 8, 26);
    for (size_t cut = 0; cut < 4; cut++) {
        unsigned char *exact = malloc(image.size - cut);
        memcpy(exact, image.bytes, image.size - cut);
        bomb part = {exact, image.size - cut};
        ck_assert_int_eq(open_image(&part, LEAT_COLOR_BGR), LEAT_OK);
        ck_assert_int_eq(frame.orientation, cut ? 1 : 8);
        leat__png_close(png);
        free(exact);
    }
    /* One that claims more than there is ends the walk. */
    bomb_put(&image,
             "\xff\xff\xff\xff"
             "abCd",
             8);
    bomb_zeros(&image, 8);
    ck_assert_int_eq(open_image(&image, LEAT_COLOR_BGR), LEAT_OK);
    ck_assert_int_eq(frame.orientation, 8);
    leat__png_close(png);
    free(image.bytes);
}
END_TEST

START_TEST(a_warning_is_of_its_own_image_alone)
{
    bomb good = make_image(GRAY), image = begin_image(GRAY);
    bomb_chunk(&image, "tIME", "1234567", 7);
    image.bytes[image.size - 1] ^= 1;
    bomb_chunk(&image, "IEND", "", 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(decode(&image, LEAT_COLOR_NATIVE), LEAT_OK);
        ck_assert_ptr_nonnull(frame.warning);
        ck_assert_mem_eq(pixels, GRAY->native, 2);
        ck_assert_int_eq(decode(&good, LEAT_COLOR_NATIVE), LEAT_OK);
        ck_assert_ptr_null(frame.warning);
    }
    free(good.bytes);
    free(image.bytes);
}
END_TEST

/* A chunk that must be right, and is not. */
START_TEST(what_libpng_refuses_is_told_in_its_words)
{
    bomb image = make_image(GRAY);
    image.bytes[8 + 4 + 4 + 13] ^= 1; /* the header's checksum */
    ck_assert_int_eq(decode(&image, LEAT_COLOR_NATIVE), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "PNG: IHDR: CRC error");
    free(image.bytes);
}
END_TEST

/* libpng itself refuses sides above a million. */
START_TEST(pixels_are_limited_by_the_header)
{
    bomb image = {0};
    bomb_png(&image, 1 << 15, (1 << 12) + 1, 1, 0);
    bomb_chunk(&image, "IDAT", "", 0);
    bomb_zeros(&image, 100000);
    ck_assert_int_eq(open_image(&image, LEAT_COLOR_NATIVE), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "image of 32768 x 4097 pixels; at most "
                                        "134217728 are decoded");
    leat__png_close(png);
    free(image.bytes);
}
END_TEST

/* Deflate makes 1032 bytes of one at most; rows are what it makes. */
START_TEST(a_byte_is_needed_for_1032_of_the_rows)
{
    static const struct {
        int width, height, depth, color_type;
        size_t needed;
    } cases[] = {
        {1032, 1000, 8, 0, 1000}, {1032, 1000, 8, 2, 3000},
        {1032, 1000, 8, 6, 4000}, {8 * 1032, 1000, 1, 0, 1000},
        {129, 8000, 8, 0, 1000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bomb image = {0};
        bomb_png(&image, cases[i].width, cases[i].height, cases[i].depth,
                 cases[i].color_type);
        bomb_chunk(&image, "IDAT", "", 0);
        bomb_zeros(&image, 5000);
        ck_assert_int_eq(open_sized(&image, cases[i].needed, LEAT_COLOR_NATIVE),
                         LEAT_OK);
        leat__png_close(png);
        ck_assert_int_eq(
            open_sized(&image, cases[i].needed - 1, LEAT_COLOR_NATIVE),
            LEAT_EDATA);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "PNG ends early"));
        leat__png_close(png);
        free(image.bytes);
    }
}
END_TEST

static uint64_t working_bytes(int width)
{
    bomb image = {0};
    bomb_png(&image, width, 1, 1, 0);
    bomb_chunk(&image, "IDAT", "", 0);
    bomb_zeros(&image, 1000);
    ck_assert_int_eq(open_image(&image, LEAT_COLOR_NATIVE), LEAT_OK);
    uint64_t taken = arena.used + arena.spilled;
    ck_assert_uint_gt(taken, 0);
    leat__png_close(png);
    free(image.bytes);
    return frame.working_bytes - taken;
}

/* Of rows as libpng may keep them, whatever the file's own are. */
START_TEST(decoding_takes_two_rows_beside_what_is_fixed)
{
    ck_assert_uint_eq(working_bytes(1),
                      2 * (1 + 8) * 8 + ((uint64_t)256 << 10));
    ck_assert_uint_eq(working_bytes(100000),
                      2 * (100000 + 8) * 8 + ((uint64_t)256 << 10));
}
END_TEST

/* The frame is what both sides go by: pixels of another one would not fit. */
START_TEST(rows_that_do_not_fit_the_frame_are_refused)
{
    bomb image = make_image(GRAY);
    ck_assert_int_eq(open_image(&image, LEAT_COLOR_NATIVE), LEAT_OK);
    frame.channels = 4;
    ck_assert_int_eq(leat__png_read(png, pixels, &frame), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "PNG: rows of 6 bytes, not 8");
    leat__png_close(png);
    ck_assert_int_eq(decode(&image, LEAT_COLOR_NATIVE), LEAT_OK);
    free(image.bytes);
}
END_TEST

START_TEST(rows_lie_one_after_the_other)
{
    unsigned char stored[3 * 5] = {0};
    bomb image = {0};
    for (int i = 0; i < 12; i++)
        stored[i + i / 4 + 1] = (unsigned char)(i + 1);
    bomb_png(&image, 4, 3, 8, 0);
    bomb_deflated_chunk(&image, "IDAT", NULL, 0, stored, sizeof(stored));
    bomb_chunk(&image, "IEND", "", 0);
    ck_assert_int_eq(decode(&image, LEAT_COLOR_NATIVE), LEAT_OK);
    ck_assert_int_eq(frame.width, 4);
    ck_assert_int_eq(frame.height, 3);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(pixels[i], i + 1);
    free(image.bytes);
}
END_TEST

/* As OpenCV has it: a file's gamma is of consequence to gray only. */
START_TEST(gamma_does_not_touch_colours)
{
    bomb whole = make_image(&rows[6]), image = {0};
    bomb_put(&image, whole.bytes, 8 + 25);
    bomb_chunk(&image, "gAMA", "\x00\x00\xb1\x8f", 4);
    bomb_put(&image, whole.bytes + 8 + 25, whole.size - 8 - 25);
    check_row(&rows[6], &image, LEAT_COLOR_NATIVE, 3, rows[6].native);
    check_row(&rows[6], &image, LEAT_COLOR_BGR, 3, rows[6].bgr);
    free(whole.bytes);
    free(image.bytes);
}
END_TEST

START_TEST(memory_that_is_short_is_told_wherever_it_is)
{
    bomb image = make_image(&rows[12]);
    ck_assert_int_eq(decode(&image, LEAT_COLOR_BGR), LEAT_OK);
    leat__arena_finish(&arena);
    int status = LEAT_ENOMEM;
    for (int n = 0; status != LEAT_OK; n++) {
        ck_assert_int_lt(n, 100);
        leat__alloc_fail_at(n);
        status = decode(&image, LEAT_COLOR_BGR);
        leat__alloc_fail_at(-1);
        leat__arena_finish(&arena);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    /* So is a bound of the arena's, as a fault of the image. */
    arena.limit = 1000;
    ck_assert_int_eq(decode(&image, LEAT_COLOR_BGR), LEAT_EDATA);
    free(image.bytes);
}
END_TEST

START_TEST(a_decoder_that_cannot_be_made_is_none)
{
    leat__png *none = NULL;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__png_create(&none, &arena), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    ck_assert_ptr_null(none);
    leat__png_destroy(none);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_png");
    TCase *tcase = tcase_create("image_png");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, every_kind_of_pixel_becomes_bytes_in_each_colour,
                        0, ROWS);
    tcase_add_test(tcase, an_image_that_is_cut_anywhere_ends_early);
    tcase_add_test(tcase, a_text_before_the_header_is_refused);
    tcase_add_test(tcase, texts_after_the_header_may_be_anything);
    tcase_add_test(tcase, a_valid_exif_chunk_turns_the_image);
    tcase_add_test(tcase, the_first_valid_exif_chunk_counts);
    tcase_add_test(tcase, a_last_chunk_counts_if_it_is_whole);
    tcase_add_test(tcase, a_warning_is_of_its_own_image_alone);
    tcase_add_test(tcase, what_libpng_refuses_is_told_in_its_words);
    tcase_add_test(tcase, pixels_are_limited_by_the_header);
    tcase_add_test(tcase, a_byte_is_needed_for_1032_of_the_rows);
    tcase_add_test(tcase, decoding_takes_two_rows_beside_what_is_fixed);
    tcase_add_test(tcase, rows_that_do_not_fit_the_frame_are_refused);
    tcase_add_test(tcase, rows_lie_one_after_the_other);
    tcase_add_test(tcase, gamma_does_not_touch_colours);
    tcase_add_test(tcase, memory_that_is_short_is_told_wherever_it_is);
    tcase_add_test(tcase, a_decoder_that_cannot_be_made_is_none);
    return suite_run(suite);
}
