#include "tools/image/canvas.h"

#include <leat/ext/reader.h>

#include <stdlib.h>

int canvas_init(struct canvas *canvas, const int shape[3])
{
    canvas->channels = shape[0];
    canvas->height = shape[1];
    canvas->width = shape[2];
    size_t plane = (size_t)shape[1] * (size_t)shape[2];
    canvas->pixels = malloc(canvas_bytes(canvas));
    canvas->ink = malloc(plane * sizeof(*canvas->ink));
    if (canvas->pixels && canvas->ink)
        return LEAT_OK;
    canvas_finish(canvas);
    return leat_error(LEAT_ENOMEM, "out of memory for an image of %d x %d x %d",
                      shape[0], shape[1], shape[2]);
}

void canvas_finish(struct canvas *canvas)
{
    free(canvas->pixels);
    free(canvas->ink);
    canvas->pixels = NULL;
    canvas->ink = NULL;
}

size_t canvas_bytes(const struct canvas *canvas)
{
    return (size_t)canvas->channels * (size_t)canvas->height *
           (size_t)canvas->width;
}
