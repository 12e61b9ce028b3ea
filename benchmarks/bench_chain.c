/*
 * bench_chain: what a decorator that passes samples on costs.
 *
 *     bench_chain [--json] [--seconds S]
 *
 * A source in memory of two fields, an image of 784 bytes and a label, below 0,
 * 1 and 9 decorators whose next is leat_reader_pull alone; samples are read 1
 * and 64 a call. With the first decorator leat begins to measure the readers,
 * the source too: "first" is what that adds, "each other" an eighth of what the
 * others add, in processor time. The chains alternate, round by round, for S
 * seconds (3) together.
 */
#include "tools/bench/bench.h"
#include "tools/bench/report.h"
#include "tools/cli/output.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 25, CHAINS = 3, OTHERS = 8, RECORDS = 4096, MOST = 64 };

static const int lengths[CHAINS] = {0, 1, 1 + OTHERS};

struct pass {
    leat_reader reader;
    leat_reader *upstream; /* owned */
};

static int pass_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    return leat_reader_fields(((struct pass *)reader)->upstream, out, n);
}

static int pass_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    return leat_reader_pull(((struct pass *)reader)->upstream, out, n, got);
}

static int pass_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    return leat_reader_seek(((struct pass *)reader)->upstream, position, mark);
}

static void pass_cancel(leat_reader *reader)
{
    leat_reader_cancel(((struct pass *)reader)->upstream);
}

static void pass_close(leat_reader *reader)
{
    leat_reader_close(((struct pass *)reader)->upstream);
    free(reader);
}

static const leat_reader_ops pass_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "pass",
    .fields = pass_fields,
    .next = pass_next,
    .seek = pass_seek,
    .cancel = pass_cancel,
    .close = pass_close,
};

static int pass_open(const leat_open *open, leat_reader **out)
{
    struct pass *self = calloc(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    *self = (struct pass){{.ops = &pass_ops}, open->upstream[0]};
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type pass_type = {
    .size = sizeof(leat_reader_type),
    .name = "pass",
    .min_upstream = 1,
    .max_upstream = 1,
    .open = pass_open,
};

static leat_reader *open_chain(int length)
{
    static unsigned char images[RECORDS][784];
    static int32_t labels[RECORDS];
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {1, 28, 28}, images},
        {"label", LEAT_INT32, 0, {0}, labels}};
    leat_pipeline *pipeline;
    leat_reader *reader;
    output_require(leat_pipeline_memory(&pipeline, fields, 2, RECORDS));
    for (int i = 0; i < length; i++) {
        leat_pipeline *upstream = pipeline;
        output_require(leat_pipeline_create(&pipeline, &pass_type, NULL, NULL,
                                            NULL, &upstream, 1));
        leat_pipeline_unref(upstream);
    }
    output_require(leat_pipeline_open(pipeline, &reader));
    leat_pipeline_unref(pipeline);
    return reader;
}

/* An epoch; returns its samples. */
static int64_t read_epoch(leat_reader *reader, int n)
{
    static leat_sample storage[MOST];
    leat_sample *sample[MOST];
    int64_t all = 0;
    int status, got;
    for (int i = 0; i < n; i++)
        sample[i] = &storage[i];
    while (!(status = leat_reader_next_batch(reader, sample, n, &got)))
        all += got;
    if (status != LEAT_END)
        output_require(status);
    output_require(leat_reader_seek(reader, (leat_position){0, 0}, NULL));
    return all;
}

/* Nanoseconds of processor time a sample. */
static double measure(leat_reader *reader, int n, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t samples = 0;
    do {
        samples += read_epoch(reader, n);
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)samples;
}

static void add_step(struct report *report, const char *name, int n,
                     double rounds[ROUNDS])
{
    struct bench_spread spread = bench_spread_of(rounds, ROUNDS);
    const struct figure figures[] = {
        {"case", "case", REPORT_TEXT, 0, name},
        {"batch", "a call", REPORT_COUNT, n, NULL},
        {"ns.median", "median", REPORT_NS, spread.median, NULL},
        {"ns.p10", "p10", REPORT_NS, spread.p10, NULL},
        {"ns.p90", "p90", REPORT_NS, spread.p90, NULL},
        {0}};
    report_row_of(report, "results", figures);
}

static void measure_chains(struct report *report, int n, double seconds)
{
    double source[ROUNDS], first[ROUNDS], each[ROUNDS];
    leat_reader *reader[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        reader[i] = open_chain(lengths[i]);
    for (int round = -1; round < ROUNDS; round++) {
        double took[CHAINS];
        for (int i = 0; i < CHAINS; i++)
            took[i] = measure(reader[i], n, seconds / (CHAINS * (ROUNDS + 1)));
        int at = round < 0 ? 0 : round; /* the first one warms up */
        source[at] = took[0];
        first[at] = took[1] - took[0];
        each[at] = (took[2] - took[1]) / OTHERS;
    }
    for (int i = 0; i < CHAINS; i++)
        leat_reader_close(reader[i]);
    add_step(report, "the source alone", n, source);
    add_step(report, "first decorator", n, first);
    add_step(report, "each other decorator", n, each);
}

int main(int argc, char **argv)
{
    double seconds = 3;
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_chain [--json] [--seconds S]\n");
            return 64;
        }
    }
    struct report report;
    report_begin(&report, json);
    measure_chains(&report, 1, seconds / 2);
    measure_chains(&report, MOST, seconds / 2);
    return report_end(&report);
}
