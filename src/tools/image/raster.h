/* raster.h: a picture to be drawn and written on, saved as PNG or JPEG. */
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
 * Writes the text, each of its pixels a square of `scale`; cut with "..." where
 * it is longer than `room` pixels. Returns its width.
 */
int raster_write(struct raster *raster, int x, int y, const char *text,
                 int scale, int room, raster_color color);

/* Letters that go into `room` pixels. */
int raster_letters(int room, int scale);

/* What a picture can be saved as. */
enum raster_format { RASTER_UNKNOWN = 0, RASTER_PNG, RASTER_JPEG };

/* By a name's extension: .png, .jpg or .jpeg; one without is of a PNG. */
enum raster_format raster_format_of(const char *path);

/*
 * Saves it in the format of its name. The file appears whole or not at all.
 * What is there and no regular file stays. Errors: LEAT_EINVAL for that, for a
 * name of no format and a JPEG with a side over 65500; LEAT_EIO, LEAT_ENOMEM.
 */
int raster_save(const struct raster *raster, const char *path);

#endif
