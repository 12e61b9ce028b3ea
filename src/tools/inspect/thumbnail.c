#include "tools/inspect/thumbnail.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static float plane_value(const struct thumbnail *self, size_t at)
{
    float value;
    if (self->dtype == LEAT_UINT8)
        return ((const unsigned char *)self->data)[at];
    memcpy(&value, (const char *)self->data + at * sizeof(value),
           sizeof(value));
    return value;
}

static size_t value_count(const struct thumbnail *self)
{
    return (size_t)self->channels * (size_t)self->height * (size_t)self->width;
}

/* Floats go from their least, black, to their greatest, white. */
static void find_range(struct thumbnail *self)
{
    float low = INFINITY, high = -INFINITY;
    size_t n = value_count(self);
    for (size_t i = 0; i < n; i++) {
        float value = plane_value(self, i);
        if (isfinite(value)) {
            low = fminf(low, value);
            high = fmaxf(high, value);
        }
    }
    self->low = low <= high ? low : 0;
    self->scale = high > low ? 255 / (high - low) : 0;
}

/* How many planes stand side by side so that all of them are largest. */
static int good_columns(const struct thumbnail *self)
{
    int64_t gap = self->width > 1, least = INT64_MAX;
    int good = 1;
    for (int columns = 1; columns <= self->channels; columns++) {
        int64_t rows = (self->channels + columns - 1) / columns;
        int64_t width = columns * (self->width + gap);
        int64_t height = rows * (self->height + gap);
        int64_t side = width > height ? width : height;
        if (side < least) {
            least = side;
            good = columns;
        }
    }
    return good;
}

static int root_up(int n)
{
    int root = (int)sqrt(n);
    return root * root < n ? root + 1 : root;
}

void thumbnail_init(struct thumbnail *out, const leat_field *field,
                    const leat_image *image, int is_rgb)
{
    *out = (struct thumbnail){.image = image, .is_rgb = is_rgb, .scale = 1};
    if (image) {
        out->channels = image->channels;
        out->height = image->height;
        out->width = image->width;
        return;
    }
    out->data = field->data;
    out->dtype = field->dtype;
    out->channels = (int)field->shape[0];
    out->height = (int)field->shape[1];
    out->width = (int)field->shape[2];
    if (field->dtype == LEAT_FLOAT32)
        find_range(out);
    if (out->channels == 1 && out->height == 1 && out->width > 64)
        out->fold = root_up(out->width);
    else if (out->channels != 1 && out->channels != 3)
        out->columns = good_columns(out);
    /* So large a whole has no size; the first plane has. */
    int64_t columns = out->columns,
            rows = columns ? out->channels / columns : 0;
    if (columns * (out->width + (int64_t)1) > INT_MAX ||
        (rows + 1) * (out->height + (int64_t)1) > INT_MAX) {
        out->columns = 0;
        out->channels = 1;
    }
}

/* Its size when planes lie side by side, a pixel apart, or a row is folded. */
static void whole_size(const struct thumbnail *self, int *width, int *height)
{
    *width = self->width;
    *height = self->height;
    if (self->fold) {
        *width = self->fold;
        *height = (self->width + self->fold - 1) / self->fold;
    } else if (self->columns) {
        int gap = self->width > 1;
        int rows = (self->channels + self->columns - 1) / self->columns;
        *width = self->columns * (self->width + gap) - gap;
        *height = rows * (self->height + gap) - gap;
    }
}

static int is_finite_gray(const struct thumbnail *self, float value,
                          float out[3])
{
    if (!isfinite(value)) {
        out[0] = out[2] = 255;
        out[1] = 0;
        return 0;
    }
    out[0] = out[1] = out[2] =
        self->dtype == LEAT_FLOAT32
            ? self->scale > 0 ? (value - self->low) * self->scale : 128
            : value;
    return 1;
}

/* What is transparent lies on squares of two greys. */
static void image_color(const struct thumbnail *self, int x, int y,
                        float out[3])
{
    int channels = self->channels;
    const unsigned char *pixel =
        self->image->pixels +
        ((size_t)y * (size_t)self->width + (size_t)x) * (size_t)channels;
    float opaque = channels == 4 ? (float)pixel[3] / 255 : 1;
    float ground = (x / 8 + y / 8) % 2 ? 204 : 255;
    for (int i = 0; i < 3; i++) {
        float value = channels < 3 ? pixel[0] : pixel[2 - i];
        out[i] = opaque * value + (1 - opaque) * ground;
    }
}

/* A value that is not finite is magenta. */
static void color_planes(const struct thumbnail *self, size_t at, float out[3])
{
    size_t plane = (size_t)self->height * (size_t)self->width;
    float color[3];
    for (int i = 0; i < 3; i++) {
        size_t from = (size_t)(self->is_rgb ? i : 2 - i);
        float gray[3];
        if (!is_finite_gray(self, plane_value(self, from * plane + at), gray)) {
            memcpy(out, gray, sizeof(gray));
            return;
        }
        color[i] = gray[0];
    }
    memcpy(out, color, sizeof(color));
}

/* The colour at a place of the whole; between planes it is white. */
static void color_at(const struct thumbnail *self, int x, int y, float out[3])
{
    out[0] = out[1] = out[2] = 255;
    size_t at = (size_t)y * (size_t)self->width + (size_t)x;
    if (self->image) {
        image_color(self, x, y, out);
    } else if (self->fold) {
        at = (size_t)y * (size_t)self->fold + (size_t)x;
        if (at < (size_t)self->width)
            is_finite_gray(self, plane_value(self, at), out);
    } else if (self->columns) {
        int gap = self->width > 1;
        int column = x / (self->width + gap), row = y / (self->height + gap);
        int plane = row * self->columns + column;
        x -= column * (self->width + gap);
        y -= row * (self->height + gap);
        if (x == self->width || y == self->height || plane >= self->channels)
            return;
        at = ((size_t)plane * (size_t)self->height + (size_t)y) *
                 (size_t)self->width +
             (size_t)x;
        is_finite_gray(self, plane_value(self, at), out);
    } else if (self->channels == 3) {
        color_planes(self, at, out);
    } else {
        is_finite_gray(self, plane_value(self, at), out);
    }
}

/* The mean colour of the whole's pixels from (x0, y0) up to (x1, y1). */
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
    for (int i = 0; i < 3; i++) {
        double value = sum[i] / n + .5;
        int byte = value < 0 ? 0 : value > 255 ? 255 : (int)value;
        color = color << 8 | (raster_color)byte;
    }
    return color;
}

/* Where pixel `i` of `n` begins in `size` pixels, none of them left out. */
static int begin_of(int i, int n, int size)
{
    return (int)((int64_t)i * size / n);
}

void thumbnail_draw(const struct thumbnail *thumbnail, struct raster *raster,
                    int x, int y, int side)
{
    int width, height;
    whole_size(thumbnail, &width, &height);
    int longest = width > height ? width : height;
    int out_width = width, out_height = height;
    if (longest <= side) {
        out_width *= side / longest;
        out_height *= side / longest;
    } else {
        out_width = (int)((int64_t)width * side / longest);
        out_height = (int)((int64_t)height * side / longest);
    }
    out_width = out_width < 1 ? 1 : out_width;
    out_height = out_height < 1 ? 1 : out_height;
    x += (side - out_width) / 2;
    y += (side - out_height) / 2;
    for (int i = 0; i < out_height; i++)
        for (int j = 0; j < out_width; j++) {
            int x0 = begin_of(j, out_width, width);
            int y0 = begin_of(i, out_height, height);
            int x1 = begin_of(j + 1, out_width, width);
            int y1 = begin_of(i + 1, out_height, height);
            raster_set(raster, x + j, y + i,
                       mean_color(thumbnail, x0, y0, x1 > x0 ? x1 : x0 + 1,
                                  y1 > y0 ? y1 : y0 + 1));
        }
}

double thumbnail_contrast(const struct thumbnail *thumbnail)
{
    enum { MOST = 4096 };
    size_t n = value_count(thumbnail), step = n / MOST + 1;
    /* An even step would meet the same channel or column again and again. */
    step |= step > 1;
    double sum = 0, squares = 0, count = 0;
    for (size_t i = 0; i < n; i += step) {
        double value = thumbnail->image ? thumbnail->image->pixels[i]
                                        : (double)plane_value(thumbnail, i);
        if (!isfinite(value))
            return -1;
        sum += value;
        squares += value * value;
        count++;
    }
    double mean = sum / count;
    return sqrt(fmax(0, squares / count - mean * mean));
}
