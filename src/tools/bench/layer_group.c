/*
 * One caller takes a step, a batch on each device, and then computes or sleeps
 * as a training loop does. What the members took is counted for each of them.
 */
#include "tools/bench/layer_group.h"
#include "base/clock.h"

#include "tools/bench/bench.h"
#include "tools/bench/caller.h"
#include "tools/bench/latency.h"
#include "tools/bench/report.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"

#include <leat/data_layer_group.h>
#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <string.h>

enum { MOST_DEVICES = 16, MOST_NAME = 32 };

/* A member with its tops and the stream that reads them. */
struct member {
    char name[MOST_NAME];
    leat_data_layer *layer;
    leat_device *device;
    leat_stream stream; /* LEAT_HOST where the CPU reads */
    leat_blob *top[LEAT_MAX_FIELDS];
    int64_t samples;
    int64_t batches;
    leat_stats before;
    leat_stats after;
};

struct group {
    leat_data_layer_group *group;
    int n;
    int ntop;
    struct member member[MOST_DEVICES];
    double first_step; /* seconds from create to the end of the first one */
    double seconds;
    int64_t samples;
    int64_t batches;
    int64_t allocations;
    double cpu; /* seconds, what the caller computed left out */
    struct latency waits;
};

int layer_group_is_list(const char *device)
{
    return device && strchr(device, ',') != NULL;
}

/* "cuda:0,cuda:1" into names. */
static int parse_names(struct group *self, const char *list)
{
    while (*list) {
        size_t size = strcspn(list, ",");
        if (self->n == MOST_DEVICES)
            return leat_error(LEAT_EINVAL, "more than %d devices",
                              MOST_DEVICES);
        if (size == 0 || size >= MOST_NAME)
            return leat_error(LEAT_EINVAL, "\"%s\" is no list of devices",
                              list);
        memcpy(self->member[self->n++].name, list, size);
        list += size;
        if (*list == ',' && !*++list)
            return leat_error(LEAT_EINVAL,
                              "the list of devices ends with a comma");
    }
    return LEAT_OK;
}

static int open_member(struct member *member, int ntop)
{
    int status = leat_device_find(&member->device, member->name);
    member->stream = LEAT_HOST;
    if (!status && !member->device->ops->unified)
        status =
            member->device->ops->stream_create(member->device, &member->stream);
    for (int i = 0; !status && i < ntop; i++)
        status = leat_blob_create(&member->top[i], member->device);
    return status;
}

/* The group of the pipeline and options that the command line names. */
static int create(struct group *self,
                  const struct layer_source_options *options)
{
    struct layer_source_options on_cpu = *options;
    struct layer_source source = {0};
    const char *names[MOST_DEVICES];
    on_cpu.device = NULL;
    int status = layer_source_create(&source, &on_cpu);
    if (!status) {
        self->ntop = leat_data_layer_top_count(source.layer);
        status = self->ntop < 0 ? self->ntop : LEAT_OK;
    }
    if (!status && self->ntop > LEAT_MAX_FIELDS)
        status = leat_error(LEAT_EUNSUPPORTED, "%d tops, more than %d",
                            self->ntop, LEAT_MAX_FIELDS);
    for (int i = 0; i < self->n; i++)
        names[i] = self->member[i].name;
    if (!status)
        status = leat_data_layer_group_create(
            &self->group, leat_data_layer_pipeline(source.layer),
            leat_data_layer_get_options(source.layer), names, self->n);
    layer_source_destroy(&source);
    return status;
}

static int set_up(struct group *self)
{
    leat_blob *tops[MOST_DEVICES * LEAT_MAX_FIELDS];
    int status = LEAT_OK;
    for (int i = 0; !status && i < self->n; i++) {
        struct member *member = &self->member[i];
        member->layer = leat_data_layer_group_member(self->group, i);
        status = open_member(member, self->ntop);
        memcpy(tops + i * self->ntop, member->top,
               (size_t)self->ntop * sizeof(tops[0]));
    }
    return status ? status
                  : leat_data_layer_group_setup(self->group, tops, self->ntop);
}

static void finish(struct group *self)
{
    leat_data_layer_group_destroy(self->group);
    for (int i = 0; i < self->n; i++) {
        struct member *member = &self->member[i];
        for (int k = 0; k < LEAT_MAX_FIELDS; k++)
            leat_blob_destroy(member->top[k]);
        if (member->device && member->stream != LEAT_HOST)
            member->device->ops->stream_destroy(member->device, member->stream);
    }
}

static int forward(struct group *self, struct member *member)
{
    int status = leat_data_layer_forward(member->layer, member->top, self->ntop,
                                         member->stream);
    return status == LEAT_END ? leat_error(LEAT_EDATA, "the data has ended")
                              : status;
}

/* A batch on each device, one after the other. */
static int step(struct group *self, struct latency *waits)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < self->n; i++) {
        struct member *member = &self->member[i];
        double begin = leat__clock_seconds();
        status = forward(self, member);
        if (waits)
            latency_add(waits, leat__clock_seconds() - begin);
        const leat_batch *batch = leat_data_layer_batch(member->layer);
        if (waits && batch) {
            member->samples += batch->n;
            member->batches++;
        }
    }
    return status;
}

static double consume(const struct layer_group_options *options)
{
    caller_compute(options->compute_ms);
    caller_sleep(options->sleep_ms);
    return 1e-3 * options->compute_ms;
}

/* Until all that was asked for is where it should be. */
static int wait_for_all(struct group *self)
{
    int status = LEAT_OK;
    for (int i = 0; i < self->n; i++) {
        struct member *member = &self->member[i];
        if (member->stream == LEAT_HOST)
            continue;
        int own = member->device->ops->stream_synchronize(member->device,
                                                          member->stream);
        status = status ? status : own;
    }
    return status;
}

static int read_stats(struct group *self, int is_after)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < self->n; i++) {
        struct member *member = &self->member[i];
        leat_stats *stats = is_after ? &member->after : &member->before;
        stats->size = sizeof(*stats);
        status = leat_data_layer_stats(member->layer, stats);
    }
    return status;
}

/* What was made while nobody asked is not the rate. */
static int warm_up(struct group *self, const struct layer_group_options *what)
{
    leat_data_layer *layer = self->member[0].layer;
    int prefetch = leat_data_layer_get_options(layer)->prefetch;
    int steps = prefetch < 4 ? 5 : prefetch + 1;
    int status = LEAT_OK;
    for (int i = 0; !status && i < steps; i++) {
        status = step(self, NULL);
        consume(what);
    }
    return status ? status : wait_for_all(self);
}

static int run_steps(struct group *self, const struct layer_group_options *what)
{
    struct progress progress;
    int64_t steps = 0;
    int status = read_stats(self, 0);
    int64_t allocations = bench_allocations();
    double cpu = bench_cpu_seconds(), start = leat__clock_seconds();
    progress_start(&progress, "steps", -1, what->json);
    do {
        if (!status)
            status = step(self, &self->waits);
        self->cpu -= consume(what);
        if (!status)
            status = interrupt_check();
        progress_update(&progress, ++steps);
    } while (!status && leat__clock_seconds() - start < what->seconds);
    progress_finish(&progress);
    if (!status)
        status = wait_for_all(self);
    self->seconds = leat__clock_seconds() - start;
    self->cpu += bench_cpu_seconds() - cpu;
    self->allocations = bench_allocations() - allocations;
    return status ? status : read_stats(self, 1);
}

static int measure(struct group *self, const struct layer_group_options *what)
{
    double start = leat__clock_seconds();
    int status = parse_names(self, what->source->device);
    if (!status)
        status = create(self, what->source);
    if (!status)
        status = set_up(self);
    interrupt_catch();
    if (!status)
        status = step(self, NULL);
    self->first_step = leat__clock_seconds() - start;
    if (!status)
        status = warm_up(self, what);
    if (!status)
        status = run_steps(self, what);
    for (int i = 0; i < self->n; i++) {
        self->samples += self->member[i].samples;
        self->batches += self->member[i].batches;
    }
    return status;
}

/* Bytes that went over the bus to the member's device. */
static int64_t bus_bytes(const struct member *member)
{
    for (int i = 0; i < member->after.nstages; i++)
        if (strcmp(member->after.stage[i].name, "copy") == 0)
            return member->after.stage[i].bytes - member->before.stage[i].bytes;
    return 0;
}

/* What is read is not yet delivered: so much a record, as read so far. */
static double payload(const struct group *self)
{
    const leat_stage_stats *read = &self->member[0].after.stage[0];
    return (double)self->samples *
           bench_share((double)read->bytes, (double)read->items);
}

static double rate(int64_t n, double seconds)
{
    return bench_share((double)n, seconds);
}

static double waited(const struct member *member)
{
    return member->after.waited - member->before.waited;
}

/* What bounds the feed shows where the caller waited longest. */
static const struct member *find_worst(const struct group *self)
{
    const struct member *worst = &self->member[0];
    for (int i = 1; i < self->n; i++)
        if (waited(&self->member[i]) > waited(worst))
            worst = &self->member[i];
    return worst;
}

static json_t *json_devices(const struct group *self)
{
    json_t *devices = json_array();
    for (int i = 0; i < self->n; i++) {
        const struct member *member = &self->member[i];
        const leat_memory_stats *memory = &member->after.memory;
        json_array_append_new(
            devices,
            json_pack("{s:s, s:f, s:I, s:f, s:f, s:i, s:i, s:I, s:I, s:I}",
                      "device", leat_device_name(member->device),
                      "images_per_s", rate(member->samples, self->seconds),
                      "batches", (json_int_t)member->batches, "bus_bytes_per_s",
                      rate(bus_bytes(member), self->seconds), "waited",
                      waited(member), "device_node", member->after.device_node,
                      "host_node", member->after.host_node, "pinned",
                      (json_int_t)memory->pinned, "device_memory",
                      (json_int_t)memory->device, "host",
                      (json_int_t)memory->host));
    }
    return devices;
}

static void print_member(const struct group *self, const struct member *member)
{
    printf("%-16s  %12s images/s, %s over the bus",
           leat_device_name(member->device),
           output_scaled(rate(member->samples, self->seconds)),
           output_bandwidth(rate(bus_bytes(member), self->seconds)));
    if (member->after.device_node >= 0)
        printf(", on node %d, its batches on %d", member->after.device_node,
               member->after.host_node);
    printf("\n");
}

static int print_report(const struct group *self, int json)
{
    const struct member *worst = find_worst(self);
    struct report report;
    char images[64];
    snprintf(images, sizeof(images), "images/s on %d devices", self->n);
    report_begin(&report, json);
    report_add(&report,
               (struct figure[]){
                   {"first_batch_ms", "first step", REPORT_MS,
                    1e3 * self->first_step, NULL},
                   {"images_per_s", "images", REPORT_RATE,
                    rate(self->samples, self->seconds), images},
                   {"payload_bytes_per_s", "payload", REPORT_BANDWIDTH,
                    bench_share(payload(self), self->seconds), NULL},
                   {"batches", NULL, REPORT_COUNT, (double)self->batches, NULL},
                   {"seconds", NULL, REPORT_SECONDS, self->seconds, NULL},
                   {0}});
    report_waits(&report, &self->waits);
    report_allocations(&report, self->allocations);
    report_add(&report,
               (struct figure[]){
                   {"cpu_seconds", NULL, REPORT_SECONDS, self->cpu, NULL},
                   {NULL, "cpu", REPORT_SECONDS,
                    bench_share(self->cpu, (double)self->samples), "an image"},
                   {0}});
    if (json)
        json_object_set_new(report.object, "devices", json_devices(self));
    for (int i = 0; !json && i < self->n; i++)
        print_member(self, &self->member[i]);
    report_verdict(&report, &worst->after, &worst->before);
    return report_end(&report);
}

int layer_group_run(const struct layer_group_options *options)
{
    static struct group group;
    int status = measure(&group, options);
    int exit_status =
        status ? message_last_error() : print_report(&group, options->json);
    finish(&group);
    return exit_status;
}
