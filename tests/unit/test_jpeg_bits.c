/*
 * JPEGs of every kind that libjpeg's encoder writes: their pixels are those of
 * libjpeg's decoder, called here with nothing but the colours chosen, and the
 * fast path declines no kind that it was made for. LEAT_JPEG_IMAGES sets their
 * number; an index that fails names its image.
 */
#include "support/jpeg_pair.h"
#include "support/jpeg_source.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#define IMAGES (IS_SANITIZED ? 5000 : 20000)
#define CHUNKS 100
#define PIXEL_BYTES_MAX (JPEG_SIDE_MAX * JPEG_SIDE_MAX * 3)
#define COLORS 3

/* libjpeg's pixels of an image. */
typedef struct oracle {
    leat_image image;
    unsigned char pixels[PIXEL_BYTES_MAX];
} oracle;

static void print_nothing(j_common_ptr codec)
{
    (void)codec; /* of an Adobe marker that names no such transform */
}

static void ask_oracle(const made_jpeg *jpeg, leat_color color, oracle *out)
{
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    codec.err = jpeg_std_error(&errors);
    errors.output_message = print_nothing;
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, jpeg->bytes, jpeg->size);
    jpeg_read_header(&codec, TRUE);
    bool is_gray = color == LEAT_COLOR_GRAY;
    codec.out_color_space = is_gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
    jpeg_start_decompress(&codec);
    out->image = (leat_image){.channels = is_gray ? 1 : 3,
                              .height = (int)codec.output_height,
                              .width = (int)codec.output_width,
                              .pixels = out->pixels};
    size_t pitch = (size_t)out->image.width * (size_t)out->image.channels;
    while (codec.output_scanline < codec.output_height) {
        JSAMPROW row = out->pixels + codec.output_scanline * pitch;
        jpeg_read_scanlines(&codec, &row, 1);
    }
    jpeg_finish_decompress(&codec);
    jpeg_destroy_decompress(&codec);
}

/* Stored as YCbCr or gray, by markers of which libjpeg has nothing to say. */
static bool is_plain_color(const jpeg_source *source)
{
    return source->components == 1 || (source->markers != JPEG_ADOBE_RGB &&
                                       source->markers != JPEG_UNMARKED_RGB &&
                                       source->markers != JPEG_ADOBE_YCCK);
}

/* JPEG_NOT_DECODED: either path may be taken. */
static jpeg_path expected_path(const jpeg_source *source)
{
    static const char *const fast[] = {"4:2:0", "4:2:2", "4:4:4", "4:4:0"};
    bool is_known = source->components == 1;
    for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++)
        is_known |= !strcmp(source->name, fast[i]);
    if (!is_known || !is_plain_color(source) || source->is_progressive ||
        source->is_arithmetic)
        return JPEG_LIBRARY;
    /* libjpeg upsamples so few columns otherwise. */
    if (source->components == 3 && source->h[0] == 2 && source->width <= 4)
        return JPEG_LIBRARY;
    return source->has_large_quanta ? JPEG_NOT_DECODED : JPEG_FAST;
}

/* The decoders of an instruction set: one sees whole images, one regions. */
typedef struct tested {
    leat_image_decoder *whole, *part; /* NULL: the processor lacks the set */
} tested;

/* An image, and how it is decoded. */
typedef struct image_case {
    uint64_t index;
    jpeg_source source;
    made_jpeg jpeg;
    const char *isa;
    leat_color color;
} image_case;

/* Asserts of Check that hold cost a system call each, unlike this. */
static void report(const image_case *image, const char *what)
{
    char text[JPEG_SOURCE_TEXT];
    ck_abort_msg("image %llu (%s), LEAT_ISA=%s, color %d: %s",
                 (unsigned long long)image->index,
                 jpeg_source_text(text, &image->source), image->isa,
                 image->color, what);
}

/* Decodes a region and returns its path. */
static jpeg_path check_region(leat_image_decoder *decoder,
                              const image_case *image, const oracle *oracle,
                              const leat__image_region *region)
{
    leat_image decoded;
    leat__jpeg_counts before = leat__image_jpeg_counts(decoder);
    if (jpeg_decode_region(decoder, image->jpeg.bytes, image->jpeg.size,
                           image->color, region, &decoded) != LEAT_OK)
        report(image, leat_last_error());
    int row = jpeg_other_row(&oracle->image, &decoded, region);
    if (row >= 0) {
        char line[128];
        snprintf(line, sizeof(line), "%d x %d at %d, %d: row %d differs",
                 region->rows, region->columns, region->row, region->column,
                 row);
        report(image, line);
    }
    return jpeg_path_since(decoder, before);
}

static void check_color(const tested *tested, const image_case *image,
                        const oracle *oracle, uint64_t seed)
{
    const jpeg_source *source = &image->source;
    leat__image_region all = {.rows = source->height, .columns = source->width};
    leat__image_region region =
        jpeg_region_pick(source->height, source->width, seed);
    jpeg_path path = check_region(tested->whole, image, oracle, &all);
    jpeg_path expected = expected_path(source);
    if (expected != JPEG_NOT_DECODED && path != expected)
        report(image, path == JPEG_FAST ? "is fast" : "is not fast");
    if (check_region(tested->part, image, oracle, &region) != path)
        report(image, "the region takes another path");
}

static void check_image(const tested tested[JPEG_ISAS], uint64_t index)
{
    static oracle gray, bgr;
    image_case image = {.index = index, .source = jpeg_source_pick(index)};
    image.jpeg = jpeg_source_make(&image.source);
    ask_oracle(&image.jpeg, LEAT_COLOR_GRAY, &gray);
    ask_oracle(&image.jpeg, LEAT_COLOR_BGR, &bgr);
    const oracle *native = image.source.components == 1 ? &gray : &bgr;
    const oracle *oracles[COLORS] = {native, &bgr, &gray};
    for (int i = 0; i < JPEG_ISAS; i++) {
        image.isa = jpeg_isas[i];
        for (int color = 0; color < COLORS && tested[i].whole; color++) {
            image.color = (leat_color)color;
            check_color(&tested[i], &image, oracles[color],
                        (index * JPEG_ISAS + (uint64_t)i) * COLORS +
                            (uint64_t)color);
        }
    }
    free(image.jpeg.bytes);
}

static uint64_t image_count(void)
{
    const char *text = getenv("LEAT_JPEG_IMAGES");
    return text ? strtoull(text, NULL, 10) : IMAGES;
}

START_TEST(pixels_are_those_of_libjpeg)
{
    tested tested[JPEG_ISAS];
    for (int i = 0; i < JPEG_ISAS; i++) {
        tested[i].whole = jpeg_decoder(jpeg_isas[i]);
        tested[i].part = jpeg_decoder(jpeg_isas[i]);
    }
    uint64_t end = image_count() * (uint64_t)(_i + 1) / CHUNKS;
    for (uint64_t i = image_count() * (uint64_t)_i / CHUNKS; i < end; i++)
        check_image(tested, i);
    for (int i = 0; i < JPEG_ISAS; i++) {
        leat_image_decoder_destroy(tested[i].whole);
        leat_image_decoder_destroy(tested[i].part);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jpeg_bits");
    TCase *tcase = tcase_create("jpeg_bits");
    tcase_set_timeout(tcase, 600);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, pixels_are_those_of_libjpeg, 0, CHUNKS);
    return suite_run(suite);
}
