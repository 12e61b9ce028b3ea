/*
 * resize.c: bilinear interpolation in OpenCV's integer arithmetic, so that the
 * bytes are the same. Pixels lie at the centres of their squares. Weights are
 * rounded to 11 bits; an interpolated row keeps 7 fractional bits; two rows are
 * combined in 16 bits, with each product truncated to 2 fractional bits.
 */
#include "tools/image/resize.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BITS = 11, WEIGHT_ONE = 1 << WEIGHT_BITS, ROW_SHIFT = 4 };

/* The two pixels that a pixel of the result lies between, and their weights. */
struct resize_tap {
    int at[2];
    int weight[2];
};

/* The taps of a pixel of the result; they may lie one pixel outside. */
static struct resize_tap find_tap(int pixel, int from, int to)
{
    double scale = 1 / ((double)to / from);
    float centre = (float)((pixel + 0.5) * scale - 0.5);
    int first = (int)floorf(centre);
    float share = centre - (float)first;
    return (struct resize_tap){
        {first, first + 1},
        {(int)rintf((1 - share) * WEIGHT_ONE), (int)rintf(share * WEIGHT_ONE)}};
}

static int clip(int pixel, int size)
{
    return pixel < 0 ? 0 : pixel < size ? pixel : size - 1;
}

/* Outside the image a column takes only the pixel at the edge. */
static struct resize_tap find_column(int pixel, int from, int to)
{
    struct resize_tap tap = find_tap(pixel, from, to);
    if (tap.at[0] < 0 || tap.at[0] >= from - 1) {
        tap.weight[0] = WEIGHT_ONE;
        tap.weight[1] = 0;
    }
    tap.at[0] = clip(tap.at[0], from);
    tap.at[1] = clip(tap.at[1], from);
    return tap;
}

static int set_width(struct resizer *resizer, int from, int to)
{
    if (resizer->tap && resizer->from == from && resizer->to == to)
        return LEAT_OK;
    resizer_finish(resizer);
    resizer->tap = malloc((size_t)to * sizeof(*resizer->tap));
    for (int i = 0; i < 2; i++)
        resizer->row[i] = malloc((size_t)to * sizeof(*resizer->row[i]));
    if (!resizer->tap || !resizer->row[0] || !resizer->row[1]) {
        resizer_finish(resizer);
        return leat_error(LEAT_ENOMEM, "out of memory for a row of %d pixels",
                          to);
    }
    for (int x = 0; x < to; x++)
        resizer->tap[x] = find_column(x, from, to);
    resizer->from = from;
    resizer->to = to;
    return LEAT_OK;
}

/* One channel of an image. */
struct channel {
    const unsigned char *pixels;
    size_t step; /* from pixel to pixel */
    int height;
    int width;
};

/*
 * Row `y`, interpolated. Rows are taken in ascending order, so the upper one of
 * the two is replaced.
 */
static const int16_t *take_row(struct resizer *resizer,
                               const struct channel *channel, int y)
{
    for (int i = 0; i < 2; i++)
        if (resizer->at[i] == y)
            return resizer->row[i];
    int i = resizer->at[0] > resizer->at[1];
    size_t step = channel->step;
    const unsigned char *from =
        channel->pixels + (size_t)y * (size_t)channel->width * step;
    const struct resize_tap *tap = resizer->tap;
    int16_t *row = resizer->row[i];
    for (int x = 0; x < resizer->to; x++)
        row[x] =
            (int16_t)((from[(size_t)tap[x].at[0] * step] * tap[x].weight[0] +
                       from[(size_t)tap[x].at[1] * step] * tap[x].weight[1]) >>
                      ROW_SHIFT);
    resizer->at[i] = y;
    return row;
}

static void join_rows(const int16_t *above, const int16_t *below,
                      const int weight[2], int width,
                      unsigned char *restrict out)
{
    for (int x = 0; x < width; x++)
        out[x] = (unsigned char)((((weight[0] * above[x]) >> 16) +
                                  ((weight[1] * below[x]) >> 16) + 2) >>
                                 2);
}

static void resize_channel(struct resizer *resizer,
                           const struct channel *channel, const int to[2],
                           unsigned char *out)
{
    int height = channel->height;
    resizer->at[0] = resizer->at[1] = -1;
    for (int y = 0; y < to[0]; y++, out += to[1]) {
        struct resize_tap tap = find_tap(y, height, to[0]);
        const int16_t *above =
            take_row(resizer, channel, clip(tap.at[0], height));
        const int16_t *below =
            take_row(resizer, channel, clip(tap.at[1], height));
        join_rows(above, below, tap.weight, to[1], out);
    }
}

/* Half the height and half the width: the mean of four pixels, rounded. */
static void halve_channel(const struct channel *channel, const int to[2],
                          unsigned char *out)
{
    size_t step = channel->step, row = (size_t)channel->width * step;
    for (int y = 0; y < to[0]; y++) {
        const unsigned char *above = channel->pixels + 2 * (size_t)y * row;
        const unsigned char *below = above + row;
        for (int x = 0; x < to[1]; x++, above += 2 * step, below += 2 * step)
            *out++ = (unsigned char)((above[0] + above[step] + below[0] +
                                      below[step] + 2) >>
                                     2);
    }
}

int resizer_apply(struct resizer *resizer, const leat_image *image,
                  const int to[2], unsigned char *planes)
{
    int status = set_width(resizer, image->width, to[1]);
    if (status)
        return status;
    for (int c = 0; c < image->channels; c++) {
        struct channel channel = {image->pixels + c, (size_t)image->channels,
                                  image->height, image->width};
        if (image->height == 2 * to[0] && image->width == 2 * to[1])
            halve_channel(&channel, to, planes);
        else
            resize_channel(resizer, &channel, to, planes);
        planes += (size_t)to[0] * (size_t)to[1];
    }
    return LEAT_OK;
}

void resizer_finish(struct resizer *resizer)
{
    free(resizer->tap);
    free(resizer->row[0]);
    free(resizer->row[1]);
    memset(resizer, 0, sizeof(*resizer));
}
