/* fuzz_image.c: any bytes as an image, decoded in each colour. */
#include "data/image.h"

#include <stdlib.h>

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_same_shape(const leat__image *a, const leat__image *b)
{
    return a->channels == b->channels && a->height == b->height &&
           a->width == b->width;
}

/* One that is decoded must have been peeked at, with that shape. */
static void check(leat__image_decoder *decoder, const uint8_t *data,
                  size_t size, leat__color color)
{
    leat__image peeked, image;
    int status = leat__image_peek(decoder, data, size, color, &peeked);
    /* Large ones are slow, and take the paths of small ones. */
    if (status == LEAT_OK && (int64_t)peeked.height * peeked.width > 1 << 20)
        return;
    if (leat__image_decode(decoder, data, size, color, &image) != LEAT_OK)
        return;
    if (status != LEAT_OK || !is_same_shape(&peeked, &image))
        abort();
    size_t bytes =
        (size_t)image.channels * (size_t)image.height * (size_t)image.width;
    for (size_t i = 0; i < bytes; i++)
        sink += image.pixels[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat__image_decoder *decoder;
    if (!decoder && leat__image_decoder_create(&decoder) != LEAT_OK)
        abort();
    check(decoder, data, size, LEAT__COLOR_NATIVE);
    check(decoder, data, size, LEAT__COLOR_BGR);
    check(decoder, data, size, LEAT__COLOR_GRAY);
    return 0;
}
