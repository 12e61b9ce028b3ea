/*
 * bench_deferred: work that a stream defers beside the same work over random
 * access, and what a mark costs.
 *
 *     bench_deferred [WORK_US [SECONDS]]
 *
 * A source of small samples does WORK_US (20) microseconds of arithmetic for
 * each: in materialize, after a next that is called in order; or in read_at,
 * which a layer's workers call in parallel. A layer of each delivers batches,
 * by turns, for SECONDS (4) in all; the ratios are of rounds side by side. A
 * mark is taken of a chain of 9 readers that have one each.
 */
#include "base/clock.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 1 << 16, BATCH = 64, ROUNDS = 9, CHAIN = 8 };

static int64_t work_steps;

struct source {
    leat_reader reader;
    int64_t next;
};

/* A decorator that maps each position to itself, or passes a stream on. */
struct pass {
    leat_reader reader;
    leat_reader *upstream; /* owned */
};

static void require(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "bench_deferred: %s: %s\n", what, leat_last_error());
    exit(1);
}

/* Arithmetic that depends on itself, and so takes the same time always. */
static uint64_t work(uint64_t x)
{
    for (int64_t i = 0; i < work_steps; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void calibrate(double microseconds)
{
    uint64_t sum = 0;
    work_steps = 1 << 20;
    double best = 1;
    for (int i = 0; i < 9; i++) {
        double begin = leat__clock_seconds();
        sum += work((uint64_t)i);
        double took = leat__clock_seconds() - begin;
        best = took < best ? took : best;
    }
    work_steps = (int64_t)((double)work_steps * microseconds * 1e-6 / best);
    /* Never so, but the compiler does not know. */
    if (sum == 1)
        work_steps++;
}

static int complete(leat_sample *sample, int64_t record)
{
    uint64_t *value = leat_sample_take(sample, sizeof(*value));
    if (!value)
        return LEAT_ENOMEM;
    *value = work((uint64_t)record);
    sample->stable = 0;
    sample->from.source = "numbers";
    sample->from.record = record;
    const int64_t shape[] = {1, 1, sizeof(*value)};
    return leat_sample_set(sample, sample->nfields, LEAT_UINT8, 3, shape,
                           value);
}

static int source_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    static const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, 1, 8}};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int source_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    struct source *self = (struct source *)reader;
    for (; *got < n && self->next < RECORDS; ++*got) {
        out[*got]->locator.record = self->next++;
        out[*got]->deferred = 1;
    }
    return *got > 0 ? LEAT_OK : LEAT_END;
}

static int source_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    int status = LEAT_OK;
    (void)reader;
    for (; *got < n && !status; *got += !status)
        status = complete(out[*got], out[*got]->locator.record);
    return status;
}

static int source_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    int64_t next = position.index;
    int status = mark ? leat_token_get(mark, &next, sizeof(next)) : LEAT_OK;
    ((struct source *)reader)->next = next;
    return status;
}

static int source_mark(leat_reader *reader, leat_token *token)
{
    return leat_token_put(token, &((struct source *)reader)->next,
                          sizeof(int64_t));
}

static int source_count(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = RECORDS;
    return LEAT_OK;
}

static int source_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    int status = LEAT_OK;
    (void)reader;
    for (; *got < n && !status; *got += !status)
        status = complete(out[*got], at[*got].index);
    return status;
}

static void source_cancel(leat_reader *reader)
{
    (void)reader;
}

static void source_close(leat_reader *reader)
{
    free(reader);
}

#define SOURCE_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "numbers",                        \
    .fields = source_fields, .next = source_next, .seek = source_seek,         \
    .cancel = source_cancel, .close = source_close,                            \
    .materialize = source_materialize

static const leat_reader_ops stream_ops = {SOURCE_OPS, .mark = source_mark};
static const leat_reader_ops random_ops = {SOURCE_OPS, .count = source_count,
                                           .read_at = source_read_at};

static int open_source(const leat_reader_ops *ops, leat_reader **out)
{
    struct source *self = calloc(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = ops;
    *out = &self->reader;
    return LEAT_OK;
}

static int stream_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    return open_source(&stream_ops, out);
}

static int random_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    return open_source(&random_ops, out);
}

static leat_reader *above(leat_reader *reader)
{
    return ((struct pass *)reader)->upstream;
}

static int pass_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    return leat_reader_fields(above(reader), out, n);
}

static int pass_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    return leat_reader_pull(above(reader), out, n, got);
}

static int pass_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    int64_t own;
    int status = leat_reader_seek(above(reader), position, mark);
    return mark && !status ? leat_token_get(mark, &own, sizeof(own)) : status;
}

static int pass_mark(leat_reader *reader, leat_token *token)
{
    const int64_t own = 1;
    int status = leat_reader_mark(above(reader), token);
    return status ? status : leat_token_put(token, &own, sizeof(own));
}

static int pass_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(above(reader), out);
}

static int pass_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    return leat_reader_pull_at(above(reader), at, out, n, got);
}

static void pass_cancel(leat_reader *reader)
{
    leat_reader_cancel(above(reader));
}

static void pass_close(leat_reader *reader)
{
    leat_reader_close(above(reader));
    free(reader);
}

#define PASS_OPS                                                               \
    .size = sizeof(leat_reader_ops), .name = "pass", .fields = pass_fields,    \
    .next = pass_next, .seek = pass_seek, .cancel = pass_cancel,               \
    .close = pass_close

static int pass_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops in_order = {PASS_OPS, .mark = pass_mark};
    static const leat_reader_ops at_random = {PASS_OPS, .count = pass_count,
                                              .read_at = pass_read_at};
    struct pass *self = calloc(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    bool is_random = leat_reader_is_random_access(open->upstream[0]);
    self->reader.ops = is_random ? &at_random : &in_order;
    self->upstream = open->upstream[0];
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type stream_type = {
    .size = sizeof(stream_type), .name = "numbers", .open = stream_open};
static const leat_reader_type random_type = {
    .size = sizeof(random_type), .name = "numbers", .open = random_open};
static const leat_reader_type pass_type = {.size = sizeof(pass_type),
                                           .name = "pass",
                                           .min_upstream = 1,
                                           .max_upstream = 1,
                                           .open = pass_open};

static leat_pipeline *make_chain(const leat_reader_type *type, int passes)
{
    leat_pipeline *pipeline;
    require(leat_pipeline_create(&pipeline, type, NULL, NULL, NULL, NULL, 0),
            "pipeline");
    for (int i = 0; i < passes; i++) {
        leat_pipeline *upstream = pipeline;
        require(leat_pipeline_create(&pipeline, &pass_type, NULL, NULL, NULL,
                                     &upstream, 1),
                "pipeline");
        leat_pipeline_unref(upstream);
    }
    return pipeline;
}

static leat_data_layer *make_layer(const leat_reader_type *type)
{
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = BATCH};
    leat_pipeline *pipeline = make_chain(type, 1);
    leat_data_layer *layer;
    require(leat_data_layer_create(&layer, pipeline, &options), "create");
    leat_pipeline_unref(pipeline);
    require(leat_data_layer_setup(layer, NULL, 0), "setup");
    return layer;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Samples a second, and microseconds of processor time a sample. */
static void run(leat_data_layer *layer, double seconds, double *rate,
                double *cpu)
{
    leat_blob *top[] = {leat_data_layer_top(layer, 0)};
    double begin = leat__clock_seconds(), used = cpu_seconds(), now;
    int64_t samples = 0;
    do {
        require(leat_data_layer_forward(layer, top, 1, LEAT_HOST), "forward");
        samples += BATCH;
        now = leat__clock_seconds();
    } while (now - begin < seconds);
    *rate = (double)samples / (now - begin);
    *cpu = 1e6 * (cpu_seconds() - used) / (double)samples;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof(values[0]), compare);
    return values[ROUNDS / 2];
}

static void measure_work(double seconds)
{
    double rate[2][ROUNDS], cpu[2][ROUNDS], share[ROUNDS];
    leat_data_layer *layer[] = {make_layer(&stream_type),
                                make_layer(&random_type)};
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        for (int i = 0; i < 2; i++)
            run(layer[i], seconds / (2 * (ROUNDS + 1)), &rate[i][at],
                &cpu[i][at]);
        share[at] = rate[0][at] / rate[1][at];
    }
    leat_data_layer_destroy(layer[0]);
    leat_data_layer_destroy(layer[1]);
    printf("stream        %10.0f samples/s %8.2f us of CPU a sample\n",
           median(rate[0]), median(cpu[0]));
    printf("random access %10.0f samples/s %8.2f us of CPU a sample\n",
           median(rate[1]), median(cpu[1]));
    printf("stream of random access, side by side: %.1f %%\n",
           100 * median(share));
}

static void measure_marks(void)
{
    enum { MARKS = 100000 };
    leat_pipeline *pipeline = make_chain(&stream_type, CHAIN);
    leat_reader *reader;
    leat_token token;
    double took[ROUNDS];
    require(leat_pipeline_open(pipeline, &reader), "open");
    leat_token_init(&token);
    for (int round = 0; round < ROUNDS; round++) {
        double begin = cpu_seconds();
        for (int i = 0; i < MARKS; i++) {
            token.size = 0;
            require(leat_reader_mark(reader, &token), "mark");
        }
        took[round] = 1e9 * (cpu_seconds() - begin) / MARKS / (CHAIN + 1);
    }
    printf("mark: %.1f ns a reader, chain of %d\n", median(took), CHAIN + 1);
    leat_token_finish(&token);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

int main(int argc, char **argv)
{
    double microseconds = argc > 1 ? atof(argv[1]) : 20;
    double seconds = argc > 2 ? atof(argv[2]) : 4;
    if (argc > 3 || microseconds <= 0 || seconds <= 0) {
        fprintf(stderr, "usage: bench_deferred [WORK_US [SECONDS]]\n");
        return 64;
    }
    calibrate(microseconds);
    printf("commit %s, %s\n%g us of work a sample\n", LEAT_COMMIT, LEAT_BUILD,
           microseconds);
    measure_work(seconds);
    measure_marks();
    return 0;
}
