/* bench.c: `leat bench`: its options, and what all its parts share. */
#include "tools/bench.h"

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/message.h"
#include "tools/processor.h"

#include <leat/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 256 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_spread bench_spread_of(double rounds[], int n)
{
    qsort(rounds, (size_t)n, sizeof(rounds[0]), ascending);
    return (struct bench_spread){rounds[n / 2], rounds[n / 10],
                                 rounds[n - 1 - n / 10]};
}

double bench_overlap(double one, double other, double together)
{
    double shorter = one < other ? one : other;
    double share = bench_share(one + other - together, shorter);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

double bench_share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

void bench_add_machine(json_t *object)
{
    json_object_set_new(object, "cpu", json_string(processor_name()));
    json_object_set_new(object, "cores",
                        json_integer(processor_count(1 << 16)));
    json_object_set_new(object, "version", json_string(leat_version()));
}

void bench_print_machine(void)
{
    printf("%s, %d cores, leat %s\n", processor_name(),
           processor_count(1 << 16), leat_version());
}

int bench_workers(const struct bench_options *options)
{
    int64_t workers = options->intake.workers;
    if (!workers)
        return processor_count(MOST_WORKERS);
    return workers < MOST_WORKERS ? (int)workers : MOST_WORKERS;
}

static const struct {
    const char *name;
    int (*run)(const struct bench_options *options);
} parts[] = {
    {"layer", bench_layer}, {"limit", bench_limit}, {"reader", bench_reader},
    {"queue", bench_queue}, {"h2d", bench_h2d},
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* What the part `i` needs to be told. */
static int check_source(int i, const struct bench_options *options)
{
    const struct intake_options *intake = &options->intake;
    if (parts[i].run == bench_reader && (!intake->reader || intake->net))
        return message_misuse("bench", "bench reader: give --reader");
    if (parts[i].run == bench_queue && (intake->reader || intake->net))
        return message_misuse("bench", "bench queue makes its own records: "
                                       "give neither --net nor --reader");
    if (parts[i].run == bench_h2d && (intake->reader || intake->net))
        return message_misuse("bench", "bench h2d copies bytes of its own: "
                                       "give neither --net nor --reader");
    if (parts[i].run != bench_h2d && parts[i].run != bench_layer &&
        intake->device)
        return message_misuse("bench", "bench %s knows no --device",
                              parts[i].name);
    if (parts[i].run == bench_layer || parts[i].run == bench_limit)
        return intake_check(intake, "bench");
    return OPTION_GO;
}

static int run_part(const char *name, const struct bench_options *options)
{
    for (int i = 0; i < PARTS; i++) {
        if (strcmp(name, parts[i].name) != 0)
            continue;
        int status = check_source(i, options);
        if (status != OPTION_GO)
            return status;
        interrupt_catch();
        return parts[i].run(options);
    }
    return message_misuse(
        "bench", "bench measures layer, limit, reader, queue or h2d, not '%s'",
        name);
}

int command_bench(int argc, char **argv)
{
    struct bench_options options = {.intake = INTAKE_OPTIONS_INIT,
                                    .seconds = 3,
                                    .bytes = {4096, INT64_C(1) << 28},
                                    .streams = 4};
    const struct option_spec specs[] = {
        INTAKE_OPTIONS(&options.intake),
        {"seconds", "S", "how long to measure (3)", option_real,
         &options.seconds, 0, 86400},
        {"epochs", "N", "layer: measure so many epochs instead", option_int,
         &options.epochs, 1, INT32_MAX},
        {"compute-ms", "M", "layer: compute so long after each batch",
         option_real, &options.compute_ms, 0, 3600000},
        {"sleep-ms", "M", "layer: sleep so long after each batch", option_real,
         &options.sleep_ms, 0, 3600000},
        {"limit", NULL, "layer: measure the limit too, in alternation", NULL,
         &options.limit, 0, 0},
        {"row-copy", NULL, "the limit: a bare copy of rows of uint8 images",
         NULL, &options.row_copy, 0, 0},
        {"touch", NULL, "reader: read what the records hold, too", NULL,
         &options.touch, 0, 0},
        {"device", "NAME", "layer, h2d: where to, such as cuda:0", option_text,
         &options.intake.device, 0, 0},
        {"bytes", "A:B", "h2d: copies of A to B bytes (4096:268435456)",
         option_range, options.bytes, 0, 0},
        {"streams", "N", "h2d: by up to so many streams (4)", option_int,
         &options.streams, 1, 16},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        "bench",
        "layer|limit (--net FILE --phase P | --reader TEXT --batch N) "
        "[options]\n"
        "       leat bench reader --reader TEXT [options]\n"
        "       leat bench queue [options]\n"
        "       leat bench h2d [--device cuda:0] [options]",
        "layer: how fast a data layer delivers, how long its caller waits, "
        "and\n"
        "why. limit: what all cores together can do at most on the same\n"
        "records, reading and transforming them without any queue. reader:\n"
        "records a second, in order and shuffled, by one thread and by\n"
        "--workers. queue: what it costs to hand a batch over, for one\n"
        "worker and up to --workers. h2d: the bandwidth from host memory, "
        "pinned\n"
        "and pageable, to a device.",
        specs,
        1,
        1};
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    return status == OPTION_GO ? run_part(arguments[0], &options) : status;
}
