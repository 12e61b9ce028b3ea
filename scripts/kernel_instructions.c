/*
 * kernel_instructions.c: executes the transform's kernels from their machine
 * code, which kernel_instructions.py has made kernels.c of, compares what they
 * write with the host's bytes and prints a line for each case: its name,
 * instructions of a warp, bytes read and written, lanes that worked. Means do
 * not count as bytes.
 */
#include "device/transform_batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LANE_COUNT = 32,
    REGISTERS = 256,
    DONE = 0x7fffffff,
    PARAMETERS = 0x210,
    NEAR_BYTES = 1 << 16
};
enum special {
    SR_TID_X,
    SR_CTAID_X,
    SR_CTAID_Y,
    SR_CTAID_Z,
    SR_CgaCtaId,
    SR_SWINHI,
    SPECIALS
};

/* 32 lanes in step. */
struct warp {
    uint32_t r[REGISTERS][LANE_COUNT];
    int p[7][LANE_COUNT];
    uint32_t ur[64];
    int up[7];
    int at[LANE_COUNT]; /* the address of the lane's next instruction */
    int pc;             /* of those that have come least far */
    int64_t issued;
    int64_t worked; /* lanes, of all that were issued */
    uint32_t special[SPECIALS];
    uint32_t first_thread;
    unsigned char constants[0x1000];
    unsigned char near[NEAR_BYTES]; /* the block's */
    const struct range {
        const void *at;
        size_t bytes;
        int is_written;
    } * ranges;
};

#define LANES(guard)                                                           \
    for (int i = 0; i < LANE_COUNT; i++)                                       \
        if (w->at[i] == w->pc && (w->worked++, (guard)))
#define LANE(guard)                                                            \
    for (int i = first(w); i >= 0; i = -1)                                     \
        if (guard)
#define PASS pass(w)

/* What lane `i` has in a special register. */
static uint32_t special(const struct warp *w, enum special which, int i)
{
    return w->special[which] +
           (which == SR_TID_X ? w->first_thread + (uint32_t)i : 0);
}

static int next(struct warp *w)
{
    w->pc = DONE;
    for (int i = 0; i < LANE_COUNT; i++)
        w->pc = w->at[i] < w->pc ? w->at[i] : w->pc;
    w->issued += w->pc != DONE;
    return w->pc != DONE;
}

static void pass(struct warp *w)
{
    for (int i = 0; i < LANE_COUNT; i++)
        if (w->at[i] == w->pc)
            w->at[i] += 16;
}

static int first(const struct warp *w)
{
    int i = 0;
    while (w->at[i] != w->pc)
        i++;
    return i;
}

static uint32_t constant(const struct warp *w, int at)
{
    uint32_t word;
    memcpy(&word, w->constants + at, sizeof(word));
    return word;
}

static float real(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
}

static uint32_t bits(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    return word;
}

/* The device's NaN has all bits but the sign. */
static uint16_t float16(float value)
{
    return isnan(value) ? 0x7fff : leat__float16(value);
}

static uint16_t bfloat16(float value)
{
    return isnan(value) ? 0x7fff : leat__bfloat16(value);
}

static uint32_t logic(uint32_t a, uint32_t b, uint32_t c, unsigned table)
{
    uint32_t out = 0;
    for (unsigned k = 0; k < 8; k++)
        if (table >> k & 1)
            out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return out;
}

static uint32_t permute(uint32_t low, uint32_t selector, uint32_t high)
{
    uint64_t both = (uint64_t)high << 32 | low;
    uint32_t out = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t which = selector >> 4 * k & 15;
        uint32_t byte = (uint32_t)(both >> 8 * (which & 7)) & 0xff;
        if (which & 8)
            byte = byte & 0x80 ? 0xff : 0;
        out |= byte << 8 * k;
    }
    return out;
}

static uint32_t least_halves(uint32_t a, uint32_t b, int is_least)
{
    uint32_t out = 0;
    for (int k = 0; k < 32; k += 16) {
        int16_t x = (int16_t)(a >> k);
        int16_t y = (int16_t)(b >> k);
        out |= (uint32_t)(uint16_t)((x < y) == is_least ? x : y) << k;
    }
    return out;
}

/* The bytes at an address, which must be the batch's and a multiple of their
 * size. */
static void *bytes_at(const struct warp *w, uint64_t at, int size,
                      int is_written)
{
    const struct range *range = w->ranges;
    for (; range->at; range++)
        if (at >= (uintptr_t)range->at &&
            at + (uint64_t)size <= (uintptr_t)range->at + range->bytes &&
            at % (uint64_t)size == 0 && range->is_written == is_written)
            return (void *)(uintptr_t)at;
    fprintf(stderr, "kernel_instructions: %d bytes at a wrong address\n", size);
    exit(1);
}

static void load(const struct warp *w, uint32_t v[4], uint64_t at, int size)
{
    v[0] = 0;
    memcpy(v, bytes_at(w, at, size, 0), (size_t)size);
}

static void save(const struct warp *w, const uint32_t v[4], uint64_t at,
                 int size)
{
    memcpy(bytes_at(w, at, size, 1), v, (size_t)size);
}

/* Memory of the block, of which there is one. */
static unsigned char *near_at(struct warp *w, uint64_t at, int size)
{
    if (at + (uint64_t)size <= NEAR_BYTES && at % (uint64_t)size == 0)
        return w->near + at;
    fprintf(stderr, "kernel_instructions: %d bytes at a wrong place\n", size);
    exit(1);
}

static void load_near(struct warp *w, uint32_t v[4], uint64_t at, int size)
{
    v[0] = 0;
    memcpy(v, near_at(w, at, size), (size_t)size);
}

static void save_near(struct warp *w, const uint32_t v[4], uint64_t at,
                      int size)
{
    memcpy(near_at(w, at, size), v, (size_t)size);
}

struct kernel {
    const char *name;
    void (*run)(struct warp *w);
};

#include "kernels.c"

enum {
    CHANNELS = 3,
    SIDE = 227,
    WHOLE = 256,
    IMAGES = 2,
    COUNT = CHANNELS * SIDE * SIDE
};

/* Plain images, mirrored ones, and one of each. */
static const char *const mirrors[] = {"plain", "mirrored", "mixed"};
static const struct {
    leat_dtype type;
    const char *name;
} types[] = {{LEAT_FLOAT32, "float32"},
             {LEAT_FLOAT16, "float16"},
             {LEAT_BFLOAT16, "bfloat16"},
             {LEAT_UINT8, "uint8"}};

static _Alignas(256) unsigned char pixels[(size_t)IMAGES * COUNT];
static _Alignas(256) unsigned char top[(size_t)IMAGES * COUNT * 4];
static _Alignas(256) unsigned char expected[(size_t)COUNT * 4];
static _Alignas(256) float mean[CHANNELS * WHOLE * WHOLE];
static _Alignas(256) float values[CHANNELS] = {104, 117, 123};
static _Alignas(256) leat_device_choice choices[IMAGES];
static struct warp warp;

/* Every warp of the grid that transform_cuda.cu launches. */
static void run_grid(const struct kernel *kernel,
                     const leat__transform_batch *batch)
{
    const struct range ranges[] = {
        {pixels, sizeof(pixels), 0},
        {mean, sizeof(mean), 0},
        {values, sizeof(values), 0},
        {choices, sizeof(choices), 0},
        {top, sizeof(top) / (size_t)leat__transform_pack(batch->job.top_type),
         1},
        {NULL, 0, 0}};
    uint32_t block = leat__transform_warps(&batch->job) * LANE_COUNT;
    memset(&warp, 0, sizeof(warp));
    warp.ranges = ranges;
    memcpy(warp.constants, &block, sizeof(block));
    memcpy(warp.constants + PARAMETERS, batch, sizeof(*batch));
    for (uint32_t image = 0; image < IMAGES; image++) {
        for (uint32_t unit = 0; unit < batch->warps; unit++) {
            warp.special[SR_CTAID_X] = unit;
            warp.first_thread = image * LANE_COUNT;
            memset(warp.at, 0, sizeof(warp.at));
            kernel->run(&warp);
        }
    }
}

/* The transform of one image, element by element. */
static void expect(const leat_device_transform *job, int image)
{
    int is_planar = job->layout == LEAT_NCHW;
    int is_mirrored = choices[image].mirror != 0;
    for (int at = 0; at < COUNT; at++) {
        int c = is_planar ? at / SIDE / SIDE : at % CHANNELS;
        int h = is_planar ? at / SIDE % SIDE : at / CHANNELS / SIDE;
        int w = is_planar ? at % SIDE : at / CHANNELS % SIDE;
        w = is_mirrored ? SIDE - 1 - w : w;
        int from = job->pixel_layout == LEAT_NHWC
                       ? (h * SIDE + w) * CHANNELS + c
                       : (c * SIDE + h) * SIDE + w;
        unsigned char pixel = pixels[(size_t)image * COUNT + (size_t)from];
        float subtracted = 0;
        if (job->mean)
            subtracted = mean[(c * WHOLE + h + choices[image].h_off) * WHOLE +
                              w + choices[image].w_off];
        else if (job->mean_value)
            subtracted = values[c];
        float value = ((float)pixel - subtracted) * job->scale;
        uint16_t half = job->top_type == LEAT_FLOAT16 ? leat__float16(value)
                                                      : leat__bfloat16(value);
        if (job->top_type == LEAT_UINT8)
            expected[at] = pixel;
        else if (job->top_type == LEAT_FLOAT32)
            memcpy(expected + 4 * at, &value, 4);
        else
            memcpy(expected + 2 * at, &half, 2);
    }
}

static const struct kernel *find(const leat__transform_batch *batch)
{
    char part[64];
    snprintf(
        part, sizeof(part), "IL10leat_dtype%dEL19leat__transform_way%dELb%dE",
        (int)batch->job.top_type, (int)batch->way, batch->job.mean != NULL);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strstr(kernels[i].name, part))
            return &kernels[i];
    fprintf(stderr, "kernel_instructions: there is no kernel %s\n", part);
    exit(1);
}

static int run_case(int number, int order, int has_image, int mirror)
{
    leat_dtype type = types[number].type;
    int has_mean = type != LEAT_UINT8;
    for (int i = 0; i < IMAGES; i++)
        choices[i] = (leat_device_choice){
            .h_off = 14, .w_off = 13, .mirror = mirror == 2 ? i % 2 : mirror};
    leat_device_transform job = {
        .pixels = pixels,
        .choices = choices,
        .top = top,
        .mean = has_image ? mean : NULL,
        .mean_value = has_mean && !has_image ? values : NULL,
        .mean_values = CHANNELS,
        .mean_height = WHOLE,
        .mean_width = WHOLE,
        .scale = has_mean ? 0.0078125f : 1,
        .top_type = type,
        .pixel_layout = order & 1 ? LEAT_NHWC : LEAT_NCHW,
        .layout = order & 2 ? LEAT_NHWC : LEAT_NCHW,
        .images = IMAGES,
        .channels = CHANNELS,
        .height = SIDE,
        .width = SIDE};
    leat__transform_batch batch;
    leat__transform_batch_init(&batch, &job);
    memset(top, 0xee, sizeof(top));
    run_grid(find(&batch), &batch);
    size_t bytes = (size_t)COUNT * 4 / (size_t)leat__transform_pack(type);
    int is_equal = 1;
    for (int i = 0; i < IMAGES; i++) {
        expect(&job, i);
        is_equal &= memcmp(top + (size_t)i * bytes, expected, bytes) == 0;
    }
    double moved = (double)IMAGES * (COUNT + (double)bytes);
    printf("%s %s->%s %s %s %.4f %.1f %s\n", types[number].name,
           order & 1 ? "NHWC" : "NCHW", order & 2 ? "NHWC" : "NCHW",
           has_image  ? "image"
           : has_mean ? "values"
                      : "none",
           mirrors[mirror], (double)warp.issued / moved,
           (double)warp.worked / (double)warp.issued,
           is_equal ? "equal" : "DIFFERENT");
    return is_equal;
}

int main(void)
{
    uint32_t state = 1;
    int is_equal = 1;
    for (size_t i = 0; i < sizeof(pixels); i++) {
        state = state * 1664525u + 1013904223u;
        pixels[i] = (unsigned char)(state >> 24);
    }
    for (int i = 0; i < CHANNELS * WHOLE * WHOLE; i++)
        mean[i] = (float)(i % 2551) * 0.1f;
    for (int type = 0; type < 4; type++)
        for (int order = 0; order < 4; order++)
            for (int has_image = 0;
                 has_image < (types[type].type == LEAT_UINT8 ? 1 : 2);
                 has_image++)
                for (int mirror = 0; mirror < 3; mirror++)
                    is_equal &= run_case(type, order, has_image, mirror);
    return !is_equal;
}
