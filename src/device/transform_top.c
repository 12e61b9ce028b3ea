/*
 * Tops of two bytes an element: the row kernels make floats of a band of rows
 * at a time, which stay in the cache until they are narrowed.
 */
#include "device/transform_top.h"
#include "device/float16.h"
#include "device/transform_reference.h"

#include <stdbool.h>

/* Floats in a band. */
#define BAND 8192

static void narrow(leat_dtype type, const float *from, size_t n, uint16_t *to)
{
    if (type == LEAT_FLOAT16) {
        for (size_t i = 0; i < n; i++)
            to[i] = leat__float16(from[i]);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = leat__bfloat16(from[i]);
    }
}

static void transform_half(const leat__row_kernels *kernels,
                           const leat__transform_job *job,
                           const leat__transform_image *image, void *top)
{
    float floats[BAND];
    uint16_t *halves = top;
    size_t channels = (size_t)job->channels;
    size_t height = (size_t)job->height;
    size_t width = (size_t)job->width;
    size_t rows = BAND / width / channels;
    if (rows == 0) {
        leat__transform_reference(job, image, top);
        return;
    }
    leat__transform_job band = *job;
    leat__transform_image part = *image;
    band.top_type = LEAT_FLOAT32;
    for (size_t row = 0; row < height; row += rows) {
        if (rows > height - row)
            rows = height - row;
        band.height = (int)rows;
        part.h_off = image->h_off + (int)row;
        leat__transform_rows(kernels, &band, &part, floats);
        size_t n = rows * width;
        if (job->layout == LEAT_NHWC) {
            narrow(job->top_type, floats, n * channels,
                   halves + row * width * channels);
            continue;
        }
        for (size_t c = 0; c < channels; c++)
            narrow(job->top_type, floats + c * n, n,
                   halves + (c * height + row) * width);
    }
}

static bool is_half(leat_dtype type)
{
    return type == LEAT_FLOAT16 || type == LEAT_BFLOAT16;
}

void leat__transform_top(const leat__row_kernels *kernels,
                         const leat__transform_job *job,
                         const leat__transform_image *image, void *top)
{
    if (is_half(job->top_type))
        transform_half(kernels, job, image, top);
    else
        leat__transform_rows(kernels, job, image, top);
}

leat__row_convert *leat__transform_top_row(const leat__row_kernels *kernels,
                                           const leat__transform_job *job,
                                           const leat__transform_image *image,
                                           leat__row_run *out)
{
    return is_half(job->top_type)
               ? NULL
               : leat__transform_one_row(kernels, job, image, out);
}
