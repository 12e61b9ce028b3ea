/*
 * bench_kernel: what the device's transform makes of its memory, bytes of
 * pixels read plus bytes of tops written a second, beside a copy within that
 * memory. Which bits it writes is the tests' business.
 *
 *     bench_kernel [--json] [--device NAME] [--batch N]
 *
 * Crops of 3 x 227 x 227 bytes, half of them mirrored, to each type of top and
 * several orders of axes; floats have a mean for each channel, or a mean image,
 * the bytes of which do not count. NAME is cuda:0 if not given. Pixels that the
 * device's cache still has from the launch before are read faster than its
 * memory gives them, so without --batch there are four times as many as it
 * holds, or 1024 images where its size is unknown.
 *
 * An idle GPU has slow clocks, so copies and transforms warm it up first; the
 * copy is measured before all cases and after them, and the faster one counts.
 */
#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/report.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANNELS = 3,
    SIDE = 227,  /* of the crops */
    WHOLE = 256, /* of the mean image */
    SAMPLES = 11,
    WARM_UPS = 2,
    LAUNCHES = 4,   /* in a sample */
    CACHES = 4,     /* that the pixels fill */
    UNKNOWN = 1024, /* images where the cache's size is unknown */
    MOST = 65536
};

static const double warm_seconds = 0.3;

static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16, LEAT_BFLOAT16,
                                   LEAT_UINT8};
/* Half of the images are mirrored, and floats have a mean for each channel. */
static const struct way {
    const char *name;
    leat_layout pixels;
    leat_layout top;
    int has_file; /* the mean is an image */
} ways[] = {
    {"NCHW", LEAT_NCHW, LEAT_NCHW, 0},
    {"NCHW, mean file", LEAT_NCHW, LEAT_NCHW, 1},
    {"NHWC", LEAT_NHWC, LEAT_NHWC, 0},
    {"NHWC to NCHW", LEAT_NHWC, LEAT_NCHW, 0},
};
enum {
    TYPES = sizeof(types) / sizeof(types[0]),
    WAYS = sizeof(ways) / sizeof(ways[0])
};

/* Bytes have no mean. */
static int is_case(int type, int way)
{
    return types[type] != LEAT_UINT8 || !ways[way].has_file;
}

struct kernel_bench {
    leat_device *device;
    leat_stream stream;
    int has_stream;
    leat_event timer[2];
    int ntimers;
    int64_t images;   /* 0: as many as it takes */
    int64_t l2_bytes; /* 0: unknown */
    size_t pixel_bytes, choice_bytes, mean_bytes, top_bytes;
    void *pixels, *choices, *mean, *top; /* the device's */
    struct bench_spread copy[2]; /* GB/s, read plus written: before, after */
    struct bench_spread rate[TYPES][WAYS];
};

static int check_device(const leat_device *device)
{
    const leat_device_ops *ops = device->ops;
    if (ops->unified || !ops->transform || !ops->timer_create ||
        !ops->event_elapsed)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s has no transform and timers of its own",
                          leat_device_name(device));
    return LEAT_OK;
}

/* How many images there are, and what they take. */
static int size_up(struct kernel_bench *bench)
{
    leat_device *device = bench->device;
    leat_device_description what = {.l2_bytes = 0};
    int64_t image = CHANNELS * SIDE * SIDE;
    int status =
        device->ops->describe ? device->ops->describe(device, &what) : LEAT_OK;
    bench->l2_bytes = what.l2_bytes;
    if (!bench->images)
        bench->images = what.l2_bytes > 0
                            ? (CACHES * what.l2_bytes + image - 1) / image
                            : UNKNOWN;
    if (bench->images > MOST)
        bench->images = MOST;
    bench->pixel_bytes = (size_t)(bench->images * image);
    bench->choice_bytes = (size_t)bench->images * sizeof(leat_device_choice);
    bench->mean_bytes = sizeof(float) * CHANNELS * WHOLE * WHOLE;
    bench->top_bytes = bench->pixel_bytes * sizeof(float);
    return status;
}

static int take(struct kernel_bench *bench)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    int status = ops->stream_create(device, &bench->stream);
    bench->has_stream = !status;
    for (; !status && bench->ntimers < 2; bench->ntimers += !status)
        status = ops->timer_create(device, &bench->timer[bench->ntimers]);
    if (!status)
        status = ops->alloc(device, bench->pixel_bytes, &bench->pixels);
    if (!status)
        status = ops->alloc(device, bench->choice_bytes, &bench->choices);
    if (!status)
        status = ops->alloc(device, bench->mean_bytes, &bench->mean);
    if (!status)
        status = ops->alloc(device, bench->top_bytes, &bench->top);
    return status;
}

static void let_go(struct kernel_bench *bench)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    if (bench->has_stream) {
        (void)ops->stream_synchronize(device, bench->stream);
        ops->stream_destroy(device, bench->stream);
    }
    while (bench->ntimers > 0)
        ops->event_destroy(device, bench->timer[--bench->ntimers]);
    if (bench->top)
        ops->free(device, bench->top, bench->top_bytes);
    if (bench->mean)
        ops->free(device, bench->mean, bench->mean_bytes);
    if (bench->choices)
        ops->free(device, bench->choices, bench->choice_bytes);
    if (bench->pixels)
        ops->free(device, bench->pixels, bench->pixel_bytes);
}

/* Crops from the middle, every other one mirrored; means stay 0. */
static int send_choices(struct kernel_bench *bench)
{
    leat_device *device = bench->device;
    void *host;
    int status = device->ops->host_alloc(device, bench->choice_bytes, &host);
    if (status)
        return status;
    leat_device_choice *choices = host;
    for (int64_t i = 0; i < bench->images; i++)
        choices[i] = (leat_device_choice){.h_off = (WHOLE - SIDE) / 2,
                                          .w_off = (WHOLE - SIDE) / 2,
                                          .mirror = (uint32_t)(i % 2)};
    status =
        device->ops->copy(device, bench->choices, host, bench->choice_bytes,
                          LEAT_COPY_TO_DEVICE, bench->stream);
    int waited = device->ops->stream_synchronize(device, bench->stream);
    device->ops->host_free(device, host, bench->choice_bytes);
    return status ? status : waited;
}

/* Launches it a few times; with NULL, copies the lower half of the top up. */
static int launch(const struct kernel_bench *bench,
                  const leat_device_transform *what)
{
    leat_device *device = bench->device;
    size_t half = bench->top_bytes / 2;
    int status = LEAT_OK;
    for (int i = 0; i < LAUNCHES && !status; i++)
        status = what ? device->ops->transform(device, what, bench->stream)
                      : device->ops->copy(device, (char *)bench->top + half,
                                          bench->top, half, LEAT_COPY_ON_DEVICE,
                                          bench->stream);
    return status;
}

static int measure_case(const struct kernel_bench *bench,
                        const leat_device_transform *what, size_t bytes,
                        struct bench_spread *out)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    double rates[SAMPLES] = {0};
    int status = LEAT_OK;
    for (int i = -WARM_UPS; i < SAMPLES && !status; i++) {
        double seconds = 0;
        status = ops->event_record(device, bench->timer[0], bench->stream);
        if (!status)
            status = launch(bench, what);
        if (!status)
            status = ops->event_record(device, bench->timer[1], bench->stream);
        if (!status)
            status = ops->event_synchronize(device, bench->timer[1]);
        if (!status)
            status = ops->event_elapsed(device, bench->timer[0],
                                        bench->timer[1], &seconds);
        rates[i < 0 ? 0 : i] =
            1e-9 * bench_share((double)bytes * LAUNCHES, seconds);
    }
    *out = bench_spread_of(rates, SAMPLES);
    return status;
}

static leat_device_transform describe(const struct kernel_bench *bench,
                                      leat_dtype type, const struct way *way)
{
    int has_mean = type != LEAT_UINT8;
    return (leat_device_transform){
        .pixels = bench->pixels,
        .choices = bench->choices,
        .top = bench->top,
        .mean = has_mean && way->has_file ? bench->mean : NULL,
        .mean_value = has_mean && !way->has_file ? bench->mean : NULL,
        .mean_values = CHANNELS,
        .mean_height = WHOLE,
        .mean_width = WHOLE,
        .scale = has_mean ? 0.0078125f : 1,
        .top_type = type,
        .pixel_layout = way->pixels,
        .layout = way->top,
        .images = bench->images,
        .channels = CHANNELS,
        .height = SIDE,
        .width = SIDE};
}

static int warm_up(const struct kernel_bench *bench)
{
    leat_device *device = bench->device;
    leat_device_transform what = describe(bench, types[0], &ways[0]);
    double begin = leat__clock_seconds();
    int status = LEAT_OK;
    while (!status && leat__clock_seconds() - begin < warm_seconds) {
        status = launch(bench, NULL);
        if (!status)
            status = launch(bench, &what);
        if (!status)
            status = device->ops->stream_synchronize(device, bench->stream);
    }
    return status;
}

static int measure_copy(struct kernel_bench *bench, int number)
{
    return measure_case(bench, NULL, bench->top_bytes / 2 * 2,
                        &bench->copy[number]);
}

static int measure(struct kernel_bench *bench)
{
    int status = size_up(bench);
    if (!status)
        status = take(bench);
    if (!status)
        status = send_choices(bench);
    if (!status)
        status = warm_up(bench);
    if (!status)
        status = measure_copy(bench, 0);
    for (int i = 0; i < TYPES * WAYS && !status; i++) {
        if (!is_case(i / WAYS, i % WAYS))
            continue;
        leat_dtype type = types[i / WAYS];
        leat_device_transform what = describe(bench, type, &ways[i % WAYS]);
        status = measure_case(bench, &what,
                              bench->pixel_bytes * (1 + leat_dtype_size(type)),
                              &bench->rate[i / WAYS][i % WAYS]);
    }
    return status ? status : measure_copy(bench, 1);
}

/* The yardstick. */
static double copy_rate(const struct kernel_bench *bench)
{
    double before = bench->copy[0].median;
    double after = bench->copy[1].median;
    return before > after ? before : after;
}

static void report_case(struct report *report, const struct kernel_bench *bench,
                        int type, int way)
{
    const struct bench_spread *rate = &bench->rate[type][way];
    char name[64];
    snprintf(name, sizeof(name), "%s, %s", leat_dtype_name(types[type]),
             ways[way].name);
    report_row(report, "results");
    report_line(report, NULL, "case", REPORT_TEXT, 0, name);
    report_text(report, "type", leat_dtype_name(types[type]));
    report_text(report, "case", ways[way].name);
    report_line(report, "gb_per_s", "GB/s", REPORT_REAL, rate->median, NULL);
    report_line(report, "p10", "p10", REPORT_REAL, rate->p10, NULL);
    report_line(report, "p90", "p90", REPORT_REAL, rate->p90, NULL);
    report_line(report, "copy_share", "% of copy", REPORT_SHARE,
                bench_share(rate->median, copy_rate(bench)), NULL);
    report_row_end(report);
}

static int print_report(const struct kernel_bench *bench, int json)
{
    struct report report;
    report_begin(&report, json);
    report_line(&report, "device", "device", REPORT_TEXT, 0,
                leat_device_name(bench->device));
    report_line(&report, "copy_gb_per_s", "copy", REPORT_REAL, copy_rate(bench),
                "GB/s, the faster of these");
    report_line(&report, "copy_before_gb_per_s", "before all cases",
                REPORT_REAL, bench->copy[0].median, "GB/s");
    report_line(&report, "copy_after_gb_per_s", "after them", REPORT_REAL,
                bench->copy[1].median, "GB/s");
    report_line(&report, "images", "images", REPORT_COUNT,
                (double)bench->images,
                "of 3 x 227 x 227 bytes; below, bytes read plus written");
    report_value(&report, "pixel_bytes", REPORT_BYTES,
                 (double)bench->pixel_bytes);
    report_value(&report, "l2_bytes", REPORT_BYTES, (double)bench->l2_bytes);
    report_value(&report, "samples", REPORT_COUNT, SAMPLES);
    for (int i = 0; i < TYPES * WAYS; i++)
        if (is_case(i / WAYS, i % WAYS))
            report_case(&report, bench, i / WAYS, i % WAYS);
    return report_end(&report);
}

static int run(struct kernel_bench *bench, const char *name, int json)
{
    int status = leat_device_find(&bench->device, name);
    if (!status)
        status = check_device(bench->device);
    if (!status) {
        status = measure(bench);
        if (!status)
            status = print_report(bench, json);
        let_go(bench);
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct kernel_bench bench;
    const char *device = "cuda:0";
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            device = argv[++i];
        } else if (strcmp(argv[i], "--batch") == 0 && i + 1 < argc) {
            bench.images = atoll(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_kernel [--json] [--device NAME] "
                            "[--batch N]\n");
            return 2;
        }
    }
    if (!run(&bench, device, json))
        return 0;
    fprintf(stderr, "bench_kernel: %s\n", leat_last_error());
    return 1;
}
