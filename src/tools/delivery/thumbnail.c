#include "tools/delivery/thumbnail.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static float element(const struct thumbnail *self, size_t i)
{
    float value;
    if (self->dtype == LEAT_UINT8)
        return ((const unsigned char *)self->data)[i];
    memcpy(&value, (const char *)self->data + i * sizeof(value), sizeof(value));
    return value;
}

static size_t element_count(const struct thumbnail *self)
{
    return (size_t)self->channels * (size_t)self->height * (size_t)self->width;
}

/* Floats go from their least, black, to their greatest, white. */
static void find_range(struct thumbnail *self)
{
    float low = INFINITY, high = -INFINITY;
    size_t n = element_count(self);
    for (size_t i = 0; i < n; i++) {
        float value = element(self, i);
        if (isfinite(value)) {
            low = fminf(low, value);
            high = fmaxf(high, value);
        }
    }
    self->low = low <= high ? low : 0;
    self->scale = high > low ? 255 / (high - low) : 0;
}

int thumbnail_columns(int64_t n, double cell_width, double cell_height)
{
    double columns = ceil(sqrt((double)n * cell_height / cell_width));
    return (int)fmax(1, fmin(columns, (double)n));
}

/* Tiles lie a pixel apart, unless they are single values or columns. */
static int gap(const struct thumbnail *self)
{
    return self->tiles > 1 && self->tile_width > 1;
}

static int64_t whole_width(const struct thumbnail *self)
{
    return (int64_t)self->columns * (self->tile_width + gap(self)) - gap(self);
}

static int64_t whole_height(const struct thumbnail *self)
{
    int64_t rows = (self->tiles + self->columns - 1) / self->columns;
    return rows * (self->tile_height + gap(self)) - gap(self);
}

static void arrange_tiles(struct thumbnail *self)
{
    self->tiles = self->columns = 1;
    self->tile_height = self->height;
    self->tile_width = self->width;
    if (self->channels == 1 && self->height == 1 && self->width > 64) {
        self->tile_width = thumbnail_columns(self->width, 1, 1);
        self->tile_height =
            (self->width + self->tile_width - 1) / self->tile_width;
    } else if (!self->is_color) {
        self->tiles = self->channels;
        self->columns = thumbnail_columns(self->channels, self->width + 1.0,
                                          self->height + 1.0);
    }
    /* If the whole would be too large, only the first tile is drawn. */
    if (whole_width(self) > INT_MAX || whole_height(self) > INT_MAX)
        self->tiles = self->columns = 1;
}

void thumbnail_init(struct thumbnail *out, const leat_field *field,
                    const leat_image *image, int is_rgb)
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
        out->is_rgb = 0;
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
 * value is not finite; what is transparent lies on squares of two greys.
 */
static void color_at(const struct thumbnail *self, int x, int y, float out[3])
{
    int across = self->tile_width + gap(self);
    int down = self->tile_height + gap(self);
    int tile = y / down * self->columns + x / across;
    int tile_x = x % across, tile_y = y % down;
    size_t pixel = (size_t)tile_y * (size_t)self->tile_width + (size_t)tile_x;
    out[0] = out[1] = out[2] = 255;
    if (tile >= self->tiles || tile_x == self->tile_width ||
        tile_y == self->tile_height ||
        pixel >= (size_t)self->height * (size_t)self->width)
        return;
    const size_t first = pixel * self->pixel_step;
    for (int i = 0; i < 3; i++) {
        int color = self->is_rgb ? i : 2 - i;
        int channel = self->is_color ? color : tile;
        float value =
            element(self, first + (size_t)channel * self->channel_step);
        if (!isfinite(value)) {
            out[0] = out[2] = 255;
            out[1] = 0;
            return;
        }
        out[i] = self->scale > 0 ? (value - self->low) * self->scale : 128;
    }
    if (!self->is_color || self->channels != 4)
        return;
    float opaque = element(self, first + 3) / 255;
    float ground = (x / 8 + y / 8) % 2 ? 204 : 255;
    for (int i = 0; i < 3; i++)
        out[i] = opaque * out[i] + (1 - opaque) * ground;
}

/* The mean colour of the pixels from (x0, y0) up to (x1, y1) of the whole. */
static raster_color mean_color(const struct thumbnail *self, int x0, int y0,
                               int x1, int y1)
{
    double sum[3] = {0};
    raster_color color = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            float one[3];
            color_at(self, x, y, one);
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

void thumbnail_draw(const struct thumbnail *self, struct raster *raster, int x,
                    int y, int side)
{
    int64_t width = whole_width(self), height = whole_height(self);
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
                       mean_color(self, x0, y0, x1 > x0 ? x1 : x0 + 1,
                                  y1 > y0 ? y1 : y0 + 1));
        }
}

double thumbnail_contrast(const struct thumbnail *self)
{
    enum { MAX_VALUES = 4096 };
    size_t n = element_count(self), step = n / MAX_VALUES + 1;
    /* An even step would take the same channel or column again and again. */
    step |= step > 1;
    double sum = 0, squares = 0, count = 0;
    for (size_t i = 0; i < n; i += step) {
        double value = (double)element(self, i);
        if (!isfinite(value))
            return -1;
        sum += value;
        squares += value * value;
        count++;
    }
    double mean = sum / count;
    return sqrt(fmax(0, squares / count - mean * mean));
}
