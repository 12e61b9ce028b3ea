/* command_bench_layer.c: `leat bench layer`: how fast a data layer delivers. */
#include "tools/bench/bench.h"
#include "tools/bench/layer_report.h"
#include "tools/command.h"

static int run(const struct layer_options *options)
{
    static struct layer_result result;
    struct layer_group group = {0};
    int status = layer_measure(&result, &group, options);
    int exit_status =
        status ? message_last_error() : layer_report(&result, &group, options);
    layer_group_close(&group);
    return exit_status;
}

/* What makes no sense together. */
static int check(const struct layer_options *options, const char *command)
{
    if (options->overlap && !options->source.layer.device)
        return message_misuse(command, "--overlap needs a --device");
    if (options->kernel_ms > 0 && !options->overlap)
        return message_misuse(command, "--kernel-ms needs --overlap");
    if (options->row_copy && !options->limit)
        return message_misuse(command, "--row-copy needs --limit");
    if (layer_group_is_list(options->source.layer.device) &&
        (options->limit || options->overlap || options->epochs))
        return message_misuse(command,
                              "with several devices there is no --limit, "
                              "--row-copy, --overlap or --epochs");
    return OPTION_GO;
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
         option_text, &options.source.layer.device, 0, 0},
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
    if (status == OPTION_GO)
        status = check(&options, usage.command);
    return status == OPTION_GO ? run(&options) : status;
}
