#include "tools/image/raster.h"

#include <leat/ext/reader.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The printable letters of ASCII: 40 bits each, a row of 5 after another, from
 * the upper left corner, which is the highest bit.
 */
static const uint64_t font[] = {
    0x0000000000, 0x2108420080, 0x5294000000, 0x52beafa940, 0x23e8e2f880,
    0xce44444e60, 0x64a88ac9a0, 0x2108000000, 0x1110841040, 0x4104211100,
    0x012aea9000, 0x0109f21000, 0x0000003088, 0x0001f00000, 0x0000003180,
    0x0844444200, 0x74675cc5c0, 0x23084211c0, 0x74422223e0, 0xf88820c5c0,
    0x11952f8840, 0xfc3c10c5c0, 0x3221e8c5c0, 0xf844442100, 0x7462e8c5c0,
    0x7462f08980, 0x0318063000, 0x0318003088, 0x1111041040, 0x003e0f8000,
    0x4104111100, 0x7442220080, 0x746f5bc1e0, 0x7463f8c620, 0xf463e8c7c0,
    0x74610845c0, 0xe4a318cb80, 0xfc21e843e0, 0xfc21e84200, 0x746178c5e0,
    0x8c63f8c620, 0x71084211c0, 0x3884214980, 0x8ca98a4a20, 0x84210843e0,
    0x8eeb58c620, 0x8c7359c620, 0x746318c5c0, 0xf463e84200, 0x74631ac9a0,
    0xf463ea4a20, 0x7c20e087c0, 0xf908421080, 0x8c6318c5c0, 0x8c6318a880,
    0x8c635ad540, 0x8c54454620, 0x8c62a21080, 0xf8444443e0, 0x72108421c0,
    0x8410410420, 0x70842109c0, 0x22a2000000, 0x000000001f, 0x4104000000,
    0x001c17c5e0, 0x842d98c7c0, 0x001d0845c0, 0x085b38c5e0, 0x001d1fc1c0,
    0x3251c42100, 0x001f18bc2e, 0x842d98c620, 0x20184211c0, 0x100c210a4c,
    0x84254c5240, 0x61084211c0, 0x00355ac620, 0x002d98c620, 0x001d18c5c0,
    0x003d18fa10, 0x001f18bc21, 0x002d984200, 0x001f0707c0, 0x42388424c0,
    0x002318cda0, 0x002318a880, 0x00231ad540, 0x0022a22a20, 0x002318bc2e,
    0x003e2223e0, 0x1108821040, 0x2108421080, 0x4108221100, 0x0011510000,
};

int raster_init(struct raster *out, int width, int height, raster_color color)
{
    *out = (struct raster){3, width, height, NULL};
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

/* Whether a letter has ink there. */
static bool has_ink(char letter, int row, int column)
{
    if (letter >= ' ' && letter <= '~')
        return font[letter - ' '] >> (39 - row * FONT_WIDTH - column) & 1;
    return row < FONT_HEIGHT - 1 &&
           (row % (FONT_HEIGHT - 2) == 0 || column % (FONT_WIDTH - 1) == 0);
}

void raster_write(struct raster *raster, int x, int y, const char *text,
                  int length, int scale, raster_color color)
{
    for (int i = 0; i < length; i++, x += FONT_ADVANCE * scale)
        for (int row = 0; row < FONT_HEIGHT; row++)
            for (int column = 0; column < FONT_WIDTH; column++)
                if (has_ink(text[i], row, column))
                    raster_fill(raster, x + column * scale, y + row * scale,
                                scale, scale, color);
}
