/*
 * DESIGN. A sample is as many copies as make up some 64 MiB, so that the cost
 * of the events does not count, each shared out to the streams. All streams
 * wait for the `start` event on the first, which waits for the others before
 * `end`: the time between the two is that of all copies.
 *
 * Every case sends bytes of its own and fetches them again after the last
 * sample, so that bytes that an earlier case left on the device do not pass for
 * them.
 */
#include "tools/bench/h2d.h"

#include "base/error.h"
#include "base/memory.h"
#include "tools/bench/bench.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t sample_bytes = (size_t)64 << 20;

enum { WARM_UPS = 2, MOST_COPIES = 256 };

struct h2d {
    leat_device *device;
    size_t bytes;
    void *pinned;
    void *pageable;
    void *back; /* pinned */
    void *memory;
    int nstreams;
    leat_stream stream[H2D_MOST_STREAMS];
    leat_event joined[H2D_MOST_STREAMS];
    leat_event start;
    leat_event end;
    uint64_t seed;
};

static void check_device(const leat_device *device)
{
    const char *name = leat_device_name(device);
    if (device->ops->unified)
        message_fail("%s computes in host memory: nothing is copied to it",
                     name);
    if (!device->ops->timer_create || !device->ops->event_elapsed)
        message_fail("%s has no events that measure time", name);
}

static int take_memory(struct h2d *bench)
{
    leat_device *device = bench->device;
    bench->pageable = leat__alloc_aligned(bench->bytes);
    if (!bench->pageable)
        return LEAT_ENOMEM;
    int status = device->ops->host_alloc(device, bench->bytes, &bench->pinned);
    if (!status)
        status = device->ops->host_alloc(device, bench->bytes, &bench->back);
    if (!status)
        status = device->ops->alloc(device, bench->bytes, &bench->memory);
    return status;
}

static void take_streams(struct h2d *bench, int n)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    output_require(ops->timer_create(device, &bench->start));
    output_require(ops->timer_create(device, &bench->end));
    for (; bench->nstreams < n; bench->nstreams++) {
        int i = bench->nstreams;
        output_require(ops->stream_create(device, &bench->stream[i]));
        output_require(ops->event_create(device, &bench->joined[i]));
    }
}

struct h2d *h2d_open(leat_device *device, size_t bytes, int streams)
{
    check_device(device);
    struct h2d *bench = leat__alloc_zero(1, sizeof(*bench));
    if (!bench)
        return NULL;
    bench->device = device;
    bench->bytes = bytes;
    int status = take_memory(bench);
    if (status == LEAT_ENOMEM) {
        h2d_close(bench);
        return NULL;
    }
    output_require(status);
    take_streams(bench, streams);
    return bench;
}

void h2d_close(struct h2d *h2d)
{
    if (!h2d)
        return;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    for (int i = 0; i < h2d->nstreams; i++) {
        (void)ops->stream_synchronize(device, h2d->stream[i]);
        ops->stream_destroy(device, h2d->stream[i]);
        ops->event_destroy(device, h2d->joined[i]);
    }
    if (h2d->start)
        ops->event_destroy(device, h2d->start);
    if (h2d->end)
        ops->event_destroy(device, h2d->end);
    if (h2d->memory)
        ops->free(device, h2d->memory, h2d->bytes);
    if (h2d->back)
        ops->host_free(device, h2d->back, h2d->bytes);
    if (h2d->pinned)
        ops->host_free(device, h2d->pinned, h2d->bytes);
    leat__free(h2d->pageable);
    leat__free(h2d);
}

/* Enqueues the stream's share of each copy. */
static void copy_share(const struct h2d *bench, const struct h2d_case *what,
                       const char *from, int i)
{
    leat_device *device = bench->device;
    size_t share = what->bytes / (size_t)what->streams;
    size_t begin = share * (size_t)i;
    if (i == what->streams - 1)
        share = what->bytes - begin;
    output_require(device->ops->copy(device, (char *)bench->memory + begin,
                                     from + begin, share, LEAT_COPY_TO_DEVICE,
                                     bench->stream[i]));
}

static int copies_in(const struct h2d_case *what)
{
    size_t n = sample_bytes / what->bytes;
    return n < 1 ? 1 : n > MOST_COPIES ? MOST_COPIES : (int)n;
}

static void enqueue_copies(const struct h2d *bench, const struct h2d_case *what)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    const leat_stream *stream = bench->stream;
    const leat_event *joined = bench->joined;
    const char *from = what->pinned ? bench->pinned : bench->pageable;
    output_require(ops->event_record(device, bench->start, stream[0]));
    for (int i = 1; i < what->streams; i++)
        output_require(ops->stream_wait(device, stream[i], bench->start));
    for (int copy = 0; copy < copies_in(what); copy++)
        for (int i = 0; i < what->streams; i++)
            copy_share(bench, what, from, i);
    for (int i = 1; i < what->streams; i++) {
        output_require(ops->event_record(device, joined[i], stream[i]));
        output_require(ops->stream_wait(device, stream[0], joined[i]));
    }
    output_require(ops->event_record(device, bench->end, stream[0]));
}

/* Returns the GB a second. */
static double take_sample(const struct h2d *bench, const struct h2d_case *what)
{
    leat_device *device = bench->device;
    double seconds = 0;
    enqueue_copies(bench, what);
    output_require(device->ops->event_synchronize(device, bench->end));
    output_require(
        device->ops->event_elapsed(device, bench->start, bench->end, &seconds));
    output_require(interrupt_check());
    return 1e-9 * bench_share((double)what->bytes * copies_in(what), seconds);
}

/* Words of which no two cases have the same. */
static void fill(struct h2d *bench, unsigned char *memory, size_t bytes)
{
    uint64_t word = ++bench->seed << 40;
    size_t i = 0;
    for (; i + sizeof(word) <= bytes; i += sizeof(word), word++)
        memcpy(memory + i, &word, sizeof(word));
    memcpy(memory + i, &word, bytes - i);
}

static void verify(const struct h2d *bench, const struct h2d_case *what)
{
    leat_device *device = bench->device;
    memset(bench->back, 0, what->bytes);
    output_require(device->ops->copy(device, bench->back, bench->memory,
                                     what->bytes, LEAT_COPY_TO_HOST,
                                     bench->stream[0]));
    output_require(device->ops->stream_synchronize(device, bench->stream[0]));
    const void *sent = what->pinned ? bench->pinned : bench->pageable;
    if (memcmp(bench->back, sent, what->bytes) != 0)
        message_fail("%s: %zu bytes were copied there by %d streams and came "
                     "back changed",
                     leat_device_name(device), what->bytes, what->streams);
}

void h2d_measure(struct h2d *h2d, struct h2d_case *what)
{
    double rates[H2D_SAMPLES] = {0};
    fill(h2d, what->pinned ? h2d->pinned : h2d->pageable, what->bytes);
    for (int i = -WARM_UPS; i < H2D_SAMPLES; i++)
        rates[i < 0 ? 0 : i] = take_sample(h2d, what);
    verify(h2d, what);
    struct bench_spread spread = bench_spread_of(rates, H2D_SAMPLES);
    what->gb_per_s = spread.median;
    what->p10 = spread.p10;
    what->p90 = spread.p90;
}

/*
 * A copy of a small batch pays for its beginning as the upload does, so the
 * ceiling of uploads is that of copies of their size. What larger ones reach
 * shows how much is lost by the size alone.
 */
void h2d_measure_ceiling(struct h2d_ceiling *out, leat_device *device,
                         size_t bytes)
{
    struct h2d_case what = {.pinned = 1, .bytes = bytes, .streams = 1};
    size_t most = bytes > sample_bytes ? bytes : sample_bytes;
    struct h2d *h2d = bytes ? h2d_open(device, most, 1) : NULL;
    *out = (struct h2d_ceiling){
        .bytes = bytes, .rate = NAN, .p10 = NAN, .p90 = NAN, .best = NAN};
    if (!h2d) {
        snprintf(out->why, sizeof(out->why), "%s",
                 bytes ? leat_last_error() : "nothing was uploaded");
        return;
    }
    h2d_measure(h2d, &what);
    out->samples = H2D_SAMPLES;
    out->rate = 1e9 * what.gb_per_s;
    out->p10 = 1e9 * what.p10;
    out->p90 = 1e9 * what.p90;
    what.bytes = sample_bytes;
    h2d_measure(h2d, &what);
    out->best = fmax(out->rate, 1e9 * what.gb_per_s);
    h2d_close(h2d);
}
