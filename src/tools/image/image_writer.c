#include "tools/image/image_writer.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

enum { TEXT_BYTES = 128 };

static _Noreturn void fail_png(png_structp png, png_const_charp text)
{
    snprintf(png_get_error_ptr(png), TEXT_BYTES, "%s", text);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* In its own function, so that longjmp clobbers no variable of the caller.
   Returns the status of `check`, or 1 where libpng fails. */
static int write_png_rows(png_structp png, png_infop info,
                          const struct raster *raster, int quality,
                          int (*check)(void), FILE *stream)
{
    if (setjmp(png_jmpbuf(png)))
        return 1;
    png_init_io(png, stream);
    if (!quality) {
        png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
        png_set_compression_level(png, Z_BEST_SPEED);
        png_set_compression_strategy(png, Z_RLE);
    }
    png_set_IHDR(
        png, info, (png_uint_32)raster->width, (png_uint_32)raster->height, 8,
        raster->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
        PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
        PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    size_t step = (size_t)raster->width * (size_t)raster->channels;
    for (size_t y = 0; y < (size_t)raster->height; y++) {
        int status = check ? check() : LEAT_OK;
        if (status)
            return status;
        png_write_row(png, raster->pixels + y * step);
    }
    png_write_end(png, info);
    return 0;
}

int image_writer_png(const struct raster *raster, int quality,
                     int (*check)(void), FILE *stream)
{
    char text[TEXT_BYTES] = "out of memory";
    errno = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, text,
                                              fail_png, ignore_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    int status =
        info ? write_png_rows(png, info, raster, quality, check, stream) : 1;
    /* libpng reports a lack of memory as it does a bad image. */
    bool is_memory = errno == ENOMEM;
    png_destroy_write_struct(&png, &info);
    if (status <= 0)
        return status;
    return leat_error(is_memory ? LEAT_ENOMEM : LEAT_EINVAL,
                      "PNG of %d x %d x %d: %s", raster->channels,
                      raster->height, raster->width, text);
}

struct jpeg_encoder {
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    char text[JMSG_LENGTH_MAX]; /* why */
};

static _Noreturn void fail_jpeg(j_common_ptr codec)
{
    struct jpeg_encoder *encoder = codec->client_data;
    codec->err->format_message(codec, encoder->text);
    longjmp(encoder->failed, 1);
}

/* As write_png_rows. */
static int write_jpeg_rows(struct jpeg_encoder *encoder,
                           const struct raster *raster, int quality,
                           int (*check)(void), FILE *stream)
{
    struct jpeg_compress_struct *codec = &encoder->codec;
    codec->err = jpeg_std_error(&encoder->errors);
    codec->client_data = encoder;
    encoder->errors.error_exit = fail_jpeg;
    if (setjmp(encoder->failed))
        return 1;
    /* This clears all of the codec but `err` and `client_data`. */
    jpeg_create_compress(codec);
    jpeg_stdio_dest(codec, stream);
    codec->image_width = (JDIMENSION)raster->width;
    codec->image_height = (JDIMENSION)raster->height;
    codec->input_components = raster->channels;
    codec->in_color_space = raster->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(codec);
    jpeg_set_quality(codec, quality, TRUE);
    jpeg_start_compress(codec, TRUE);
    size_t step = (size_t)raster->width * (size_t)raster->channels;
    while (codec->next_scanline < codec->image_height) {
        JSAMPROW row = raster->pixels + codec->next_scanline * step;
        int status = check ? check() : LEAT_OK;
        if (status)
            return status;
        jpeg_write_scanlines(codec, &row, 1);
    }
    jpeg_finish_compress(codec);
    return 0;
}

int image_writer_jpeg(const struct raster *raster, int quality,
                      int (*check)(void), FILE *stream)
{
    struct jpeg_encoder encoder;
    memset(&encoder, 0, sizeof(encoder));
    errno = 0;
    int status = write_jpeg_rows(&encoder, raster, quality, check, stream);
    /* libjpeg does not report that a stream in memory could not grow. */
    bool is_memory =
        errno == ENOMEM || encoder.errors.msg_code == JERR_OUT_OF_MEMORY;
    jpeg_destroy_compress(&encoder.codec);
    if (status <= 0)
        return status;
    return leat_error(is_memory ? LEAT_ENOMEM : LEAT_EINVAL,
                      "JPEG of %d x %d x %d: %s", raster->channels,
                      raster->height, raster->width, encoder.text);
}

/* A raster's first channel is red, a Datum's first plane is blue. */
static int interleave(const struct canvas *canvas, struct raster *out)
{
    size_t step = (size_t)canvas->channels;
    size_t plane = (size_t)canvas->height * (size_t)canvas->width;
    *out = (struct raster){canvas->channels, canvas->width, canvas->height,
                           malloc(canvas_bytes(canvas))};
    if (!out->pixels)
        return leat_error(LEAT_ENOMEM, "out of memory for an image");
    for (size_t c = 0; c < step; c++) {
        const unsigned char *from = canvas->pixels + (step - 1 - c) * plane;
        for (size_t i = 0; i < plane; i++)
            out->pixels[i * step + c] = from[i];
    }
    return LEAT_OK;
}

int image_writer_bytes(const struct raster *raster, image_writer *write,
                       int quality, int (*check)(void), unsigned char **out,
                       size_t *size)
{
    char *bytes = NULL;
    FILE *stream = open_memstream(&bytes, size);
    int status = stream ? write(raster, quality, check, stream) : LEAT_OK;
    /* It may close without a word where the bytes could not be had. */
    bool is_whole = stream && !fclose(stream) && bytes;
    if (!status && !is_whole)
        status = leat_error(LEAT_ENOMEM, "out of memory for an image");
    if (status)
        free(bytes);
    else
        *out = (unsigned char *)bytes;
    return status;
}

int image_writer_encode(const struct canvas *canvas, image_writer *write,
                        int quality, int (*check)(void), unsigned char **out,
                        size_t *size)
{
    struct raster raster;
    int status = interleave(canvas, &raster);
    if (status)
        return status;
    status = image_writer_bytes(&raster, write, quality, check, out, size);
    free(raster.pixels);
    return status;
}
