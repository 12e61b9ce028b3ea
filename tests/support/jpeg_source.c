#include "support/jpeg_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))
#define SMALL_SIDE_MAX 70
#define LARGE_EVERY 400
#define ROW_MAX (3 * JPEG_SIDE_MAX)
#define ADOBE_MARKER 0xee
/* From the marker to the transform. */
#define ADOBE_TRANSFORM 15

uint64_t jpeg_random(uint64_t *state)
{
    uint64_t word = *state += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

int jpeg_random_below(uint64_t *state, int n)
{
    return (int)((jpeg_random(state) >> 32) * (uint64_t)n >> 32);
}

/* What is drawn: its numbers are chosen once, by the seed. */
typedef struct drawing {
    const jpeg_source *source;
    uint64_t state;
    int base[3], across[3], down[3]; /* of each component */
    int period;
} drawing;

static drawing start_drawing(const jpeg_source *source)
{
    drawing drawing = {.source = source, .state = source->seed};
    for (int i = 0; i < 3; i++) {
        drawing.base[i] = jpeg_random_below(&drawing.state, 256);
        drawing.across[i] = jpeg_random_below(&drawing.state, 9) - 4;
        drawing.down[i] = jpeg_random_below(&drawing.state, 9) - 4;
    }
    drawing.period = 2 + jpeg_random_below(&drawing.state, 12);
    return drawing;
}

/* Up and down between 0 and 255. */
static int fold(int value)
{
    value &= 511;
    return value < 256 ? value : 511 - value;
}

static int sample_of(drawing *drawing, int x, int y, int i)
{
    int slope =
        drawing->base[i] + drawing->across[i] * x + drawing->down[i] * y;
    switch (drawing->source->content) {
    case JPEG_NOISE:
        return (int)(jpeg_random(&drawing->state) >> 56);
    case JPEG_GRADIENT:
        return fold(slope);
    case JPEG_FLAT:
        return drawing->base[i];
    case JPEG_EDGES:
        return ((x + y * (i + 1) / 2) / drawing->period & 1) * 255;
    case JPEG_CHECKER:
        return ((x * (drawing->period & 1) + y + (drawing->base[i] & 1)) & 1) *
               255;
    case JPEG_BLACK:
        return 0;
    default:
        return fold(slope) * 3 / 4 + (int)(jpeg_random(&drawing->state) >> 58);
    }
}

static void draw_row(drawing *drawing, unsigned char *row, int y)
{
    int components = drawing->source->components;
    for (int x = 0; x < drawing->source->width; x++)
        for (int i = 0; i < components; i++)
            *row++ = (unsigned char)sample_of(drawing, x, y, i);
}

static bool is_stored_as_rgb(const jpeg_source *source)
{
    return source->components == 3 && (source->markers == JPEG_ADOBE_RGB ||
                                       source->markers == JPEG_UNMARKED_RGB);
}

static void set_markers(struct jpeg_compress_struct *codec,
                        const jpeg_source *source)
{
    jpeg_markers markers = source->markers;
    if (is_stored_as_rgb(source))
        jpeg_set_colorspace(codec, JCS_RGB);
    codec->write_JFIF_header =
        markers == JPEG_JFIF || markers == JPEG_JFIF_ADOBE_RGB;
    codec->write_Adobe_marker =
        markers == JPEG_ADOBE_YCBCR || markers == JPEG_ADOBE_RGB ||
        markers == JPEG_ADOBE_YCCK || markers == JPEG_JFIF_ADOBE_RGB;
    if (markers == JPEG_UNMARKED_ZERO)
        for (int i = 0; i < source->components; i++)
            codec->comp_info[i].component_id = i;
}

/* Has the Adobe marker name a transform that libjpeg would not write. */
static void set_adobe_transform(made_jpeg *made, unsigned char transform)
{
    for (size_t i = 0; i + ADOBE_TRANSFORM < made->size; i++) {
        unsigned char *at = made->bytes + i;
        if (at[0] == 0xff && at[1] == ADOBE_MARKER &&
            memcmp(at + 4, "Adobe", 5) == 0) {
            at[ADOBE_TRANSFORM] = transform;
            return;
        }
    }
    abort();
}

static void set_up(struct jpeg_compress_struct *codec,
                   const jpeg_source *source)
{
    codec->image_width = (JDIMENSION)source->width;
    codec->image_height = (JDIMENSION)source->height;
    codec->input_components = source->components;
    codec->in_color_space = source->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(codec);
    set_markers(codec, source);
    jpeg_set_quality(codec, source->quality, !source->has_large_quanta);
    for (int i = 0; i < source->components; i++) {
        codec->comp_info[i].h_samp_factor = source->h[i];
        codec->comp_info[i].v_samp_factor = source->v[i];
    }
    codec->restart_interval = (unsigned)source->restart_mcus;
    codec->restart_in_rows = source->restart_rows;
    codec->optimize_coding = source->is_optimized;
    codec->arith_code = source->is_arithmetic;
    if (source->is_progressive)
        jpeg_simple_progression(codec);
}

static void print_nothing(j_common_ptr codec)
{
    (void)codec; /* that tables are coarse, which is what was asked for */
}

made_jpeg jpeg_source_make(const jpeg_source *source)
{
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    made_jpeg made = {0};
    unsigned long size = 0;
    if (source->width * source->components > ROW_MAX)
        abort();
    codec.err = jpeg_std_error(&errors);
    errors.output_message = print_nothing;
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &made.bytes, &size);
    set_up(&codec, source);
    jpeg_start_compress(&codec, TRUE);
    drawing drawing = start_drawing(source);
    unsigned char pixels[ROW_MAX];
    JSAMPROW row = pixels;
    for (int y = 0; y < source->height; y++) {
        draw_row(&drawing, pixels, y);
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    made.size = size;
    made.bytes = realloc(made.bytes, size);
    if (!made.bytes)
        abort();
    if (source->markers == JPEG_ADOBE_YCCK)
        set_adobe_transform(&made, 2);
    if (source->markers == JPEG_JFIF_ADOBE_RGB)
        set_adobe_transform(&made, 0);
    return made;
}

/* Samplings, and how many of a hundred pictures have them. */
static const struct {
    const char *name;
    int share;
    int components;
    int h[3], v[3];
} samplings[] = {
    {"4:2:0", 26, 3, {2, 1, 1}, {2, 1, 1}},
    {"4:2:2", 18, 3, {2, 1, 1}, {1, 1, 1}},
    {"4:4:4", 16, 3, {1, 1, 1}, {1, 1, 1}},
    {"4:4:0", 14, 3, {1, 1, 1}, {2, 1, 1}},
    {"gray", 14, 1, {1}, {1}},
    {"4:1:1", 1, 3, {4, 1, 1}, {1, 1, 1}},
    {"4:1:0", 1, 3, {4, 1, 1}, {2, 1, 1}},
    {"3x1", 1, 3, {3, 1, 1}, {1, 1, 1}},
    {"1x4", 1, 3, {1, 1, 1}, {4, 1, 1}},
    {"unlike chroma", 1, 3, {2, 2, 1}, {2, 1, 2}},
    {"full red", 1, 3, {2, 1, 2}, {1, 1, 1}},
    {"luma below chroma", 1, 3, {1, 2, 2}, {1, 2, 2}},
    {"4:4:4 by 2x1", 1, 3, {2, 2, 2}, {1, 1, 1}},
    {"4:4:4 by 1x3", 1, 3, {1, 1, 1}, {3, 3, 3}},
    {"4:4:0 by 2x2", 1, 3, {2, 2, 2}, {2, 1, 1}},
    {"gray 2x2", 1, 1, {2}, {2}},
    {"gray 4x1", 1, 1, {4}, {1}},
};

static void pick_sampling(jpeg_source *source, uint64_t *state)
{
    int which = jpeg_random_below(state, 100), i = 0;
    for (; i < LENGTH(samplings) - 1 && which >= samplings[i].share; i++)
        which -= samplings[i].share;
    source->name = samplings[i].name;
    source->components = samplings[i].components;
    memcpy(source->h, samplings[i].h, sizeof(source->h));
    memcpy(source->v, samplings[i].v, sizeof(source->v));
}

/* One MCU, some, a row of them, some rows, more than there are. */
static void pick_restarts(jpeg_source *source, uint64_t *state)
{
    int blocks = (source->width + 8 * source->h[0] - 1) / (8 * source->h[0]);
    switch (jpeg_random_below(state, 12)) {
    case 0:
        source->restart_mcus = 1;
        break;
    case 1:
        source->restart_mcus = 2 + jpeg_random_below(state, 6);
        break;
    case 2:
        source->restart_mcus = blocks;
        break;
    case 3:
        source->restart_mcus = blocks * 2 + 1;
        break;
    case 4:
        source->restart_mcus = 65535;
        break;
    case 5:
        source->restart_rows = 1 + jpeg_random_below(state, 2);
        break;
    default:
        break;
    }
}

jpeg_source jpeg_source_pick(uint64_t index)
{
    uint64_t state = index * 2 + 1;
    jpeg_source source = {
        .width = 1 + (int)(index % SMALL_SIDE_MAX),
        .height = 1 + (int)(index / SMALL_SIDE_MAX % SMALL_SIDE_MAX)};
    if (index % LARGE_EVERY == LARGE_EVERY - 1) {
        source.width = 1 + jpeg_random_below(&state, JPEG_SIDE_MAX);
        source.height = 1 + jpeg_random_below(&state, JPEG_SIDE_MAX);
    }
    pick_sampling(&source, &state);
    pick_restarts(&source, &state);
    source.quality = 1 + jpeg_random_below(&state, 100);
    source.has_large_quanta = jpeg_random_below(&state, 16) == 0;
    int coding = jpeg_random_below(&state, 64);
    source.is_progressive = coding == 0;
    source.is_arithmetic = coding == 1;
    source.is_optimized = coding > 1 && coding % 2 == 0;
    if (jpeg_random_below(&state, 3) == 0)
        source.markers = (jpeg_markers)jpeg_random_below(&state, JPEG_MARKERS);
    source.content = (jpeg_content)jpeg_random_below(&state, JPEG_BLACK);
    source.seed = jpeg_random(&state);
    return source;
}

const char *jpeg_source_text(char out[JPEG_SOURCE_TEXT],
                             const jpeg_source *source)
{
    static const char *const markers[] = {
        "JFIF",           "Adobe YCbCr", "Adobe RGB", "Adobe YCCK",
        "JFIF+Adobe RGB", "unmarked",    "ids 0 1 2", "ids R G B",
    };
    static const char *const contents[] = {
        "photo", "noise", "gradient", "flat", "edges", "checker", "black",
    };
    snprintf(out, JPEG_SOURCE_TEXT,
             "%s, %d x %d, quality %d%s, restarts after %d MCUs, %d rows%s%s%s,"
             " %s, %s",
             source->name, source->width, source->height, source->quality,
             source->has_large_quanta ? " (large quanta)" : "",
             source->restart_mcus, source->restart_rows,
             source->is_optimized ? ", optimized" : "",
             source->is_progressive ? ", progressive" : "",
             source->is_arithmetic ? ", arithmetic" : "",
             markers[source->markers], contents[source->content]);
    return out;
}
