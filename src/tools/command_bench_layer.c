/*
 * command_bench_layer.c: `leat bench layer`: how fast a data layer delivers,
 * and with --limit how fast one could at most.
 *
 * The layer is measured in slices. With --limit they alternate with slices of
 * the limit, so that both see the same machine. The limit's clock starts when
 * the layer has filled its batches and is idle; the layer's when these batches
 * are taken.
 */
#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/caller.h"
#include "tools/bench/h2d.h"
#include "tools/bench/latency.h"
#include "tools/bench/layer_group.h"
#include "tools/bench/limit.h"
#include "tools/bench/overlap.h"
#include "tools/bench/report.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/command.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static const double warm_up_seconds = 0.02;

struct layer_options {
    struct layer_source_options source;
    double seconds;
    int64_t epochs;    /* instead of seconds; 0: none */
    double compute_ms; /* of one core, after each batch */
    double sleep_ms;   /* after each batch */
    int overlap;       /* of copies and kernels */
    double kernel_ms;  /* how long these are; 0: as a delivery */
    int limit;
    int row_copy; /* the limit copies rows and does nothing else */
    int json;
};

/* Of so many slices, the last ones, the rates are kept. */
enum { SLICES_KEPT = 1024 };

/* What the slices of a layer add up to. */
struct bench_result {
    double first_batch;  /* seconds from create to the first batch */
    int64_t first_epoch; /* of the first batch measured */
    int ended;           /* all epochs are over */
    double seconds;
    int64_t batches;
    int64_t samples;
    double payload; /* bytes of the records in these samples */
    int64_t allocations;
    double cpu;                /* seconds, what the caller computed left out */
    double in_forward;         /* seconds */
    leat_stats stats;          /* stages: of the slices; the rest: at the end */
    double slice[SLICES_KEPT]; /* images a second */
    int64_t slices;
    struct latency waits;
    struct limit *limit;
    struct limit_result limited;
    struct bandwidth bandwidth;
    int64_t peak_rss;
    leat_device *device; /* NULL: the batches stay with the CPU */
    struct h2d_ceiling ceiling;
    struct overlap overlap;
};

static int64_t peak_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
}

static int read_stats(const struct layer_source *source, leat_stats *stats)
{
    memset(stats, 0, sizeof(*stats));
    stats->size = sizeof(*stats);
    return leat_data_layer_stats(source->layer, stats);
}

/* Adds what the stages did between two readings. */
static void add_stages(leat_stats *sum, const leat_stats *before,
                       const leat_stats *after)
{
    const leat_stats so_far = *sum;
    *sum = *after;
    sum->waited += so_far.waited - before->waited;
    sum->elapsed += so_far.elapsed - before->elapsed;
    sum->helped_chunks += so_far.helped_chunks - before->helped_chunks;
    sum->helped += so_far.helped - before->helped;
    sum->blocked_lock += so_far.blocked_lock - before->blocked_lock;
    for (int i = 0; i < after->nstages; i++) {
        const leat_stage_stats *from = &before->stage[i];
        const leat_stage_stats *old = &so_far.stage[i];
        leat_stage_stats *to = &sum->stage[i];
        to->items += old->items - from->items;
        to->bytes += old->bytes - from->bytes;
        to->busy += old->busy - from->busy;
        to->blocked_empty += old->blocked_empty - from->blocked_empty;
        to->blocked_full += old->blocked_full - from->blocked_full;
    }
}

/* What the caller does with a batch. Returns the seconds it computed. */
static double consume(const struct layer_options *options)
{
    caller_compute(options->compute_ms);
    caller_sleep(options->sleep_ms);
    return 1e-3 * options->compute_ms;
}

static void count_batch(const leat_batch *batch,
                        const struct layer_options *options,
                        struct bench_result *result)
{
    if (!result->batches)
        result->first_epoch = batch->epoch;
    result->batches++;
    result->samples += batch->n;
    result->ended = options->epochs &&
                    batch->epoch - result->first_epoch >= options->epochs;
}

/* A last slice that the end of an epoch cut short tells little. */
static void note_slice(struct bench_result *result, int64_t samples,
                       double seconds)
{
    if (result->slices > 0 && seconds < LIMIT_SLICE / 2)
        return;
    result->slice[result->slices++ % SLICES_KEPT] =
        bench_share((double)samples, seconds);
}

/* Takes batches for the time of a slice, or to the end of the last epoch. */
static int run_slice(struct layer_source *source,
                     const struct layer_options *options,
                     struct bench_result *result)
{
    leat_stats before, after;
    int64_t samples = result->samples;
    int status = read_stats(source, &before);
    int64_t allocations = bench_allocations();
    double cpu = bench_cpu_seconds(), start = leat__clock_seconds(),
           now = start;
    while (!status && now - start < LIMIT_SLICE && !result->ended) {
        status = layer_source_forward(source);
        double ready = leat__clock_seconds();
        latency_add(&result->waits, ready - now);
        result->in_forward += ready - now;
        const leat_batch *batch = leat_data_layer_batch(source->layer);
        if (batch)
            count_batch(batch, options, result);
        result->cpu -= consume(options);
        now = leat__clock_seconds();
    }
    if (!status)
        status = layer_source_wait(source);
    if (source->device)
        now = leat__clock_seconds();
    result->allocations += bench_allocations() - allocations;
    result->cpu += bench_cpu_seconds() - cpu;
    result->seconds += now - start;
    note_slice(result, result->samples - samples, now - start);
    if (!status)
        status = read_stats(source, &after);
    if (status)
        return status;
    add_stages(&result->stats, &before, &after);
    /* What is read is not yet delivered: so much a record, as read so far. */
    result->payload =
        (double)result->samples *
        bench_share((double)after.stage[0].bytes, (double)after.stage[0].items);
    return interrupt_check();
}

/* Waits until the layer's threads have nothing to do: twice no processor time.
 */
static void settle(void)
{
    for (int quiet = 0, tries = 0; quiet < 2 && tries < 500; tries++) {
        double cpu = bench_cpu_seconds();
        caller_sleep(10);
        quiet = bench_cpu_seconds() - cpu < 0.0005 ? quiet + 1 : 0;
    }
}

/* Takes what was made while nobody asked, and goes on until all threads run. */
static int warm_up(struct layer_source *source,
                   const struct layer_options *options)
{
    int prefetch = leat_data_layer_get_options(source->layer)->prefetch;
    int batches = prefetch < 4 ? 5 : prefetch + 1;
    double start = leat__clock_seconds();
    int status = LEAT_OK;
    for (int i = 0; !status && (i < batches || leat__clock_seconds() - start <
                                                   warm_up_seconds);
         i++) {
        status = layer_source_forward(source);
        consume(options);
    }
    return status;
}

static int run_slices(struct layer_source *source,
                      const struct layer_options *options,
                      struct bench_result *result)
{
    struct progress progress;
    progress_start(&progress, "batches", -1, options->json);
    int status = LEAT_OK;
    do {
        if (options->limit) {
            settle();
            status = limit_run(result->limit, LIMIT_SLICE, &result->limited);
        }
        if (!status && (options->limit || !result->batches))
            status = warm_up(source, options);
        if (!status)
            status = run_slice(source, options, result);
        progress_update(&progress, result->batches);
    } while (!status && (options->epochs ? !result->ended
                                         : result->seconds < options->seconds));
    progress_finish(&progress);
    return status;
}

/* Of what went over the bus. */
static leat_stage_stats copies(const struct bench_result *result)
{
    for (int i = 0; i < result->stats.nstages; i++)
        if (strcmp(result->stats.stage[i].name, "copy") == 0)
            return result->stats.stage[i];
    return (leat_stage_stats){0};
}

/* What such copies reach while the layer rests. */
static int measure_ceiling(const struct layer_source *source,
                           struct bench_result *result)
{
    leat_stage_stats copy = copies(result);
    size_t bytes = copy.items > 0 ? (size_t)(copy.bytes / copy.items) : 0;
    result->device = source->device;
    settle();
    return h2d_measure_ceiling(&result->ceiling, source->device, bytes);
}

static int measure_layer(const struct layer_options *options,
                         struct bench_result *result,
                         struct layer_source *source)
{
    double start = leat__clock_seconds();
    int status = layer_source_create(source, &options->source);
    if (!status)
        status = layer_source_setup(source);
    interrupt_catch();
    if (!status)
        status = layer_source_forward(source);
    result->first_batch = leat__clock_seconds() - start;
    if (!status && options->limit) {
        struct limit_result ignored = {0};
        settle();
        status = limit_open(&result->limit, source->layer, options->row_copy,
                            bench_workers(0));
        if (!status)
            status = limit_run(result->limit, LIMIT_SLICE, &ignored);
    }
    if (!status)
        status = run_slices(source, options, result);
    result->peak_rss = peak_rss();
    limit_close(result->limit);
    if (!status && options->limit)
        status = bandwidth_measure(&result->bandwidth);
    if (!status && options->overlap)
        status = overlap_measure(&result->overlap, source,
                                 1e-3 * options->kernel_ms);
    if (!status && source->device)
        status = measure_ceiling(source, result);
    return status;
}

static double images_rate(const struct bench_result *result)
{
    return bench_share((double)result->samples, result->seconds);
}

static double bus_rate(const struct bench_result *result)
{
    return bench_share((double)copies(result).bytes, result->seconds);
}

static void report_device(struct report *report,
                          const struct bench_result *result)
{
    const struct h2d_ceiling *ceiling = &result->ceiling;
    double bus = bus_rate(result);
    char to[64], how[128];
    snprintf(to, sizeof(to), "to %s", leat_device_name(result->device));
    snprintf(how, sizeof(how), "by copies of %s, at best %s",
             output_bytes((int64_t)ceiling->bytes),
             output_bandwidth(ceiling->best));
    report_add(
        report,
        (struct figure[]){
            {"device", NULL, REPORT_TEXT, 0, leat_device_name(result->device)},
            {"bus_bytes_per_s", "over the bus", REPORT_BANDWIDTH, bus, to},
            {"h2d_bytes_per_s", "h2d, pinned", REPORT_BANDWIDTH, ceiling->rate,
             how},
            {"h2d_share", "share of h2d", REPORT_SHARE, bus / ceiling->rate,
             NULL},
            {"h2d_copies.copy_bytes", NULL, REPORT_BYTES,
             (double)ceiling->bytes, NULL},
            {"h2d_copies.samples", NULL, REPORT_COUNT, ceiling->samples, NULL},
            {"h2d_copies.p10", NULL, REPORT_BANDWIDTH, ceiling->p10, NULL},
            {"h2d_copies.p90", NULL, REPORT_BANDWIDTH, ceiling->p90, NULL},
            {"h2d_copies.best_bytes_per_s", NULL, REPORT_BANDWIDTH,
             ceiling->best, NULL},
            {"h2d_copies.best_share", NULL, REPORT_SHARE, bus / ceiling->best,
             NULL},
            {0}});
    if (isnan(ceiling->rate) && !report->object)
        printf("h2d, pinned            unknown: %s\n",
               plain_text(ceiling->why));
}

static void report_overlap(struct report *report, const struct overlap *overlap)
{
    if (!overlap->batches) {
        report_add(
            report,
            (struct figure[]){{"overlap", NULL, REPORT_SHARE, NAN, NULL}, {0}});
        return;
    }
    char how[160];
    snprintf(how, sizeof(how), ", copies %s a batch, kernels %s, together %s",
             output_time(overlap->copies), output_time(overlap->kernels),
             output_time(overlap->together));
    report_add(
        report,
        (struct figure[]){
            {"overlap", "overlap", REPORT_SHARE, overlap->share, how},
            {"overlap_ms.copies", NULL, REPORT_MS, 1e3 * overlap->copies, NULL},
            {"overlap_ms.kernels", NULL, REPORT_MS, 1e3 * overlap->kernels,
             NULL},
            {"overlap_ms.together", NULL, REPORT_MS, 1e3 * overlap->together,
             NULL},
            {"overlap_ms.batches", NULL, REPORT_COUNT, overlap->batches, NULL},
            {0}});
}

static int is_work(const leat_stage_stats *stage)
{
    return !strcmp(stage->name, "transform") || !strcmp(stage->name, "decode");
}

/* How the rates of the slices vary. */
static void report_slices(struct report *report, struct bench_result *result)
{
    int n = result->slices < SLICES_KEPT ? (int)result->slices : SLICES_KEPT;
    struct bench_spread spread = bench_spread_of(result->slice, n);
    report_add(
        report,
        (struct figure[]){
            {"slices.n", NULL, REPORT_COUNT, (double)result->slices, NULL},
            {"slices.p10", NULL, REPORT_RATE, spread.p10, NULL},
            {"slices.median", NULL, REPORT_RATE, spread.median, NULL},
            {"slices.p90", NULL, REPORT_RATE, spread.p90, NULL},
            {0}});
}

static json_t *json_stages(const leat_stats *stats)
{
    json_t *stages = json_array();
    for (int i = 0; i < stats->nstages; i++) {
        const leat_stage_stats *stage = &stats->stage[i];
        double lock = is_work(stage) ? stats->blocked_lock : 0;
        json_array_append_new(
            stages,
            json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:I, s:I}", "name",
                      stage->name, "threads", stage->threads, "busy",
                      stage->busy, "blocked_empty", stage->blocked_empty,
                      "blocked_full", stage->blocked_full, "blocked_lock", lock,
                      "items", (json_int_t)stage->items, "bytes",
                      (json_int_t)stage->bytes));
    }
    return stages;
}

static json_t *json_memory(const leat_memory_stats *memory)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I}", "pinned", (json_int_t)memory->pinned,
        "pageable", (json_int_t)memory->pageable, "device",
        (json_int_t)memory->device, "host", (json_int_t)memory->host, "mapped",
        (json_int_t)memory->mapped);
}

static void print_memory(const char *title, const leat_memory_stats *memory)
{
    printf("%-17s %12s pinned, %s device, %s host, %s mapped\n", title,
           output_bytes(memory->pinned), output_bytes(memory->device),
           output_bytes(memory->host), output_bytes(memory->mapped));
}

/* What is reserved and what of it was in use, where that differs. */
static void print_memories(const leat_stats *stats)
{
    const leat_memory_stats *all = &stats->memory, *used = &stats->peak;
    if (all->pinned == used->pinned && all->device == used->device &&
        all->host == used->host && all->mapped == used->mapped) {
        print_memory("memory", all);
        return;
    }
    print_memory("memory reserved", all);
    print_memory("memory in use", used);
}

/*
 * A forward that finds no batch ready does runs itself, as a worker does: it
 * counts as a thread where the verdict counts it. `seconds` is what they had.
 */
static const char *workers(const leat_stats *stats, double *seconds)
{
    int own = 0;
    for (int i = 0; i < stats->nstages; i++)
        if (is_work(&stats->stage[i]))
            own = stats->stage[i].threads;
    *seconds = stats->elapsed * own;
    if (!stats->helped_chunks)
        return output_count(own, "thread", "threads");
    *seconds += stats->waited;
    return stats->waited > stats->elapsed / 10
               ? output_count(own + 1, "thread",
                              "threads, the caller's among "
                              "them")
               : output_count(own, "thread, at times the caller's too",
                              "threads, at times the caller's too");
}

static void print_stage(const leat_stats *stats, const leat_stage_stats *stage)
{
    int is_reading = !strcmp(stage->name, "reader") && !stage->threads;
    double had = stats->elapsed;
    const char *who = "no thread of its own";
    printf("stage %-10s  ", stage->name);
    if (!strcmp(stage->name, "forward")) {
        printf("the caller: waited %.2f s of %.2f s for a batch, helped in "
               "%.2f s of these\n",
               stage->blocked_empty, had, stats->helped);
        return;
    }
    if (is_reading || is_work(stage)) {
        who = workers(stats, &had);
    } else if (stage->threads) {
        who = output_count(stage->threads, "thread", "threads");
        had *= stage->threads;
    }
    printf("%s%s: busy %.2f s of %.2f s", is_reading ? "the workers, " : "",
           who, stage->busy, had);
    if (!is_reading)
        printf(", waited %.2f s for input, %.2f s for a free slot",
               stage->blocked_empty, stage->blocked_full);
    if (is_work(stage))
        printf(", %.2f s for each other", stats->blocked_lock);
    printf("\n");
}

/* What all lines and keys of a layer begin with. */
static void report_rates(struct report *report,
                         const struct bench_result *result)
{
    report_add(
        report,
        (struct figure[]){
            {"first_batch_ms", "first batch", REPORT_MS,
             1e3 * result->first_batch, NULL},
            {"images_per_s", "images", REPORT_RATE, images_rate(result),
             "images/s"},
            {"payload_bytes_per_s", "payload", REPORT_BANDWIDTH,
             bench_share(result->payload, result->seconds), NULL},
            {"batches", NULL, REPORT_COUNT, (double)result->batches, NULL},
            {"seconds", NULL, REPORT_SECONDS, result->seconds, NULL},
            {0}});
    report_waits(report, &result->waits);
}

/* The share is no ceiling: the limit is another measurement. */
static void report_limit(struct report *report,
                         const struct bench_result *result)
{
    double share =
        bench_share(images_rate(result), limit_rate(&result->limited));
    limit_report(&result->limited, &result->bandwidth, report);
    report_add(
        report,
        (struct figure[]){{"limit_share", "share of limit", REPORT_SHARE, share,
                           share > 1 ? ", above 100: both were measured, in "
                                       "alternation, and vary"
                                     : NULL},
                          {0}});
}

static void report_costs(struct report *report,
                         const struct bench_result *result)
{
    const leat_stats *stats = &result->stats;
    char all[64];
    double cpu = bench_share(result->cpu, (double)result->samples);
    snprintf(all, sizeof(all), "an image, %s in %s", output_time(result->cpu),
             output_time(result->seconds));
    report_allocations(report, result->allocations);
    if (report->object) {
        json_object_set_new(report->object, "memory",
                            json_memory(&stats->memory));
        json_object_set_new(report->object, "memory_peak",
                            json_memory(&stats->peak));
        json_object_set_new(report->object, "stages", json_stages(stats));
    } else {
        print_memories(stats);
    }
    report_add(
        report,
        (struct figure[]){
            {"cpu_us_per_image", "cpu", REPORT_US, 1e6 * cpu, all},
            {"cpu_seconds", NULL, REPORT_SECONDS, result->cpu, NULL},
            {"peak_rss", "peak resident", REPORT_BYTES,
             (double)result->peak_rss, NULL},
            {"helped_chunks", NULL, REPORT_COUNT, (double)stats->helped_chunks,
             NULL},
            {"helped", NULL, REPORT_SECONDS, stats->helped, NULL},
            {"bad_records", stats->bad_records > 0 ? "bad records" : NULL,
             REPORT_COUNT, (double)stats->bad_records, NULL},
            {0}});
}

static int print_report(const struct layer_options *options,
                        struct bench_result *result)
{
    struct report report;
    report_begin(&report, options->json);
    report_rates(&report, result);
    report_slices(&report, result);
    if (options->limit)
        report_limit(&report, result);
    if (result->device) {
        report_device(&report, result);
        report_overlap(&report, &result->overlap);
    }
    report_costs(&report, result);
    for (int i = 0; !report.object && i < result->stats.nstages; i++)
        print_stage(&result->stats, &result->stats.stage[i]);
    report_verdict(&report, &result->stats, NULL);
    return report_end(&report);
}

static int run(const struct layer_options *options)
{
    static struct bench_result result;
    struct layer_source source = {0};
    int status = measure_layer(options, &result, &source);
    int exit_status =
        status ? message_last_error() : print_report(options, &result);
    layer_source_destroy(&source);
    return exit_status;
}

/* Several devices: what is measured for one device alone is refused. */
static int run_group(const struct layer_options *options)
{
    if (options->limit || options->row_copy || options->overlap ||
        options->epochs)
        return message_misuse("bench layer",
                              "with several devices there is no --limit, "
                              "--row-copy, --overlap or --epochs");
    const struct layer_group_options group = {
        .source = &options->source,
        .seconds = options->seconds,
        .compute_ms = options->compute_ms,
        .sleep_ms = options->sleep_ms,
        .json = options->json,
    };
    return layer_group_run(&group);
}

int command_bench_layer(int argc, char **argv)
{
    struct layer_options options = {.source = LAYER_SOURCE_OPTIONS_INIT,
                                    .seconds = 3};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &options.source);
    const struct option_spec specs[] = {
        bench_seconds(&options.seconds),
        {"epochs", "N", "measure so many epochs instead", option_int,
         &options.epochs, 1, INT32_MAX},
        {"compute-ms", "M", "busy-loop for M ms after each batch", option_ms,
         &options.compute_ms, 0, 3600000},
        {"sleep-ms", "M", "sleep for M ms after each batch", option_ms,
         &options.sleep_ms, 0, 3600000},
        {"overlap", NULL, "measure what the caller's kernels hide", NULL,
         &options.overlap, 0, 0},
        {"kernel-ms", "M", "kernels for that (as long as a delivery)",
         option_ms, &options.kernel_ms, 0, 1000},
        {"limit", NULL, "measure the limit too, in alternation", NULL,
         &options.limit, 0, 0},
        {"row-copy", NULL, "the limit: a bare copy of rows of uint8 images",
         NULL, &options.row_copy, 0, 0},
        {"device", "NAME,...", "where to: cuda:0, or cuda:0,cuda:1",
         option_text, &options.source.device, 0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "bench layer",
        .arguments =
            "(--net FILE --phase P | --reader TEXT --batch N) [options]",
        .about = "Measures how fast a data layer delivers, how long its\n"
                 "caller waits, and why.",
        .options = specs,
        .shared = layer,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status == OPTION_GO)
        status = layer_source_options_check(&options.source, usage.command);
    if (status == OPTION_GO && options.overlap && !options.source.device)
        status = message_misuse(usage.command, "--overlap needs a --device");
    if (status == OPTION_GO && options.kernel_ms > 0 && !options.overlap)
        status = message_misuse(usage.command, "--kernel-ms needs --overlap");
    if (status == OPTION_GO && options.row_copy && !options.limit)
        status = message_misuse(usage.command, "--row-copy needs --limit");
    if (status != OPTION_GO)
        return status;
    return layer_group_is_list(options.source.device) ? run_group(&options)
                                                      : run(&options);
}
