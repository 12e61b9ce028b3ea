/*
 * bench_groups: what it takes to make groups of samples.
 *
 *     bench_groups [--json] [--seconds S]
 *
 * Samples of 784 bytes and of 16 KiB, 64 MiB of them in memory, in groups of 64
 * by each decorator that makes groups, read one group a call on one thread;
 * beside a bare loop that copies the same bytes into as many batches; what
 * lies in memory as it is to lie in a batch is not copied, unless it is padded.
 * Then a
 * layer over batch:64 beside one of batch_size 64, with two workers. All take
 * turns, round by round, for S seconds (4) together; the figures are processor
 * time.
 */
#include "tools/bench/bench.h"
#include "tools/bench/report.h"
#include "tools/cli/output.h"

#include <leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, GROUP = 64, RING = 4, BYTES = 64 << 20 };

static const char *const texts[] = {"batch:64", "batch:64,pad=(data=0)",
                                    "window:64,64", "bucket:data,1M,batch=64",
                                    "batch:64 | unbatch"};
enum { CHAINS = sizeof(texts) / sizeof(texts[0]) };

static unsigned char *pixels;

/* The source, and by `text`, unless it is NULL, what comes after it. */
static leat_pipeline *make_pipeline(int64_t bytes, const char *text)
{
    leat_pipeline *pipeline, *chain;
    const leat_memory_field field = {"data", LEAT_UINT8, 1, {bytes}, pixels};
    output_require(leat_pipeline_memory(&pipeline, &field, 1, BYTES / bytes));
    if (!text)
        return pipeline;
    leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
    options.pad = strstr(text, "pad") ? "data=0" : NULL;
    if (strncmp(text, "batch", 5) == 0)
        output_require(leat_pipeline_batch(&chain, pipeline, GROUP, &options));
    else if (strncmp(text, "window", 6) == 0)
        output_require(
            leat_pipeline_window(&chain, pipeline, GROUP, GROUP, 1, NULL));
    else
        output_require(leat_pipeline_bucket(&chain, pipeline, "data", "1M",
                                            "64", 0, NULL));
    leat_pipeline_unref(pipeline);
    if (!strstr(text, "unbatch"))
        return chain;
    output_require(leat_pipeline_unbatch(&pipeline, chain));
    leat_pipeline_unref(chain);
    return pipeline;
}

/* An epoch; returns its samples. */
static int64_t read_epoch(leat_reader *reader, int64_t bytes)
{
    static leat_sample sample;
    int64_t all = 0;
    int status;
    while (!(status = leat_reader_next(reader, &sample)))
        all += (int64_t)sample.field[0].bytes / bytes;
    if (status != LEAT_END)
        output_require(status);
    output_require(leat_reader_seek(reader, (leat_position){0, 0}, NULL));
    return all;
}

static int64_t copy_epoch(int64_t bytes)
{
    static unsigned char *ring;
    size_t batch = (size_t)(GROUP * bytes);
    ring = realloc(ring, RING * batch);
    for (int64_t i = 0; ring && i < BYTES / bytes; i++)
        memcpy(ring + (size_t)(i / GROUP % RING) * batch +
                   (size_t)(i % GROUP * bytes),
               pixels + i * bytes, (size_t)bytes);
    return BYTES / bytes;
}

/* Nanoseconds of processor time a sample; of a bare copy without a reader. */
static double measure(leat_reader *reader, int64_t bytes, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t samples = 0;
    do {
        samples += reader ? read_epoch(reader, bytes) : copy_epoch(bytes);
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)samples;
}

static void add_row(struct report *report, const char *name, int64_t bytes,
                    double rounds[ROUNDS], double shares[ROUNDS])
{
    struct bench_spread spread = bench_spread_of(rounds, ROUNDS);
    struct bench_spread share = bench_spread_of(shares, ROUNDS);
    const struct figure figures[] = {
        {"case", "case", REPORT_TEXT, 0, name},
        {"bytes", "bytes", REPORT_COUNT, (double)bytes, NULL},
        {"ns.median", "a sample", REPORT_NS, spread.median, NULL},
        {"share.median", "of bare", REPORT_SHARE, share.median, NULL},
        {"share.p10", "p10", REPORT_SHARE, share.p10, NULL},
        {"share.p90", "p90", REPORT_SHARE, share.p90, NULL},
        {0}};
    report_row_of(report, "results", figures);
}

static void measure_readers(struct report *report, int64_t bytes,
                            double seconds)
{
    static double took[CHAINS + 1][ROUNDS], share[CHAINS + 1][ROUNDS];
    leat_reader *reader[CHAINS + 1] = {NULL};
    for (int i = 0; i < CHAINS; i++) {
        leat_pipeline *pipeline = make_pipeline(bytes, texts[i]);
        output_require(leat_pipeline_open(pipeline, &reader[i + 1]));
        leat_pipeline_unref(pipeline);
    }
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        for (int i = 0; i <= CHAINS; i++) {
            took[i][at] = measure(reader[i], bytes,
                                  seconds / ((CHAINS + 1) * (ROUNDS + 1)));
            share[i][at] = took[0][at] / took[i][at];
        }
    }
    for (int i = 0; i <= CHAINS; i++) {
        leat_reader_close(reader[i]);
        add_row(report, i ? texts[i - 1] : "bare copy", bytes, took[i],
                share[i]);
    }
}

static leat_data_layer *open_layer(int64_t bytes, const char *text)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_top top = {.size = sizeof(top), .name = "data"};
    leat_data_layer *layer;
    leat_pipeline *pipeline = make_pipeline(bytes, text);
    options.batch_size = text ? 1 : GROUP;
    options.workers = 2;
    options.top = &top;
    options.ntop = 1;
    output_require(leat_data_layer_create(&layer, pipeline, &options));
    leat_pipeline_unref(pipeline);
    output_require(leat_data_layer_setup(layer, NULL, 0));
    return layer;
}

static double measure_layer(leat_data_layer *layer, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t samples = 0;
    do {
        for (int i = 0; i < 64; i++, samples += GROUP)
            output_require(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST));
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)samples;
}

static void measure_layers(struct report *report, int64_t bytes, double seconds)
{
    static const char *const names[] = {"layer, batch_size 64",
                                        "layer over batch:64"};
    double took[2][ROUNDS], share[2][ROUNDS];
    leat_data_layer *layer[2] = {open_layer(bytes, NULL),
                                 open_layer(bytes, "batch:64")};
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round;
        for (int i = 0; i < 2; i++) {
            took[i][at] = measure_layer(layer[i], seconds / (2 * (ROUNDS + 1)));
            share[i][at] = took[0][at] / took[i][at];
        }
    }
    for (int i = 0; i < 2; i++) {
        leat_data_layer_destroy(layer[i]);
        add_row(report, names[i], bytes, took[i], share[i]);
    }
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {784, 16384};
    double seconds = 4;
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_groups [--json] [--seconds S]\n");
            return 64;
        }
    }
    pixels = malloc(BYTES);
    if (!pixels)
        return 1;
    memset(pixels, 7, BYTES);
    struct report report;
    report_begin(&report, json);
    for (int i = 0; i < 2; i++) {
        measure_readers(&report, sizes[i], seconds / 3);
        measure_layers(&report, sizes[i], seconds / 6);
    }
    free(pixels);
    return report_end(&report);
}
