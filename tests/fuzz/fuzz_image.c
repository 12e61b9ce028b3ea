/*
 * fuzz_image.c: any bytes as an image, decoded in each colour, and once more
 * with little memory.
 */
#include "data/image.h"

#include <stdlib.h>
#include <string.h>

/* Enough for some images of the corpus, and for those of a few pixels. */
#define FEW_BYTES ((size_t)300 << 10)

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_same_shape(const leat_image *a, const leat_image *b)
{
    return a->channels == b->channels && a->height == b->height &&
           a->width == b->width;
}

static size_t place_of(const leat_image *image, int row, int column)
{
    return ((size_t)row * (size_t)image->width + (size_t)column) *
           (size_t)image->channels;
}

/* A region of it, chosen by its size, must be given the same pixels. */
static void check_region(const uint8_t *data, size_t size, leat_color color,
                         const leat_image *whole)
{
    static leat_image_decoder *decoder;
    if (!decoder && leat_image_decoder_create(&decoder) != LEAT_OK)
        abort();
    leat__image_region region = {.row = (int)(size % 7 * 5) % whole->height,
                                 .column = (int)(size % 5 * 9) % whole->width};
    region.rows = (whole->height - region.row + 1) / 2;
    region.columns = (whole->width - region.column + 1) / 2;
    leat_image image;
    if (leat__image_open(decoder, data, size, color, &image) != LEAT_OK ||
        leat__image_read(decoder, &region, &image) != LEAT_OK ||
        !is_same_shape(&image, whole))
        abort();
    for (int row = region.row; row < region.row + region.rows; row++) {
        size_t place = place_of(whole, row, region.column);
        size_t bytes = (size_t)region.columns * (size_t)whole->channels;
        if (memcmp(image.pixels + place, whole->pixels + place, bytes) != 0)
            abort();
    }
}

/* Whatever became of the last image, it took no more than it may. */
static void check_memory(const leat_image_decoder *decoder, size_t max_bytes)
{
    if (leat__image_memory_use(decoder).taken > max_bytes)
        abort();
}

/* The same pixels, or the line that says that there is not enough memory. */
static void check_bound(const uint8_t *data, size_t size, leat_color color,
                        const leat_image *whole)
{
    static leat_image_decoder *decoder;
    if (!decoder && leat_image_decoder_create(&decoder) != LEAT_OK)
        abort();
    leat_image_decoder_set_max_bytes(decoder, FEW_BYTES);
    leat_image image;
    int status = leat_image_decode(decoder, data, size, color, &image);
    check_memory(decoder, FEW_BYTES);
    if (!whole)
        return;
    if (status != LEAT_OK) {
        if (!strstr(leat_last_error(), "max_image_bytes"))
            abort();
        return;
    }
    size_t bytes =
        (size_t)image.channels * (size_t)image.height * (size_t)image.width;
    if (!is_same_shape(&image, whole) ||
        memcmp(image.pixels, whole->pixels, bytes) != 0)
        abort();
}

/* One that is decoded must have been peeked at, with that shape. */
static void check(leat_image_decoder *decoder, const uint8_t *data, size_t size,
                  leat_color color)
{
    leat_image peeked, image;
    int status = leat_image_probe(decoder, data, size, color, &peeked);
    /* Large ones are slow, and take the paths of small ones. */
    if (status == LEAT_OK && (int64_t)peeked.height * peeked.width > 1 << 20) {
        check_bound(data, size, color, NULL);
        return;
    }
    int is_decoded =
        leat_image_decode(decoder, data, size, color, &image) == LEAT_OK;
    check_memory(decoder, LEAT_IMAGE_BYTES_DEFAULT);
    check_bound(data, size, color, is_decoded ? &image : NULL);
    if (!is_decoded)
        return;
    if (status != LEAT_OK || !is_same_shape(&peeked, &image))
        abort();
    size_t bytes =
        (size_t)image.channels * (size_t)image.height * (size_t)image.width;
    for (size_t i = 0; i < bytes; i++)
        sink += image.pixels[i];
    check_region(data, size, color, &image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat_image_decoder *decoder;
    if (!decoder && leat_image_decoder_create(&decoder) != LEAT_OK)
        abort();
    check(decoder, data, size, LEAT_COLOR_NATIVE);
    check(decoder, data, size, LEAT_COLOR_BGR);
    check(decoder, data, size, LEAT_COLOR_GRAY);
    return 0;
}
