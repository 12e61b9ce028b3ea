/*
 * bench_tops: what it costs to lay out batches of samples of different lengths.
 *
 *     bench_tops [--json] [--seconds S]
 *
 * Samples of uint8 rows, of lengths from 1 byte to twice the mean, lie in 256
 * MB of memory and become ragged tops with their offsets, or tops padded to the
 * batch's longest with their lengths. Beside it runs a bare loop in one thread:
 * the same bytes by memcpy (and memset, of the padding) into as many batches in
 * turn as the layer has, whose offsets it knows already. Each case measures
 * both in turn, in nine rounds after one that is not counted; all together in S
 * seconds (12).
 *
 *   - Bytes of tops a second, of both; and their ratio.
 *   - The same of processor time, the layer's on all its threads.
 *
 * Every batch's last byte is compared, and all bytes of some outside of the
 * time.
 */
#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/report.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, BATCH = 64, PREFETCH = 4, SLOTS = PREFETCH + 1 };

#define POOL_BYTES ((size_t)256 << 20)

struct tops_case {
    const char *form;
    int64_t mean; /* bytes of a sample */
    struct bench_spread bare, layer, share, cpu_share;
};

/* The samples, one after the other in the pool. */
struct samples {
    unsigned char *pool;
    int64_t *begin; /* count + 1 */
    int64_t count;  /* a multiple of BATCH */
    int64_t next;   /* that the reader gives */
};

struct samples_reader {
    leat_reader reader;
    struct samples *samples;
};

/* What fills and takes batches, and how far each is. */
struct rig {
    struct samples samples;
    bool pads;
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    int64_t layer_at, bare_at; /* samples */
    unsigned char *slot[SLOTS];
    int slots;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_tops: %s: %s\n", what, leat_last_error());
    exit(1);
}

/* A reader that gives views, as many as are asked for. */
static int samples_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    static const leat_field_spec field = {
        .name = "x", .dtype = LEAT_UINT8, .ndim = 1, .shape = {-1}};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int samples_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    struct samples *from = ((struct samples_reader *)reader)->samples;
    for (*got = 0; *got < n && from->next < from->count; from->next++) {
        leat_sample *sample = out[(*got)++];
        int64_t begin = from->begin[from->next];
        int64_t bytes = from->begin[from->next + 1] - begin;
        sample->nfields = 1;
        sample->field[0] = (leat_field){
            LEAT_UINT8, 1, from->pool + begin, (size_t)bytes, {bytes}};
        sample->from.source = "samples";
        sample->from.record = from->next;
    }
    return *got ? LEAT_OK : LEAT_END;
}

static int samples_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    (void)mark;
    ((struct samples_reader *)reader)->samples->next = position.index;
    return LEAT_OK;
}

static void samples_cancel(leat_reader *reader)
{
    (void)reader;
}

static void samples_close(leat_reader *reader)
{
    free(reader);
}

static int samples_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "samples",
                                        .fields = samples_fields,
                                        .next = samples_next,
                                        .seek = samples_seek,
                                        .cancel = samples_cancel,
                                        .close = samples_close};
    struct samples_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return LEAT_ENOMEM;
    reader->reader.ops = &ops;
    reader->samples = (struct samples *)(uintptr_t)leat_args_object(open->args);
    *out = &reader->reader;
    return LEAT_OK;
}

static const leat_reader_type samples_type = {
    .size = sizeof(samples_type), .name = "samples", .open = samples_open};

static void make_samples(struct samples *out, int64_t mean)
{
    int64_t most = (int64_t)POOL_BYTES / mean + BATCH, n = 0;
    out->pool = malloc(POOL_BYTES);
    out->begin = malloc((size_t)(most + 1) * sizeof(*out->begin));
    if (!out->pool || !out->begin)
        fail("no memory");
    for (size_t i = 0; i < POOL_BYTES; i++)
        out->pool[i] = (unsigned char)(i * 2654435761u >> 13);
    srand(1);
    out->begin[0] = 0;
    while (n < most) {
        int64_t end = out->begin[n] + 1 + rand() % (2 * mean);
        if (end > (int64_t)POOL_BYTES)
            break;
        out->begin[++n] = end;
    }
    out->count = n / BATCH * BATCH;
    out->next = 0;
}

static void open_rig(struct rig *rig, const struct tops_case *what)
{
    rig->pads = strcmp(what->form, "padded") == 0;
    make_samples(&rig->samples, what->mean);
    const leat_top top = {.size = sizeof(top),
                          .name = "x",
                          .form = rig->pads ? LEAT_TOP_PAD : LEAT_TOP_RAGGED};
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = BATCH;
    options.prefetch = PREFETCH;
    options.workers = 1;
    options.top = &top;
    options.ntop = 1;
    if (leat_pipeline_create(&rig->pipeline, &samples_type, NULL, &rig->samples,
                             NULL, NULL, 0) ||
        leat_data_layer_create(&rig->layer, rig->pipeline, &options) ||
        leat_data_layer_setup(rig->layer, NULL, 0))
        fail("the layer");
    for (int i = 0; i < SLOTS; i++) {
        size_t bytes = (size_t)(2 * what->mean * BATCH);
        rig->slot[i] = malloc(bytes);
        if (!rig->slot[i])
            fail("no memory");
        memset(rig->slot[i], 0, bytes);
    }
}

static void close_rig(struct rig *rig)
{
    leat_data_layer_destroy(rig->layer);
    leat_pipeline_unref(rig->pipeline);
    for (int i = 0; i < SLOTS; i++)
        free(rig->slot[i]);
    free(rig->samples.pool);
    free(rig->samples.begin);
}

static int64_t longest(const struct samples *samples, int64_t at)
{
    int64_t most = 0;
    for (int64_t i = at; i < at + BATCH; i++) {
        int64_t bytes = samples->begin[i + 1] - samples->begin[i];
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The next batch of the bare loop; its bytes. */
static int64_t copy_batch(struct rig *rig, unsigned char **out)
{
    const struct samples *samples = &rig->samples;
    int64_t at = rig->bare_at;
    int64_t width = rig->pads ? longest(samples, at) : 0;
    unsigned char *to = *out = rig->slot[rig->slots++ % SLOTS];
    const unsigned char *begin = to;
    for (int64_t i = at; i < at + BATCH; i++) {
        int64_t bytes = samples->begin[i + 1] - samples->begin[i];
        memcpy(to, samples->pool + samples->begin[i], (size_t)bytes);
        if (width > bytes)
            memset(to + bytes, 0, (size_t)(width - bytes));
        to += width ? width : bytes;
    }
    rig->bare_at = (at + BATCH) % samples->count;
    return to - begin;
}

static int64_t take_batch(struct rig *rig, const unsigned char **out)
{
    if (leat_data_layer_forward(rig->layer, NULL, 0, LEAT_HOST))
        fail("forward");
    leat_blob *top = leat_data_layer_top(rig->layer, 0);
    rig->layer_at = (rig->layer_at + BATCH) % rig->samples.count;
    *out = leat_blob_cpu_data(top);
    return (int64_t)leat_blob_bytes(top);
}

/* Batches of both that are the same must be so byte for byte. */
static void compare(struct rig *rig)
{
    unsigned char *bare;
    const unsigned char *mine;
    rig->bare_at = rig->layer_at;
    int64_t bytes = copy_batch(rig, &bare);
    if (take_batch(rig, &mine) != bytes || memcmp(bare, mine, (size_t)bytes)) {
        fprintf(stderr, "bench_tops: the batches differ\n");
        exit(1);
    }
}

struct slice {
    double rate, cpu_rate; /* bytes a second, and a second of processor time */
};

static struct slice run_slice(struct rig *rig, bool is_bare, double seconds)
{
    static volatile unsigned char sink;
    int64_t bytes = 0;
    double cpu = bench_cpu_seconds();
    double start = leat__clock_seconds(), now;
    do {
        int64_t n;
        if (is_bare) {
            unsigned char *batch;
            n = copy_batch(rig, &batch);
            sink = batch[n - 1];
        } else {
            const unsigned char *batch;
            n = take_batch(rig, &batch);
            sink = batch[n - 1];
        }
        bytes += n;
        now = leat__clock_seconds();
    } while (now - start < seconds);
    cpu = bench_cpu_seconds() - cpu;
    (void)sink;
    return (struct slice){(double)bytes / (now - start), (double)bytes / cpu};
}

static void measure(struct tops_case *what, double seconds)
{
    struct rig rig = {0};
    double bare[ROUNDS], layer[ROUNDS], share[ROUNDS], cpu[ROUNDS];
    open_rig(&rig, what);
    for (int round = -1; round < ROUNDS; round++) {
        int i = round < 0 ? 0 : round;
        compare(&rig);
        struct slice one = run_slice(&rig, true, seconds / (2 * ROUNDS + 2));
        struct slice two = run_slice(&rig, false, seconds / (2 * ROUNDS + 2));
        bare[i] = one.rate;
        layer[i] = two.rate;
        share[i] = two.rate / one.rate;
        cpu[i] = two.cpu_rate / one.cpu_rate;
    }
    what->bare = bench_spread_of(bare, ROUNDS);
    what->layer = bench_spread_of(layer, ROUNDS);
    what->share = bench_spread_of(share, ROUNDS);
    what->cpu_share = bench_spread_of(cpu, ROUNDS);
    close_rig(&rig);
}

static void report_case(struct report *report, const struct tops_case *what)
{
    report_row(report, "results");
    report_line(report, "form", "tops", REPORT_TEXT, 0, what->form);
    report_line(report, "mean_bytes", "bytes a sample", REPORT_COUNT,
                (double)what->mean, NULL);
    report_line(report, "bare.median", "bare", REPORT_BANDWIDTH,
                what->bare.median, NULL);
    report_line(report, "layer.median", "leat", REPORT_BANDWIDTH,
                what->layer.median, NULL);
    report_line(report, "share.median", "share", REPORT_SHARE,
                what->share.median, NULL);
    report_line(report, "share.p10", "p10", REPORT_SHARE, what->share.p10,
                NULL);
    report_line(report, "cpu_share.median", "of CPU time", REPORT_SHARE,
                what->cpu_share.median, NULL);
    report_row_end(report);
}

int main(int argc, char **argv)
{
    static struct tops_case cases[] = {
        {.form = "ragged", .mean = 1024},  {.form = "ragged", .mean = 4096},
        {.form = "ragged", .mean = 65536}, {.form = "padded", .mean = 1024},
        {.form = "padded", .mean = 4096},  {.form = "padded", .mean = 65536}};
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };
    bool json = false;
    double seconds = 12;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_tops [--json] [--seconds S]\n");
            return 2;
        }
    }
    struct report report;
    for (int i = 0; i < CASES; i++)
        measure(&cases[i], seconds / CASES);
    report_begin(&report, json);
    for (int i = 0; i < CASES; i++)
        report_case(&report, &cases[i]);
    return report_end(&report);
}
