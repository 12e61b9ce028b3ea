/*
 * bench_image: what decoding costs on one core beside a bare libjpeg loop.
 *
 *     bench_image [--json] [--rounds N] [--write DIR] [CASE | FILE.jpg...]
 *
 * --write: the images of CASE as files, for other programs; nothing is
 * measured. Each round takes every way in turn over the same images, so that a
 * busy machine slows all of them; the ratio is that of a round to the bare
 * loop's of the same round. Times are of the processor. Images are made as
 * `leat synth noise --jpeg 90` does, or given. Before that the ways are
 * compared.
 */
#include "base/memory.h"
#include "base/random.h"
#include "data/image.h"
#include "tools/image/image_writer.h"

#include <leat/ext/reader.h>
#include <leat/transform.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#define IMAGES_MAX 64
#define ROUNDS_MAX 101
#define SLOTS 320 /* tops: five batches of 64 */
#define CROP 227

typedef struct bench_case {
    const char *name;
    int height;
    int width;
} bench_case;

static const bench_case cases[] = {
    {"jpeg256", 256, 256}, {"jpeg375x500", 375, 500}, {"files", 0, 0}};

typedef struct encoded_image {
    unsigned char *bytes;
    size_t size;
    int height;
    int width;
} encoded_image;

typedef struct bench {
    const char *name;
    encoded_image images[IMAGES_MAX];
    int count;
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    leat_image_decoder *decoder;
    leat_transformer *transformer; /* crop, mirror, mean_value, float32 */
    unsigned char *pixels;         /* of the bare loop */
    float *tops;
    int64_t position; /* transformed images so far */
} bench;

/* A way to go through image `i`. */
typedef void bench_way(bench *b, int i);

static void check(int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "bench_image: %s\n", leat_last_error());
    exit(1);
}

static leat__image_region choose_crop(const bench *b, int i)
{
    const encoded_image *image = &b->images[i];
    uint32_t words[4];
    leat__random_words(1, 0, i, 0, words);
    return (leat__image_region){
        .row = (int)leat__random_below(words[1],
                                       (uint32_t)(image->height - CROP + 1)),
        .column = (int)leat__random_below(words[2],
                                          (uint32_t)(image->width - CROP + 1)),
        .rows = CROP,
        .columns = CROP};
}

/* As a program that knows only libjpeg would do it. */
static void decode_bare(bench *b, int i)
{
    struct jpeg_decompress_struct *codec = &b->codec;
    jpeg_mem_src(codec, b->images[i].bytes, b->images[i].size);
    jpeg_read_header(codec, TRUE);
    codec->out_color_space = JCS_EXT_BGR;
    jpeg_start_decompress(codec);
    size_t pitch = (size_t)codec->output_width * 3;
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW row = b->pixels + codec->output_scanline * pitch;
        jpeg_read_scanlines(codec, &row, 1);
    }
    jpeg_finish_decompress(codec);
}

static void decode_whole(bench *b, int i)
{
    leat_image image;
    check(leat_image_decode(b->decoder, b->images[i].bytes, b->images[i].size,
                            LEAT_COLOR_NATIVE, &image));
}

static void decode_crop(bench *b, int i)
{
    leat_image image;
    leat__image_region region = choose_crop(b, i);
    check(leat__image_open(b->decoder, b->images[i].bytes, b->images[i].size,
                           LEAT_COLOR_NATIVE, &image));
    check(leat__image_read(b->decoder, &region, &image));
}

static void decode_transform(bench *b, int i)
{
    static const int shape[3] = {3, CROP, CROP};
    leat_field field = {.dtype = LEAT_BYTES,
                        .data = b->images[i].bytes,
                        .bytes = b->images[i].size};
    uint32_t words[4];
    leat__random_words(1, 0, i, 0, words);
    float *top = b->tops + (size_t)(b->position++ % SLOTS) * 3 * CROP * CROP;
    check(leat_transformer_apply(b->transformer, &field, LEAT_RNG_LEAT, words,
                                 shape, top));
}

static const struct {
    const char *name;
    bench_way *way;
} ways[] = {{"bare", decode_bare},
            {"whole", decode_whole},
            {"crop", decode_crop},
            {"transform", decode_transform}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void make_images(bench *b, const bench_case *what)
{
    const int shape[3] = {3, what->height, what->width};
    struct canvas canvas;
    check(canvas_init(&canvas, shape));
    for (; b->count < IMAGES_MAX; b->count++) {
        encoded_image *image = &b->images[b->count];
        int label;
        check(canvas_draw_noise(&canvas, 1, b->count, NULL, &label));
        check(image_writer_encode(&canvas, image_writer_jpeg, 90, NULL,
                                  &image->bytes, &image->size));
        image->height = what->height;
        image->width = what->width;
    }
    canvas_finish(&canvas);
}

static void read_image(bench *b, const char *path)
{
    encoded_image *image = &b->images[b->count];
    FILE *file = fopen(path, "rb");
    if (!file || b->count == IMAGES_MAX)
        check(leat_error(LEAT_EIO, "%s is missing, or one too many", path));
    fseek(file, 0, SEEK_END);
    image->size = (size_t)ftell(file);
    rewind(file);
    image->bytes = malloc(image->size);
    if (fread(image->bytes, 1, image->size, file) != image->size)
        check(leat_error(LEAT_EIO, "cannot read %s", path));
    fclose(file);
    leat_image header;
    check(leat_image_probe(b->decoder, image->bytes, image->size,
                           LEAT_COLOR_NATIVE, &header));
    image->height = header.height;
    image->width = header.width;
    if (header.channels != 3 || header.height < CROP || header.width < CROP)
        check(leat_error(LEAT_EINVAL, "%s: 3 channels and at least %d x %d",
                         path, CROP, CROP));
    b->count++;
}

static void open_bench(bench *b)
{
    memset(b, 0, sizeof(*b));
    b->codec.err = jpeg_std_error(&b->errors);
    jpeg_create_decompress(&b->codec);
    check(leat_image_decoder_create(&b->decoder));
    static const float mean[] = {104, 117, 123};
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = CROP;
    options.mirror = 1;
    options.mean_value = mean;
    options.mean_values = 3;
    check(leat_transformer_create(&b->transformer, &options, LEAT_TRAIN,
                                  LEAT_FLOAT32, LEAT_NCHW));
    size_t bytes = (size_t)SLOTS * 3 * CROP * CROP * sizeof(float);
    b->tops = leat__alloc_aligned(bytes);
    check(b->tops ? LEAT_OK : LEAT_ENOMEM);
    memset(b->tops, 1, bytes);
}

static void close_bench(bench *b)
{
    for (int i = 0; i < b->count; i++)
        free(b->images[i].bytes);
    jpeg_destroy_decompress(&b->codec);
    leat_image_decoder_destroy(b->decoder);
    leat_transformer_destroy(b->transformer);
    leat__free(b->pixels);
    leat__free(b->tops);
}

/* The crop of each image, against the bare loop. */
static void verify(bench *b)
{
    size_t most = 0;
    for (int i = 0; i < b->count; i++) {
        const encoded_image *image = &b->images[i];
        size_t bytes = (size_t)image->height * (size_t)image->width * 3;
        most = bytes > most ? bytes : most;
    }
    b->pixels = leat__alloc_aligned(most);
    check(b->pixels ? LEAT_OK : LEAT_ENOMEM);
    for (int i = 0; i < b->count; i++) {
        leat_image image;
        leat__image_region region = choose_crop(b, i);
        check(leat__image_open(b->decoder, b->images[i].bytes,
                               b->images[i].size, LEAT_COLOR_NATIVE, &image));
        check(leat__image_read(b->decoder, &region, &image));
        decode_bare(b, i);
        for (int row = region.row; row < region.row + CROP; row++) {
            size_t place =
                ((size_t)row * (size_t)image.width + (size_t)region.column) * 3;
            if (memcmp(b->pixels + place, image.pixels + place,
                       (size_t)3 * CROP) != 0)
                check(leat_error(LEAT_EDATA, "%s: image %d is wrong", b->name,
                                 i));
        }
    }
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct spread {
    double median, p10, p90;
} spread;

static spread spread_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), ascending);
    return (spread){values[n / 2], values[n / 10], values[n - 1 - n / 10]};
}

static void report(int json, int *reported, const char *name, const char *way,
                   spread s, const char *unit)
{
    char text[64];
    snprintf(text, sizeof(text), "%s_%s", name, way);
    if (json)
        printf("%s\n    {\"case\": \"%s\", \"median\": %.4f, \"p10\": %.4f, "
               "\"p90\": %.4f, \"unit\": \"%s\"}",
               *reported ? "," : "", text, s.median, s.p10, s.p90, unit);
    else
        printf("%-32s | %10.3f | %10.3f | %10.3f | %s\n", text, s.median, s.p10,
               s.p90, unit);
    *reported = 1;
}

static void measure(bench *b, int rounds, int json, int *reported)
{
    double times[WAYS][ROUNDS_MAX], ratios[WAYS][ROUNDS_MAX];
    for (int round = -1; round < rounds; round++)
        for (size_t w = 0; w < WAYS; w++) {
            double start = processor_seconds();
            for (int i = 0; i < b->count; i++)
                ways[w].way(b, i);
            double seconds = processor_seconds() - start;
            if (round < 0)
                continue;
            times[w][round] = seconds * 1e6 / b->count;
            ratios[w][round] = times[w][round] / times[0][round];
        }
    for (size_t w = 0; w < WAYS; w++) {
        report(json, reported, b->name, ways[w].name,
               spread_of(times[w], rounds), "us/image");
        if (w > 0)
            report(json, reported, b->name, ways[w].name,
                   spread_of(ratios[w], rounds), "of bare");
    }
}

static void run_case(const bench_case *what, char **files, int n, int rounds,
                     int json, int *reported)
{
    bench b;
    open_bench(&b);
    b.name = what->name;
    if (what->height)
        make_images(&b, what);
    for (int i = 0; i < n; i++)
        read_image(&b, files[i]);
    verify(&b);
    measure(&b, rounds, json, reported);
    close_bench(&b);
}

static void write_images(const bench_case *what, const char *folder)
{
    bench b;
    open_bench(&b);
    make_images(&b, what);
    for (int i = 0; i < b.count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s-%02d.jpg", folder, what->name, i);
        FILE *file = fopen(path, "wb");
        const encoded_image *image = &b.images[i];
        if (!file || fwrite(image->bytes, 1, image->size, file) != image->size)
            check(leat_error(LEAT_EIO, "cannot write %s", path));
        fclose(file);
    }
    close_bench(&b);
}

int main(int argc, char **argv)
{
    int json = 0, rounds = 15, reported = 0;
    const char *only = NULL, *folder = NULL;
    int i = 1;
    for (; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            folder = argv[++i];
        else if (strchr(argv[i], '.'))
            break;
        else
            only = argv[i];
    }
    int has_files = i < argc;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = 15;
    for (size_t c = 0; folder && c < sizeof(cases) / sizeof(cases[0]); c++)
        if (cases[c].height && (!only || strcmp(only, cases[c].name) == 0))
            write_images(&cases[c], folder);
    if (folder)
        return 0;
    const char *format =
        json ? "{\"commit\": \"%s\", \"compiler\": \"%s\", \"results\": ["
             : "commit %s, %s\n";
    printf(format, LEAT_COMMIT, LEAT_COMPILER);
    if (!json)
        printf("%-32s | %10s | %10s | %10s | unit\n", "case", "median", "p10",
               "p90");
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        int takes_files = !cases[c].height;
        if (takes_files != has_files ||
            (only && strcmp(only, cases[c].name) != 0))
            continue;
        run_case(&cases[c], argv + i, has_files ? argc - i : 0, rounds, json,
                 &reported);
    }
    if (json)
        printf("\n]}\n");
    return reported ? 0 : 2;
}
