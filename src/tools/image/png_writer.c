#include "tools/image/png_writer.h"

#include <leat/ext/reader.h>

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct png_making {
    unsigned char *bytes;
    size_t size;
    size_t room;
    unsigned char *row;
    jmp_buf back;
    int short_of_memory;
    char text[128]; /* what was wrong */
};

static _Noreturn void leave(png_structp png, png_const_charp text)
{
    struct png_making *making = png_get_error_ptr(png);
    snprintf(making->text, sizeof(making->text), "%s", text);
    longjmp(making->back, 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* libpng says of memory that is short what it says of a bad image. */
static png_voidp allocate(png_structp png, png_alloc_size_t size)
{
    struct png_making *making = png_get_mem_ptr(png);
    void *memory = malloc(size);
    if (!memory)
        making->short_of_memory = 1;
    return memory;
}

static void release(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void append(png_structp png, png_bytep bytes, size_t size)
{
    struct png_making *making = png_get_io_ptr(png);
    if (making->size + size > making->room) {
        size_t room = (making->size + size) * 2;
        unsigned char *moved = realloc(making->bytes, room);
        if (!moved) {
            making->short_of_memory = 1;
            png_error(png, "out of memory");
        }
        making->bytes = moved;
        making->room = room;
    }
    memcpy(making->bytes + making->size, bytes, size);
    making->size += size;
}

static void flush(png_structp png)
{
    (void)png;
}

/* A Datum's first plane is blue, a PNG's first sample red. */
static void interleave_row(const struct canvas *canvas, int y,
                           unsigned char *row)
{
    size_t width = (size_t)canvas->width, step = (size_t)canvas->channels;
    size_t plane = (size_t)canvas->height * width;
    for (size_t c = 0; c < step; c++) {
        const unsigned char *from =
            canvas->pixels + (step - 1 - c) * plane + (size_t)y * width;
        for (size_t x = 0; x < width; x++)
            row[x * step + c] = from[x];
    }
}

/* With the settings of OpenCV's imencode, which are made for speed. */
static void write_image(png_structp png, png_infop info,
                        const struct canvas *canvas, struct png_making *making)
{
    png_set_write_fn(png, making, append, flush);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_set_compression_level(png, Z_BEST_SPEED);
    png_set_compression_strategy(png, Z_RLE);
    png_set_IHDR(
        png, info, (png_uint_32)canvas->width, (png_uint_32)canvas->height, 8,
        canvas->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
        PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
        PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < canvas->height; y++) {
        interleave_row(canvas, y, making->row);
        png_write_row(png, making->row);
    }
    png_write_end(png, info);
}

/* Its own function: what a longjmp must find again are its caller's. */
static int try_image(png_structp png, png_infop info,
                     const struct canvas *canvas, struct png_making *making)
{
    if (setjmp(making->back))
        return leat_error(making->short_of_memory ? LEAT_ENOMEM : LEAT_EINVAL,
                          "PNG of %d x %d x %d: %s", canvas->channels,
                          canvas->height, canvas->width, making->text);
    write_image(png, info, canvas, making);
    return LEAT_OK;
}

int png_writer_encode(const struct canvas *canvas, unsigned char **out,
                      size_t *size)
{
    struct png_making making = {0};
    making.row = malloc((size_t)canvas->width * (size_t)canvas->channels);
    png_structp png =
        making.row ? png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &making,
                                               leave, ignore_warning, &making,
                                               allocate, release)
                   : NULL;
    png_infop info = png ? png_create_info_struct(png) : NULL;
    int status = info ? try_image(png, info, canvas, &making)
                      : leat_error(LEAT_ENOMEM, "out of memory for a PNG");
    png_destroy_write_struct(&png, &info);
    free(making.row);
    if (status) {
        free(making.bytes);
        return status;
    }
    *out = making.bytes;
    *size = making.size;
    return LEAT_OK;
}
