/*
 * bench_order: decorators that choose the order, beside what they read.
 *
 *     bench_order [--json] [--seconds S] [--only CASE]
 *
 * index    what an index map adds to 64 samples a call by read_at, above one
 *          that changes nothing
 * order    shuffle, and blocks of 256, beside the same samples in order; and
 *          shuffle beside a walk over the bare array by a stored permutation.
 *          512 MiB, each record copied to a batch of 64
 * buffer   shuffle:N beside its upstream reader, which preads a file of 256 MiB
 *          into the samples' buffers, or reads TFRecords of 64 MiB and checks
 *          them; each record copied to a batch
 * restore  milliseconds of a seek of shuffle:100000 to position 10^8, of which
 *          the walk back is one part; and of a chain to the end of an epoch
 *          beside its begin
 *
 * Both sides alternate, round by round, for S seconds (2) a case. Times are of
 * the processor; ratios are of one round each, leat's to that beside it.
 */
#include "base/crc32c.h"
#include "decorators/shuffle/shuffle_draws.h"
#include "tools/bench/bench.h"
#include "tools/bench/report.h"
#include "tools/cli/output.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 11, BATCH = 64, SIZES = 4 };
#define ARRAY_BYTES ((size_t)512 << 20)
#define FILE_BYTES ((size_t)256 << 20)
#define RECORD_BYTES ((size_t)64 << 20)

static const size_t sizes[SIZES] = {784, 4096, 16384, 65536};

static struct report report;
static leat_sample storage[BATCH];
static leat_sample *sample[BATCH];
static unsigned char *batch; /* BATCH records of the greatest size */
static volatile uint64_t sink;

/* ---- Rounds ------------------------------------------------------------- */

/* A side reads about `n` samples, and returns how many. */
struct side {
    int64_t (*run)(const struct side *side, int64_t n);
    leat_reader *reader;
    const unsigned char *array;
    const uint32_t *permutation;
    size_t bytes;  /* of a record */
    int64_t count; /* records */
    int64_t *at;   /* the position; it goes round */
};

/* Nanoseconds of processor time a sample. */
static double measure(const struct side *side, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t n = 0;
    do {
        n += side->run(side, 4096);
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)n;
}

static void add_row(const char *name, size_t bytes, double beside[],
                    double leat[])
{
    double ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        ratio[i] = leat[i] / beside[i];
    struct bench_spread spread = bench_spread_of(ratio, ROUNDS);
    const struct figure figures[] = {
        {"case", "case", REPORT_TEXT, 0, name},
        {"bytes", "bytes", REPORT_COUNT, (double)bytes, NULL},
        {"beside_ns", "beside", REPORT_NS,
         bench_spread_of(beside, ROUNDS).median, NULL},
        {"leat_ns", "leat", REPORT_NS, bench_spread_of(leat, ROUNDS).median,
         NULL},
        {"ratio.median", "ratio", REPORT_REAL, spread.median, NULL},
        {"ratio.p10", "p10", REPORT_REAL, spread.p10, NULL},
        {"ratio.p90", "p90", REPORT_REAL, spread.p90, NULL},
        {0}};
    report_row_of(&report, "results", figures);
}

static void compare(const char *name, const struct side *beside,
                    const struct side *leat, double seconds)
{
    double times[2][ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        times[0][at] = measure(beside, seconds / (2 * ROUNDS));
        times[1][at] = measure(leat, seconds / (2 * ROUNDS));
    }
    add_row(name, leat->bytes, times[0], times[1]);
}

/* A chain of decorators, written with | and no blanks, over a pipeline. */
static leat_reader *open_over(leat_pipeline *source, const char *text)
{
    leat_pipeline *pipeline = source;
    leat_reader *reader;
    leat_pipeline_ref(source);
    while (text && *text) {
        char name[32] = "", args[64] = "";
        size_t part = strcspn(text, "|");
        const leat_reader_type *type;
        int i = 0;
        sscanf(text, "%31[a-z]:%63[^|]", name, args);
        while ((type = leat_reader_type_at(i++)) && strcmp(type->name, name))
            ;
        leat_pipeline *upstream = pipeline;
        output_require(leat_pipeline_create(&pipeline, type, args, NULL, NULL,
                                            &upstream, 1));
        leat_pipeline_unref(upstream);
        text += part + (text[part] == '|');
    }
    output_require(leat_pipeline_open(pipeline, &reader));
    leat_pipeline_unref(pipeline);
    return reader;
}

/* ---- By index ----------------------------------------------------------- */

/* 64 positions a call; what is read is not looked at. */
static int64_t run_positions(const struct side *side, int64_t n)
{
    leat_position at[BATCH];
    for (int64_t done = 0; done < n; done += BATCH) {
        int got;
        for (int i = 0; i < BATCH; i++) {
            at[i] = (leat_position){0, (*side->at)++};
            if (*side->at == side->count)
                *side->at = 0;
        }
        output_require(
            leat_reader_read_at(side->reader, at, sample, BATCH, &got));
    }
    return n;
}

static leat_pipeline *memory_of(const unsigned char *array, size_t bytes,
                                int64_t count)
{
    const leat_memory_field field = {
        "data", LEAT_UINT8, 1, {(int64_t)bytes}, array};
    leat_pipeline *pipeline;
    output_require(leat_pipeline_memory(&pipeline, &field, 1, count));
    return pipeline;
}

static void measure_index(const unsigned char *array, double seconds)
{
    static const char *const texts[] = {"take:60000", "skip:100",
                                        "shard:2,1",  "repeat:3",
                                        "shuffle",    "shuffle:block=256"};
    leat_pipeline *source = memory_of(array, 64, 60000);
    for (int i = 0; i < (int)(sizeof(texts) / sizeof(texts[0])); i++) {
        char text[100];
        int64_t at[2] = {0, 0}, count;
        snprintf(text, sizeof(text), "take:-1|%s", texts[i]);
        struct side beside = {.run = run_positions,
                              .reader = open_over(source, "take:-1"),
                              .bytes = 64,
                              .count = 60000,
                              .at = &at[0]};
        struct side leat = beside;
        leat.reader = open_over(source, text);
        output_require(leat_reader_count(leat.reader, &count));
        leat.count = count;
        leat.at = &at[1];
        snprintf(text, sizeof(text), "index: %s", texts[i]);
        compare(text, &beside, &leat, seconds);
        leat_reader_close(beside.reader);
        leat_reader_close(leat.reader);
    }
    leat_pipeline_unref(source);
}

/* ---- Copied to a batch -------------------------------------------------- */

static void copy(int i, const void *data, size_t bytes)
{
    memcpy(batch + (size_t)i * bytes, data, bytes);
}

static int64_t run_batches(const struct side *side, int64_t n)
{
    int64_t done = 0;
    while (done < n) {
        int got;
        int status = leat_reader_next_batch(side->reader, sample, BATCH, &got);
        if (status == LEAT_END)
            status = leat_reader_seek(side->reader,
                                      (leat_position){(*side->at)++, 0}, NULL);
        output_require(status);
        for (int i = 0; i < got; i++)
            copy(i, sample[i]->field[0].data, side->bytes);
        done += got;
    }
    sink += batch[0];
    return done;
}

/* Of the bare array, by a stored permutation. */
static int64_t run_permuted(const struct side *side, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        copy((int)(i % BATCH),
             side->array + side->permutation[*side->at] * side->bytes,
             side->bytes);
        if (++*side->at == side->count)
            *side->at = 0;
    }
    sink += batch[0];
    return n;
}

static uint32_t *shuffled(int64_t count)
{
    uint32_t *all = malloc((size_t)count * sizeof(*all));
    if (!all)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        all[i] = (uint32_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t words[4];
        leat_choice(1, 0, i, 2, words);
        int64_t k = (int64_t)leat_choice_below(words, (uint64_t)i + 1);
        uint32_t kept = all[i];
        all[i] = all[k];
        all[k] = kept;
    }
    return all;
}

static void measure_order(const unsigned char *array, double seconds)
{
    for (int i = 0; i < SIZES; i++) {
        int64_t at[4] = {0, 0, 0, 0};
        int64_t count = (int64_t)(ARRAY_BYTES / sizes[i]);
        leat_pipeline *source = memory_of(array, sizes[i], count);
        uint32_t *permutation = shuffled(count);
        struct side order = {.run = run_batches,
                             .reader = open_over(source, NULL),
                             .bytes = sizes[i],
                             .at = &at[0]};
        struct side naive = {.run = run_permuted,
                             .array = array,
                             .permutation = permutation,
                             .bytes = sizes[i],
                             .count = count,
                             .at = &at[1]};
        struct side full = order, blocks = order;
        full.reader = open_over(source, "shuffle");
        full.at = &at[2];
        blocks.reader = open_over(source, "shuffle:block=256");
        blocks.at = &at[3];
        compare("order: shuffle", &order, &full, seconds);
        compare("order: shuffle beside a naive walk", &naive, &full, seconds);
        compare("order: shuffle:block=256", &order, &blocks, seconds);
        leat_reader_close(order.reader);
        leat_reader_close(full.reader);
        leat_reader_close(blocks.reader);
        leat_pipeline_unref(source);
        free(permutation);
    }
}

/* ---- A stream ----------------------------------------------------------- */

/* Records of a file, read into the samples' own buffers. */
struct stream {
    leat_reader reader;
    int fd;
    int64_t at, count;
    leat_field_spec spec;
};

static int stream_file;
static size_t stream_bytes;

static int stream_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    *out = &((struct stream *)reader)->spec;
    *n = 1;
    return LEAT_OK;
}

static int stream_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    struct stream *self = (struct stream *)reader;
    size_t bytes = (size_t)self->spec.shape[0];
    for (; *got < n; ++*got, ++self->at) {
        if (self->at == self->count)
            return LEAT_END;
        leat_sample *one = out[*got];
        void *data = leat_sample_take(one, bytes);
        if (!data)
            return LEAT_ENOMEM;
        if (pread(self->fd, data, bytes, (off_t)bytes * self->at) !=
            (ssize_t)bytes)
            return leat_error(LEAT_EIO, "pread");
        one->stable = 0;
        one->from.source = "stream";
        one->from.record = self->at;
        int status = leat_sample_set(one, one->nfields, LEAT_UINT8, 1,
                                     self->spec.shape, data);
        if (status)
            return status;
    }
    return LEAT_OK;
}

static int stream_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    (void)mark;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "stream");
    ((struct stream *)reader)->at = 0;
    return LEAT_OK;
}

static int cannot_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static void stream_cancel(leat_reader *reader)
{
    (void)reader;
}

static void stream_close(leat_reader *reader)
{
    free(reader);
}

static const leat_reader_ops stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "stream",
    .fields = stream_fields,
    .next = stream_next,
    .seek = stream_seek,
    .can_seek = cannot_seek,
    .cancel = stream_cancel,
    .close = stream_close,
};

static int stream_open(const leat_open *open, leat_reader **out)
{
    struct stream *self = calloc(1, sizeof(*self));
    (void)open;
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = &stream_ops;
    self->fd = stream_file;
    self->count = (int64_t)(FILE_BYTES / stream_bytes);
    self->spec = (leat_field_spec){.name = "data",
                                   .dtype = LEAT_UINT8,
                                   .ndim = 1,
                                   .shape = {(int64_t)stream_bytes}};
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type stream_type = {
    .size = sizeof(leat_reader_type),
    .name = "stream",
    .open = stream_open,
};

static void write_all(int file, const void *bytes, size_t size)
{
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) {
        perror("bench_order: a temporary file");
        exit(1);
    }
}

static void compare_buffer(const char *of, leat_pipeline *source,
                           const char *text, size_t bytes, double seconds)
{
    int64_t at[2] = {0, 0};
    char name[64];
    struct side upstream = {.run = run_batches,
                            .reader = open_over(source, NULL),
                            .bytes = bytes,
                            .at = &at[0]};
    struct side buffer = upstream;
    buffer.reader = open_over(source, text);
    buffer.at = &at[1];
    snprintf(name, sizeof(name), "buffer: %s of %s", text, of);
    compare(name, &upstream, &buffer, seconds);
    leat_reader_close(upstream.reader);
    leat_reader_close(buffer.reader);
}

static void measure_tfrecords(const unsigned char *array, size_t bytes,
                              double seconds)
{
    char path[] = "/tmp/bench_order.XXXXXX";
    int file = mkstemp(path);
    for (size_t at = 0; at < RECORD_BYTES; at += bytes) {
        uint64_t length = bytes;
        uint32_t sum =
            leat__crc32c_mask(leat__crc32c(0, &length, sizeof(length)));
        write_all(file, &length, sizeof(length));
        write_all(file, &sum, sizeof(sum));
        write_all(file, array + at, bytes);
        sum = leat__crc32c_mask(leat__crc32c(0, array + at, bytes));
        write_all(file, &sum, sizeof(sum));
    }
    close(file);
    char text[64];
    leat_pipeline *source;
    snprintf(text, sizeof(text), "tfrecord:%s", path);
    output_require(leat_pipeline_parse(&source, text));
    compare_buffer("tfrecord", source, "shuffle:1000", bytes, seconds);
    leat_pipeline_unref(source);
    unlink(path);
}

static void measure_buffer(const unsigned char *array, double seconds)
{
    static const char *const texts[] = {"shuffle:1000", "shuffle:3000"};
    char path[] = "/tmp/bench_order.XXXXXX";
    stream_file = mkstemp(path);
    write_all(stream_file, array, FILE_BYTES);
    for (int i = 0; i < 2 * SIZES; i++) {
        leat_pipeline *source;
        stream_bytes = sizes[i / 2];
        output_require(leat_pipeline_create(&source, &stream_type, NULL, NULL,
                                            NULL, NULL, 0));
        compare_buffer("pread", source, texts[i % 2], stream_bytes, seconds);
        leat_pipeline_unref(source);
    }
    close(stream_file);
    unlink(path);
    for (int i = 1; i < SIZES; i++)
        measure_tfrecords(array, sizes[i], seconds);
}

/* ---- Restoring ---------------------------------------------------------- */

enum { BUFFER = 100000 };
#define FAR INT64_C(100000000)

static double seek_seconds(leat_reader *reader, int64_t index)
{
    double begin = bench_cpu_seconds();
    int got;
    output_require(leat_reader_seek(reader, (leat_position){0, index}, NULL));
    output_require(leat_reader_next_batch(reader, sample, BATCH, &got));
    return bench_cpu_seconds() - begin;
}

static double walk_seconds(void)
{
    static leat__shuffle_held held[BUFFER];
    static int32_t work[BUFFER];
    leat__shuffle_draws draws;
    double begin = bench_cpu_seconds();
    leat__shuffle_draws_init(&draws, 1, 0);
    sink += (uint64_t)leat__shuffle_walk(&draws, FAR, BUFFER, -1, held, work);
    return bench_cpu_seconds() - begin;
}

static void measure_restore(const unsigned char *array)
{
    double beside[ROUNDS], leat[ROUNDS];
    leat_pipeline *range;
    output_require(leat_pipeline_range(&range, 0, 2 * FAR, 1));
    leat_reader *reader = open_over(range, "shuffle:100000");
    for (int i = -1; i < ROUNDS; i++) {
        beside[i < 0 ? 0 : i] = 1e9 * walk_seconds();
        leat[i < 0 ? 0 : i] = 1e9 * seek_seconds(reader, FAR);
    }
    add_row("restore: shuffle:100000 beside the walk back", 8, beside, leat);
    leat_reader_close(reader);
    leat_pipeline_unref(range);
    leat_pipeline *memory = memory_of(array, 784, 600000);
    reader = open_over(memory, "shuffle|repeat:3|skip:10|shard:2,1|take:-1");
    for (int i = -1; i < ROUNDS; i++) {
        double sum[2] = {0, 0};
        for (int k = 0; k < 200; k++) {
            sum[0] += seek_seconds(reader, k * BATCH);
            sum[1] += seek_seconds(reader, 899000 - k * BATCH);
        }
        beside[i < 0 ? 0 : i] = 1e9 * sum[0] / 200;
        leat[i < 0 ? 0 : i] = 1e9 * sum[1] / 200;
    }
    add_row("restore: end of an epoch beside its begin", 784, beside, leat);
    leat_reader_close(reader);
    leat_pipeline_unref(memory);
}

int main(int argc, char **argv)
{
    double seconds = 2;
    const char *only = "";
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: bench_order [--json] [--seconds S] "
                            "[--only CASE]\n");
            return 64;
        }
    }
    unsigned char *array = malloc(ARRAY_BYTES);
    batch = malloc(BATCH * sizes[SIZES - 1]);
    if (!array || !batch)
        exit(1);
    for (size_t i = 0; i < ARRAY_BYTES; i += 4096)
        memset(array + i, (int)(i >> 12), 4096);
    for (int i = 0; i < BATCH; i++)
        leat_sample_init(sample[i] = &storage[i]);
    report_begin(&report, json);
    if (!*only || !strcmp(only, "index"))
        measure_index(array, seconds);
    if (!*only || !strcmp(only, "order"))
        measure_order(array, seconds);
    if (!*only || !strcmp(only, "buffer"))
        measure_buffer(array, seconds);
    if (!*only || !strcmp(only, "restore"))
        measure_restore(array);
    for (int i = 0; i < BATCH; i++)
        leat_sample_finish(sample[i]);
    free(array);
    free(batch);
    return report_end(&report);
}
