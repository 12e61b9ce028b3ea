/*
 * bench_transform: what the transform does on one core, without queues.
 *
 *     bench_transform [--json] [--seconds S] [CASE]
 *
 * Each case walks a ring of distinct sources, as a reader walks its map, and
 * writes a ring of five batches, as a layer with prefetch 4 does. A round is
 * S / 15 seconds (S is 1.5 if not given) after one that warms up; the rate is
 * that of a round, and p10 and p90 are taken over 15 rounds. Before that every
 * case is compared with the reference. Beside each stands memset over the same
 * ring of batches: what the machine allows that has nothing to read.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/transform.h"
#include "device/transform_reference.h"
#include "device/transform_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 15
#define SLOTS 5

typedef struct bench_case {
    const char *name;
    int channels;
    int height;
    int width;
    leat_layout source;
    int sources; /* distinct images */
    int batch;
    int crop_size;
    int mirror;
    int has_mean_file;
    int mean_values;
    float scale;
    leat_dtype top;
    leat_layout layout;
} bench_case;

static const bench_case cases[] = {
    {"mnist", 1, 28, 28, LEAT_NCHW, 60000, 64, 0, 0, 0, 0, 0.00390625f,
     LEAT_FLOAT32, LEAT_NCHW},
    {"cifar_mean_file", 3, 32, 32, LEAT_NCHW, 50000, 100, 0, 0, 1, 0, 1,
     LEAT_FLOAT32, LEAT_NCHW},
    {"cifar_mean_file_mirror", 3, 32, 32, LEAT_NCHW, 50000, 100, 0, 1, 1, 0, 1,
     LEAT_FLOAT32, LEAT_NCHW},
    {"raw256_crop227", 3, 256, 256, LEAT_NCHW, 1000, 64, 227, 1, 0, 3, 1,
     LEAT_FLOAT32, LEAT_NCHW},
    {"raw256_crop227_mean_file", 3, 256, 256, LEAT_NCHW, 1000, 64, 227, 1, 1, 0,
     1, LEAT_FLOAT32, LEAT_NCHW},
    {"raw256_crop227_nhwc", 3, 256, 256, LEAT_NCHW, 1000, 64, 227, 1, 0, 3, 1,
     LEAT_FLOAT32, LEAT_NHWC},
    {"raw256_crop227_float64", 3, 256, 256, LEAT_NCHW, 1000, 64, 227, 1, 0, 3,
     1, LEAT_FLOAT64, LEAT_NCHW},
    {"raw256_crop227_uint8", 3, 256, 256, LEAT_NCHW, 1000, 64, 227, 1, 0, 0, 1,
     LEAT_UINT8, LEAT_NCHW},
    {"decoded256_crop227", 3, 256, 256, LEAT_NHWC, 2, 64, 227, 1, 0, 3, 1,
     LEAT_FLOAT32, LEAT_NCHW},
    {"decoded256_crop227_nhwc", 3, 256, 256, LEAT_NHWC, 2, 64, 227, 1, 0, 3, 1,
     LEAT_FLOAT32, LEAT_NHWC},
    {"decoded256_crop227_uint8", 3, 256, 256, LEAT_NHWC, 2, 64, 227, 1, 0, 0, 1,
     LEAT_UINT8, LEAT_NCHW},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static const float mean_values[] = {104, 117, 123};

typedef struct bench {
    const bench_case *what;
    leat__transform *transform;
    unsigned char *sources;
    unsigned char *tops;
    size_t source_bytes; /* of one image */
    size_t top_bytes;
    int shape[3];
    int64_t position; /* images done so far */
} bench;

static void check(int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "bench_transform: %s\n", leat_last_error());
    exit(1);
}

static void *need(void *memory)
{
    check(memory ? LEAT_OK : LEAT_ENOMEM);
    return memory;
}

/* A mean image in a file of its own, gone when the transform has it. */
static void create_transform(bench *b)
{
    const bench_case *what = b->what;
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = what->crop_size;
    options.mirror = what->mirror;
    options.scale = what->scale;
    options.mean_value = what->mean_values ? mean_values : NULL;
    options.mean_values = what->mean_values;
    char path[] = "/tmp/bench_transform_XXXXXX";
    if (what->has_mean_file) {
        float *mean = need(leat__alloc(b->source_bytes * sizeof(float)));
        for (size_t i = 0; i < b->source_bytes; i++)
            mean[i] = (float)(i % 255) * 0.7f;
        int file = mkstemp(path);
        if (file >= 0)
            close(file);
        check(leat_mean_save(path, what->channels, what->height, what->width,
                             mean));
        leat__free(mean);
        options.mean_file = path;
    }
    check(leat__transform_create(&b->transform, &options, LEAT_TRAIN, what->top,
                                 what->layout));
    if (what->has_mean_file)
        unlink(path);
}

static void open_bench(bench *b, const bench_case *what)
{
    const int shape[3] = {what->channels, what->height, what->width};
    *b = (bench){.what = what};
    b->source_bytes =
        (size_t)what->channels * (size_t)what->height * (size_t)what->width;
    create_transform(b);
    check(leat__transform_shape(b->transform, shape, b->shape));
    b->top_bytes = (size_t)b->shape[0] * (size_t)b->shape[1] *
                   (size_t)b->shape[2] * leat_dtype_size(what->top);
    size_t bytes = b->source_bytes * (size_t)what->sources;
    b->sources = need(leat__alloc_aligned(bytes));
    uint64_t state = 1;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        b->sources[i] = (unsigned char)(state >> 56);
    }
    bytes = b->top_bytes * SLOTS * (size_t)what->batch;
    b->tops = need(leat__alloc_aligned(bytes));
    memset(b->tops, 1, bytes);
}

static void close_bench(bench *b)
{
    leat__transform_destroy(b->transform);
    leat__free(b->sources);
    leat__free(b->tops);
}

static leat__transform_image choose(const bench *b, int64_t position)
{
    const bench_case *what = b->what;
    leat__transform_image image = {
        .pixels =
            b->sources + (size_t)(position % what->sources) * b->source_bytes,
        .type = LEAT_UINT8,
        .layout = what->source,
        .channels = what->channels,
        .height = what->height,
        .width = what->width,
    };
    uint32_t words[4] = {0};
    if (leat__transform_words_per_image(b->transform) > 0)
        leat__random_words(1, 0, position, 0, words);
    leat__transform_choose(b->transform, LEAT_RNG_LEAT, words, &image);
    return image;
}

static void run_batch(bench *b)
{
    int64_t place = b->position % ((int64_t)SLOTS * b->what->batch);
    unsigned char *top = b->tops + (size_t)place * b->top_bytes;
    for (int i = 0; i < b->what->batch; i++) {
        leat__transform_image image = choose(b, b->position++);
        check(leat__transform_apply(b->transform, &image, b->shape, top));
        top += b->top_bytes;
    }
}

static void run_stores(bench *b)
{
    int64_t place = b->position % ((int64_t)SLOTS * b->what->batch);
    memset(b->tops + (size_t)place * b->top_bytes, (int)(b->position & 0x7f),
           b->top_bytes * (size_t)b->what->batch);
    b->position += b->what->batch;
}

/* One batch against the reference, which takes the same mean. */
static void verify(bench *b)
{
    const bench_case *what = b->what;
    float *mean = need(leat__alloc(b->source_bytes * sizeof(float)));
    double *wide = need(leat__alloc(b->source_bytes * sizeof(double)));
    for (size_t i = 0; i < b->source_bytes; i++)
        wide[i] = mean[i] = (float)(i % 255) * 0.7f;
    double wide_values[] = {104, 117, 123};
    int is_wide = what->top == LEAT_FLOAT64;
    leat__transform_job job = {
        .top_type = what->top,
        .layout = what->layout,
        .channels = b->shape[0],
        .height = b->shape[1],
        .width = b->shape[2],
        .scale = what->scale,
        .mean_values = what->mean_values,
        .mean_height = what->height,
        .mean_width = what->width,
    };
    if (what->has_mean_file)
        job.mean = is_wide ? (void *)wide : mean;
    else if (what->mean_values)
        job.mean_value =
            is_wide ? (const void *)wide_values : (const void *)mean_values;
    unsigned char *expected = need(leat__alloc_aligned(b->top_bytes));
    b->position = 0;
    run_batch(b);
    for (int i = 0; i < what->batch; i++) {
        leat__transform_image image = choose(b, i);
        leat__transform_reference(&job, &image, expected);
        if (memcmp(expected, b->tops + (size_t)i * b->top_bytes,
                   b->top_bytes) != 0) {
            fprintf(stderr, "bench_transform: %s: image %d is wrong\n",
                    what->name, i);
            exit(1);
        }
    }
    leat__free(expected);
    leat__free(mean);
    leat__free(wide);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Images a second in each of the rounds, in ascending order. */
static void measure(bench *b, void (*batch)(bench *), double seconds,
                    double rates[ROUNDS])
{
    for (int round = -1; round < ROUNDS; round++) {
        int64_t position = b->position;
        int64_t start = leat__clock_now();
        int64_t end = start + (int64_t)(seconds / ROUNDS * 1e9);
        int64_t now;
        do {
            batch(b);
            now = leat__clock_now();
        } while (now < end);
        if (round >= 0)
            rates[round] =
                (double)(b->position - position) * 1e9 / (double)(now - start);
    }
    qsort(rates, ROUNDS, sizeof(rates[0]), ascending);
}

static void report(int json, int *reported, const bench *b, const char *kind,
                   const double rates[ROUNDS])
{
    double p10 = rates[ROUNDS / 10];
    double median = rates[ROUNDS / 2];
    double p90 = rates[ROUNDS - 1 - ROUNDS / 10];
    if (json)
        printf("%s\n    {\"case\": \"%s%s\", \"median\": %.0f, \"p10\": %.0f, "
               "\"p90\": %.0f, \"unit\": \"images/s\", "
               "\"written_gb_per_s\": %.2f}",
               *reported ? "," : "", b->what->name, kind, median, p10, p90,
               median * (double)b->top_bytes * 1e-9);
    else
        printf("%s%-*s | %10.0f | %10.0f | %10.0f | images/s (%.1f GB/s)\n",
               b->what->name, 32 - (int)strlen(b->what->name), kind, median,
               p10, p90, median * (double)b->top_bytes * 1e-9);
    *reported = 1;
}

static void print_machine(int json)
{
    char cpu[128] = "unknown CPU";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "model name : %127[^\n]", cpu) == 1)
            break;
    }
    if (file)
        fclose(file);
    const char *format =
        json ? "{\"commit\": \"%s\", \"cpu\": \"%s\", \"compiler\": \"%s\", "
               "\"kernels\": \"%s\", \"results\": ["
             : "commit %s, %s, %s, kernels %s\n";
    printf(format, LEAT_COMMIT, cpu, LEAT_COMPILER,
           leat__row_kernels_choose()->name);
    if (!json)
        printf("%-32s | %10s | %10s | %10s | unit\n", "case", "median", "p10",
               "p90");
}

int main(int argc, char **argv)
{
    int json = 0;
    double seconds = 1.5;
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else
            only = argv[i];
    }
    print_machine(json);
    int reported = 0;
    for (size_t i = 0; i < CASES; i++) {
        if (only && strcmp(only, cases[i].name) != 0)
            continue;
        bench b;
        double rates[ROUNDS];
        open_bench(&b, &cases[i]);
        verify(&b);
        measure(&b, run_batch, seconds, rates);
        report(json, &reported, &b, "", rates);
        measure(&b, run_stores, seconds, rates);
        report(json, &reported, &b, "_stores", rates);
        close_bench(&b);
    }
    if (json)
        printf("\n]}\n");
    if (!reported && only)
        fprintf(stderr, "bench_transform: no case %s\n", only);
    return reported ? 0 : 2;
}
