/*
 * One caller takes a step, a batch on each device, and then computes or sleeps
 * as a training loop does. What the members took is counted for each of them.
 */
#include "tools/bench/bench_group.h"
#include "base/clock.h"

#include "tools/bench/bench.h"
#include "tools/bench/caller.h"
#include "tools/bench/latency.h"
#include "tools/bench/processor.h"
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
struct seat {
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
    struct seat seat[MOST_DEVICES];
    double first_step; /* seconds from create to the end of the first one */
    double seconds;
    int64_t samples;
    int64_t batches;
    int64_t allocations;
    double cpu; /* seconds, what the caller computed left out */
    struct latency waits;
};

int bench_group_is_list(const char *device)
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
        memcpy(self->seat[self->n++].name, list, size);
        list += size;
        if (*list == ',' && !*++list)
            return leat_error(LEAT_EINVAL,
                              "the list of devices ends with a comma");
    }
    return LEAT_OK;
}

static int open_seat(struct seat *seat, int ntop)
{
    int status = leat_device_find(&seat->device, seat->name);
    seat->stream = LEAT_HOST;
    if (!status && !seat->device->ops->unified)
        status = seat->device->ops->stream_create(seat->device, &seat->stream);
    for (int i = 0; !status && i < ntop; i++)
        status = leat_blob_create(&seat->top[i], seat->device);
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
        names[i] = self->seat[i].name;
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
        struct seat *seat = &self->seat[i];
        seat->layer = leat_data_layer_group_member(self->group, i);
        status = open_seat(seat, self->ntop);
        memcpy(tops + i * self->ntop, seat->top,
               (size_t)self->ntop * sizeof(tops[0]));
    }
    return status ? status
                  : leat_data_layer_group_setup(self->group, tops, self->ntop);
}

static void finish(struct group *self)
{
    leat_data_layer_group_destroy(self->group);
    for (int i = 0; i < self->n; i++) {
        struct seat *seat = &self->seat[i];
        for (int k = 0; k < LEAT_MAX_FIELDS; k++)
            leat_blob_destroy(seat->top[k]);
        if (seat->device && seat->stream != LEAT_HOST)
            seat->device->ops->stream_destroy(seat->device, seat->stream);
    }
}

static int forward(struct group *self, struct seat *seat)
{
    int status = leat_data_layer_forward(seat->layer, seat->top, self->ntop,
                                         seat->stream);
    return status == LEAT_END ? leat_error(LEAT_EDATA, "the data has ended")
                              : status;
}

/* A batch on each device, one after the other. */
static int step(struct group *self, struct latency *waits)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < self->n; i++) {
        struct seat *seat = &self->seat[i];
        double begin = leat__clock_seconds();
        status = forward(self, seat);
        if (waits)
            latency_add(waits, leat__clock_seconds() - begin);
        const leat_batch *batch = leat_data_layer_batch(seat->layer);
        if (waits && batch) {
            seat->samples += batch->n;
            seat->batches++;
        }
    }
    return status;
}

static double consume(const struct bench_group_options *options)
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
        struct seat *seat = &self->seat[i];
        if (seat->stream == LEAT_HOST)
            continue;
        int own =
            seat->device->ops->stream_synchronize(seat->device, seat->stream);
        status = status ? status : own;
    }
    return status;
}

static int read_stats(struct group *self, int is_after)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < self->n; i++) {
        struct seat *seat = &self->seat[i];
        leat_stats *stats = is_after ? &seat->after : &seat->before;
        stats->size = sizeof(*stats);
        status = leat_data_layer_stats(seat->layer, stats);
    }
    return status;
}

/* What was made while nobody asked is not the rate. */
static int warm_up(struct group *self, const struct bench_group_options *what)
{
    leat_data_layer *layer = self->seat[0].layer;
    int prefetch = leat_data_layer_get_options(layer)->prefetch;
    int steps = prefetch < 4 ? 5 : prefetch + 1;
    int status = LEAT_OK;
    for (int i = 0; !status && i < steps; i++) {
        status = step(self, NULL);
        consume(what);
    }
    return status ? status : wait_for_all(self);
}

static int run_steps(struct group *self, const struct bench_group_options *what)
{
    struct progress progress;
    int64_t steps = 0;
    int status = read_stats(self, 0);
    int64_t allocations = bench_allocations();
    double cpu = processor_seconds(), start = leat__clock_seconds();
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
    self->cpu += processor_seconds() - cpu;
    self->allocations = bench_allocations() - allocations;
    return status ? status : read_stats(self, 1);
}

static int measure(struct group *self, const struct bench_group_options *what)
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
        self->samples += self->seat[i].samples;
        self->batches += self->seat[i].batches;
    }
    return status;
}

/* Bytes that went over the bus to the member's device. */
static int64_t bus_bytes(const struct seat *seat)
{
    for (int i = 0; i < seat->after.nstages; i++)
        if (strcmp(seat->after.stage[i].name, "copy") == 0)
            return seat->after.stage[i].bytes - seat->before.stage[i].bytes;
    return 0;
}

/* What is read is not yet delivered: so much a record, as read so far. */
static double payload(const struct group *self)
{
    const leat_stage_stats *read = &self->seat[0].after.stage[0];
    return (double)self->samples *
           bench_share((double)read->bytes, (double)read->items);
}

static double rate(int64_t n, double seconds)
{
    return bench_share((double)n, seconds);
}

static double waited(const struct seat *seat)
{
    return seat->after.waited - seat->before.waited;
}

/* What bounds the feed shows where the caller waited longest. */
static const struct seat *find_worst(const struct group *self)
{
    const struct seat *worst = &self->seat[0];
    for (int i = 1; i < self->n; i++)
        if (waited(&self->seat[i]) > waited(worst))
            worst = &self->seat[i];
    return worst;
}

static json_t *json_devices(const struct group *self)
{
    json_t *devices = json_array();
    for (int i = 0; i < self->n; i++) {
        const struct seat *seat = &self->seat[i];
        const leat_memory_stats *memory = &seat->after.memory;
        json_array_append_new(
            devices,
            json_pack("{s:s, s:f, s:I, s:f, s:f, s:i, s:i, s:I, s:I, s:I}",
                      "device", leat_device_name(seat->device), "images_per_s",
                      rate(seat->samples, self->seconds), "batches",
                      (json_int_t)seat->batches, "bus_bytes_per_s",
                      rate(bus_bytes(seat), self->seconds), "waited",
                      waited(seat), "device_node", seat->after.device_node,
                      "host_node", seat->after.host_node, "pinned",
                      (json_int_t)memory->pinned, "device_memory",
                      (json_int_t)memory->device, "host",
                      (json_int_t)memory->host));
    }
    return devices;
}

static int report_json(const struct group *self)
{
    const struct seat *worst = find_worst(self);
    json_t *object =
        json_pack("{s:f, s:f, s:f, s:I, s:f, s:{s:f, s:f, s:f}, s:o}",
                  "first_batch_ms", 1e3 * self->first_step, "images_per_s",
                  rate(self->samples, self->seconds), "payload_bytes_per_s",
                  bench_share(payload(self), self->seconds), "batches",
                  (json_int_t)self->batches, "seconds", self->seconds,
                  "wait_us", "p50", latency_percentile(&self->waits, .5), "p99",
                  latency_percentile(&self->waits, .99), "max",
                  latency_longest(&self->waits), "devices", json_devices(self));
    bench_add_verdict(object, &worst->after, &worst->before);
    if (bench_allocations() >= 0)
        json_object_set_new(object, "steady_allocations",
                            json_integer((json_int_t)self->allocations));
    json_object_set_new(object, "cpu_seconds", json_real(self->cpu));
    bench_add_machine(object);
    return output_json(object);
}

static int report(const struct group *self)
{
    bench_print_machine();
    printf("first step        %12s\n", output_time(self->first_step));
    printf("images            %12s images/s on %d devices\n",
           output_scaled(rate(self->samples, self->seconds)), self->n);
    printf("payload           %12s\n",
           output_bandwidth(bench_share(payload(self), self->seconds)));
    bench_print_waits(&self->waits);
    if (bench_allocations() >= 0)
        printf("allocations       %12lld\n", (long long)self->allocations);
    printf("cpu               %12s an image\n",
           output_time(bench_share(self->cpu, (double)self->samples)));
    for (int i = 0; i < self->n; i++) {
        const struct seat *seat = &self->seat[i];
        printf("%-16s  %12s images/s, %s over the bus",
               leat_device_name(seat->device),
               output_scaled(rate(seat->samples, self->seconds)),
               output_bandwidth(rate(bus_bytes(seat), self->seconds)));
        if (seat->after.device_node >= 0)
            printf(", on node %d, its batches on %d", seat->after.device_node,
                   seat->after.host_node);
        printf("\n");
    }
    char verdict[LEAT_VERDICT_MAX];
    const struct seat *worst = find_worst(self);
    if (leat_stats_verdict(&worst->after, &worst->before, verdict) == LEAT_OK)
        printf("%s\n", plain_text(verdict));
    return 0;
}

int bench_group(const struct bench_group_options *options)
{
    static struct group group;
    int status = measure(&group, options);
    int exit_status = status          ? message_last_error()
                      : options->json ? report_json(&group)
                                      : report(&group);
    finish(&group);
    return exit_status;
}
