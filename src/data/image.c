#include "data/image.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/image_codec.h"

#include <stdbool.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The signature of a file format. */
typedef struct image_format {
    const char *name;
    size_t offset;
    const char *magic;
    size_t size;
} image_format;

static const image_format jpeg_format = {"JPEG", 0, "\xff\xd8\xff", 3};
static const image_format png_format = {"PNG", 0, "\x89PNG\r\n\x1a\n", 8};

static const image_format foreign_formats[] = {
    {"GIF", 0, "GIF8", 4},
    {"BMP", 0, "BM", 2},
    {"TIFF", 0, "II*\0", 4},
    {"TIFF", 0, "MM\0*", 4},
    {"WebP", 8, "WEBP", 4},
    {"JPEG 2000", 0, "\0\0\0\x0cjP  ", 8},
    {"JPEG 2000", 0, "\xff\x4f\xff\x51", 4},
    {"OpenEXR", 0, "\x76\x2f\x31\x01", 4},
    {"AVIF or HEIF", 4, "ftyp", 4},
};

struct leat_image_decoder {
    size_t max_bytes;  /* limit per image */
    leat__arena arena; /* memory of the codecs */
    leat__jpeg *jpeg;
    leat__png *png;
    const image_format *format; /* of the open image; NULL: none is open */
    leat__image_source source;
    leat__image_frame frame;
    leat__pixel_buffer pixels;
    leat__pixel_buffer upright; /* used only for images with an orientation */
    int64_t warnings;
    const char *warning; /* of the last image; borrowed from its codec */
    uint64_t expected; /* estimated bytes of the latest image, by its header */
    uint64_t taken;    /* its peak bytes */
};

int leat_image_decoder_create(leat_image_decoder **out)
{
    leat_image_decoder *decoder = leat__alloc_zero(1, sizeof(*decoder));
    if (!decoder)
        return LEAT_ENOMEM;
    leat_image_decoder_set_max_bytes(decoder, 0);
    int status = leat__jpeg_create(&decoder->jpeg, &decoder->arena);
    if (status)
        goto fail;
    status = leat__png_create(&decoder->png, &decoder->arena);
    if (status)
        goto fail;
    *out = decoder;
    return LEAT_OK;
fail:
    leat_image_decoder_destroy(decoder);
    return status;
}

void leat_image_decoder_destroy(leat_image_decoder *decoder)
{
    if (!decoder)
        return;
    leat__jpeg_destroy(decoder->jpeg);
    leat__png_destroy(decoder->png);
    leat__arena_finish(&decoder->arena);
    leat__pixel_buffer_finish(&decoder->pixels);
    leat__pixel_buffer_finish(&decoder->upright);
    leat__free(decoder);
}

void leat_image_decoder_set_max_bytes(leat_image_decoder *decoder,
                                      size_t max_image_bytes)
{
    decoder->max_bytes =
        max_image_bytes ? max_image_bytes : LEAT_IMAGE_BYTES_DEFAULT;
}

int64_t leat_image_warnings(const leat_image_decoder *decoder)
{
    return decoder->warnings;
}

const char *leat_image_warning(const leat_image_decoder *decoder)
{
    return decoder->warning;
}

static bool has_magic(const leat__image_source *source,
                      const image_format *format)
{
    return source->size >= format->offset + format->size &&
           !memcmp(source->bytes + format->offset, format->magic, format->size);
}

static int foreign_error(const leat__image_source *source)
{
    if (!source->size)
        return leat_error(LEAT_EDATA, "the image has no bytes");
    for (size_t i = 0; i < LENGTH(foreign_formats); i++)
        if (has_magic(source, &foreign_formats[i]))
            return leat_error(LEAT_EDATA,
                              "the image is %s; only JPEG and PNG are decoded",
                              foreign_formats[i].name);
    char text[LEAT__KEY_TEXT_MAX];
    size_t shown = source->size < 8 ? source->size : 8;
    return leat_error(LEAT_EDATA, "neither JPEG nor PNG: it begins with '%s'",
                      leat__key_text(text, source->bytes, shown));
}

/* Frees the codec's memory. */
static void close_image(leat_image_decoder *decoder)
{
    if (decoder->format)
        decoder->taken = decoder->arena.reserved + decoder->arena.peak;
    if (decoder->format == &jpeg_format)
        leat__jpeg_close(decoder->jpeg);
    else if (decoder->format == &png_format)
        leat__png_close(decoder->png);
    decoder->format = NULL;
}

/* Bytes of the frame's pixels, doubled if they are rotated upright. */
static uint64_t all_pixel_bytes(const leat__image_frame *frame)
{
    return leat__image_pixel_bytes(frame) * (frame->orientation > 1 ? 2 : 1);
}

/* Checks the memory limit of the open image before memory is allocated. */
static int check_memory(leat_image_decoder *decoder)
{
    uint64_t pixels = all_pixel_bytes(&decoder->frame);
    decoder->expected = pixels + decoder->frame.working_bytes;
    if (decoder->expected > decoder->max_bytes)
        return leat_error(LEAT_EDATA,
                          "decoding the image takes %llu bytes of memory; "
                          "max_image_bytes allows %zu",
                          (unsigned long long)decoder->expected,
                          decoder->max_bytes);
    decoder->arena.reserved = (size_t)pixels;
    return LEAT_OK;
}

/* Reads the header; the image is then open. */
static int open_image(leat_image_decoder *decoder)
{
    const leat__image_source *source = &decoder->source;
    leat__image_frame *frame = &decoder->frame;
    *frame = (leat__image_frame){.orientation = 1};
    decoder->expected = decoder->taken = 0;
    decoder->arena.limit = decoder->max_bytes;
    decoder->arena.reserved = 0;
    int status;
    if (has_magic(source, &jpeg_format)) {
        decoder->format = &jpeg_format;
        status = leat__jpeg_open(decoder->jpeg, source, frame);
    } else if (has_magic(source, &png_format)) {
        decoder->format = &png_format;
        status = leat__png_open(decoder->png, source, frame);
    } else {
        return foreign_error(source);
    }
    if (!status)
        status = check_memory(decoder);
    if (status)
        close_image(decoder);
    return status;
}

/*
 * Frees buffers of earlier images if together with this image they would exceed
 * the limit.
 */
static void make_room(leat_image_decoder *decoder)
{
    uint64_t kept =
        (uint64_t)decoder->pixels.capacity + decoder->upright.capacity;
    if (kept + decoder->frame.working_bytes <= decoder->max_bytes)
        return;
    uint64_t needed = leat__image_pixel_bytes(&decoder->frame);
    if (decoder->pixels.capacity > needed)
        leat__pixel_buffer_finish(&decoder->pixels);
    if (decoder->upright.capacity > needed || decoder->frame.orientation == 1)
        leat__pixel_buffer_finish(&decoder->upright);
}

static int read_frame(leat_image_decoder *decoder,
                      const leat__image_region *region)
{
    leat__image_frame *frame = &decoder->frame;
    make_room(decoder);
    int status = leat__pixel_buffer_reserve(&decoder->pixels, frame);
    if (status)
        return status;
    unsigned char *pixels = decoder->pixels.bytes;
    if (decoder->format == &jpeg_format)
        return leat__jpeg_read(decoder->jpeg, region, pixels, frame);
    return leat__png_read(decoder->png, pixels, frame);
}

/* EXIF orientations from 5 on swap rows and columns. */
static bool is_transposed(const leat__image_frame *frame)
{
    return frame->orientation >= 5;
}

/*
 * Rotates the frame upright. Its stored row 0 is the top (1 and 2), the bottom
 * (3 and 4), the left (5 and 8) or the right side (6 and 7) of the upright
 * image; so each source row becomes a row or a column, forwards or backwards.
 */
static void turn_upright(const leat__image_frame *frame,
                         const unsigned char *from, unsigned char *to)
{
    int o = frame->orientation;
    bool along_is_reversed = o == 2 || o == 3 || o == 7 || o == 8;
    bool across_is_reversed = o == 3 || o == 4 || o == 6 || o == 7;
    ptrdiff_t channels = frame->channels;
    ptrdiff_t along = channels, across = channels;
    if (is_transposed(frame))
        along *= frame->height;
    else
        across *= frame->width;
    if (along_is_reversed) {
        to += along * (frame->width - 1);
        along = -along;
    }
    if (across_is_reversed) {
        to += across * (frame->height - 1);
        across = -across;
    }
    for (int y = 0; y < frame->height; y++) {
        unsigned char *pixel = to + across * y;
        for (int x = 0; x < frame->width; x++, pixel += along)
            for (ptrdiff_t c = 0; c < channels; c++)
                pixel[c] = *from++;
    }
}

static void give(const leat__image_frame *frame, const unsigned char *pixels,
                 leat_image *out)
{
    bool turned = is_transposed(frame);
    *out = (leat_image){.channels = frame->channels,
                        .height = turned ? frame->width : frame->height,
                        .width = turned ? frame->height : frame->width,
                        .pixels = pixels};
}

static bool is_inside(const leat__image_region *region,
                      const leat__image_frame *frame)
{
    return region->row >= 0 && region->column >= 0 && region->rows > 0 &&
           region->columns > 0 && region->row <= frame->height - region->rows &&
           region->column <= frame->width - region->columns;
}

int leat__image_open(leat_image_decoder *decoder, const void *bytes,
                     size_t size, leat_color color, leat_image *out)
{
    close_image(decoder);
    decoder->warning = NULL;
    decoder->source =
        (leat__image_source){.bytes = bytes, .size = size, .color = color};
    int status = open_image(decoder);
    if (status)
        return status;
    give(&decoder->frame, NULL, out);
    return LEAT_OK;
}

int leat__image_read(leat_image_decoder *decoder,
                     const leat__image_region *region, leat_image *out)
{
    leat__image_frame *frame = &decoder->frame;
    if (region && (frame->orientation > 1 || !is_inside(region, frame)))
        region = NULL;
    int status = read_frame(decoder, region);
    close_image(decoder);
    if (status)
        return status;
    const unsigned char *pixels = decoder->pixels.bytes;
    if (frame->orientation > 1) {
        status = leat__pixel_buffer_reserve(&decoder->upright, frame);
        if (status)
            return status;
        turn_upright(frame, pixels, decoder->upright.bytes);
        pixels = decoder->upright.bytes;
    } else {
        leat__pixel_buffer_skip(&decoder->upright);
    }
    decoder->warnings += frame->warning != NULL;
    decoder->warning = frame->warning;
    give(frame, pixels, out);
    return LEAT_OK;
}

leat__image_memory leat__image_memory_use(const leat_image_decoder *decoder)
{
    uint64_t taken = decoder->taken;
    if (decoder->format)
        taken = decoder->arena.reserved + decoder->arena.peak;
    return (leat__image_memory){.expected = decoder->expected,
                                .taken = taken,
                                .kept = (uint64_t)decoder->pixels.capacity +
                                        decoder->upright.capacity +
                                        decoder->arena.size};
}

leat__jpeg_counts leat__image_jpeg_counts(const leat_image_decoder *decoder)
{
    return leat__jpeg_count(decoder->jpeg);
}

int leat_image_probe(leat_image_decoder *decoder, const void *bytes,
                     size_t size, leat_color color, leat_image *out)
{
    int status = leat__image_open(decoder, bytes, size, color, out);
    close_image(decoder);
    return status;
}

int leat_image_decode(leat_image_decoder *decoder, const void *bytes,
                      size_t size, leat_color color, leat_image *out)
{
    leat_image whole;
    int status = leat__image_open(decoder, bytes, size, color, &whole);
    return status ? status : leat__image_read(decoder, NULL, out);
}
