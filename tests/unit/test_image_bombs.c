#include "base/memory.h"
#include "data/image.h"
#include "support/image_bombs.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

/* Reading a header takes less than this. */
#define HEADER_BYTES ((uint64_t)64 << 10)

static leat_image_decoder *new_decoder(size_t max_image_bytes)
{
    leat_image_decoder *decoder;
    ck_assert_int_eq(leat_image_decoder_create(&decoder), LEAT_OK);
    leat_image_decoder_set_max_bytes(decoder, max_image_bytes);
    return decoder;
}

/* Refused with `text`, by its header alone unless `is_opened`. */
static void check_refused(const bomb *image, leat_color color,
                          size_t max_image_bytes, const char *text,
                          int is_opened)
{
    leat_image_decoder *decoder = new_decoder(max_image_bytes);
    leat_image out;
    ck_assert_int_eq(
        leat_image_decode(decoder, image->bytes, image->size, color, &out),
        LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "'%s' lacks '%s'",
                  leat_last_error(), text);
    if (!is_opened) {
        ck_assert_uint_lt(leat__image_memory_use(decoder).taken, HEADER_BYTES);
        ck_assert_int_eq(
            leat_image_probe(decoder, image->bytes, image->size, color, &out),
            LEAT_EDATA);
    }
    leat_image_decoder_destroy(decoder);
}

/* Accepted, in no more memory than its header told. */
static void check_accepted(const bomb *image, leat_color color)
{
    leat_image_decoder *decoder = new_decoder(0);
    leat_image out;
    int status =
        leat_image_decode(decoder, image->bytes, image->size, color, &out);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat__image_memory memory = leat__image_memory_use(decoder);
    ck_assert_uint_gt(memory.taken, 0);
    ck_assert_uint_le(memory.taken, memory.expected);
    leat_image_decoder_destroy(decoder);
}

START_TEST(an_arithmetic_jpeg_of_a_hundred_bytes_takes_no_memory)
{
    static const int frames[] = {BOMB_ARITHMETIC, BOMB_ARITHMETIC_PROGRESSIVE};
    for (int i = 0; i < 2; i++) {
        bomb image = {0};
        bomb_jpeg(&image, frames[i], 11585, 11585, 3);
        bomb_scan(&image, 3, 0, 0, 0);
        bomb_jpeg_end(&image);
        check_refused(&image, LEAT_COLOR_BGR, 0, "ends early", 0);
        free(image.bytes);
    }
}
END_TEST

START_TEST(an_image_over_the_bound_takes_no_memory)
{
    bomb image = {0};
    /* As many bytes as so many pixels need at the least. */
    bomb_jpeg(&image, BOMB_PROGRESSIVE, 11585, 11585, 3);
    bomb_scan(&image, 3, 0, 0, 0);
    bomb_zeros(&image, 300000);
    check_refused(&image, LEAT_COLOR_BGR, 0, "max_image_bytes allows 268435456",
                  0);
    /* Three bytes a pixel, and six of coefficients. */
    check_refused(&image, LEAT_COLOR_BGR, (size_t)9 * 11585 * 11585,
                  "max_image_bytes", 0);
    free(image.bytes);
    image = (bomb){0};
    bomb_black_png(&image, 10000, 10000);
    ck_assert_uint_lt(image.size, 13000);
    check_refused(&image, LEAT_COLOR_BGR, 0, "max_image_bytes allows 268435456",
                  0);
    check_refused(&image, LEAT_COLOR_NATIVE, 100000000, "max_image_bytes", 0);
    check_accepted(&image, LEAT_COLOR_NATIVE);
    free(image.bytes);
}
END_TEST

/* Gray and colour of one value, or grain, whichever way it is to be encoded. */
typedef struct picture {
    int width, height, components;
    int sampling; /* of the first component; down it is at most 2 */
    int is_progressive;
    int is_arithmetic;
    int has_grain;
    int scans; /* of one coefficient each; 0: libjpeg's own */
} picture;

static void split_scans(struct jpeg_compress_struct *codec, int scans,
                        jpeg_scan_info script[64])
{
    script[0] = (jpeg_scan_info){.comps_in_scan = codec->num_components};
    for (int i = 0; i < codec->num_components; i++)
        script[0].component_index[i] = i;
    for (int i = 1; i < scans; i++)
        script[i] = (jpeg_scan_info){
            .comps_in_scan = 1, .Ss = i, .Se = i < scans - 1 ? i : 63};
    codec->scan_info = script;
    codec->num_scans = scans;
}

static void write_rows(struct jpeg_compress_struct *codec,
                       const picture *picture)
{
    size_t bytes = (size_t)picture->width * (size_t)picture->components;
    unsigned char *pixels = malloc(bytes);
    JSAMPROW row = pixels;
    uint32_t grain = 1;
    memset(pixels, 200, bytes);
    for (int y = 0; y < picture->height; y++) {
        for (size_t x = 0; picture->has_grain && x < bytes; x++) {
            grain = grain * 1664525 + 1013904223;
            pixels[x] = (unsigned char)(100 + x % 50 + (grain >> 28));
        }
        jpeg_write_scanlines(codec, &row, 1);
    }
    free(pixels);
}

static bomb encode(const picture *picture)
{
    static const J_COLOR_SPACE spaces[] = {0, JCS_GRAYSCALE, 0, JCS_RGB,
                                           JCS_CMYK};
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    jpeg_scan_info script[64];
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &bytes, &size);
    codec.image_width = (JDIMENSION)picture->width;
    codec.image_height = (JDIMENSION)picture->height;
    codec.input_components = picture->components;
    codec.in_color_space = spaces[picture->components];
    jpeg_set_defaults(&codec);
    codec.arith_code = picture->is_arithmetic;
    codec.optimize_coding = !picture->is_arithmetic;
    codec.comp_info[0].h_samp_factor = picture->sampling;
    codec.comp_info[0].v_samp_factor =
        picture->sampling > 2 ? 2 : picture->sampling;
    if (picture->is_progressive)
        jpeg_simple_progression(&codec);
    if (picture->scans)
        split_scans(&codec, picture->scans, script);
    jpeg_start_compress(&codec, TRUE);
    write_rows(&codec, picture);
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    return (bomb){bytes, size};
}

/* Those of one value are as small as a file of so many pixels can be. */
static const picture pictures[] = {
    {2000, 1500, 1, 1, 1, 0, 0, 0}, {2000, 1500, 3, 2, 1, 0, 0, 0},
    {2000, 1500, 3, 1, 1, 0, 0, 0}, {2000, 1500, 4, 1, 1, 0, 0, 0},
    {2000, 1500, 3, 2, 1, 0, 1, 0}, {2000, 1500, 1, 1, 1, 0, 1, 64},
    {800, 600, 3, 2, 1, 1, 0, 0},   {2000, 1500, 3, 2, 1, 1, 1, 0},
    {800, 600, 3, 2, 0, 1, 0, 0},   {2000, 1500, 3, 1, 0, 1, 1, 0},
    {2000, 1500, 3, 2, 0, 0, 0, 0}, {65500, 8, 3, 4, 1, 0, 0, 0},
    {65500, 40, 4, 2, 0, 0, 0, 0},  {8, 65500, 3, 4, 1, 0, 0, 0},
    {65500, 40, 3, 2, 0, 0, 1, 0},  {1, 1, 3, 4, 1, 0, 0, 0},
    {3, 2, 4, 1, 0, 1, 0, 0},       {300, 200, 1, 1, 1, 0, 0, 64},
};
#define PICTURES (int)(sizeof(pictures) / sizeof(pictures[0]))

START_TEST(what_an_encoder_writes_is_accepted)
{
    bomb image = encode(&pictures[_i]);
    check_accepted(&image, LEAT_COLOR_NATIVE);
    check_accepted(&image, LEAT_COLOR_BGR);
    check_accepted(&image, LEAT_COLOR_GRAY);
    free(image.bytes);
}
END_TEST

START_TEST(the_bound_is_what_the_header_tells)
{
    bomb image = encode(&pictures[_i]);
    leat_image_decoder *decoder = new_decoder(0);
    leat_image out;
    ck_assert_int_eq(leat_image_probe(decoder, image.bytes, image.size,
                                      LEAT_COLOR_BGR, &out),
                     LEAT_OK);
    size_t expected = (size_t)leat__image_memory_use(decoder).expected;
    leat_image_decoder_set_max_bytes(decoder, expected);
    ck_assert_int_eq(leat_image_decode(decoder, image.bytes, image.size,
                                       LEAT_COLOR_BGR, &out),
                     LEAT_OK);
    char line[128];
    snprintf(line, sizeof(line),
             "takes %zu bytes of memory; max_image_bytes allows %zu", expected,
             expected - 1);
    check_refused(&image, LEAT_COLOR_BGR, expected - 1, line, 0);
    leat_image_decoder_destroy(decoder);
    free(image.bytes);
}
END_TEST

/* As 6 kB that took 14 s. */
START_TEST(empty_scans_are_not_walked_without_end)
{
    static const int frames[] = {BOMB_ARITHMETIC_PROGRESSIVE, BOMB_PROGRESSIVE};
    for (int i = 0; i < 2; i++) {
        bomb image = {0};
        bomb_jpeg(&image, frames[i], 1600, 1600, 1);
        bomb_scan(&image, 1, 0, 0, 0);
        if (frames[i] == BOMB_PROGRESSIVE)
            bomb_zeros(&image, 1600 * 1600 / 64 / 8);
        for (int scan = 0; scan < 450; scan++)
            bomb_scan(&image, 1, 63, 0, 0);
        bomb_jpeg_end(&image);
        ck_assert_uint_lt(image.size, 12000);
        check_refused(&image, LEAT_COLOR_GRAY, 0, "more scans than", 1);
        free(image.bytes);
    }
}
END_TEST

/* The first scan is the DC's; `scans` in all. */
static bomb many_scans(int scans)
{
    bomb image = {0};
    bomb_jpeg(&image, BOMB_ARITHMETIC_PROGRESSIVE, 8, 8, 1);
    bomb_scan(&image, 1, 0, 0, 0);
    for (int i = 1; i < scans; i++)
        bomb_scan(&image, 1, 63, 0, 0);
    bomb_jpeg_end(&image);
    return image;
}

START_TEST(scans_are_limited_to_five_hundred)
{
    bomb image = many_scans(500);
    check_accepted(&image, LEAT_COLOR_GRAY);
    free(image.bytes);
    image = many_scans(501);
    check_refused(&image, LEAT_COLOR_GRAY, 0, "more than 500 scans", 1);
    free(image.bytes);
}
END_TEST

/* Deflate makes at most 1032 bytes of one. */
START_TEST(a_png_needs_a_byte_for_1032_of_its_rows)
{
    leat_image_decoder *decoder = new_decoder(0);
    leat_image out;
    bomb image = {0};
    bomb_png(&image, 1032, 2000, 8, 0);
    bomb_chunk(&image, "IDAT", "", 0);
    bomb_zeros(&image, 2000 - image.size);
    ck_assert_int_eq(
        leat_image_probe(decoder, image.bytes, 2000, LEAT_COLOR_NATIVE, &out),
        LEAT_OK);
    ck_assert_int_eq(
        leat_image_probe(decoder, image.bytes, 1999, LEAT_COLOR_NATIVE, &out),
        LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "PNG ends early, after 1999 bytes");
    free(image.bytes);
    /* And zlib makes nearly as many. */
    image = (bomb){0};
    bomb_black_png(&image, 8 * 4000, 2000);
    ck_assert_uint_lt(image.size, 8 * 1000 + 100);
    check_accepted(&image, LEAT_COLOR_NATIVE);
    free(image.bytes);
    leat_image_decoder_destroy(decoder);
}
END_TEST

/* As 3 MB that took 6 seconds: an 8 x 8 gray PNG of `bytes` of zeros. */
static bomb long_png(int interlace, size_t bytes)
{
    unsigned char head[] = {0, 0, 0, 8, 0, 0, 0, 8, 8, 0, 0, 0, 0};
    unsigned char *rows = calloc(1, bytes);
    bomb image = {0};
    ck_assert_ptr_nonnull(rows);
    head[12] = (unsigned char)interlace;
    bomb_put(&image, "\x89PNG\r\n\x1a\n", 8);
    bomb_chunk(&image, "IHDR", head, sizeof(head));
    bomb_deflated_chunk(&image, "IDAT", NULL, 0, rows, bytes);
    bomb_chunk(&image, "IEND", "", 0);
    free(rows);
    return image;
}

START_TEST(a_png_whose_data_goes_on_after_its_rows_is_refused)
{
    static const char line[] = "bytes of image data after its last row; at "
                               "most 65536 are passed over";
    enum { END = 12, CRC = 4 };
    bomb image = long_png(_i, 100000000);
    ck_assert_uint_lt(image.size, 100000);
    check_refused(&image, LEAT_COLOR_NATIVE, 0, line, 1);
    check_refused(&image, LEAT_COLOR_BGR, 0, line, 1);
    image.size -= END + CRC;
    check_refused(&image, LEAT_COLOR_BGR, 0, "PNG ends early, after", 1);
    free(image.bytes);
    image = long_png(_i, 50000000);
    check_accepted(&image, LEAT_COLOR_NATIVE);
    free(image.bytes);
}
END_TEST

/* An 8 x 8 gray PNG with so many bytes of IDAT after its rows'. */
static bomb tailed_png(size_t bytes)
{
    unsigned char rows[8 * 9] = {0};
    bomb tail = {0}, image = {0};
    bomb_zeros(&tail, bytes);
    bomb_png(&image, 8, 8, 8, 0);
    bomb_deflated_chunk(&image, "IDAT", NULL, 0, rows, sizeof(rows));
    bomb_chunk(&image, "IDAT", tail.bytes, 1);
    bomb_chunk(&image, "IDAT", tail.bytes, bytes - 1);
    /* Other chunks do not count. */
    bomb_chunk(&image, "teSt", tail.bytes, bytes);
    bomb_chunk(&image, "IEND", "", 0);
    free(tail.bytes);
    return image;
}

START_TEST(a_png_may_have_64_kib_after_its_rows)
{
    bomb image = tailed_png(65536);
    check_accepted(&image, LEAT_COLOR_NATIVE);
    free(image.bytes);
    image = tailed_png(65537);
    check_refused(&image, LEAT_COLOR_NATIVE, 0,
                  "PNG has 65537 bytes of image data after its last row; at "
                  "most 65536 are passed over",
                  1);
    free(image.bytes);
}
END_TEST

static void put_encoded(png_structp codec, png_bytep bytes, size_t size)
{
    bomb_put(png_get_io_ptr(codec), bytes, size);
}

/* A gray PNG of 1 bit and 8 columns, in stored blocks, as libpng writes it. */
static bomb stored_png(unsigned char *rows, int height, int interlace)
{
    bomb image = {0};
    png_structp codec =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(codec);
    png_set_write_fn(codec, &image, put_encoded, NULL);
    png_set_compression_level(codec, 0);
    png_set_IHDR(codec, info, 8, (png_uint_32)height, 1, PNG_COLOR_TYPE_GRAY,
                 interlace, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    png_write_info(codec, info);
    int passes = png_set_interlace_handling(codec);
    for (int row = 0; row < passes * height; row++)
        png_write_row(codec, rows + row % height);
    png_write_end(codec, NULL);
    png_destroy_write_struct(&codec, &info);
    return image;
}

/* Its data has more bytes than its pixels, in passes nearly four times. */
START_TEST(a_png_of_stored_blocks_and_a_tail_is_accepted)
{
    enum { HEIGHT = 100000, END = 12, TAIL = 1000 };
    static unsigned char rows[HEIGHT];
    for (uint32_t i = 0; i < HEIGHT; i++)
        rows[i] = (unsigned char)(i * 2654435761U >> 24);
    bomb image = stored_png(rows, HEIGHT, _i);
    ck_assert_uint_gt(image.size, _i ? 375000 : 200000);
    image.size -= END;
    bomb_chunk(&image, "IDAT", rows, TAIL);
    bomb_chunk(&image, "IEND", "", 0);
    leat_image_decoder *decoder = new_decoder(0);
    leat_image out;
    int status = leat_image_decode(decoder, image.bytes, image.size,
                                   LEAT_COLOR_NATIVE, &out);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    for (int i = 0; i < HEIGHT * 8; i++)
        ck_assert_int_eq(out.pixels[i],
                         rows[i / 8] >> (7 - i % 8) & 1 ? 255 : 0);
    leat_image_decoder_destroy(decoder);
    free(image.bytes);
}
END_TEST

/* A colour profile of `size` bytes that libpng takes for one: no tags. */
static unsigned char *make_profile(size_t size)
{
    unsigned char *profile = calloc(1, size);
    ck_assert_ptr_nonnull(profile);
    for (int i = 0; i < 4; i++)
        profile[i] = (unsigned char)(size >> (24 - 8 * i));
    profile[8] = 2;
    memcpy(profile + 12, "mntrRGB XYZ ", 12);
    memcpy(profile + 36, "acsp", 4);
    memcpy(profile + 68, "\0\0\xf6\xd6\0\1\0\0\0\0\xd3\x2d", 12);
    return profile;
}

/* libpng inflates it before the size of the image is looked at. */
START_TEST(a_profile_that_inflates_is_bounded)
{
    enum { PROFILE = 5000000 };
    unsigned char *profile = make_profile(PROFILE), rows[8 * 25] = {0};
    bomb image = {0};
    bomb_png(&image, 8, 8, 8, 2);
    bomb_deflated_chunk(&image, "iCCP", "icc\0", 5, profile, PROFILE);
    bomb_deflated_chunk(&image, "IDAT", NULL, 0, rows, sizeof(rows));
    bomb_chunk(&image, "IEND", "", 0);
    ck_assert_uint_lt(image.size, 10000);
    check_refused(&image, LEAT_COLOR_BGR, (size_t)1 << 20,
                  "max_image_bytes allows 1048576", 0);
    leat_image_decoder *decoder = new_decoder(0);
    leat_image out;
    ck_assert_int_eq(leat_image_decode(decoder, image.bytes, image.size,
                                       LEAT_COLOR_BGR, &out),
                     LEAT_OK);
    leat__image_memory memory = leat__image_memory_use(decoder);
    ck_assert_uint_gt(memory.taken, PROFILE);
    ck_assert_uint_le(memory.taken, memory.expected);
    leat_image_decoder_destroy(decoder);
    free(image.bytes);
    free(profile);
}
END_TEST

/* Decodes it `n` times; returns what the decoder keeps then. */
static uint64_t decode(leat_image_decoder *decoder, const bomb *image, int n)
{
    leat_image out;
    int status = LEAT_OK;
    for (int i = 0; i < n && status == LEAT_OK; i++)
        status = leat_image_decode(decoder, image->bytes, image->size,
                                   LEAT_COLOR_BGR, &out);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return leat__image_memory_use(decoder).kept;
}

/* The JPEG with an EXIF block that turns it. */
static bomb turned(const bomb *image)
{
    static const unsigned char exif[] = {
        0xff, 0xd8, 0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f',  0, 0, 'I',
        'I',  0x2a, 0,    8,    0, 0,  0,   1,   0,   0x12, 1, 3, 0,
        1,    0,    0,    0,    6, 0,  0,   0,   0,   0,    0, 0};
    bomb out = {0};
    bomb_put(&out, exif, sizeof(exif));
    bomb_put(&out, image->bytes + 2, image->size - 2);
    return out;
}

START_TEST(a_turned_images_memory_is_given_back)
{
    static const picture gray = {2500, 2000, 1, 1, 1, 0, 0, 0};
    bomb image = encode(&gray), large = turned(&image);
    bomb small = encode(&pictures[17]);
    leat_image_decoder *decoder = new_decoder(0);
    leat_image out;
    ck_assert_int_eq(leat_image_decode(decoder, large.bytes, large.size,
                                       LEAT_COLOR_BGR, &out),
                     LEAT_OK);
    ck_assert_int_eq(out.height, 2500);
    leat__image_memory memory = leat__image_memory_use(decoder);
    /* The pixels count twice. */
    ck_assert_uint_gt(memory.expected, 2 * 3 * 2500 * 2000);
    ck_assert_uint_le(memory.taken, memory.expected);
    ck_assert_uint_gt(memory.kept, 2 * 3 * 2500 * 2000);
    ck_assert_uint_lt(decode(decoder, &small, 1100), (uint64_t)1 << 20);
    leat_image_decoder_destroy(decoder);
    free(image.bytes);
    free(large.bytes);
    free(small.bytes);
}
END_TEST

START_TEST(a_large_images_memory_is_given_back)
{
    static const picture progressive = {2500, 2000, 3, 1, 1, 0, 0, 0};
    bomb large = encode(&progressive), small = encode(&pictures[17]);
    bomb png = {0};
    bomb_black_png(&png, 6000, 4000);
    leat_image_decoder *decoder = new_decoder(0);
    /* Coefficients and pixels, and then more pixels. */
    ck_assert_uint_gt(decode(decoder, &large, 1), (uint64_t)40 << 20);
    ck_assert_uint_gt(decode(decoder, &png, 1), (uint64_t)90 << 20);
    /* They are kept a while: the next may be as large. */
    ck_assert_uint_gt(decode(decoder, &small, 100), (uint64_t)90 << 20);
    ck_assert_uint_lt(decode(decoder, &small, 1000), (uint64_t)1 << 20);
    int64_t before = leat__alloc_count();
    decode(decoder, &small, 2000);
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_image_decoder_destroy(decoder);
    free(large.bytes);
    free(small.bytes);
    free(png.bytes);
}
END_TEST

/* As photographs do from record to record. */
START_TEST(images_that_differ_by_a_small_factor_allocate_nothing)
{
    static const picture sizes[] = {{1600, 1200, 3, 1, 1, 0, 0, 0},
                                    {640, 480, 3, 1, 1, 0, 0, 0}};
    bomb image[2] = {encode(&sizes[0]), encode(&sizes[1])};
    leat_image_decoder *decoder = new_decoder(0);
    decode(decoder, &image[0], 2);
    int64_t before = leat__alloc_count();
    /* Fewer large ones than there are looks back. */
    for (int i = 0; i < 3; i++) {
        decode(decoder, &image[1], 300);
        decode(decoder, &image[0], 1);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_image_decoder_destroy(decoder);
    free(image[0].bytes);
    free(image[1].bytes);
}
END_TEST

/* Each fits by itself: one has pixels for the most part, the other both. */
START_TEST(buffers_of_earlier_images_count)
{
    static const picture progressive = {2500, 2000, 3, 1, 1, 0, 0, 0};
    bomb large = encode(&progressive), png = {0};
    bomb_black_png(&png, 4000, 4000);
    size_t bound = (size_t)50 << 20;
    leat_image_decoder *decoder = new_decoder(bound);
    for (int i = 0; i < 3; i++) {
        decode(decoder, &png, 1);
        ck_assert_uint_le(decode(decoder, &large, 1), bound);
    }
    leat_image_decoder_destroy(decoder);
    free(large.bytes);
    free(png.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_bombs");
    TCase *tcase = tcase_create("image_bombs");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   an_arithmetic_jpeg_of_a_hundred_bytes_takes_no_memory);
    tcase_add_test(tcase, an_image_over_the_bound_takes_no_memory);
    tcase_add_loop_test(tcase, what_an_encoder_writes_is_accepted, 0, PICTURES);
    tcase_add_loop_test(tcase, the_bound_is_what_the_header_tells, 0, PICTURES);
    tcase_add_test(tcase, empty_scans_are_not_walked_without_end);
    tcase_add_test(tcase, scans_are_limited_to_five_hundred);
    tcase_add_test(tcase, a_png_needs_a_byte_for_1032_of_its_rows);
    tcase_add_loop_test(
        tcase, a_png_whose_data_goes_on_after_its_rows_is_refused, 0, 2);
    tcase_add_test(tcase, a_png_may_have_64_kib_after_its_rows);
    tcase_add_loop_test(tcase, a_png_of_stored_blocks_and_a_tail_is_accepted, 0,
                        2);
    tcase_add_test(tcase, a_profile_that_inflates_is_bounded);
    tcase_add_test(tcase, a_turned_images_memory_is_given_back);
    tcase_add_test(tcase, a_large_images_memory_is_given_back);
    tcase_add_test(tcase,
                   images_that_differ_by_a_small_factor_allocate_nothing);
    tcase_add_test(tcase, buffers_of_earlier_images_count);
    return suite_run(suite);
}
