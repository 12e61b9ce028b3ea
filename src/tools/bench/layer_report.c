#include "tools/bench/layer_report.h"

#include "tools/bench/bench.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    report_text(report, "device", leat_device_name(device));
    report_line(report, "bus_bytes_per_s", "over the bus", REPORT_BANDWIDTH,
                bus, to);
    report_line(report, "h2d_bytes_per_s", "h2d, pinned", REPORT_BANDWIDTH,
                ceiling->rate, how);
    report_line(report, "h2d_share", "share of h2d", REPORT_SHARE,
                bus / ceiling->rate, NULL);
    report_value(report, "h2d_copies.copy_bytes", REPORT_BYTES,
                 (double)ceiling->bytes);
    report_value(report, "h2d_copies.samples", REPORT_COUNT, ceiling->samples);
    report_value(report, "h2d_copies.p10", REPORT_BANDWIDTH, ceiling->p10);
    report_value(report, "h2d_copies.p90", REPORT_BANDWIDTH, ceiling->p90);
    report_value(report, "h2d_copies.best_bytes_per_s", REPORT_BANDWIDTH,
                 ceiling->best);
    report_value(report, "h2d_copies.best_share", REPORT_SHARE,
                 bus / ceiling->best);
    if (isnan(ceiling->rate) && !report->object)
        printf("h2d, pinned            unknown: %s\n",
               plain_text(ceiling->why));
}

static void report_overlap(struct report *report, const struct overlap *overlap)
{
    if (!overlap->batches) {
        report_value(report, "overlap", REPORT_SHARE, NAN);
        return;
    }
    char how[160];
    snprintf(how, sizeof(how), ", copies %s a batch, kernels %s, together %s",
             output_time(overlap->copies), output_time(overlap->kernels),
             output_time(overlap->together));
    report_line(report, "overlap", "overlap", REPORT_SHARE, overlap->share,
                how);
    report_value(report, "overlap_ms.copies", REPORT_MS, 1e3 * overlap->copies);
    report_value(report, "overlap_ms.kernels", REPORT_MS,
                 1e3 * overlap->kernels);
    report_value(report, "overlap_ms.together", REPORT_MS,
                 1e3 * overlap->together);
    report_value(report, "overlap_ms.batches", REPORT_COUNT, overlap->batches);
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
    report_value(report, "slices.n", REPORT_COUNT, (double)result->slices);
    report_value(report, "slices.p10", REPORT_RATE, spread.p10);
    report_value(report, "slices.median", REPORT_RATE, spread.median);
    report_value(report, "slices.p90", REPORT_RATE, spread.p90);
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

/* Memory reserved, and the part in use where that differs. */
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
        printf(", waited %.2f s for input, %.2f s for a free batch",
               stage->blocked_empty, stage->blocked_full);
    if (is_work(stage))
        printf(", %.2f s for each other", stats->blocked_lock);
    printf("\n");
}

static void report_stage(struct report *report, const leat_stats *stats,
                         const leat_stage_stats *stage)
{
    report_row(report, "stages");
    report_text(report, "name", stage->name);
    report_value(report, "threads", REPORT_COUNT, stage->threads);
    report_value(report, "busy", REPORT_SECONDS, stage->busy);
    report_value(report, "blocked_empty", REPORT_SECONDS, stage->blocked_empty);
    report_value(report, "blocked_full", REPORT_SECONDS, stage->blocked_full);
    report_value(report, "blocked_lock", REPORT_SECONDS,
                 is_work(stage) ? stats->blocked_lock : 0);
    report_value(report, "items", REPORT_COUNT, (double)stage->items);
    report_value(report, "bytes", REPORT_BYTES, (double)stage->bytes);
    report_row_end(report);
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
    report_line(report, "first_batch_ms", n > 1 ? "first step" : "first batch",
                REPORT_MS, 1e3 * result->first_batch, NULL);
    report_line(report, "images_per_s", "images", REPORT_RATE,
                images_rate(result), images);
    report_line(report, "payload_bytes_per_s", "payload", REPORT_BANDWIDTH,
                bench_share(result->payload, result->seconds), NULL);
    report_value(report, "batches", REPORT_COUNT, (double)result->batches);
    report_value(report, "seconds", REPORT_SECONDS, result->seconds);
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
    report_line(report, "cpu_us_per_image", "cpu", REPORT_US, 1e6 * cpu, all);
    report_value(report, "cpu_seconds", REPORT_SECONDS, result->cpu);
    report_line(report, "peak_rss", "peak resident", REPORT_BYTES,
                (double)result->peak_rss, NULL);
}

/* What a layer alone took, and which stage took it. */
static void report_stages(struct report *report, const leat_stats *stats)
{
    if (report->object) {
        json_object_set_new(report->object, "memory",
                            json_memory(&stats->memory));
        json_object_set_new(report->object, "memory_peak",
                            json_memory(&stats->peak));
    } else {
        print_memories(stats);
    }
    for (int i = 0; i < stats->nstages; i++)
        report_stage(report, stats, &stats->stage[i]);
    report_value(report, "helped_chunks", REPORT_COUNT,
                 (double)stats->helped_chunks);
    report_value(report, "helped", REPORT_SECONDS, stats->helped);
    report_line(report, "bad_records",
                stats->bad_records > 0 ? "bad records" : NULL, REPORT_COUNT,
                (double)stats->bad_records, NULL);
}

static void report_member(struct report *report,
                          const struct layer_result *result, const char *name,
                          int i)
{
    const struct layer_share *share = &result->share[i];
    const leat_stats *stats = &share->stats;
    double images = bench_share((double)share->samples, result->seconds);
    report_row(report, "devices");
    report_text(report, "device", name);
    report_value(report, "images_per_s", REPORT_RATE, images);
    report_value(report, "batches", REPORT_COUNT, (double)share->batches);
    report_value(report, "bus_bytes_per_s", REPORT_BANDWIDTH,
                 bus_rate(result, i));
    report_value(report, "waited", REPORT_SECONDS, stats->waited);
    report_value(report, "device_node", REPORT_COUNT, stats->device_node);
    report_value(report, "host_node", REPORT_COUNT, stats->host_node);
    report_value(report, "pinned", REPORT_BYTES, (double)stats->memory.pinned);
    report_value(report, "device_memory", REPORT_BYTES,
                 (double)stats->memory.device);
    report_value(report, "host", REPORT_BYTES, (double)stats->memory.host);
    report_row_end(report);
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

int layer_report(struct layer_result *result, const struct layer_group *group,
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
