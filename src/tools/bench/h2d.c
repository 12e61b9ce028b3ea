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

static int check_device(const leat_device *device)
{
    const char *name = leat_device_name(device);
    if (device->ops->unified)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s computes in host memory: nothing is copied to it",
                          name);
    if (!device->ops->timer_create || !device->ops->event_elapsed)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s has no events that measure time", name);
    return LEAT_OK;
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

static int take_streams(struct h2d *bench, int n)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    int status = ops->timer_create(device, &bench->start);
    if (!status)
        status = ops->timer_create(device, &bench->end);
    for (; !status && bench->nstreams < n; bench->nstreams++) {
        leat_stream stream = 0;
        status = ops->stream_create(device, &stream);
        if (status)
            break;
        status = ops->event_create(device, &bench->joined[bench->nstreams]);
        if (status) {
            ops->stream_destroy(device, stream);
            break;
        }
        bench->stream[bench->nstreams] = stream;
    }
    return status;
}

int h2d_open(struct h2d **out, leat_device *device, size_t bytes, int streams)
{
    int status = check_device(device);
    if (status)
        return status;
    struct h2d *bench = leat__alloc_zero(1, sizeof(*bench));
    if (!bench)
        return LEAT_ENOMEM;
    bench->device = device;
    bench->bytes = bytes;
    status = take_memory(bench);
    if (!status)
        status = take_streams(bench, streams);
    if (status)
        h2d_close(bench);
    else
        *out = bench;
    return status;
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
static int copy_share(const struct h2d *bench, const struct h2d_case *what,
                      const char *from, int i)
{
    leat_device *device = bench->device;
    size_t share = what->bytes / (size_t)what->streams;
    size_t begin = share * (size_t)i;
    if (i == what->streams - 1)
        share = what->bytes - begin;
    return device->ops->copy(device, (char *)bench->memory + begin,
                             from + begin, share, LEAT_COPY_TO_DEVICE,
                             bench->stream[i]);
}

static int copies_in(const struct h2d_case *what)
{
    size_t n = sample_bytes / what->bytes;
    return n < 1 ? 1 : n > MOST_COPIES ? MOST_COPIES : (int)n;
}

static int enqueue_copies(const struct h2d *bench, const struct h2d_case *what)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    const char *from = what->pinned ? bench->pinned : bench->pageable;
    int n = copies_in(what);
    int status = ops->event_record(device, bench->start, bench->stream[0]);
    for (int i = 1; !status && i < what->streams; i++)
        status = ops->stream_wait(device, bench->stream[i], bench->start);
    for (int copy = 0; !status && copy < n; copy++)
        for (int i = 0; !status && i < what->streams; i++)
            status = copy_share(bench, what, from, i);
    for (int i = 1; !status && i < what->streams; i++) {
        status = ops->event_record(device, bench->joined[i], bench->stream[i]);
        if (!status)
            status =
                ops->stream_wait(device, bench->stream[0], bench->joined[i]);
    }
    if (!status)
        status = ops->event_record(device, bench->end, bench->stream[0]);
    return status;
}

static int take_sample(const struct h2d *bench, const struct h2d_case *what,
                       double *gb_per_s)
{
    leat_device *device = bench->device;
    double seconds = 0;
    int status = enqueue_copies(bench, what);
    if (!status)
        status = device->ops->event_synchronize(device, bench->end);
    if (!status)
        status = device->ops->event_elapsed(device, bench->start, bench->end,
                                            &seconds);
    *gb_per_s =
        1e-9 * bench_share((double)what->bytes * copies_in(what), seconds);
    return status ? status : interrupt_check();
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

static int verify(const struct h2d *bench, const struct h2d_case *what)
{
    leat_device *device = bench->device;
    memset(bench->back, 0, what->bytes);
    int status =
        device->ops->copy(device, bench->back, bench->memory, what->bytes,
                          LEAT_COPY_TO_HOST, bench->stream[0]);
    if (!status)
        status = device->ops->stream_synchronize(device, bench->stream[0]);
    if (status)
        return status;
    const void *sent = what->pinned ? bench->pinned : bench->pageable;
    if (memcmp(bench->back, sent, what->bytes) != 0)
        return leat_error(LEAT_EDEVICE,
                          "%s: %zu bytes were copied there by %d streams and "
                          "came back changed",
                          leat_device_name(device), what->bytes, what->streams);
    return LEAT_OK;
}

int h2d_measure(struct h2d *h2d, struct h2d_case *what)
{
    double rates[H2D_MOST_SAMPLES] = {0};
    fill(h2d, what->pinned ? h2d->pinned : h2d->pageable, what->bytes);
    int status = LEAT_OK;
    for (int i = -WARM_UPS; !status && i < what->samples; i++)
        status = take_sample(h2d, what, &rates[i < 0 ? 0 : i]);
    if (!status)
        status = verify(h2d, what);
    if (status)
        return status;
    struct bench_spread spread = bench_spread_of(rates, what->samples);
    what->gb_per_s = spread.median;
    what->p10 = spread.p10;
    what->p90 = spread.p90;
    return LEAT_OK;
}

/*
 * A copy of a small batch pays for its beginning as the upload does, so the
 * ceiling of uploads is that of copies of their size. What larger ones reach
 * shows how much is lost by the size alone.
 */
static int measure_ceiling(struct h2d_ceiling *out, struct h2d *h2d)
{
    struct h2d_case what = {.pinned = 1,
                            .bytes = out->bytes,
                            .streams = 1,
                            .samples = out->samples};
    int status = h2d_measure(h2d, &what);
    out->rate = out->best = 1e9 * what.gb_per_s;
    out->p10 = 1e9 * what.p10;
    out->p90 = 1e9 * what.p90;
    if (status)
        return status;
    what.bytes = sample_bytes;
    status = h2d_measure(h2d, &what);
    if (1e9 * what.gb_per_s > out->best)
        out->best = 1e9 * what.gb_per_s;
    return status;
}

int h2d_measure_ceiling(struct h2d_ceiling *out, leat_device *device,
                        size_t bytes)
{
    *out = (struct h2d_ceiling){
        .bytes = bytes, .rate = NAN, .p10 = NAN, .p90 = NAN, .best = NAN};
    if (!bytes) {
        snprintf(out->why, sizeof(out->why), "nothing was uploaded");
        return LEAT_OK;
    }
    struct h2d *h2d = NULL;
    struct h2d_ceiling found = {.bytes = bytes, .samples = H2D_SAMPLES};
    int status =
        h2d_open(&h2d, device, bytes > sample_bytes ? bytes : sample_bytes, 1);
    if (!status)
        status = measure_ceiling(&found, h2d);
    h2d_close(h2d);
    if (!status)
        *out = found;
    if (status == LEAT_ENOMEM)
        snprintf(out->why, sizeof(out->why), "%s", leat_last_error());
    return status == LEAT_ENOMEM ? LEAT_OK : status;
}
