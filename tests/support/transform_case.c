#include "support/transform_case.h"
#include "device/transform_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES 5

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

/* `bytes` that begin `over` bytes after a multiple of 256. */
static void *take(transform_case *self, size_t bytes, size_t over)
{
    void *block;
    if (posix_memalign(&block, 256, bytes + over + !bytes))
        abort();
    self->block[self->nblocks++] = block;
    return (char *)block + over;
}

/* Small ones are at the ends of rows most of the time. */
static int draw_size(void)
{
    static const uint32_t most[] = {4, 9, 20, 40};
    return 1 + (int)draw(most[draw(4)]);
}

static void choose(transform_case *self)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16,
                                       LEAT_BFLOAT16, LEAT_UINT8};
    leat_device_transform *what = &self->what;
    what->top_type = types[draw(4)];
    what->pixel_layout = draw(2) ? LEAT_NHWC : LEAT_NCHW;
    what->layout = draw(2) ? LEAT_NHWC : LEAT_NCHW;
    what->images = 1 + draw(IMAGES);
    what->channels = 1 + (int)draw(5);
    what->height = draw_size();
    what->width = draw_size();
    what->mean_height = what->height + (int)draw(4);
    what->mean_width = what->width + (int)draw(4);
    what->scale = 1;
    self->pixels_over = draw(2) ? draw(16) : 0;
    if (what->top_type == LEAT_UINT8)
        return;
    what->scale = draw(2) ? 1 : (float)(1 + draw(1000)) * 0.0037f;
    /* Subnormal and infinite as float16. */
    if (draw(8) == 0)
        what->scale *= draw(2) ? 1e-7f : 300.0f;
}

static float *draw_floats(transform_case *self, size_t n, size_t over)
{
    float *out = take(self, n * sizeof(float), over * sizeof(float));
    for (size_t i = 0; i < n; i++)
        out[i] = (float)draw(1u << 24) * 1.7e-5f - 10;
    return out;
}

static void choose_means(transform_case *self)
{
    leat_device_transform *what = &self->what;
    uint32_t kind = what->top_type == LEAT_UINT8 ? 0 : draw(4);
    if (kind == 1) {
        self->mean_over = draw(4);
        self->mean_floats = (size_t)what->channels * (size_t)what->mean_height *
                            (size_t)what->mean_width;
        what->mean = draw_floats(self, self->mean_floats, self->mean_over);
    } else if (kind > 1) {
        what->mean_values = kind == 2 ? 1 : what->channels;
        what->mean_value = draw_floats(self, (size_t)what->mean_values, 0);
    }
}

static void compute(transform_case *self, int64_t i, const unsigned char *whole,
                    const leat_device_choice *choice)
{
    const leat_device_transform *what = &self->what;
    size_t bytes = self->top_bytes / (size_t)what->images;
    char *top = (char *)self->expected + (size_t)i * bytes;
    const leat__transform_job job = {.top_type = what->top_type,
                                     .layout = what->layout,
                                     .channels = what->channels,
                                     .height = what->height,
                                     .width = what->width,
                                     .scale = (double)what->scale,
                                     .mean = what->mean,
                                     .mean_value = what->mean_value,
                                     .mean_values = what->mean_values,
                                     .mean_height = what->mean_height,
                                     .mean_width = what->mean_width};
    const leat__transform_image image = {.pixels = whole,
                                         .type = LEAT_UINT8,
                                         .layout = what->pixel_layout,
                                         .channels = what->channels,
                                         .height = what->mean_height,
                                         .width = what->mean_width,
                                         .h_off = choice->h_off,
                                         .w_off = choice->w_off,
                                         .mirror = (int)choice->mirror};
    if (choice->is_zero)
        memset(top, 0, bytes);
    else
        leat__transform_reference(&job, &image, top);
}

/* The crop as it lies in a slot, out of an image of the mean's size. */
static void crop(const leat_device_transform *what, const unsigned char *whole,
                 const leat_device_choice *choice, unsigned char *out)
{
    size_t channels = (size_t)what->channels;
    size_t height = (size_t)what->mean_height;
    size_t width = (size_t)what->mean_width;
    int is_planar = what->pixel_layout == LEAT_NCHW;
    size_t n = channels * (size_t)what->height * (size_t)what->width;
    for (size_t i = 0; i < n; i++) {
        size_t pixel = is_planar ? i : i / channels;
        size_t w = pixel % (size_t)what->width + (size_t)choice->w_off;
        size_t h = pixel / (size_t)what->width;
        size_t c = is_planar ? h / (size_t)what->height : i % channels;
        h = h % (size_t)what->height + (size_t)choice->h_off;
        out[i] = whole[is_planar ? (c * height + h) * width + w
                                 : (h * width + w) * channels + c];
    }
}

void transform_case_init(transform_case *self, uint32_t number)
{
    memset(self, 0, sizeof(*self));
    state = number * 2654435761u + 1;
    choose(self);
    choose_means(self);
    leat_device_transform *what = &self->what;
    size_t count =
        (size_t)what->channels * (size_t)what->height * (size_t)what->width;
    size_t whole = (size_t)what->channels * (size_t)what->mean_height *
                   (size_t)what->mean_width;
    size_t images = (size_t)what->images;
    self->pixel_bytes = images * count;
    self->top_bytes = images * count * leat_dtype_size(what->top_type);
    leat_device_choice *choices = take(self, images * sizeof(*choices), 0);
    unsigned char *pixels = take(self, self->pixel_bytes, self->pixels_over);
    unsigned char *image = take(self, whole, 0);
    self->expected = take(self, self->top_bytes, 0);
    for (size_t i = 0; i < images; i++) {
        choices[i].h_off =
            (int32_t)draw((uint32_t)(what->mean_height - what->height + 1));
        choices[i].w_off =
            (int32_t)draw((uint32_t)(what->mean_width - what->width + 1));
        choices[i].mirror = draw(2);
        choices[i].is_zero = draw(8) == 0;
        for (size_t k = 0; k < whole; k++)
            image[k] = (unsigned char)draw(256);
        crop(what, image, &choices[i], pixels + i * count);
        compute(self, (int64_t)i, image, &choices[i]);
    }
    what->choices = choices;
    what->pixels = pixels;
}

void transform_case_finish(transform_case *self)
{
    for (int i = 0; i < self->nblocks; i++)
        free(self->block[i]);
    memset(self, 0, sizeof(*self));
}

const char *transform_case_text(const transform_case *self)
{
    static char text[256];
    const leat_device_transform *what = &self->what;
    snprintf(text, sizeof(text),
             "%d images of %d x %d x %d, %s to %s %s, %s, %zu bytes over",
             (int)what->images, what->channels, what->height, what->width,
             what->pixel_layout == LEAT_NHWC ? "NHWC" : "NCHW",
             what->layout == LEAT_NHWC ? "NHWC" : "NCHW",
             leat_dtype_name(what->top_type),
             what->mean         ? "mean file"
             : what->mean_value ? "mean values"
                                : "no mean",
             self->pixels_over);
    return text;
}
