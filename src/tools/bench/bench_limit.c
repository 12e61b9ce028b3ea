/* bench_limit.c: `leat bench limit`: how fast a data layer could be at most. */
#include "tools/bench/bench_limit.h"

#include "tools/bench/bench.h"
#include "tools/bench/processor.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/command.h"

#include <stdio.h>

struct limit_options {
    struct layer_source_options source;
    double seconds;
    int row_copy;
    int json;
};

int bench_limit_open(struct bench_limit *self,
                     const struct layer_source *source, int copies, int threads)
{
    struct limit_result ignored = {0};
    int status = limit_open(&self->limit, source->layer, copies, threads);
    return status ? status : limit_run(self->limit, BENCH_SLICE, &ignored);
}

int bench_limit_slice(struct bench_limit *self)
{
    double cpu = processor_seconds();
    int status = limit_run(self->limit, BENCH_SLICE, &self->result);
    self->cpu += processor_seconds() - cpu;
    return status;
}

void bench_limit_close(struct bench_limit *self)
{
    limit_close(self->limit);
    self->limit = NULL;
}

double bench_limit_rate(const struct bench_limit *self)
{
    return bench_share((double)self->result.images, self->result.seconds);
}

static double payload_rate(const struct bench_limit *self)
{
    return bench_share((double)self->result.bytes, self->result.seconds);
}

static double cpu_us_per_image(const struct bench_limit *self)
{
    return 1e6 * bench_share(self->cpu, (double)self->result.images);
}

void bench_limit_add_json(const struct bench_limit *self, json_t *object)
{
    json_object_set_new(object, "limit_images_per_s",
                        json_real(bench_limit_rate(self)));
    json_object_set_new(object, "limit_payload_bytes_per_s",
                        json_real(payload_rate(self)));
    json_object_set_new(object, "limit_cpu_us_per_image",
                        json_real(cpu_us_per_image(self)));
    json_object_set_new(object, "store_bytes_per_s",
                        json_real(self->bandwidth.store));
    json_object_set_new(object, "memcpy_bytes_per_s",
                        json_real(self->bandwidth.memcpy));
}

void bench_limit_print(const struct bench_limit *self)
{
    printf("limit             %12s images/s\n",
           output_scaled(bench_limit_rate(self)));
    printf("limit, cpu        %12s an image\n",
           output_time(1e-6 * cpu_us_per_image(self)));
    printf("limit, payload    %12s\n", output_bandwidth(payload_rate(self)));
    printf("store bandwidth   %12s\n", output_bandwidth(self->bandwidth.store));
    printf("memcpy bandwidth  %12s\n",
           output_bandwidth(self->bandwidth.memcpy));
}

/* The layer is created for what it says, not set up. */
static int measure(const struct limit_options *options,
                   struct bench_limit *limit)
{
    struct layer_source source = {0};
    int status = layer_source_create(&source, &options->source);
    if (!status)
        status = bench_limit_open(limit, &source, options->row_copy,
                                  bench_workers(options->source.workers));
    interrupt_catch();
    while (!status) {
        status = bench_limit_slice(limit);
        if (!status)
            status = interrupt_check();
        if (limit->result.seconds >= options->seconds)
            break;
    }
    bench_limit_close(limit);
    layer_source_destroy(&source);
    return status ? status : bandwidth_measure(&limit->bandwidth);
}

static int run(const struct limit_options *options)
{
    struct bench_limit limit = {0};
    if (measure(options, &limit))
        return message_last_error();
    if (!options->json) {
        bench_limit_print(&limit);
        if (limit.result.bad > 0)
            printf("bad records       %12lld, left out\n",
                   (long long)limit.result.bad);
        return 0;
    }
    json_t *object =
        json_pack("{s:f, s:I, s:i, s:I}", "seconds", limit.result.seconds,
                  "images", (json_int_t)limit.result.images, "threads",
                  bench_workers(options->source.workers), "bad_records",
                  (json_int_t)limit.result.bad);
    bench_limit_add_json(&limit, object);
    bench_add_machine(object);
    return output_json(object);
}

int command_bench_limit(int argc, char **argv)
{
    struct limit_options options = {.source = LAYER_SOURCE_OPTIONS_INIT,
                                    .seconds = 3};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &options.source);
    const struct option_spec specs[] = {
        bench_seconds(&options.seconds),
        {"row-copy", NULL, "a bare copy of rows of uint8 images", NULL,
         &options.row_copy, 0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
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
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status == OPTION_GO)
        status = layer_source_options_check(&options.source, usage.command);
    const struct layer_source_options *source = &options.source;
    if (status == OPTION_GO &&
        (source->max_errors >= 0 || source->bad_record_file))
        status = message_misuse(usage.command,
                                "%s: --max-errors and --bad-record-file are "
                                "for a layer: leat bench layer",
                                usage.command);
    return status == OPTION_GO ? run(&options) : status;
}
