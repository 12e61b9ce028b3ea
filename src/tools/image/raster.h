/* raster.h: a picture to be drawn and written on, saved as PNG. */
#ifndef LEAT_TOOLS_IMAGE_RASTER_H
#define LEAT_TOOLS_IMAGE_RASTER_H

#include <leat/status.h>

struct raster {
    int width;
    int height;
    unsigned char *pixels; /* R, G, B */
};

/* 0xRRGGBB. */
typedef uint32_t raster_color;

/* A picture of one colour. Errors: LEAT_ENOMEM. */
int raster_init(struct raster *out, int width, int height, raster_color color);
void raster_finish(struct raster *raster);

/* What lies outside is not drawn. */
void raster_set(struct raster *raster, int x, int y, raster_color color);
void raster_fill(struct raster *raster, int x, int y, int width, int height,
                 raster_color color);
void raster_frame(struct raster *raster, int x, int y, int width, int height,
                  raster_color color);

/*
 * Writes the text, each of its pixels a square of `scale`; cut with ".." behind
 * `room` pixels. Returns its width.
 */
int raster_write(struct raster *raster, int x, int y, const char *text,
                 int scale, int room, raster_color color);

/* Letters that go into `room` pixels. */
int raster_letters(int room, int scale);

/*
 * Saves it as PNG. The file appears whole or not at all. What is there and no
 * regular file stays. Errors: LEAT_EINVAL for that, LEAT_EIO, LEAT_ENOMEM.
 */
int raster_save(const struct raster *raster, const char *path);

#endif
