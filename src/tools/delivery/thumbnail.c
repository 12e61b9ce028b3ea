#include "tools/delivery/thumbnail.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static float element(const struct thumbnail *thumbnail, size_t i)
{
    float value;
    if (thumbnail->dtype == LEAT_UINT8)
        return ((const unsigned char *)thumbnail->data)[i];
    memcpy(&value, (const char *)thumbnail->data + i * sizeof(value),
           sizeof(value));
    return value;
}

static size_t element_count(const struct thumbnail *thumbnail)
{
    return (size_t)thumbnail->channels * (size_t)thumbnail->height *
           (size_t)thumbnail->width;
}

/* Floats go from their least, black, to their greatest, white. */
static void find_range(struct thumbnail *thumbnail)
{
    float low = INFINITY, high = -INFINITY;
    size_t n = element_count(thumbnail);
    for (size_t i = 0; i < n; i++) {
        float value = element(thumbnail, i);
        if (isfinite(value)) {
            low = fminf(low, value);
            high = fmaxf(high, value);
        }
    }
    thumbnail->low = low <= high ? low : 0;
    thumbnail->scale = high > low ? 255 / (high - low) : 0;
}

int thumbnail_columns(int64_t n, double cell_width, double cell_height)
{
    double columns = ceil(sqrt((double)n * cell_height / cell_width));
    return (int)fmax(1, fmin(columns, (double)n));
}

/* Tiles lie a pixel apart, unless they are single values or columns. */
static int gap(const struct thumbnail *thumbnail)
{
    return thumbnail->tiles > 1 && thumbnail->tile_width > 1;
}

static int64_t whole_width(const struct thumbnail *thumbnail)
{
    return (int64_t)thumbnail->columns *
               (thumbnail->tile_width + gap(thumbnail)) -
           gap(thumbnail);
}

static int64_t whole_height(const struct thumbnail *thumbnail)
{
    int64_t rows =
        (thumbnail->tiles + thumbnail->columns - 1) / thumbnail->columns;
    return rows * (thumbnail->tile_height + gap(thumbnail)) - gap(thumbnail);
}

static void arrange_tiles(struct thumbnail *thumbnail)
{
    thumbnail->tiles = thumbnail->columns = 1;
    thumbnail->tile_height = thumbnail->height;
    thumbnail->tile_width = thumbnail->width;
    if (thumbnail->channels == 1 && thumbnail->height == 1 &&
        thumbnail->width > 64) {
        thumbnail->tile_width = thumbnail_columns(thumbnail->width, 1, 1);
        thumbnail->tile_height =
            (thumbnail->width + thumbnail->tile_width - 1) /
            thumbnail->tile_width;
    } else if (!thumbnail->is_color) {
        thumbnail->tiles = thumbnail->channels;
        thumbnail->columns =
            thumbnail_columns(thumbnail->channels, thumbnail->width + 1.0,
                              thumbnail->height + 1.0);
    }
    /* If the whole would be too large, only the first tile is drawn. */
    if (whole_width(thumbnail) > INT_MAX || whole_height(thumbnail) > INT_MAX)
        thumbnail->tiles = thumbnail->columns = 1;
}

void thumbnail_init(struct thumbnail *out, const leat_field *field,
                    const leat_image *image, bool is_rgb)
{
    *out = (struct thumbnail){.data = field->data,
                              .dtype = field->dtype,
                              .pixel_step = 1,
                              .is_rgb = is_rgb,
                              .scale = 1};
    if (image) {
        out->data = image->pixels;
        out->dtype = LEAT_UINT8;
        out->channels = image->channels;
        out->height = image->height;
        out->width = image->width;
        out->channel_step = 1;
        out->pixel_step = (size_t)image->channels;
        out->is_rgb = false;
    } else {
        out->channels = (int)field->shape[0];
        out->height = (int)field->shape[1];
        out->width = (int)field->shape[2];
        out->channel_step = (size_t)out->height * (size_t)out->width;
    }
    out->is_color = out->channels == 3 || (image && out->channels == 4);
    if (out->dtype == LEAT_FLOAT32)
        find_range(out);
    arrange_tiles(out);
}

/*
 * The colour of a pixel of the whole: white between tiles, magenta where a
 * value is not finite; transparent parts lie on squares of two greys.
 */
static void color_at(const struct thumbnail *thumbnail, int x, int y,
                     float out[3])
{
    int across = thumbnail->tile_width + gap(thumbnail);
    int down = thumbnail->tile_height + gap(thumbnail);
    int tile = y / down * thumbnail->columns + x / across;
    int tile_x = x % across, tile_y = y % down;
    size_t pixel =
        (size_t)tile_y * (size_t)thumbnail->tile_width + (size_t)tile_x;
    out[0] = out[1] = out[2] = 255;
    if (tile >= thumbnail->tiles || tile_x == thumbnail->tile_width ||
        tile_y == thumbnail->tile_height ||
        pixel >= (size_t)thumbnail->height * (size_t)thumbnail->width)
        return;
    const size_t first = pixel * thumbnail->pixel_step;
    for (int i = 0; i < 3; i++) {
        int color = thumbnail->is_rgb ? i : 2 - i;
        int channel = thumbnail->is_color ? color : tile;
        float value = element(thumbnail, first + (size_t)channel *
                                                     thumbnail->channel_step);
        if (!isfinite(value)) {
            out[0] = out[2] = 255;
            out[1] = 0;
            return;
        }
        out[i] = thumbnail->scale > 0
                     ? (value - thumbnail->low) * thumbnail->scale
                     : 128;
    }
    if (!thumbnail->is_color || thumbnail->channels != 4)
        return;
    float opaque = element(thumbnail, first + 3) / 255;
    float ground = (x / 8 + y / 8) % 2 ? 204 : 255;
    for (int i = 0; i < 3; i++)
        out[i] = opaque * out[i] + (1 - opaque) * ground;
}

/* The mean colour of the pixels from (x0, y0) up to (x1, y1) of the whole. */
static raster_color mean_color(const struct thumbnail *thumbnail, int x0,
                               int y0, int x1, int y1)
{
    double sum[3] = {0};
    raster_color color = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            float one[3];
            color_at(thumbnail, x, y, one);
            for (int i = 0; i < 3; i++)
                sum[i] += (double)one[i];
        }
    double n = (double)(x1 - x0) * (y1 - y0);
    for (int i = 0; i < 3; i++)
        color = color << 8 |
                (raster_color)fmax(0, fmin(255, floor(sum[i] / n + .5)));
    return color;
}

/* The longest side becomes `side`, or the greatest multiple of it that fits. */
static int scaled(int64_t size, int64_t longest, int side)
{
    int64_t out =
        longest <= side ? size * (side / longest) : size * side / longest;
    return out < 1 ? 1 : (int)out;
}

/* Where pixel `i` of `n` begins in `size` pixels. */
static int begin_of(int i, int n, int64_t size)
{
    return (int)(i * size / n);
}

void thumbnail_draw(const struct thumbnail *thumbnail, struct raster *raster,
                    int x, int y, int side)
{
    int64_t width = whole_width(thumbnail), height = whole_height(thumbnail);
    int64_t longest = width > height ? width : height;
    int columns = scaled(width, longest, side);
    int rows = scaled(height, longest, side);
    x += (side - columns) / 2;
    y += (side - rows) / 2;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            int x0 = begin_of(j, columns, width);
            int y0 = begin_of(i, rows, height);
            int x1 = begin_of(j + 1, columns, width);
            int y1 = begin_of(i + 1, rows, height);
            raster_set(raster, x + j, y + i,
                       mean_color(thumbnail, x0, y0, x1 > x0 ? x1 : x0 + 1,
                                  y1 > y0 ? y1 : y0 + 1));
        }
}

double thumbnail_contrast(const struct thumbnail *thumbnail)
{
    enum { MAX_VALUES = 4096 };
    size_t n = element_count(thumbnail), step = n / MAX_VALUES + 1;
    /* An even step would take the same channel or column again and again. */
    step |= step > 1;
    double sum = 0, squares = 0, count = 0;
    for (size_t i = 0; i < n; i += step) {
        double value = (double)element(thumbnail, i);
        if (!isfinite(value))
            return -1;
        sum += value;
        squares += value * value;
        count++;
    }
    double mean = sum / count;
    return sqrt(fmax(0, squares / count - mean * mean));
}
