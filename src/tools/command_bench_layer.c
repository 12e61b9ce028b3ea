/* command_bench_layer.c: `leat bench layer`: how fast a data layer delivers. */
#include "tools/bench/bench.h"
#include "tools/bench/layer_measure.h"
#include "tools/command.h"

#include <leat/ext/device.h>

#include <math.h>

static double images_rate(const struct layer_result *result)
{
    return bench_share((double)result->samples, result->seconds);
}

static double bus_rate(const struct layer_result *result, int i)
{
    leat_stage_stats copies = layer_copies(&result->share[i].stats);
    return bench_share((double)copies.bytes, result->seconds);
}

static void report_device(struct report *report,
                          const struct layer_result *result,
                          const leat_device *device)
{
    const struct h2d_ceiling *ceiling = &result->ceiling;
    double bus = bus_rate(result, 0);
    char to[64], how[128];
    snprintf(to, sizeof(to), "to %s", leat_device_name(device));
    snprintf(how, sizeof(how), "by copies of %s, at best %s",
             output_bytes((int64_t)ceiling->bytes),
             output_bandwidth(ceiling->best));
    const struct figure figures[] = {
        {"device", NULL, REPORT_TEXT, 0, leat_device_name(device)},
        {"bus_bytes_per_s", "over the bus", REPORT_BANDWIDTH, bus, to},
        {"h2d_bytes_per_s", "h2d, pinned", REPORT_BANDWIDTH, ceiling->rate,
         how},
        {"h2d_share", "share of h2d", REPORT_SHARE, bus / ceiling->rate, NULL},
        {"h2d_copies.copy_bytes", NULL, REPORT_BYTES, (double)ceiling->bytes,
         NULL},
        {"h2d_copies.samples", NULL, REPORT_COUNT, ceiling->samples, NULL},
        {"h2d_copies.p10", NULL, REPORT_BANDWIDTH, ceiling->p10, NULL},
        {"h2d_copies.p90", NULL, REPORT_BANDWIDTH, ceiling->p90, NULL},
        {"h2d_copies.best_bytes_per_s", NULL, REPORT_BANDWIDTH, ceiling->best,
         NULL},
        {"h2d_copies.best_share", NULL, REPORT_SHARE, bus / ceiling->best,
         NULL},
        {0}};
    const struct figure call[] = {
        {"driver_call_us", "a call of the driver", REPORT_US,
         1e6 * result->driver_call,
         "alone, after the same pause; forward makes three"},
        {0}};
    report_figures(report, figures);
    if (result->driver_call > 0)
        report_figures(report, call);
    if (isnan(ceiling->rate) && !report->object)
        printf("h2d, pinned            unknown: %s\n",
               plain_text(ceiling->why));
}

static void report_overlap(struct report *report, const struct overlap *overlap)
{
    char how[160];
    snprintf(how, sizeof(how), ", copies %s a batch, kernels %s, together %s",
             output_time(overlap->copies), output_time(overlap->kernels),
             output_time(overlap->together));
    const struct figure figures[] = {
        {"overlap", "overlap", REPORT_SHARE,
         overlap->batches ? overlap->share : NAN, how},
        {"overlap_ms.copies", NULL, REPORT_MS, 1e3 * overlap->copies, NULL},
        {"overlap_ms.kernels", NULL, REPORT_MS, 1e3 * overlap->kernels, NULL},
        {"overlap_ms.together", NULL, REPORT_MS, 1e3 * overlap->together, NULL},
        {"overlap_ms.batches", NULL, REPORT_COUNT, overlap->batches, NULL},
        {0}};
    const struct figure none[] = {figures[0], {0}};
    report_figures(report, overlap->batches ? figures : none);
}

static bool is_work(const leat_stage_stats *stage)
{
    return !strcmp(stage->name, "transform") || !strcmp(stage->name, "decode");
}

/* How the rates of the slices vary. */
static void report_slices(struct report *report, struct layer_result *result)
{
    int n = result->slices < LAYER_SLICES_KEPT ? (int)result->slices
                                               : LAYER_SLICES_KEPT;
    struct bench_spread spread = bench_spread_of(result->slice, n);
    const struct figure figures[] = {
        {"slices.n", NULL, REPORT_COUNT, (double)result->slices, NULL},
        {"slices.p10", NULL, REPORT_RATE, spread.p10, NULL},
        {"slices.median", NULL, REPORT_RATE, spread.median, NULL},
        {"slices.p90", NULL, REPORT_RATE, spread.p90, NULL},
        {0}};
    report_figures(report, figures);
}

/* The object `key`, or a line of it. */
static void report_memory(struct report *report, const char *key,
                          const char *label, const leat_memory_stats *memory)
{
    if (report->object)
        json_object_set_new(report->object, key,
                            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}",
                                      "pinned", (json_int_t)memory->pinned,
                                      "pageable", (json_int_t)memory->pageable,
                                      "device", (json_int_t)memory->device,
                                      "host", (json_int_t)memory->host,
                                      "mapped", (json_int_t)memory->mapped,
                                      "readers", (json_int_t)memory->readers));
    else if (label)
        printf("%-17s %12s pinned, %s device, %s host, %s mapped, %s readers\n",
               label, output_bytes(memory->pinned),
               output_bytes(memory->device), output_bytes(memory->host),
               output_bytes(memory->mapped), output_bytes(memory->readers));
}

/* Memory reserved, and the part in use where that differs. */
static void report_memories(struct report *report, const leat_stats *stats)
{
    const leat_memory_stats *all = &stats->memory, *used = &stats->peak;
    bool is_same = all->pinned == used->pinned && all->device == used->device &&
                   all->host == used->host && all->mapped == used->mapped;
    report_memory(report, "memory", is_same ? "memory" : "memory reserved",
                  all);
    report_memory(report, "memory_peak", is_same ? NULL : "memory in use",
                  used);
}

/*
 * A forward that finds no batch ready does runs itself, as a worker does: it
 * counts as a thread where the verdict counts it. `seconds` is the time they
 * had.
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
    bool is_reading = !strcmp(stage->name, "reader") && !stage->threads;
    double had = stats->elapsed;
    const char *who = "no thread of its own";
    printf("stage %-10s  ", stage->name);
    if (!strcmp(stage->name, "forward")) {
        printf("the caller: %.2f s of %.2f s without a batch, in %.2f s of "
               "these it made one\n",
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
        printf(", waited %.2f s for input, %.2f s for a free batch",
               stage->blocked_empty, stage->blocked_full);
    if (is_work(stage))
        printf(", %.2f s for each other", stats->blocked_lock);
    printf("\n");
}

static void report_stage(struct report *report, const leat_stats *stats,
                         const leat_stage_stats *stage)
{
    const struct figure figures[] = {
        {"name", NULL, REPORT_TEXT, 0, stage->name},
        {"threads", NULL, REPORT_COUNT, stage->threads, NULL},
        {"busy", NULL, REPORT_SECONDS, stage->busy, NULL},
        {"blocked_empty", NULL, REPORT_SECONDS, stage->blocked_empty, NULL},
        {"blocked_full", NULL, REPORT_SECONDS, stage->blocked_full, NULL},
        {"blocked_lock", NULL, REPORT_SECONDS,
         is_work(stage) ? stats->blocked_lock : 0, NULL},
        {"items", NULL, REPORT_COUNT, (double)stage->items, NULL},
        {"bytes", NULL, REPORT_BYTES, (double)stage->bytes, NULL},
        {0}};
    report_row_of(report, "stages", figures);
    if (!report->object)
        print_stage(stats, stage);
}

/* What all lines and keys of a layer begin with. */
static void report_rates(struct report *report,
                         const struct layer_result *result, int n)
{
    char images[64] = "images/s";
    if (n > 1)
        snprintf(images, sizeof(images), "images/s on %d devices", n);
    const struct figure figures[] = {
        {"first_batch_ms", n > 1 ? "first step" : "first batch", REPORT_MS,
         1e3 * result->first_batch, NULL},
        {"images_per_s", "images", REPORT_RATE, images_rate(result), images},
        {"payload_bytes_per_s", "payload", REPORT_BANDWIDTH,
         bench_share(result->payload, result->seconds), NULL},
        {"batches", NULL, REPORT_COUNT, (double)result->batches, NULL},
        {"seconds", NULL, REPORT_SECONDS, result->seconds, NULL},
        {0}};
    report_figures(report, figures);
    report_waits(report, &result->waits);
}

/* The share is no ceiling: the limit is another measurement. */
static void report_limit(struct report *report,
                         const struct layer_result *result)
{
    double share =
        bench_share(images_rate(result), limit_rate(&result->limited));
    limit_report(&result->limited, &result->bandwidth, report);
    report_line(report, "limit_share", "share of limit", REPORT_SHARE, share,
                share > 1 ? ", above 100: both were measured, in "
                            "alternation, and vary"
                          : NULL);
}

static void report_cpu(struct report *report, const struct layer_result *result)
{
    char all[64];
    double cpu = bench_share(result->cpu, (double)result->samples);
    snprintf(all, sizeof(all), "an image, %s in %s", output_time(result->cpu),
             output_time(result->seconds));
    report_allocations(report, result->allocations);
    bool is_crowded = result->queued > result->cpu / 2;
    const struct figure figures[] = {
        {"cpu_us_per_image", "cpu", REPORT_US, 1e6 * cpu, all},
        {"cpu_seconds", NULL, REPORT_SECONDS, result->cpu, NULL},
        {"queued_seconds", is_crowded ? "cores were busy" : NULL,
         REPORT_SECONDS, result->queued,
         "in which threads could have run: other programs ran, or more threads "
         "than there are cores"},
        {"peak_rss", "peak resident", REPORT_BYTES, (double)result->peak_rss,
         NULL},
        {0}};
    report_figures(report, figures);
}

/* What a layer alone took, and which stage took it. */
static void report_stages(struct report *report, const leat_stats *stats)
{
    report_memories(report, stats);
    for (int i = 0; i < stats->nstages; i++)
        report_stage(report, stats, &stats->stage[i]);
    report_readers(report, stats->reader, stats->nreaders);
    const struct figure figures[] = {
        {"helped_chunks", NULL, REPORT_COUNT, (double)stats->helped_chunks,
         NULL},
        {"helped", NULL, REPORT_SECONDS, stats->helped, NULL},
        {"bad_records", stats->bad_records > 0 ? "bad records" : NULL,
         REPORT_COUNT, (double)stats->bad_records, NULL},
        {"jpeg_fast", NULL, REPORT_COUNT, (double)stats->jpeg_fast, NULL},
        {"jpeg_library", stats->jpeg_library > 0 ? "JPEGs by libjpeg" : NULL,
         REPORT_COUNT, (double)stats->jpeg_library, NULL},
        {0}};
    report_figures(report, figures);
}

static void report_member(struct report *report,
                          const struct layer_result *result, const char *name,
                          int i)
{
    const struct layer_share *share = &result->share[i];
    const leat_stats *stats = &share->stats;
    double images = bench_share((double)share->samples, result->seconds);
    const struct figure figures[] = {
        {"device", NULL, REPORT_TEXT, 0, name},
        {"images_per_s", NULL, REPORT_RATE, images, NULL},
        {"batches", NULL, REPORT_COUNT, (double)share->batches, NULL},
        {"bus_bytes_per_s", NULL, REPORT_BANDWIDTH, bus_rate(result, i), NULL},
        {"waited", NULL, REPORT_SECONDS, stats->waited, NULL},
        {"device_node", NULL, REPORT_COUNT, stats->device_node, NULL},
        {"host_node", NULL, REPORT_COUNT, stats->host_node, NULL},
        {"pinned", NULL, REPORT_BYTES, (double)stats->memory.pinned, NULL},
        {"device_memory", NULL, REPORT_BYTES, (double)stats->memory.device,
         NULL},
        {"host", NULL, REPORT_BYTES, (double)stats->memory.host, NULL},
        {0}};
    report_row_of(report, "devices", figures);
    if (report->object)
        return;
    printf("%-16s  %12s images/s, %s over the bus", name, output_scaled(images),
           output_bandwidth(bus_rate(result, i)));
    if (stats->device_node >= 0)
        printf(", on node %d, its batches on %d", stats->device_node,
               stats->host_node);
    printf("\n");
}

/* What bounds the feed shows where the caller waited longest. */
static const leat_stats *find_worst(const struct layer_result *result, int n)
{
    const leat_stats *worst = &result->share[0].stats;
    for (int i = 1; i < n; i++)
        if (result->share[i].stats.waited > worst->waited)
            worst = &result->share[i].stats;
    return worst;
}

static int report_all(struct layer_result *result,
                      const struct layer_group *group,
                      const struct layer_options *options)
{
    struct report report;
    report_begin(&report, options->json);
    report_rates(&report, result, group->n);
    report_slices(&report, result);
    if (options->limit)
        report_limit(&report, result);
    if (!group->group && group->member[0].device) {
        report_device(&report, result, group->member[0].device);
        report_overlap(&report, &result->overlap);
    }
    report_cpu(&report, result);
    for (int i = 0; group->group && i < group->n; i++)
        report_member(&report, result, group->name[i], i);
    if (!group->group)
        report_stages(&report, &result->share[0].stats);
    report_verdict(&report, find_worst(result, group->n), NULL);
    return report_end(&report);
}

static int run(const struct layer_options *options)
{
    static struct layer_result result;
    struct layer_group group = {0};
    layer_measure(&result, &group, options);
    int exit_status = report_all(&result, &group, options);
    layer_group_close(&group);
    return exit_status;
}

/* What makes no sense together. */
static void check(const struct layer_options *options, const char *command)
{
    if (options->overlap && !options->source.layer.device)
        message_misuse(command, "--overlap needs a --device");
    if (options->kernel_ms > 0 && !options->overlap)
        message_misuse(command, "--kernel-ms needs --overlap");
    if (options->row_copy && !options->limit)
        message_misuse(command, "--row-copy needs --limit");
    if (layer_group_is_list(options->source.layer.device) &&
        (options->limit || options->overlap || options->epochs))
        message_misuse(command, "with several devices there is no --limit, "
                                "--row-copy, --overlap or --epochs");
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
        option_flag("overlap", "measure what the caller's kernels hide",
                    &options.overlap),
        {"kernel-ms", "M", "kernels for that (as long as a delivery)",
         option_ms, &options.kernel_ms, 0, 1000},
        option_flag("limit", "measure the limit too, in alternation",
                    &options.limit),
        option_flag("row-copy",
                    "the limit: a bare copy of rows of uint8 images",
                    &options.row_copy),
        {"device", "NAME,...", "where to: cuda:0, or cuda:0,cuda:1",
         option_text, &options.source.layer.device, 0, 0},
        option_flag("json", "print one JSON object", &options.json),
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
    option_parse(&usage, argc, argv);
    layer_source_options_check(&options.source, usage.command);
    check(&options, usage.command);
    return run(&options);
}
