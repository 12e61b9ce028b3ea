#include "tools/image/raster.h"

#include "tools/cli/staged_file.h"
#include "tools/image/font.h"
#include "tools/image/jpeg_writer.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

int raster_init(struct raster *out, int width, int height, raster_color color)
{
    out->width = width;
    out->height = height;
    out->pixels = malloc((size_t)width * (size_t)height * 3);
    if (!out->pixels)
        return leat_error(LEAT_ENOMEM, "out of memory for %d x %d pixels",
                          width, height);
    raster_fill(out, 0, 0, width, height, color);
    return LEAT_OK;
}

void raster_finish(struct raster *raster)
{
    free(raster->pixels);
    raster->pixels = NULL;
}

void raster_set(struct raster *raster, int x, int y, raster_color color)
{
    if (x < 0 || y < 0 || x >= raster->width || y >= raster->height)
        return;
    unsigned char *pixel =
        raster->pixels + 3 * ((size_t)y * (size_t)raster->width + (size_t)x);
    pixel[0] = (unsigned char)(color >> 16);
    pixel[1] = (unsigned char)(color >> 8);
    pixel[2] = (unsigned char)color;
}

void raster_fill(struct raster *raster, int x, int y, int width, int height,
                 raster_color color)
{
    for (int i = y; i < y + height; i++)
        for (int j = x; j < x + width; j++)
            raster_set(raster, j, i, color);
}

void raster_frame(struct raster *raster, int x, int y, int width, int height,
                  raster_color color)
{
    raster_fill(raster, x, y, width, 1, color);
    raster_fill(raster, x, y + height - 1, width, 1, color);
    raster_fill(raster, x, y, 1, height, color);
    raster_fill(raster, x + width - 1, y, 1, height, color);
}

static void draw_letter(struct raster *raster, int x, int y, char letter,
                        int scale, raster_color color)
{
    for (int row = 0; row < FONT_HEIGHT; row++)
        for (int column = 0; column < FONT_WIDTH; column++)
            if (font_pixel(letter, row, column))
                raster_fill(raster, x + column * scale, y + row * scale, scale,
                            scale, color);
}

int raster_letters(int room, int scale)
{
    return (room + scale) / (FONT_ADVANCE * scale);
}

int raster_write(struct raster *raster, int x, int y, const char *text,
                 int scale, int room, raster_color color)
{
    int length = (int)strnlen(text, 4096), most = raster_letters(room, scale);
    int shown = length <= most ? length : most - 3;
    if (most < 3)
        return 0;
    for (int i = 0; i < (length <= most ? length : most); i++)
        draw_letter(raster, x + i * FONT_ADVANCE * scale, y,
                    i < shown ? text[i] : '.', scale, color);
    return (length <= most ? length : most) * FONT_ADVANCE * scale;
}

static int write_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno ? errno : EIO));
}

/* libpng says that it cannot write, and not why: the stream's reason does. */
static int write_png(const struct raster *raster, FILE *stream,
                     const char *path)
{
    png_image image;
    memset(&image, 0, sizeof(image));
    errno = 0;
    image.version = PNG_IMAGE_VERSION;
    image.width = (png_uint_32)raster->width;
    image.height = (png_uint_32)raster->height;
    image.format = PNG_FORMAT_RGB;
    if (png_image_write_to_stdio(&image, stream, 0, raster->pixels, 0, NULL))
        return LEAT_OK;
    return ferror(stream) ? write_error(path)
                          : leat_error(LEAT_EIO, "%s: %s", path, image.message);
}

/* Planes of B, G and R, as the writer takes them. */
static int take_planes(const struct raster *raster, struct canvas *out)
{
    *out = (struct canvas){
        .channels = 3, .height = raster->height, .width = raster->width};
    size_t plane = (size_t)raster->width * (size_t)raster->height;
    out->pixels = malloc(3 * plane);
    if (!out->pixels)
        return leat_error(LEAT_ENOMEM, "out of memory for %d x %d pixels",
                          raster->width, raster->height);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < plane; i++)
            out->pixels[c * plane + i] = raster->pixels[3 * i + 2 - c];
    return LEAT_OK;
}

static int write_jpeg(const struct raster *raster, FILE *stream,
                      const char *path)
{
    enum { QUALITY = 92 };
    struct canvas canvas;
    unsigned char *bytes = NULL;
    size_t size;
    int status = take_planes(raster, &canvas);
    if (!status)
        status = jpeg_writer_encode(&canvas, QUALITY, &bytes, &size);
    free(canvas.pixels);
    if (status)
        return status;
    errno = 0;
    if (fwrite(bytes, 1, size, stream) != size)
        status = write_error(path);
    free(bytes);
    return status;
}

enum raster_format raster_format_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || !strcasecmp(dot, ".png"))
        return RASTER_PNG;
    if (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"))
        return RASTER_JPEG;
    return RASTER_UNKNOWN;
}

/* What stands there gives way only if it is a file: never a device or a pipe.
 */
static int check_target(const char *path)
{
    struct stat found;
    if (lstat(path, &found))
        return errno == ENOENT ? LEAT_OK : write_error(path);
    if (S_ISREG(found.st_mode))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "%s: is there and is no regular file", path);
}

int raster_save(const struct raster *raster, const char *path)
{
    struct staged_file file = {0};
    enum raster_format format = raster_format_of(path);
    if (format == RASTER_UNKNOWN)
        return leat_error(LEAT_EINVAL,
                          "%s: pictures are written as PNG or JPEG: name it "
                          ".png, .jpg or .jpeg",
                          path);
    int status = check_target(path);
    if (!status)
        status = staged_file_create(&file, path);
    if (!status)
        status = format == RASTER_JPEG ? write_jpeg(raster, file.stream, path)
                                       : write_png(raster, file.stream, path);
    if (!status)
        status = staged_file_close(&file, path);
    if (!status)
        status = staged_file_publish(&file, path);
    staged_file_discard(&file);
    return status;
}
