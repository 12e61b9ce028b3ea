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

/* A raster's first channel is red, a Datum's first plane is blue. */
static int interleave(const struct canvas *canvas, struct raster *out)
{
    size_t step = (size_t)canvas->channels;
    size_t plane = (size_t)canvas->height * (size_t)canvas->width;
    *out = (struct raster){canvas->channels, canvas->width, canvas->height,
                           malloc(canvas_bytes(canvas))};
    if (!out->pixels)
        return leat_error(LEAT_ENOMEM, "out of memory for an image");
    for (size_t c = 0; c < step; c++) {
        const unsigned char *from = canvas->pixels + (step - 1 - c) * plane;
        for (size_t i = 0; i < plane; i++)
            out->pixels[i * step + c] = from[i];
    }
    return LEAT_OK;
}

int canvas_encode(const struct canvas *canvas, raster_writer *write,
                  int quality, unsigned char **out, size_t *size)
{
    struct raster raster;
    char *bytes = NULL;
    int status = interleave(canvas, &raster);
    if (status)
        return status;
    FILE *stream = open_memstream(&bytes, size);
    if (stream)
        status = write(&raster, quality, stream);
    free(raster.pixels);
    if (stream && fclose(stream) && !status)
        bytes = NULL;
    if (!status && !bytes)
        status = leat_error(LEAT_ENOMEM, "out of memory for an image");
    if (status)
        free(bytes);
    else
        *out = (unsigned char *)bytes;
    return status;
}
