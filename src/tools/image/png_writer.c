#include "tools/image/png_writer.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <png.h>
#include <stdbool.h>
#include <zlib.h>

enum { TEXT_BYTES = 128 };

static _Noreturn void fail(png_structp png, png_const_charp text)
{
    snprintf(png_get_error_ptr(png), TEXT_BYTES, "%s", text);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* In its own function, so that longjmp clobbers no variable of the caller. */
static int write_rows(png_structp png, png_infop info,
                      const struct raster *raster, int quality, FILE *stream)
{
    if (setjmp(png_jmpbuf(png)))
        return -1;
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
    for (size_t y = 0; y < (size_t)raster->height; y++)
        png_write_row(png, raster->pixels + y * step);
    png_write_end(png, info);
    return 0;
}

int png_writer_write(const struct raster *raster, int quality, FILE *stream)
{
    char text[TEXT_BYTES] = "out of memory";
    errno = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, text, fail,
                                              ignore_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool failed = !info || write_rows(png, info, raster, quality, stream);
    /* libpng reports a lack of memory as it does a bad image. */
    bool is_memory = errno == ENOMEM;
    png_destroy_write_struct(&png, &info);
    if (!failed)
        return LEAT_OK;
    return leat_error(is_memory ? LEAT_ENOMEM : LEAT_EINVAL,
                      "PNG of %d x %d x %d: %s", raster->channels,
                      raster->height, raster->width, text);
}

int png_writer_encode(const struct canvas *canvas, unsigned char **out,
                      size_t *size)
{
    return canvas_encode(canvas, png_writer_write, 0, out, size);
}
