/* digit.c: digits drawn with a pen, each in another hand. */
#include "tools/cli/splitmix.h"
#include "tools/image/canvas.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/*
 * A glyph is drawn in a unit square, y downwards. A line has its two ends; an
 * arc its centre, radii and the degrees where it begins and ends, clockwise
 * from the right.
 */
struct stroke {
    int arc;
    double at[6];
};

enum { MAX_STROKES = 3 };

static const struct {
    int n;
    struct stroke stroke[MAX_STROKES];
} glyphs[10] = {
    {1, {{1, {.50, .50, .27, .40, 0, 360}}}},
    {2, {{0, {.36, .27, .54, .10}}, {0, {.54, .10, .54, .90}}}},
    {3,
     {{1, {.50, .32, .25, .22, 190, 400}},
      {0, {.69, .46, .26, .90}},
      {0, {.26, .90, .77, .90}}}},
    {2,
     {{1, {.47, .30, .24, .20, 200, 450}},
      {1, {.47, .70, .27, .20, 270, 520}}}},
    {3,
     {{0, {.62, .10, .22, .64}},
      {0, {.22, .64, .80, .64}},
      {0, {.62, .10, .62, .90}}}},
    {3,
     {{0, {.73, .10, .33, .10}},
      {0, {.33, .10, .30, .47}},
      {1, {.47, .65, .27, .25, 226, 500}}}},
    {2,
     {{1, {.66, .66, .41, .56, 180, 265}}, {1, {.50, .66, .25, .24, 0, 360}}}},
    {2, {{0, {.24, .10, .77, .10}}, {0, {.77, .10, .42, .90}}}},
    {2, {{1, {.50, .30, .21, .20, 0, 360}}, {1, {.50, .70, .26, .20, 0, 360}}}},
    {2, {{1, {.34, .34, .41, .56, 0, 85}}, {1, {.50, .34, .25, .24, 0, 360}}}},
};

/* How a digit is written: the map from the unit square to pixels, and the pen.
 */
struct hand {
    double matrix[2][3];
    double wave[2]; /* amplitudes of an uneven hand, in pixels */
    double bend[2]; /* and its phases */
    double radius;  /* of the pen, in pixels */
};

static struct hand choose_hand(struct splitmix *random, int height, int width)
{
    double side = height < width ? height : width;
    double scale = side * splitmix_between(random, .62, .98);
    double stretch = splitmix_between(random, .80, 1.20);
    double turn = splitmix_between(random, -17, 17) * pi / 180;
    double shear = splitmix_between(random, -.28, .28);
    double x = width / 2. + side * splitmix_between(random, -.11, .11);
    double y = height / 2. + side * splitmix_between(random, -.11, .11);

    struct hand hand;
    double a = scale * stretch * cos(turn), c = scale * stretch * sin(turn);
    double b = scale * (shear * cos(turn) - sin(turn));
    double d = scale * (shear * sin(turn) + cos(turn));
    hand.matrix[0][0] = a;
    hand.matrix[0][1] = b;
    hand.matrix[0][2] = x - .5 * (a + b);
    hand.matrix[1][0] = c;
    hand.matrix[1][1] = d;
    hand.matrix[1][2] = y - .5 * (c + d);
    for (int i = 0; i < 2; i++) {
        hand.wave[i] = side * splitmix_between(random, 0, .035);
        hand.bend[i] = splitmix_between(random, 0, 2 * pi);
    }
    hand.radius = fmax(.6, side * splitmix_between(random, .025, .065));
    return hand;
}

/* Maps a point of the glyph to the canvas. */
static void map_point(const struct hand *hand, double x, double y,
                      double out[2])
{
    for (int i = 0; i < 2; i++)
        out[i] = hand->matrix[i][0] * x + hand->matrix[i][1] * y +
                 hand->matrix[i][2] +
                 hand->wave[i] * sin(2 * pi * (i ? x : y) + hand->bend[i]);
}

static int clamp(double value, int max)
{
    return value < 0 ? 0 : value > max ? max : (int)value;
}

/* Inks the pixels that the pen touches between two points. */
static int draw_segment(struct canvas *canvas, const double from[2],
                        const double to[2], double radius, int (*check)(void))
{
    double dx = to[0] - from[0], dy = to[1] - from[1];
    double length2 = dx * dx + dy * dy + 1e-12;
    double reach = radius + 1;
    int x0 = clamp(fmin(from[0], to[0]) - reach, canvas->width);
    int x1 = clamp(fmax(from[0], to[0]) + reach + 1, canvas->width);
    int y0 = clamp(fmin(from[1], to[1]) - reach, canvas->height);
    int y1 = clamp(fmax(from[1], to[1]) + reach + 1, canvas->height);
    for (int y = y0; y < y1; y++) {
        int status = check ? check() : LEAT_OK;
        if (status)
            return status;
        for (int x = x0; x < x1; x++) {
            double px = x + .5 - from[0], py = y + .5 - from[1];
            double t = (px * dx + py * dy) / length2;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            double ex = px - t * dx, ey = py - t * dy;
            double ink = radius + .5 - sqrt(ex * ex + ey * ey);
            float *cover =
                &canvas->ink[(size_t)y * (size_t)canvas->width + (size_t)x];
            *cover = fmaxf(*cover, fminf(1, (float)ink));
        }
    }
    return LEAT_OK;
}

static int draw_stroke(struct canvas *canvas, const struct hand *hand,
                       const struct stroke *stroke, int (*check)(void))
{
    enum { PIECES = 16 };
    const double *at = stroke->at;
    double from[2], to[2];
    int status = LEAT_OK;
    for (int i = 0; !status && i <= PIECES; i++) {
        double t = (double)i / PIECES;
        double x = at[0] + t * (at[2] - at[0]);
        double y = at[1] + t * (at[3] - at[1]);
        if (stroke->arc) {
            double angle = (at[4] + t * (at[5] - at[4])) * pi / 180;
            x = at[0] + at[2] * cos(angle);
            y = at[1] + at[3] * sin(angle);
        }
        map_point(hand, x, y, to);
        if (i)
            status = draw_segment(canvas, from, to, hand->radius, check);
        memcpy(from, to, sizeof(from));
    }
    return status;
}

/* Mixes paper and ink in each channel, with uneven light and grain. */
static int develop(struct canvas *canvas, struct splitmix *random,
                   int (*check)(void))
{
    double grain = splitmix_between(random, 4, 40);
    unsigned char *pixel = canvas->pixels;
    for (int c = 0; c < canvas->channels; c++) {
        double paper = splitmix_between(random, 0, 70);
        double ink = splitmix_between(random, 90, 185);
        double slope_x = splitmix_between(random, -40, 40) / canvas->width;
        double slope_y = splitmix_between(random, -40, 40) / canvas->height;
        const float *cover = canvas->ink;
        for (int y = 0; y < canvas->height; y++) {
            int status = check ? check() : LEAT_OK;
            if (status)
                return status;
            double light = paper + slope_y * y;
            for (int x = 0; x < canvas->width; x++) {
                double noise = splitmix_between(random, -grain, grain);
                *pixel++ = (unsigned char)clamp(
                    light + slope_x * x + ink * *cover++ + noise, 255);
            }
        }
    }
    return LEAT_OK;
}

int canvas_draw_digit(struct canvas *canvas, uint64_t seed, int64_t index,
                      int (*check)(void), int *label)
{
    struct splitmix random = splitmix_start(seed, (uint64_t)index);
    int digit = splitmix_below(&random, 10);
    struct hand hand = choose_hand(&random, canvas->height, canvas->width);
    memset(canvas->ink, 0,
           (size_t)canvas->height * (size_t)canvas->width * sizeof(float));
    int status = LEAT_OK;
    for (int i = 0; !status && i < glyphs[digit].n; i++)
        status = draw_stroke(canvas, &hand, &glyphs[digit].stroke[i], check);
    if (!status)
        status = develop(canvas, &random, check);
    if (!status)
        *label = digit;
    return status;
}
