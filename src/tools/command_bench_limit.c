/*
 * command_bench_limit.c: `leat bench limit`: how fast a data layer could be at
 * most.
 */
#include "tools/bench/bench.h"
#include "tools/bench/limit.h"
#include "tools/command.h"
#include "tools/delivery/layer_source.h"

struct options {
    struct layer_source_options source;
    double seconds;
    bool row_copy;
    bool json;
};

/* The layer is created for its options, not set up. The first slice is for
   caches and clocks, and does not count. */
static void measure(const struct options *options, struct limit_result *result,
                    struct bandwidth *bandwidth)
{
    struct layer_source source = {0};
    struct limit_result ignored = {0};
    output_require(layer_source_create(&source, &options->source));
    struct limit *limit =
        limit_open(source.layer, options->row_copy,
                   bench_workers(options->source.layer.workers));
    limit_run(limit, LIMIT_SLICE, &ignored);
    do
        limit_run(limit, LIMIT_SLICE, result);
    while (result->seconds < options->seconds);
    limit_close(limit);
    layer_source_destroy(&source);
    bandwidth_measure(bandwidth);
}

static int run(const struct options *options)
{
    struct limit_result result = {0};
    struct bandwidth bandwidth;
    struct report report;
    interrupt_catch_opening();
    measure(options, &result, &bandwidth);
    report_begin(&report, options->json);
    const struct figure figures[] = {
        {"seconds", NULL, REPORT_SECONDS, result.seconds, NULL},
        {"images", NULL, REPORT_COUNT, (double)result.images, NULL},
        {"threads", NULL, REPORT_COUNT, result.threads, NULL},
        {"bad_records", result.bad > 0 ? "bad records" : NULL, REPORT_COUNT,
         (double)result.bad, ", left out"},
        {0}};
    report_figures(&report, figures);
    limit_report(&result, &bandwidth, &report);
    return report_end(&report);
}

int command_bench_limit(int argc, char **argv)
{
    struct options options = {.source = LAYER_SOURCE_OPTIONS_INIT,
                              .seconds = 3};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &options.source);
    const struct option_spec specs[] = {
        bench_seconds(&options.seconds),
        option_flag("row-copy", "a bare copy of rows of uint8 images",
                    &options.row_copy),
        option_flag("json", "print one JSON object", &options.json),
        {0}};
    const struct usage usage = {
        .command = "bench limit",
        .arguments =
            "(--net FILE --phase P | --reader TEXT --batch N) [options]",
        .about = "Measures what all cores together, or --workers of them,\n"
                 "can do at most on the same records, reading and\n"
                 "transforming them without any queue.",
        .options = specs,
        .shared = layer,
    };
    option_parse(&usage, argc, argv);
    layer_source_options_check(&options.source, usage.command);
    const leat_data_layer_options *layer_options = &options.source.layer;
    if ((layer_options->has_max_errors && layer_options->max_errors >= 0) ||
        layer_options->bad_record_file)
        message_misuse(usage.command,
                       "%s: --max-errors and --bad-record-file are for a "
                       "layer: leat bench layer",
                       usage.command);
    return run(&options);
}
