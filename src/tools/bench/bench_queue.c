/*
 * bench_queue.c: `leat bench queue`: what it costs to hand a batch over.
 *
 * Batches of one sample that takes next to no work: all that is left is the way
 * through the queues. Two things are measured, each with the workers reading
 * themselves and with a reader thread before them.
 *
 *   - How many batches a second go through when nobody pauses; with `help` the
 *     caller works, too, where it would wait.
 *   - How long it takes from the moment a sample is there until a caller that
 *     sleeps has it: the reader makes one only every so often, and writes the
 *     time into it.
 */
#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/latency.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/command.h"
#include "tools/delivery/layer_source.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 9, MOST_CASES = 32, RECORDS = 4096, CLOCK_STRIDE = 32 };

/* The caller has long been asleep when this time is over. */
static const double pause_seconds = 100e-6;

struct queue_options {
    int64_t workers;
    double seconds;
    int json;
};

struct handoff_case {
    int workers;
    int reader_thread;
    int help;
    struct bench_spread batches; /* a second */
    struct latency latency;      /* empty with `help` */
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
    struct clockwork *self = pass;
    int status = leat_sample_reserve(sample, sizeof(double));
    if (status)
        return status;
    double next = leat__clock_seconds() + pause_seconds;
    do
        self->now = leat__clock_seconds();
    while (self->now < next);
    memcpy(sample->buffer, &self->now, sizeof(self->now));
    sample->nfields = 1;
    sample->field[0] = (leat_field){
        LEAT_UINT8, 3, {1, 1, sizeof(double)}, sample->buffer, sizeof(double)};
    return LEAT_OK;
}

static int open_layer(struct layer_source *source,
                      const leat_pipeline *pipeline,
                      const struct handoff_case *what)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 1;
    options.prefetch = 16;
    options.top_type = LEAT_UINT8;
    options.workers = what->workers;
    options.caller_helps =
        what->help ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.reader_thread =
        what->reader_thread ? LEAT_READER_ON : LEAT_READER_OFF;
    int status = leat_data_layer_create(&source->layer, pipeline, &options);
    return status ? status : layer_source_setup(source);
}

/* Batches a second while nobody pauses. */
static int run_round(struct layer_source *source, double seconds, double *rate)
{
    int64_t batches = 0;
    double start = leat__clock_seconds(), now;
    do {
        for (int i = 0; i < CLOCK_STRIDE; i++) {
            int status = layer_source_forward(source);
            if (status)
                return status;
        }
        batches += CLOCK_STRIDE;
        now = leat__clock_seconds();
    } while (now - start < seconds);
    *rate = (double)batches / (now - start);
    return interrupt_check();
}

static int measure_rate(struct handoff_case *what, double seconds)
{
    static const unsigned char pixels[RECORDS];
    const leat_memory_field field = {"data", LEAT_UINT8, 3, {1, 1, 1}, pixels};
    leat_pipeline *pipeline;
    int status = leat_pipeline_memory(&pipeline, &field, 1, RECORDS);
    if (status)
        return status;
    struct layer_source source = {0};
    status = open_layer(&source, pipeline, what);
    double rounds[ROUNDS] = {0};
    for (int round = -1; !status && round < ROUNDS; round++)
        status = run_round(&source, seconds / (ROUNDS + 1),
                           &rounds[round < 0 ? 0 : round]);
    what->batches = bench_spread_of(rounds, ROUNDS);
    layer_source_destroy(&source);
    leat_pipeline_unref(pipeline);
    return status;
}

/* The batches made before the caller asked have waited for it, and not it. */
static int wait_for_samples(struct layer_source *source,
                            struct handoff_case *what, double seconds)
{
    double start = leat__clock_seconds(), now = start;
    int status = LEAT_OK;
    for (int64_t batch = 0; !status && now - start < seconds; batch++) {
        status = layer_source_forward(source);
        now = leat__clock_seconds();
        const void *data = status ? NULL : leat_blob_cpu_data(source->top[0]);
        if (!data)
            continue;
        double stamp;
        memcpy(&stamp, data, sizeof(stamp));
        if (batch > 32)
            latency_add(&what->latency, now - stamp);
    }
    return status ? status : interrupt_check();
}

static int measure_latency(struct handoff_case *what, double seconds)
{
    struct clockwork clockwork = {0};
    const leat_field_spec spec = {
        "data", LEAT_UINT8, 3, {1, 1, sizeof(double)}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .name = "clockwork",
                                      .fields = &spec,
                                      .nfields = 1,
                                      .next = tick};
    leat_pipeline *pipeline;
    int status = leat_pipeline_callback(&pipeline, &callbacks, &clockwork);
    if (status)
        return status;
    struct layer_source source = {0};
    status = open_layer(&source, pipeline, what);
    if (!status)
        status = wait_for_samples(&source, what, seconds);
    layer_source_destroy(&source);
    leat_pipeline_unref(pipeline);
    return status;
}

static void add_case(struct queue_bench *bench, int workers, int reader_thread,
                     int help)
{
    struct handoff_case *what = &bench->cases[bench->ncases++];
    what->workers = workers;
    what->reader_thread = reader_thread;
    what->help = help;
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

static int measure(struct queue_bench *bench,
                   const struct queue_options *options)
{
    choose_cases(bench, bench_workers(options->workers));
    double seconds = options->seconds / (2 * bench->ncases);
    struct progress progress;
    progress_start(&progress, "cases", bench->ncases, options->json);
    int status = LEAT_OK;
    for (int i = 0; !status && i < bench->ncases; i++) {
        struct handoff_case *what = &bench->cases[i];
        status = measure_rate(what, seconds);
        if (!status && !what->help)
            status = measure_latency(what, seconds);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

static int print_json(const struct queue_bench *bench)
{
    json_t *results = json_array();
    for (int i = 0; i < bench->ncases; i++) {
        const struct handoff_case *what = &bench->cases[i];
        const struct bench_spread *batches = &what->batches;
        json_t *result =
            json_pack("{s:i, s:b, s:b, s:{s:f, s:f, s:f}, s:f}", "workers",
                      what->workers, "reader_thread", what->reader_thread,
                      "help", what->help, "batches_per_s", "median",
                      batches->median, "p10", batches->p10, "p90", batches->p90,
                      "ns_per_batch", 1e9 * bench_share(1, batches->median));
        json_object_set_new(
            result, "latency_us",
            !what->latency.total
                ? json_null()
                : json_pack("{s:f, s:f, s:f}", "p50",
                            latency_percentile(&what->latency, .5), "p99",
                            latency_percentile(&what->latency, .99), "max",
                            latency_longest(&what->latency)));
        json_array_append_new(results, result);
    }
    json_t *object = json_pack("{s:o}", "results", results);
    bench_add_machine(object);
    return output_json(object);
}

static int print_table(const struct queue_bench *bench)
{
    bench_print_machine();
    printf("%7s | %-18s | %9s | %9s | %9s | %10s | %8s | %8s\n", "workers",
           "who reads", "batches/s", "p10", "p90", "time/batch", "p50", "p99");
    for (int i = 0; i < bench->ncases; i++) {
        const struct handoff_case *what = &bench->cases[i];
        printf("%7d | %-18s | %9s | %9s | %9s | %10s | ", what->workers,
               what->reader_thread ? "a reader thread"
               : what->help        ? "workers and caller"
                                   : "workers",
               output_scaled(what->batches.median),
               output_scaled(what->batches.p10),
               output_scaled(what->batches.p90),
               output_time(bench_share(1, what->batches.median)));
        if (what->latency.total)
            printf("%8s | %8s\n",
                   output_time(1e-6 * latency_percentile(&what->latency, .5)),
                   output_time(1e-6 * latency_percentile(&what->latency, .99)));
        else
            printf("%8s | %8s\n", "-", "-");
    }
    return 0;
}

static int run(const struct queue_options *options)
{
    interrupt_catch();
    static struct queue_bench bench;
    int status = measure(&bench, options);
    if (status)
        return message_last_error();
    return options->json ? print_json(&bench) : print_table(&bench);
}

int command_bench_queue(int argc, char **argv)
{
    struct queue_options options = {.seconds = 3};
    const struct option_spec specs[] = {
        {"workers", "N", "at most (one for each core)", option_int,
         &options.workers, 0, BENCH_MOST_WORKERS},
        bench_seconds(&options.seconds),
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "bench queue",
        .arguments = "[options]",
        .about = "Measures what it costs to hand a batch over, for one\n"
                 "worker, two, four and so on up to --workers, on records of\n"
                 "its own.",
        .options = specs,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    return status == OPTION_GO ? run(&options) : status;
}
