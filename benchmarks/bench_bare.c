/*
 * bench_bare: leat's reading and transforming beside a plain loop that was
 * written for one job alone (bare_loop.h), both without queues; or a data layer
 * beside that loop.
 *
 *     bench_bare [--json] [--layer] [--seconds S] CASE DATABASE
 *
 * CASE is one of mnist, cifar, raw and crops; DATABASE has its images, as
 * scripts/workloads.sh makes them. On one core, then on all, the loop and what
 * `leat bench limit` does take turns for 75 rounds, S / 150 seconds each (S is
 * 3 if not given), after one that warms up. With --layer it is the loop and a
 * layer's forward, on all cores that the process may use. The ratio is that of
 * a round; p10 and p90 are taken over the rounds. Before that the loop's images
 * are compared with what they should be.
 */
#include "bare_loop.h"
#include "base/clock.h"
#include "base/parallel_for.h"
#include "tools/bench/bench.h"
#include "tools/bench/limit.h"
#include "tools/bench/report.h"

#include <leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 75, RUN = 32, SLOTS = 5, CHECKED = 1000 };

typedef struct bench_case {
    const char *name;
    bare_job job;
    int channels;
    int side;
    int crop;
    int batch;
} bench_case;

static const bench_case cases[] = {
    {"mnist", BARE_SCALED, 1, 28, 0, 64},
    {"cifar", BARE_FLOATS, 3, 32, 0, 100},
    {"raw", BARE_CROP, 3, 256, 227, 64},
    {"crops", BARE_CROP_BYTES, 3, 256, 227, 64},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static const float mean_value[] = {104, 117, 123};

/* One thread's loop, and what it did in a round. */
typedef struct walker {
    bare_loop *loop;
    int64_t images;
    double seconds;
    char apart[64];
} walker;

typedef struct bare_bench {
    const bench_case *what;
    int threads;
    double slice; /* seconds */
    leat_data_layer *layer;
    leat_blob *top[2]; /* where the layer itself is measured; or NULL */
    struct limit *limit;
    walker walker[BENCH_MOST_WORKERS];
} bare_bench;

static int fail(void)
{
    fprintf(stderr, "bench_bare: %s\n", leat_last_error());
    return 1;
}

/* The layer is created for its options, not set up. */
static int create_layer(bare_bench *bench, const char *database)
{
    const bench_case *what = bench->what;
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_pipeline *pipeline;
    transform.scale = what->job == BARE_SCALED ? 0.00390625f : 1;
    transform.crop_size = what->crop;
    transform.mirror = what->crop > 0;
    if (what->job == BARE_CROP) {
        transform.mean_value = mean_value;
        transform.mean_values = 3;
    }
    options.transform = &transform;
    options.batch_size = what->batch;
    options.prefetch = SLOTS - 1;
    if (what->job == BARE_CROP_BYTES)
        options.top_type = LEAT_UINT8;
    if (leat_pipeline_lmdb(&pipeline, database, NULL))
        return 1;
    int status = leat_data_layer_create(&bench->layer, pipeline, &options);
    leat_pipeline_unref(pipeline);
    return status != LEAT_OK;
}

static int open_loops(bare_bench *bench, const char *database)
{
    const bench_case *what = bench->what;
    int images = SLOTS * what->batch;
    const bare_order order = {
        .path = database,
        .job = what->job,
        .channels = what->channels,
        .height = what->side,
        .width = what->side,
        .crop = what->crop,
        .slots = (images + bench->threads - 1) / bench->threads,
    };
    for (int i = 0; i < bench->threads; i++) {
        bench->walker[i].loop = bare_loop_open(&order, i, bench->threads);
        if (!bench->walker[i].loop)
            return 1;
    }
    return 0;
}

static int set_up_layer(bare_bench *bench)
{
    for (int i = 0; i < 2; i++)
        if (leat_blob_create(&bench->top[i], NULL))
            return 1;
    return leat_data_layer_setup(bench->layer, bench->top, 2) != LEAT_OK;
}

static void close_all(bare_bench *bench)
{
    for (int i = 0; i < bench->threads; i++)
        if (bench->walker[i].loop)
            bare_loop_close(bench->walker[i].loop);
    limit_close(bench->limit);
    leat_data_layer_destroy(bench->layer);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(bench->top[i]);
}

/* What the job makes of a pixel, one at a time. */
static int is_right(const bench_case *what, const bare_image *image, int c,
                    int row, int column)
{
    int side = what->crop ? what->crop : what->side;
    size_t to = ((size_t)c * (size_t)side + (size_t)row) * (size_t)side +
                (size_t)column;
    int x = image->is_mirrored ? side - 1 - column : column;
    size_t from =
        ((size_t)c * (size_t)what->side + (size_t)(image->row + row)) *
            (size_t)what->side +
        (size_t)(image->column + x);
    unsigned char pixel = image->pixels[from];
    if (what->job == BARE_CROP_BYTES)
        return ((const unsigned char *)image->top)[to] == pixel;
    float wanted = (float)pixel;
    if (what->job == BARE_SCALED)
        wanted *= 0.00390625f;
    if (what->job == BARE_CROP)
        wanted -= mean_value[c];
    return ((const float *)image->top)[to] == wanted;
}

static int verify(const bare_bench *bench)
{
    const bench_case *what = bench->what;
    int side = what->crop ? what->crop : what->side;
    for (int i = 0; i < CHECKED; i++) {
        if (bare_loop_run(bench->walker[0].loop, 1))
            return 1;
        bare_image image = bare_loop_last(bench->walker[0].loop);
        int is_good = 1;
        for (int c = 0; c < what->channels; c++)
            for (int row = 0; row < side; row++)
                for (int column = 0; column < side; column++)
                    is_good &= is_right(what, &image, c, row, column);
        if (!is_good) {
            fprintf(stderr, "bench_bare: %s: image %d is wrong\n", what->name,
                    i);
            return 1;
        }
    }
    return 0;
}

static int loop_for_a_while(int i, void *context)
{
    bare_bench *bench = context;
    walker *walker = &bench->walker[i];
    double start = leat__clock_seconds(), now = start;
    walker->images = 0;
    while (now - start < bench->slice) {
        if (bare_loop_run(walker->loop, RUN))
            return LEAT_EDATA;
        walker->images += RUN;
        now = leat__clock_seconds();
    }
    walker->seconds = now - start;
    return LEAT_OK;
}

/*
 * Images a second of the loops. One is run here: a layer takes who waits for a
 * thread to end for a caller that sleeps between two batches.
 */
static int run_bare(bare_bench *bench, double *rate)
{
    int status = bench->threads == 1
                     ? loop_for_a_while(0, bench)
                     : leat__parallel_for("leat-bench", bench->threads,
                                          loop_for_a_while, bench);
    double images = 0, longest = 0;
    for (int i = 0; i < bench->threads; i++) {
        images += (double)bench->walker[i].images;
        if (bench->walker[i].seconds > longest)
            longest = bench->walker[i].seconds;
    }
    *rate = bench_share(images, longest);
    return status;
}

static int forward(const bare_bench *bench)
{
    return leat_data_layer_forward(bench->layer, bench->top, 2, LEAT_HOST);
}

/* What was made while the loop ran is taken first. */
static int run_layer(const bare_bench *bench, double *rate)
{
    int64_t images = 0;
    int status = LEAT_OK;
    for (int i = 0; !status && i < SLOTS; i++)
        status = forward(bench);
    double start = leat__clock_seconds(), now = start;
    while (!status && now - start < bench->slice) {
        status = forward(bench);
        images += bench->what->batch;
        now = leat__clock_seconds();
    }
    *rate = bench_share((double)images, now - start);
    return status;
}

static int run_leat(bare_bench *bench, double *rate)
{
    if (bench->top[0])
        return run_layer(bench, rate);
    struct limit_result result = {0};
    limit_run(bench->limit, bench->slice, &result);
    *rate = bench_share((double)result.images, result.seconds);
    return LEAT_OK;
}

static int measure(bare_bench *bench, double bare[ROUNDS], double leat[ROUNDS],
                   double ratio[ROUNDS])
{
    double ignored;
    int status = run_bare(bench, &ignored);
    if (!status)
        status = run_leat(bench, &ignored);
    for (int i = 0; !status && i < ROUNDS; i++) {
        int is_odd = i % 2;
        status = is_odd ? run_leat(bench, &leat[i]) : run_bare(bench, &bare[i]);
        if (!status)
            status =
                is_odd ? run_bare(bench, &bare[i]) : run_leat(bench, &leat[i]);
        if (!status)
            ratio[i] = bench_share(leat[i], bare[i]);
    }
    return status ? fail() : 0;
}

static void report_threads(struct report *report, const bare_bench *bench,
                           int with_layer, double bare[ROUNDS],
                           double leat[ROUNDS], double ratio[ROUNDS])
{
    struct bench_spread b = bench_spread_of(bare, ROUNDS);
    struct bench_spread l = bench_spread_of(leat, ROUNDS);
    struct bench_spread r = bench_spread_of(ratio, ROUNDS);
    report_row(report, "results");
    report_line(report, "case", "case", REPORT_TEXT, 0, bench->what->name);
    report_text(report, "beside", with_layer ? "layer" : "limit");
    report_line(report, "threads", "threads", REPORT_COUNT, bench->threads,
                NULL);
    report_line(report, "bare.median", "bare loop, images/s", REPORT_RATE,
                b.median, NULL);
    report_value(report, "bare.p10", REPORT_RATE, b.p10);
    report_value(report, "bare.p90", REPORT_RATE, b.p90);
    report_line(report, "leat.median", "leat, images/s", REPORT_RATE, l.median,
                NULL);
    report_value(report, "leat.p10", REPORT_RATE, l.p10);
    report_value(report, "leat.p90", REPORT_RATE, l.p90);
    report_line(report, "ratio.median", "of the loop", REPORT_REAL, r.median,
                NULL);
    report_line(report, "ratio.p10", "p10", REPORT_REAL, r.p10, NULL);
    report_line(report, "ratio.p90", "p90", REPORT_REAL, r.p90, NULL);
    report_row_end(report);
}

static int run_threads(const bench_case *what, const char *database,
                       int threads, int with_layer, double seconds,
                       struct report *report)
{
    double bare[ROUNDS], leat[ROUNDS], ratio[ROUNDS];
    bare_bench bench = {
        .what = what, .threads = threads, .slice = seconds / (2 * ROUNDS)};
    int failed = create_layer(&bench, database);
    if (!failed && with_layer)
        failed = set_up_layer(&bench);
    else if (!failed)
        bench.limit = limit_open(bench.layer, false, threads);
    if (failed)
        fail();
    if (!failed)
        failed = open_loops(&bench, database) || verify(&bench) ||
                 measure(&bench, bare, leat, ratio);
    if (!failed)
        report_threads(report, &bench, with_layer, bare, leat, ratio);
    close_all(&bench);
    return failed;
}

static int run(const bench_case *what, const char *database, int with_layer,
               double seconds, int json)
{
    struct report report;
    int cores = bench_workers(0), failed = 0;
    report_begin(&report, json);
    report_text(&report, "commit", LEAT_COMMIT);
    report_text(&report, "compiler", LEAT_COMPILER);
    if (!with_layer && cores > 1)
        failed = run_threads(what, database, 1, 0, seconds, &report);
    if (!failed)
        failed =
            run_threads(what, database, cores, with_layer, seconds, &report);
    return failed ? failed : report_end(&report);
}

int main(int argc, char **argv)
{
    int json = 0, with_layer = 0;
    double seconds = 3;
    const char *arguments[2];
    int n = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--layer") == 0)
            with_layer = 1;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (n < 2)
            arguments[n++] = argv[i];
    }
    for (int i = 0; n == 2 && i < CASES; i++)
        if (strcmp(arguments[0], cases[i].name) == 0)
            return run(&cases[i], arguments[1], with_layer, seconds, json);
    fprintf(stderr, "usage: bench_bare [--json] [--layer] [--seconds S] CASE "
                    "DATABASE\n"
                    "CASE is one of mnist, cifar, raw and crops\n");
    return 2;
}
