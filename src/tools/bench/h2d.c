/*
 * DESIGN. A case is one flow of copies a stream, such as a share of each copy,
 * or the other direction. In a sample the first stream is held by a kernel that
 * waits for a word in pinned memory, and the others wait for that stream, until
 * all is enqueued: so the host's calls are not part of the time. Then come
 * copies that warm up, and where they are through on all streams the `start`
 * event, for which all wait, and the copies that count; each stream ends with
 * its `done` event. The kernel ends by itself after `hold_seconds`.
 *
 * A copy of pageable memory may block the host until the stream has come to it,
 * so there nothing is held. Nor is it in the first sample, which does not
 * count: what the driver loads late it may load while a kernel runs for ever.
 *
 * Every case sends bytes of its own and compares what has arrived after the
 * last sample, so that bytes of an earlier case do not pass for them.
 */
#include "tools/bench/h2d.h"

#include "base/clock.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

#include <leat/ext/reader.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A sample has so many bytes at least, in so many copies. */
static const size_t sample_bytes = (size_t)512 << 20;
enum { LEAST_COPIES = 16, MOST_COPIES = 256 };
enum { WARM_UPS = 4 };
/* Of copies that measure a latency. */
enum { LATENCIES = 500, LATENCY_WARM_UPS = 50 };

/* A case takes no further samples after this, if it has the least number. */
static const double case_seconds = 1;
/* For the host to enqueue a sample; it takes some milliseconds. */
static const double hold_seconds = 2;

/* What the device copies of the ceiling have. */
static const size_t ceiling_bytes = (size_t)64 << 20;
enum { CEILING_COPIES = 4 };

/* The copies of one stream. */
struct flow {
    void *to;
    const void *from;
    size_t bytes;
    leat_copy_direction direction;
};

/* A case that is being measured. */
struct run {
    struct h2d *h2d;
    struct h2d_case *what;
    int nflows;
    int counted; /* of them, the first so many */
    struct flow flow[H2D_MOST_STREAMS];
    uint64_t there; /* seeds of what is sent each way */
    uint64_t here;
    double rates[H2D_SAMPLES];
};

/* Words of which no two cases have the same. */
static void fill(void *memory, size_t bytes, uint64_t seed)
{
    unsigned char *to = memory;
    uint64_t word = seed << 40;
    size_t i = 0;
    for (; i + sizeof(word) <= bytes; i += sizeof(word), word++)
        memcpy(to + i, &word, sizeof(word));
    memcpy(to + i, &word, bytes - i);
}

static bool is_filled(const void *memory, size_t bytes, uint64_t seed)
{
    const unsigned char *from = memory;
    uint64_t word = seed << 40;
    size_t i = 0;
    for (; i + sizeof(word) <= bytes; i += sizeof(word), word++)
        if (memcmp(from + i, &word, sizeof(word)) != 0)
            return false;
    return memcmp(from + i, &word, bytes - i) == 0;
}

static void add_flow(struct run *run, bool to_host, size_t begin, size_t bytes)
{
    struct h2d *h2d = run->h2d;
    char *host = run->what->pinned ? h2d->pinned : h2d->pageable;
    run->flow[run->nflows++] =
        to_host ? (struct flow){(char *)h2d->back + begin,
                                (char *)h2d->source + begin, bytes,
                                LEAT_COPY_TO_HOST}
                : (struct flow){(char *)h2d->memory + begin, host + begin,
                                bytes, LEAT_COPY_TO_DEVICE};
}

static void plan_copies(struct run *run)
{
    struct h2d_case *what = run->what;
    assert(what->bytes > 0 && run->nflows > 0);
    size_t n = sample_bytes / what->bytes;
    size_t most = (size_t)(run->h2d->most_enqueued / run->nflows);
    if (what->copies)
        return;
    n = n > MOST_COPIES ? MOST_COPIES : n;
    n = n > most ? most : n;
    what->copies = n < LEAST_COPIES ? LEAST_COPIES : (int)n;
}

/* The flows of a case, and the bytes that they are to carry. */
static void prepare(struct run *run)
{
    struct h2d *h2d = run->h2d;
    struct h2d_case *what = run->what;
    leat_device *device = h2d->device;
    size_t share = what->bytes / (size_t)what->streams;
    for (int i = 0; i < what->streams; i++) {
        size_t begin = share * (size_t)i;
        add_flow(run, what->to_host, begin,
                 i == what->streams - 1 ? what->bytes - begin : share);
    }
    run->counted = run->nflows;
    if (what->both)
        add_flow(run, !what->to_host, 0, what->bytes);
    plan_copies(run);
    run->here = ++h2d->seed;
    run->there = ++h2d->seed;
    if (what->to_host || what->both) {
        fill(h2d->pinned, what->bytes, run->here);
        h2d_require(h2d, device->ops->copy(device, h2d->source, h2d->pinned,
                                           what->bytes, LEAT_COPY_TO_DEVICE,
                                           h2d->stream[0]));
        h2d_require(h2d,
                    device->ops->stream_synchronize(device, h2d->stream[0]));
    }
    fill(what->pinned ? h2d->pinned : h2d->pageable, what->bytes, run->there);
}

static void enqueue_copies(const struct run *run, int n)
{
    struct h2d *h2d = run->h2d;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    for (int copy = 0; copy < n; copy++) {
        /* Copies of host memory may be done when they are enqueued. */
        h2d_require(h2d, interrupt_check());
        for (int i = 0; i < run->nflows; i++) {
            const struct flow *flow = &run->flow[i];
            h2d_require(h2d,
                        (run->what->by_kernel ? ops->kernel_copy : ops->copy)(
                            device, flow->to, flow->from, flow->bytes,
                            flow->direction, h2d->stream[i]));
        }
    }
}

/* The others wait for the first stream. */
static void fan_out(const struct run *run, leat_event event)
{
    struct h2d *h2d = run->h2d;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    h2d_require(h2d, ops->event_record(device, event, h2d->stream[0]));
    for (int i = 1; i < run->nflows; i++)
        h2d_require(h2d, ops->stream_wait(device, h2d->stream[i], event));
}

/* The first stream waits for the others. */
static void join(const struct run *run)
{
    struct h2d *h2d = run->h2d;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    for (int i = 1; i < run->nflows; i++) {
        h2d_require(h2d,
                    ops->event_record(device, h2d->joined[i], h2d->stream[i]));
        h2d_require(h2d,
                    ops->stream_wait(device, h2d->stream[0], h2d->joined[i]));
    }
}

static void enqueue(const struct run *run, bool is_held)
{
    struct h2d *h2d = run->h2d;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    h2d_release(h2d, !is_held);
    if (run->what->held)
        h2d_require(h2d, ops->stream_hold(device, h2d->release, hold_seconds,
                                          h2d->stream[0]));
    fan_out(run, h2d->joined[0]);
    enqueue_copies(run, WARM_UPS);
    join(run);
    fan_out(run, h2d->start);
    enqueue_copies(run, run->what->copies);
    for (int i = 0; i < run->nflows; i++)
        h2d_require(h2d,
                    ops->event_record(device, h2d->done[i], h2d->stream[i]));
}

/* Returns the GB a second of what counts. */
static double collect(const struct run *run)
{
    struct h2d *h2d = run->h2d;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    double longest = 0, bytes = 0;
    for (int i = 0; i < run->nflows; i++)
        h2d_require(h2d, ops->event_synchronize(device, h2d->done[i]));
    for (int i = 0; i < run->counted; i++) {
        double seconds = 0;
        h2d_require(h2d, ops->event_elapsed(device, h2d->start, h2d->done[i],
                                            &seconds));
        longest = fmax(longest, seconds);
        bytes += (double)run->flow[i].bytes;
    }
    return 1e-9 * bench_share(bytes * run->what->copies, longest);
}

/*
 * On all devices at once. A sample below 0 warms up. Returns whether the
 * streams were held until all was enqueued; else the sample does not count.
 */
static bool take_sample(struct run run[], int n, int sample)
{
    double begin = leat__clock_seconds();
    for (int i = 0; i < n; i++)
        enqueue(&run[i], sample >= 0);
    for (int i = 0; i < n; i++)
        h2d_release(run[i].h2d, 1);
    double seconds = leat__clock_seconds() - begin;
    bool is_whole = true;
    for (int i = 0; i < n; i++) {
        double rate = collect(&run[i]);
        if (sample >= 0)
            run[i].rates[sample] = rate;
        if (sample >= 0 && run[i].what->held && seconds >= hold_seconds)
            is_whole = false;
    }
    output_require(interrupt_check());
    return is_whole;
}

/* The machine is busy, or a device makes the host wait before it has them all.
 */
static void use_fewer_copies(struct run run[], int n)
{
    for (int i = 0; i < n; i++) {
        struct h2d_case *what = run[i].what;
        if (what->copies <= LEAST_COPIES)
            message_fail("%s: the host took more than %.0f s to enqueue %d "
                         "copies, for which a stream can be held; is the "
                         "machine busy?",
                         leat_device_name(run[i].h2d->device), hold_seconds,
                         what->copies);
        what->copies /= 2;
        if (what->copies < LEAST_COPIES)
            what->copies = LEAST_COPIES;
        what->has_fewer = true;
        run[i].h2d->most_enqueued = what->copies * run[i].nflows;
    }
}

/* Returns how many samples there are. */
static int take_samples(struct run run[], int n)
{
    double begin = leat__clock_seconds();
    int samples = 0;
    (void)take_sample(run, n, -1);
    while (samples < H2D_LEAST_SAMPLES ||
           (samples < H2D_SAMPLES &&
            leat__clock_seconds() - begin < case_seconds)) {
        if (take_sample(run, n, samples)) {
            samples++;
            continue;
        }
        use_fewer_copies(run, n);
        begin = leat__clock_seconds();
        samples = 0;
    }
    return samples;
}

static void verify(const struct run *run)
{
    struct h2d *h2d = run->h2d;
    const struct h2d_case *what = run->what;
    leat_device *device = h2d->device;
    bool is_same = true;
    if (what->to_host || what->both)
        is_same = is_filled(h2d->back, what->bytes, run->here);
    if (is_same && (!what->to_host || what->both)) {
        memset(h2d->back, 0, what->bytes);
        h2d_require(h2d, device->ops->copy(device, h2d->back, h2d->memory,
                                           what->bytes, LEAT_COPY_TO_HOST,
                                           h2d->stream[0]));
        h2d_require(h2d,
                    device->ops->stream_synchronize(device, h2d->stream[0]));
        is_same = is_filled(h2d->back, what->bytes, run->there);
    }
    if (!is_same)
        message_fail("%s: %zu bytes were copied %s by %d streams and came "
                     "back changed",
                     leat_device_name(device), what->bytes,
                     what->to_host ? "from there" : "there", what->streams);
}

static void finish(struct run *run, int samples)
{
    struct h2d_case *what = run->what;
    struct bench_spread spread = bench_spread_of(run->rates, samples);
    verify(run);
    what->samples = samples;
    what->gb_per_s = spread.median;
    what->p10 = spread.p10;
    what->p90 = spread.p90;
}

void h2d_measure_together(struct h2d *const h2d[], struct h2d_case what[],
                          int n)
{
    struct run run[H2D_MOST_DEVICES] = {0};
    for (int i = 0; i < n; i++) {
        run[i].h2d = h2d[i];
        run[i].what = &what[i];
        what[i].held = h2d[i]->holds && what[i].pinned;
        prepare(&run[i]);
    }
    int samples = take_samples(run, n);
    for (int i = 0; i < n; i++)
        finish(&run[i], samples);
}

void h2d_measure(struct h2d *h2d, struct h2d_case *what)
{
    h2d_measure_together(&h2d, what, 1);
}

void h2d_measure_latency(struct h2d *h2d, struct h2d_latency *what)
{
    struct h2d_case one = {.pinned = true,
                           .to_host = what->to_host,
                           .bytes = what->bytes,
                           .streams = 1};
    struct run run = {.h2d = h2d, .what = &one};
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    double copy[LATENCIES], submit[LATENCIES];
    prepare(&run);
    for (int i = -LATENCY_WARM_UPS; i < LATENCIES; i++) {
        int64_t begin = leat__clock_now();
        enqueue_copies(&run, 1);
        int64_t submitted = leat__clock_now();
        h2d_require(h2d, ops->stream_synchronize(device, h2d->stream[0]));
        int64_t end = leat__clock_now();
        copy[i < 0 ? 0 : i] = 1e-3 * (double)(end - begin);
        submit[i < 0 ? 0 : i] = 1e-3 * (double)(submitted - begin);
        output_require(interrupt_check());
    }
    verify(&run);
    what->copy = bench_spread_of(copy, LATENCIES);
    what->submit = bench_spread_of(submit, LATENCIES);
}

void h2d_measure_ceiling(struct h2d_ceiling *out, leat_device *device,
                         size_t bytes)
{
    struct h2d_case what = {.pinned = true, .bytes = bytes, .streams = 1};
    struct h2d_options options = {
        .bytes = bytes > ceiling_bytes ? bytes : ceiling_bytes, .streams = 1};
    struct h2d *h2d = bytes ? h2d_open(device, &options) : NULL;
    *out = (struct h2d_ceiling){
        .bytes = bytes, .rate = NAN, .p10 = NAN, .p90 = NAN, .best = NAN};
    if (!h2d) {
        snprintf(out->why, sizeof(out->why), "%s",
                 bytes ? leat_last_error() : "nothing was uploaded");
        return;
    }
    h2d_measure(h2d, &what);
    out->samples = what.samples;
    out->rate = 1e9 * what.gb_per_s;
    out->p10 = 1e9 * what.p10;
    out->p90 = 1e9 * what.p90;
    what.bytes = ceiling_bytes;
    what.copies = CEILING_COPIES;
    h2d_measure(h2d, &what);
    out->best = fmax(out->rate, 1e9 * what.gb_per_s);
    h2d_close(h2d);
}
