/* noise.c: images that take as long to decode as photographs. */
#include "tools/cli/splitmix.h"
#include "tools/image/canvas.h"

#include <math.h>

enum {
    COARSE_CELL = 64, /* pixels between the nodes of a lattice */
    FINE_CELL = 8,
    MAX_NODES = 8192 / FINE_CELL + 2
};

/* The node values of a lattice along one row of pixels, in [-1, 1]. */
static void lattice_row(uint64_t seed, int y, int cell, int nodes,
                        float row[MAX_NODES])
{
    uint64_t above = (uint64_t)(y / cell) << 32;
    float t = (float)(y % cell) / (float)cell;
    for (int i = 0; i < nodes; i++) {
        uint64_t node = above + (uint64_t)i;
        uint64_t a = splitmix_mix(seed ^ node);
        uint64_t b = splitmix_mix(seed ^ (node + (UINT64_C(1) << 32)));
        float upper = (float)(a >> 40) * 0x1p-23f - 1;
        float lower = (float)(b >> 40) * 0x1p-23f - 1;
        row[i] = upper + t * (lower - upper);
    }
}

static float between_nodes(const float *row, int x, int cell)
{
    int node = x / cell;
    float t = (float)(x % cell) / (float)cell;
    return row[node] + t * (row[node + 1] - row[node]);
}

/* Broad shapes, which the channels share in part, finer shapes and grain. */
static int draw_plane(struct canvas *canvas, uint64_t shared,
                      struct splitmix *random, int (*check)(void),
                      unsigned char *pixels)
{
    float shape[MAX_NODES] = {0}, tint[MAX_NODES] = {0};
    float fine[MAX_NODES] = {0};
    uint64_t tint_seed = splitmix_next(random);
    for (int y = 0; y < canvas->height; y++) {
        int status = check ? check() : LEAT_OK;
        if (status)
            return status;
        int coarse_nodes = canvas->width / COARSE_CELL + 2;
        lattice_row(shared, y, COARSE_CELL, coarse_nodes, shape);
        lattice_row(tint_seed, y, COARSE_CELL, coarse_nodes, tint);
        lattice_row(~shared, y, FINE_CELL, canvas->width / FINE_CELL + 2, fine);
        uint64_t grain = 0;
        for (int x = 0; x < canvas->width; x++) {
            if (x % 16 == 0)
                grain = splitmix_next(random);
            float value = 128 + 80 * between_nodes(shape, x, COARSE_CELL) +
                          30 * between_nodes(tint, x, COARSE_CELL) +
                          24 * between_nodes(fine, x, FINE_CELL) +
                          1.7f * (float)(grain & 15) - 12.75f;
            grain >>= 4;
            *pixels++ = (unsigned char)fmaxf(0, fminf(255, value));
        }
    }
    return LEAT_OK;
}

int canvas_draw_noise(struct canvas *canvas, uint64_t seed, int64_t index,
                      int (*check)(void), int *label)
{
    struct splitmix random = splitmix_start(seed, (uint64_t)index);
    uint64_t shared = splitmix_next(&random);
    size_t plane = (size_t)canvas->height * (size_t)canvas->width;
    int status = LEAT_OK;
    for (int c = 0; !status && c < canvas->channels; c++)
        status = draw_plane(canvas, shared, &random, check,
                            canvas->pixels + (size_t)c * plane);
    if (!status)
        *label = splitmix_below(&random, 10);
    return status;
}
