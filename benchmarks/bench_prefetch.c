/*
 * bench_prefetch: two threads of prefetch beside two bare threads that do the
 * same work and hand nothing over.
 *
 *     bench_prefetch [SECONDS]
 *
 * A source of small samples does arithmetic for each: in materialize, after a
 * next that is called in order, one sample a call where it may block; or in
 * read_at. The caller takes one sample at a time and does nothing with it.
 * Bare threads and prefetch take turns, for SECONDS (4) a line in all; the
 * share is the median of ROUNDS rounds side by side. Both have two cores at
 * most, so that the caller's own time, too, is prefetch's cost.
 */
#include "base/clock.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RECORDS = 1 << 16, ROUNDS = 9, THREADS = 2, AHEAD = 64 };

static int64_t work_steps;

typedef struct source {
    leat_reader reader;
    int64_t next;
    int at_once;
} source;

static void require(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "bench_prefetch: %s: %s\n", what, leat_last_error());
    exit(1);
}

/* Arithmetic that depends on itself, and so takes the same time always. */
static uint64_t work(uint64_t x)
{
    for (int64_t i = 0; i < work_steps; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* How many steps take that long, in processor time. */
static double cpu_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double step_seconds(void)
{
    uint64_t sum = 0;
    double best = 1;
    work_steps = 1 << 20;
    for (int i = 0; i < 9; i++) {
        double begin = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
        sum += work((uint64_t)i);
        double took = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
        best = took < best ? took : best;
    }
    /* Never so, but the compiler does not know. */
    return (sum == 1 ? 2 : 1) * best / (double)work_steps;
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
    return leat_sample_set(sample, sample->nfields, LEAT_INT64, 0, NULL, value);
}

static int source_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    static const leat_field_spec field = {.name = "data", .dtype = LEAT_INT64};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int source_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    source *self = (source *)reader;
    n = n < self->at_once ? n : self->at_once;
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
    (void)mark;
    ((source *)reader)->next = position.index;
    return LEAT_OK;
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

static int may_block(leat_reader *reader)
{
    return ((source *)reader)->at_once == 1;
}

#define SOURCE_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "numbers",                        \
    .fields = source_fields, .next = source_next, .seek = source_seek,         \
    .cancel = source_cancel, .close = source_close, .may_block = may_block

static const leat_reader_ops stream_ops = {SOURCE_OPS,
                                           .materialize = source_materialize};
static const leat_reader_ops random_ops = {SOURCE_OPS, .count = source_count,
                                           .read_at = source_read_at};

/* What the next opened source is. */
static const leat_reader_ops *ops;
static int at_once;

static int source_open(const leat_open *open, leat_reader **out)
{
    source *self = calloc(1, sizeof(*self));
    (void)open;
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = ops;
    self->at_once = at_once;
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type type = {
    .size = sizeof(type), .name = "numbers", .open = source_open};

static leat_reader *open_reader(void)
{
    leat_pipeline *upstream, *pipeline;
    leat_reader *reader;
    leat_prefetch_options options = LEAT_PREFETCH_OPTIONS_INIT;
    options.samples = AHEAD;
    options.threads = THREADS;
    require(leat_pipeline_create(&upstream, &type, NULL, NULL, NULL, NULL, 0),
            "pipeline");
    if (ops->read_at) {
        leat_pipeline *source = upstream;
        require(leat_pipeline_shuffle(&upstream, source, NULL), "shuffle");
        leat_pipeline_unref(source);
    }
    require(leat_pipeline_prefetch(&pipeline, upstream, &options), "prefetch");
    require(leat_pipeline_open(pipeline, &reader), "open");
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
    return reader;
}

/* Samples a second, and processor time a sample. */
typedef struct figures {
    double rate;
    double cpu;
} figures;

static figures run_prefetch(leat_reader *reader, leat_sample *sample,
                            int64_t *epoch, double seconds)
{
    double begin = leat__clock_seconds(), now;
    double used = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    int64_t samples = 0;
    do {
        int status = leat_reader_next(reader, sample);
        if (status == LEAT_END) {
            const leat_position begin_of = {++*epoch, 0};
            status = leat_reader_seek(reader, begin_of, NULL);
        } else {
            samples++;
        }
        require(status, "next");
        now = samples % 16 ? begin : leat__clock_seconds();
    } while (now - begin < seconds);
    now = leat__clock_seconds();
    return (figures){(double)samples / (now - begin),
                     (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - used) /
                         (double)samples};
}

static double bare_seconds;

static void *run_bare_thread(void *argument)
{
    leat_sample sample;
    double begin = leat__clock_seconds();
    int64_t *samples = argument;
    leat_sample_init(&sample);
    do {
        leat_sample_clear(&sample);
        require(complete(&sample, ++*samples), "bare");
    } while (leat__clock_seconds() - begin < bare_seconds);
    leat_sample_finish(&sample);
    return NULL;
}

static figures run_bare(double seconds)
{
    pthread_t thread[THREADS];
    int64_t samples[THREADS] = {0}, sum = 0;
    double used = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    double begin = leat__clock_seconds();
    bare_seconds = seconds;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, run_bare_thread, &samples[i]))
            exit(1);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += samples[i];
    }
    return (figures){(double)sum / (leat__clock_seconds() - begin),
                     (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - used) /
                         (double)sum};
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

static void measure(const char *name, double microseconds, double seconds)
{
    double share[ROUNDS], cpu[ROUNDS], rate[ROUNDS];
    leat_sample sample;
    int64_t epoch = 0;
    leat_sample_init(&sample);
    leat_reader *reader = open_reader();
    (void)run_prefetch(reader, &sample, &epoch, 0.02);
    for (int i = 0; i < ROUNDS; i++) {
        figures bare = run_bare(seconds / ROUNDS / 2);
        figures own =
            run_prefetch(reader, &sample, &epoch, seconds / ROUNDS / 2);
        share[i] = 100 * own.rate / bare.rate;
        cpu[i] = 100 * bare.cpu / own.cpu;
        rate[i] = own.rate;
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    printf("%-28s | %4.0f us | %9.0f/s | %6.1f %% | %6.1f %%\n", name,
           microseconds, median(rate), median(share), median(cpu));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const double sizes[] = {5, 20, 100};
    double seconds = argc > 1 ? atof(argv[1]) : 4;
    double step = step_seconds();
    printf("%-28s | %-7s | %-11s | %-8s | %s\n", "source", "work", "prefetch",
           "of bare", "by processor time");
    for (int i = 0; i < 3; i++) {
        work_steps = (int64_t)(sizes[i] * 1e-6 / step);
        ops = &stream_ops;
        at_once = RECORDS;
        measure("in order, deferred", sizes[i], seconds);
        at_once = 1;
        measure("one a call, deferred", sizes[i], seconds);
        ops = &random_ops;
        measure("shuffled, by read_at", sizes[i], seconds);
    }
    return 0;
}
