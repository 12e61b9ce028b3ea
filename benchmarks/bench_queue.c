/*
 * bench_queue: what it costs to hand a batch over.
 *
 *     bench_queue [--json] [--workers N] [--seconds S]
 *
 * Batches of one sample of one byte: all that is left is the way through the
 * queues. Each case, of one worker, two, four ... up to N (one for each core),
 * is measured with the workers reading, with a caller that helps them, and with
 * a reader thread before them; all together in S seconds (3).
 *
 *   - How many batches a second go through when the caller does not pause.
 *   - How long it takes from the moment a sample is there until a caller that
 *     sleeps has it: the reader makes one only every so often, and writes the
 *     time into it. Not where the caller helps.
 */
#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/latency.h"
#include "tools/bench/report.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, MOST_CASES = 32, RECORDS = 4096, CLOCK_STRIDE = 32 };

/* The caller has long been asleep when this time is over. */
static const double pause_seconds = 100e-6;

struct handoff_case {
    int workers;
    int reader_thread;
    int caller_helps;
    struct bench_spread batches; /* a second */
    struct latency latency;      /* empty where the caller helps */
};

struct queue_bench {
    int ncases;
    struct handoff_case cases[MOST_CASES];
};

/* A reader that is slower than its caller. */
struct clockwork {
    double now; /* what the latest sample holds */
};

static int tick(void *pass, leat_sample *sample)
{
    struct clockwork *clockwork = pass;
    double *told = leat_sample_take(sample, sizeof(double));
    if (!told)
        return LEAT_ENOMEM;
    double next = leat__clock_seconds() + pause_seconds;
    do
        clockwork->now = leat__clock_seconds();
    while (clockwork->now < next);
    *told = clockwork->now;
    sample->nfields = 1;
    sample->field[0] = (leat_field){
        LEAT_UINT8, 3, told, sizeof(double), {1, 1, sizeof(double)}};
    return LEAT_OK;
}

/* A layer and its top. */
struct feed {
    leat_data_layer *layer;
    leat_blob *top;
};

static int open_feed(struct feed *feed, const leat_pipeline *pipeline,
                     const struct handoff_case *what)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 1;
    options.prefetch = 16;
    options.top_type = LEAT_UINT8;
    options.workers = what->workers;
    options.caller_helps =
        what->caller_helps ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.reader_thread =
        what->reader_thread ? LEAT_READER_ON : LEAT_READER_OFF;
    int status = leat_blob_create(&feed->top, NULL);
    if (!status)
        status = leat_data_layer_create(&feed->layer, pipeline, &options);
    return status ? status : leat_data_layer_setup(feed->layer, &feed->top, 1);
}

static int forward(struct feed *feed)
{
    return leat_data_layer_forward(feed->layer, &feed->top, 1, LEAT_HOST);
}

static void close_feed(struct feed *feed)
{
    leat_data_layer_destroy(feed->layer);
    leat_blob_destroy(feed->top);
}

/* Batches a second while the caller does not pause. */
static int run_round(struct feed *feed, double seconds, double *rate)
{
    int64_t batches = 0;
    double start = leat__clock_seconds(), now;
    do {
        for (int i = 0; i < CLOCK_STRIDE; i++) {
            int status = forward(feed);
            if (status)
                return status;
        }
        batches += CLOCK_STRIDE;
        now = leat__clock_seconds();
    } while (now - start < seconds);
    *rate = (double)batches / (now - start);
    return LEAT_OK;
}

static int measure_rate(struct handoff_case *what, double seconds)
{
    static const unsigned char pixels[RECORDS];
    const leat_memory_field field = {"data", LEAT_UINT8, 3, {1, 1, 1}, pixels};
    leat_pipeline *pipeline;
    int status = leat_pipeline_memory(&pipeline, &field, 1, RECORDS);
    if (status)
        return status;
    struct feed feed = {0};
    status = open_feed(&feed, pipeline, what);
    double rounds[ROUNDS] = {0};
    for (int round = -1; !status && round < ROUNDS; round++)
        status = run_round(&feed, seconds / (ROUNDS + 1),
                           &rounds[round < 0 ? 0 : round]);
    what->batches = bench_spread_of(rounds, ROUNDS);
    close_feed(&feed);
    leat_pipeline_unref(pipeline);
    return status;
}

/* The batches made before the caller asked have waited for it, and not it. */
static int wait_for_samples(struct feed *feed, struct handoff_case *what,
                            double seconds)
{
    double start = leat__clock_seconds(), now = start;
    int status = LEAT_OK;
    for (int64_t batch = 0; !status && now - start < seconds; batch++) {
        status = forward(feed);
        now = leat__clock_seconds();
        const void *data = status ? NULL : leat_blob_cpu_data(feed->top);
        if (!data)
            continue;
        double stamp;
        memcpy(&stamp, data, sizeof(stamp));
        if (batch > 32)
            latency_add(&what->latency, now - stamp);
    }
    return status;
}

static int measure_latency(struct handoff_case *what, double seconds)
{
    struct clockwork clockwork = {0};
    const leat_field_spec spec = {.name = "data",
                                  .dtype = LEAT_UINT8,
                                  .ndim = 3,
                                  .shape = {1, 1, sizeof(double)}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .name = "clockwork",
                                      .fields = &spec,
                                      .nfields = 1,
                                      .next = tick};
    leat_pipeline *pipeline;
    int status = leat_pipeline_callback(&pipeline, &callbacks, &clockwork);
    if (status)
        return status;
    struct feed feed = {0};
    status = open_feed(&feed, pipeline, what);
    if (!status)
        status = wait_for_samples(&feed, what, seconds);
    close_feed(&feed);
    leat_pipeline_unref(pipeline);
    return status;
}

static void add_case(struct queue_bench *bench, int workers, int reader_thread,
                     int caller_helps)
{
    struct handoff_case *what = &bench->cases[bench->ncases++];
    what->workers = workers;
    what->reader_thread = reader_thread;
    what->caller_helps = caller_helps;
}

/* One worker, two, four ... and as many as were asked for. */
static void choose_cases(struct queue_bench *bench, int most)
{
    for (int workers = 1; bench->ncases + 3 <= MOST_CASES;) {
        add_case(bench, workers, 0, 0);
        add_case(bench, workers, 0, 1);
        add_case(bench, workers, 1, 0);
        if (workers == most)
            break;
        workers = 2 * workers < most ? 2 * workers : most;
    }
}

static int measure(struct queue_bench *bench, int workers, double seconds)
{
    choose_cases(bench, bench_workers(workers));
    seconds /= 2 * bench->ncases;
    int status = LEAT_OK;
    for (int i = 0; !status && i < bench->ncases; i++) {
        struct handoff_case *what = &bench->cases[i];
        status = measure_rate(what, seconds);
        if (!status && !what->caller_helps)
            status = measure_latency(what, seconds);
    }
    return status;
}

static const char *who_reads(const struct handoff_case *what)
{
    return what->reader_thread  ? "a reader thread"
           : what->caller_helps ? "workers and caller"
                                : "workers";
}

static void report_case(struct report *report, const struct handoff_case *what)
{
    const struct bench_spread *batches = &what->batches;
    const struct latency *latency = &what->latency;
    report_row(report, "results");
    report_line(report, NULL, "who reads", REPORT_TEXT, 0, who_reads(what));
    report_line(report, "workers", "workers", REPORT_COUNT, what->workers,
                NULL);
    report_value(report, "reader_thread", REPORT_FLAG, what->reader_thread);
    report_value(report, "caller_helps", REPORT_FLAG, what->caller_helps);
    report_line(report, "batches_per_s.median", "batches/s", REPORT_RATE,
                batches->median, NULL);
    report_line(report, "batches_per_s.p10", "p10", REPORT_RATE, batches->p10,
                NULL);
    report_line(report, "batches_per_s.p90", "p90", REPORT_RATE, batches->p90,
                NULL);
    report_line(report, "ns_per_batch", "time/batch", REPORT_NS,
                1e9 * bench_share(1, batches->median), NULL);
    if (latency->total) {
        report_line(report, "latency_us.p50", "p50", REPORT_US,
                    latency_percentile(latency, .5), NULL);
        report_line(report, "latency_us.p99", "p99", REPORT_US,
                    latency_percentile(latency, .99), NULL);
        report_value(report, "latency_us.max", REPORT_US,
                     latency_longest(latency));
    } else {
        report_text(report, "latency_us", NULL);
    }
    report_row_end(report);
}

int main(int argc, char **argv)
{
    static struct queue_bench bench;
    int json = 0, workers = 0;
    double seconds = 3;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--workers") == 0 && i + 1 < argc) {
            workers = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_queue [--json] [--workers N] "
                            "[--seconds S]\n");
            return 2;
        }
    }
    if (measure(&bench, workers, seconds)) {
        fprintf(stderr, "bench_queue: %s\n", leat_last_error());
        return 1;
    }
    struct report report;
    report_begin(&report, json);
    for (int i = 0; i < bench.ncases; i++)
        report_case(&report, &bench.cases[i]);
    return report_end(&report);
}
