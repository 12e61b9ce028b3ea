#include "tools/bench/limit.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel_for.h"
#include "tools/bench/bench.h"
#include "tools/bench/peer.h"
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/splitmix.h"
#include "tools/delivery/image_reader.h"

#include <leat/ext/reader.h>
#include <leat/reader.h>
#include <leat/transform.h>

#include <string.h>

enum { CHUNK = 32 };

/* One thread's own; a cache line between two. */
struct walker {
    leat_reader *reader;
    leat_transformer *transformer;
    bool is_random; /* mirrors or crops at random */
    leat_sample sample[CHUNK];
    int shape[3];
    size_t bytes;        /* of a transformed image */
    unsigned char *ring; /* room for `slots` images */
    int64_t slots;
    int64_t slot;
    float *labels; /* one for each slot */
    struct splitmix random;
    struct limit_result result;
    char apart[64];
};

struct limit {
    int threads;
    size_t element; /* bytes of one in the top */
    bool row_copy;  /* instead of the transform */
    int tolerates;  /* bad records: they count for nothing */
    double seconds; /* of the slice under way */
    double start;
    struct walker walker[];
};

/* Gives the walker room for its part of the slots, all of it touched. */
static int take_ring(struct walker *walker, size_t element, int64_t images)
{
    size_t bytes = element;
    for (int i = 0; i < 3; i++)
        bytes *= (size_t)walker->shape[i];
    leat__free(walker->ring);
    leat__free(walker->labels);
    walker->ring = leat__alloc_aligned_zero((size_t)images * bytes);
    walker->labels = leat__alloc_zero((size_t)images, sizeof(float));
    walker->bytes = bytes;
    walker->slots = images;
    walker->slot = 0;
    return walker->ring && walker->labels ? LEAT_OK : LEAT_ENOMEM;
}

/* A database may hold images of several shapes. */
static int take_shape(struct walker *walker, const struct limit *limit,
                      const leat_field *field)
{
    int shape[3];
    int status = leat_transformer_shape(walker->transformer, field, shape);
    if (status || !memcmp(shape, walker->shape, sizeof(shape)))
        return status ? status : LEAT_EDATA;
    memcpy(walker->shape, shape, sizeof(shape));
    return take_ring(walker, limit->element, walker->slots);
}

/* Copies the rows of a crop at a random position. */
static int copy_rows(struct walker *walker, const leat_field *data)
{
    if (data->dtype != LEAT_UINT8 || data->ndim != 3)
        return leat_error(LEAT_EUNSUPPORTED,
                          "a bare copy of rows is for raw uint8 images");
    int channels = walker->shape[0];
    int height = walker->shape[1], width = walker->shape[2];
    if (data->shape[0] != channels || data->shape[1] < height ||
        data->shape[2] < width)
        return LEAT_EDATA;
    size_t stride = (size_t)data->shape[2];
    size_t plane = (size_t)data->shape[1] * stride;
    int down =
        splitmix_below(&walker->random, (int)data->shape[1] - height + 1);
    int right =
        splitmix_below(&walker->random, (int)data->shape[2] - width + 1);
    const unsigned char *corner = data->data;
    corner += (size_t)down * stride + (size_t)right;
    unsigned char *to = walker->ring + (size_t)walker->slot * walker->bytes;
    for (int c = 0; c < channels; c++)
        for (int row = 0; row < height; row++, to += width)
            memcpy(to, corner + (size_t)c * plane + (size_t)row * stride,
                   (size_t)width);
    return LEAT_OK;
}

static int transform_image(struct walker *walker, const leat_field *data)
{
    uint32_t words[4] = {0};
    if (walker->is_random) {
        uint64_t random[2] = {splitmix_next(&walker->random),
                              splitmix_next(&walker->random)};
        memcpy(words, random, sizeof(words));
    }
    return leat_transformer_apply(
        walker->transformer, data, LEAT_RNG_LEAT, words, walker->shape,
        walker->ring + (size_t)walker->slot * walker->bytes);
}

static int transform(struct walker *walker, const struct limit *limit,
                     const leat_sample *sample)
{
    const leat_field *data = &sample->field[0];
    for (int again = 0;; again = 1) {
        int status = limit->row_copy ? copy_rows(walker, data)
                                     : transform_image(walker, data);
        if (status != LEAT_EDATA || again)
            return status;
        status = take_shape(walker, limit, data);
        if (status)
            return status;
    }
}

/* As the layer does: prefetches the beginning of a sample. */
static void fetch(const leat_sample *sample)
{
    const leat_field *field = &sample->field[0];
    const char *data = field->data;
    size_t bytes = field->bytes < 1024 ? field->bytes : 1024;
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(data + i);
}

static int name_record(const leat_sample *sample, int status)
{
    const leat_provenance *from = &sample->from;
    return image_reader_name(status, from->source ? from->source : "reader",
                             from->record, from->key, from->key_size);
}

static int transform_chunk(struct walker *walker, const struct limit *limit,
                           int n)
{
    int bad = 0;
    if (n > 1)
        fetch(&walker->sample[1]);
    for (int i = 0; i < n; i++) {
        const leat_sample *sample = &walker->sample[i];
        if (i + 2 < n)
            fetch(sample + 2);
        int status = transform(walker, limit, sample);
        if (status == LEAT_EDATA && limit->tolerates) {
            bad++;
            continue;
        }
        if (status)
            return name_record(sample, status);
        int32_t label = 0;
        if (sample->nfields > 1)
            memcpy(&label, sample->field[1].data, sizeof(label));
        walker->labels[walker->slot] = (float)label;
        walker->slot = walker->slot + 1 < walker->slots ? walker->slot + 1 : 0;
        walker->result.bytes += (int64_t)sample->field[0].bytes;
    }
    walker->result.images += n - bad;
    walker->result.bad += bad;
    return LEAT_OK;
}

/* Reads and transforms the next chunk; an epoch's end leads to the next one's
   beginning. */
static int walk(struct walker *walker, const struct limit *limit)
{
    leat_sample *samples[CHUNK];
    int got;
    for (int i = 0; i < CHUNK; i++)
        samples[i] = &walker->sample[i];
    int status = leat_reader_next_batch(walker->reader, samples, CHUNK, &got);
    if (status == LEAT_END)
        return leat_reader_seek(walker->reader, (leat_position){0, 0}, NULL);
    if (status == LEAT_EDATA && limit->tolerates) {
        walker->result.bad++;
        status = LEAT_OK;
    }
    if (!status && got > 0)
        status = transform_chunk(walker, limit, got);
    return status;
}

static int walk_for_a_while(int i, void *context)
{
    struct limit *limit = context;
    struct walker *walker = &limit->walker[i];
    while (leat__clock_seconds() - limit->start < limit->seconds) {
        int status = interrupt_check();
        if (!status)
            status = interrupt_explain(walk(walker, limit));
        if (status)
            return status;
    }
    walker->result.seconds = leat__clock_seconds() - limit->start;
    return LEAT_OK;
}

void limit_run(struct limit *limit, double seconds, struct limit_result *result)
{
    limit->seconds = seconds;
    for (int i = 0; i < limit->threads; i++)
        limit->walker[i].result = (struct limit_result){0};
    double cpu = bench_cpu_seconds();
    limit->start = leat__clock_seconds();
    output_require(leat__parallel_for("leat-bench", limit->threads,
                                      walk_for_a_while, limit));
    result->cpu += bench_cpu_seconds() - cpu;
    result->threads = limit->threads;
    double longest = 0;
    for (int i = 0; i < limit->threads; i++) {
        const struct limit_result *one = &limit->walker[i].result;
        result->images += one->images;
        result->bytes += one->bytes;
        result->bad += one->bad;
        if (one->seconds > longest)
            longest = one->seconds;
    }
    result->seconds += longest;
}

double limit_rate(const struct limit_result *result)
{
    return bench_share((double)result->images, result->seconds);
}

void limit_report(const struct limit_result *result,
                  const struct bandwidth *bandwidth, struct report *report)
{
    double cpu = 1e6 * bench_share(result->cpu, (double)result->images);
    double payload = bench_share((double)result->bytes, result->seconds);
    const struct figure figures[] = {
        {"limit_images_per_s", "limit", REPORT_RATE, limit_rate(result),
         "images/s"},
        {"limit_cpu_us_per_image", "limit, cpu", REPORT_US, cpu, "an image"},
        {"limit_payload_bytes_per_s", "limit, payload", REPORT_BANDWIDTH,
         payload, NULL},
        {"store_bytes_per_s", "store bandwidth", REPORT_BANDWIDTH,
         bandwidth->store, NULL},
        {"memcpy_bytes_per_s", "memcpy bandwidth", REPORT_BANDWIDTH,
         bandwidth->memcpy, NULL},
        {0}};
    report_figures(report, figures);
}

/* The next record's shape. */
static int read_shape(struct walker *walker)
{
    leat_sample *sample = &walker->sample[0];
    int status = leat_reader_next(walker->reader, sample);
    if (status)
        return status;
    status = leat_transformer_shape(walker->transformer, &sample->field[0],
                                    walker->shape);
    return status ? name_record(sample, status) : LEAT_OK;
}

/* Thread i begins so far into the records that all are apart. */
static int go_to_start(struct walker *walker, int i, int threads)
{
    int64_t count;
    if (leat_reader_is_random_access(walker->reader) &&
        !leat_reader_count(walker->reader, &count) && count >= threads)
        return leat_reader_seek(walker->reader,
                                (leat_position){0, count / threads * i}, NULL);
    return leat_reader_seek(walker->reader, (leat_position){0, 0}, NULL);
}

/* The first good record gives the shape; then to where the thread begins. */
static int begin_walk(struct walker *walker, const struct limit *limit,
                      int64_t images)
{
    int bad = 0;
    int status = read_shape(walker);
    while (status == LEAT_EDATA && limit->tolerates) {
        bad = 1;
        status = read_shape(walker);
    }
    if (status == LEAT_END)
        return leat_error(LEAT_EDATA, "there are no %srecords",
                          bad ? "good " : "");
    if (!status)
        status = take_ring(walker, limit->element, images);
    int i = (int)(walker - limit->walker);
    return status ? status : go_to_start(walker, i, limit->threads);
}

/* False: there is no reader for it. */
static bool open_walker(struct limit *limit, int i,
                        const leat_data_layer *layer)
{
    const leat_data_layer_options *options = leat_data_layer_get_options(layer);
    struct walker *walker = &limit->walker[i];
    walker->random = splitmix_start(1, (uint64_t)i);
    if (!peer_require(&walker->reader, leat_data_layer_pipeline(layer),
                      limit->walker[0].reader))
        return false;
    output_require(i ? leat_transformer_clone(&walker->transformer,
                                              limit->walker[0].transformer)
                     : leat_transformer_create(
                           &walker->transformer, options->transform,
                           options->phase, options->top_type, options->layout));
    leat_transformer_set_max_image_bytes(walker->transformer,
                                         options->max_image_bytes);

    const leat_transform_options *chosen = options->transform;
    walker->is_random = chosen && (chosen->mirror || chosen->crop_size);
    return true;
}

static int start_walker(struct limit *limit, int i,
                        const leat_data_layer_options *options)
{
    int64_t batch = options->batch_size;
    if (!batch)
        batch = options->global_batch_size / options->world_size;
    /* A layer that chooses for itself gets the room of the usual depth. */
    int64_t slots = (options->prefetch > 0 ? options->prefetch + 1 : 5) * batch;
    return begin_walk(&limit->walker[i], limit,
                      (slots + limit->threads - 1) / limit->threads);
}

/* Of a signal: reads may wait. */
static void cancel_limit(void *object)
{
    const struct limit *limit = object;
    for (int i = 0; i < limit->threads; i++)
        leat_reader_cancel(limit->walker[i].reader);
}

static void close_limit(void *object)
{
    struct limit *limit = object;
    interrupt_unwatch(limit);
    for (int i = limit->threads - 1; i >= 0; i--) {
        struct walker *walker = &limit->walker[i];
        leat_transformer_destroy(walker->transformer);
        leat_reader_close(walker->reader);
        for (int s = 0; s < CHUNK; s++)
            leat_sample_finish(&walker->sample[s]);
        leat__free(walker->ring);
        leat__free(walker->labels);
    }
    leat__free(limit);
}

struct limit *limit_open(const leat_data_layer *layer, bool row_copy,
                         int threads)
{
    const leat_data_layer_options *options = leat_data_layer_get_options(layer);
    struct limit *limit = leat__alloc_zero(
        1, sizeof(*limit) + (size_t)threads * sizeof(struct walker));
    if (!limit)
        message_fail("%s", leat_last_error());
    limit->threads = threads;
    limit->element = leat_dtype_size(options->top_type);
    limit->row_copy = row_copy;
    limit->tolerates = options->on_error != LEAT_ON_ERROR_FAIL;
    if (row_copy &&
        (options->top_type != LEAT_UINT8 || options->layout != LEAT_NCHW))
        message_fail("a bare copy of rows is for uint8 tops in NCHW");
    cleanup_add(close_limit, limit);
    for (int i = 0; i < limit->threads; i++)
        if (!open_walker(limit, i, layer))
            limit->threads = i;
    interrupt_watch(cancel_limit, limit);
    for (int i = 0; i < limit->threads; i++)
        output_require(interrupt_explain(start_walker(limit, i, options)));
    return limit;
}

void limit_close(struct limit *limit)
{
    if (!limit)
        return;
    cleanup_remove(limit);
    close_limit(limit);
}

/* Bytes that are beyond any cache, and seconds of writing them. */
enum { BANDWIDTH_BYTES = 64 << 20 };
static const double bandwidth_seconds = 0.4;

/* Bytes a second of one core, which writes, or copies from the second half. */
static double measure_writes(unsigned char *to, int copies)
{
    double start = leat__clock_seconds(), now;
    int64_t rounds = 0;
    do {
        if (copies)
            memcpy(to, to + BANDWIDTH_BYTES, BANDWIDTH_BYTES);
        else
            memset(to, (int)rounds & 0xff, BANDWIDTH_BYTES);
        /* The compiler must not drop stores that are never read. */
        __asm__ volatile("" : : "r"(to) : "memory");
        rounds++;
        now = leat__clock_seconds();
    } while (now - start < bandwidth_seconds);
    return (double)rounds * BANDWIDTH_BYTES / (now - start);
}

/* All cores write at the same time, and then all copy. */
static int measure_core(int i, void *context)
{
    struct bandwidth *rates = context;
    unsigned char *memory = leat__alloc(2 * (size_t)BANDWIDTH_BYTES);
    if (!memory)
        return LEAT_ENOMEM;
    memset(memory, 1, 2 * (size_t)BANDWIDTH_BYTES);
    rates[i].store = measure_writes(memory, 0);
    rates[i].memcpy = measure_writes(memory, 1);
    leat__free(memory);
    return LEAT_OK;
}

void bandwidth_measure(struct bandwidth *out)
{
    struct bandwidth rates[BENCH_MOST_WORKERS] = {{0}};
    int threads = bench_workers(0);
    output_require(
        leat__parallel_for("leat-bench", threads, measure_core, rates));
    *out = (struct bandwidth){0};
    for (int i = 0; i < threads; i++) {
        out->store += rates[i].store;
        out->memcpy += rates[i].memcpy;
    }
}
