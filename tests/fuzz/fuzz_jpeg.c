/*
 * fuzz_jpeg.c: any bytes as a JPEG, decoded as a layer would, with one of the
 * instruction sets, and by libjpeg alone: status, error line, warning and
 * pixels, those of a region too, are the same; only the warning of a region may
 * be missing. The file's size chooses the set and the colour.
 */
#include "data/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger images are slow and take the paths of small ones. */
#define PIXELS_MAX (1 << 18)
#define COLORS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const isas[] = {"c", "avx2", "avx512"};
#define ISAS (sizeof(isas) / sizeof(isas[0]))

static leat_image_decoder *own[ISAS], *library;

/* A set that this processor lacks is replaced by another, with a warning. */
static void create_decoders(void)
{
    for (size_t i = 0; i < ISAS; i++) {
        setenv("LEAT_ISA", isas[i], 1);
        if (leat_image_decoder_create(&own[i]) != LEAT_OK)
            abort();
    }
    setenv("LEAT_JPEG", "libjpeg", 1);
    if (leat_image_decoder_create(&library) != LEAT_OK)
        abort();
}

/* A decoder's answer; the lines are its own until its next image. */
typedef struct answer {
    int status;
    char line[512]; /* the error's */
    const char *warning;
    leat_image image;
} answer;

static answer ask(leat_image_decoder *decoder, const uint8_t *data, size_t size,
                  leat_color color, const leat__image_region *region)
{
    answer answer = {.line = ""};
    answer.status = leat__image_open(decoder, data, size, color, &answer.image);
    if (answer.status == LEAT_OK)
        answer.status = leat__image_read(decoder, region, &answer.image);
    if (answer.status < 0)
        strncpy(answer.line, leat_last_error(), sizeof(answer.line) - 1);
    answer.warning = leat_image_warning(decoder);
    return answer;
}

static void compare_pixels(const leat_image *a, const leat_image *b,
                           const leat__image_region *region)
{
    if (a->channels != b->channels || a->height != b->height ||
        a->width != b->width)
        abort();
    size_t channels = (size_t)a->channels;
    for (int row = region->row; row < region->row + region->rows; row++) {
        size_t offset =
            ((size_t)row * (size_t)a->width + (size_t)region->column) *
            channels;
        if (memcmp(a->pixels + offset, b->pixels + offset,
                   (size_t)region->columns * channels) != 0)
            abort();
    }
}

/* Prints what differs: it may depend on earlier images. */
static void differ(const char *what, const answer *a, const answer *b)
{
    fprintf(stderr, "%s: %d '%s' '%s', but by libjpeg %d '%s' '%s'\n", what,
            a->status, a->line, a->warning ? a->warning : "", b->status,
            b->line, b->warning ? b->warning : "");
    abort();
}

static void compare(const char *what, const answer *a, const answer *b,
                    const leat__image_region *region)
{
    if (a->status != b->status || strcmp(a->line, b->line) != 0)
        differ(what, a, b);
    if (!a->warning != !b->warning ||
        (a->warning && strcmp(a->warning, b->warning) != 0))
        differ(what, a, b);
    if (a->status == LEAT_OK)
        compare_pixels(&a->image, &b->image, region);
}

/* A region chosen by the file's size. */
static leat__image_region choose_region(const leat_image *whole, size_t size)
{
    leat__image_region region = {.row = (int)(size % 7 * 5) % whole->height,
                                 .column = (int)(size % 11 * 9) % whole->width};
    region.rows = 1 + (int)(size % 13) * (whole->height - region.row - 1) / 12;
    region.columns =
        1 + (int)(size % 17) * (whole->width - region.column - 1) / 16;
    return region;
}

static void check(leat_image_decoder *decoder, const uint8_t *data, size_t size,
                  leat_color color)
{
    leat_image header = {.height = 1, .width = 1};
    if (leat_image_probe(library, data, size, color, &header) == LEAT_OK &&
        (int64_t)header.height * header.width > PIXELS_MAX)
        return;
    leat__image_region all = {.rows = header.height, .columns = header.width};
    leat__image_region part = choose_region(&header, size);
    answer expected = ask(library, data, size, color, NULL);
    /* The region first: the whole image would leave its pixels behind. */
    answer region = ask(decoder, data, size, color, &part);
    answer regular = expected;
    /* What is wrong between restart markers far from it is not met. */
    if (!region.warning && memmem(data, size, "\xff\xdd", 2))
        regular.warning = NULL;
    compare("region", &region, &regular, &part);
    answer whole = ask(decoder, data, size, color, NULL);
    compare("whole", &whole, &expected, &all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!library)
        create_decoders();
    /* No JPEG. */
    if (size > 0 && data[0] != 0xff)
        return 0;
    check(own[size % ISAS], data, size, (leat_color)(size / ISAS % COLORS));
    return 0;
}
