/*
 * bench_map: how much of two cores a map's function gets, whose work a data
 * layer's workers do.
 *
 *     bench_map [SECONDS]
 *
 * The function does 5, 20 or 100 microseconds of arithmetic for each sample of
 * 784 bytes. Beside it the same work is done in a loop by two threads without a
 * reader, which is all that two cores can do: rates and processor time are
 * ratios of rounds side by side, SECONDS (4) in all for each case. Sources: a
 * file of records, which is mapped; the same after a filter, which is a
 * stream; a callback, which is one with a thread of its own. Neither side works
 * in the other's rounds: batches made ahead are taken first, and made again
 * before the loop runs.
 */
#include "base/clock.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    RECORDS = 4096,
    BYTES = 784,
    BATCH = 64,
    ROUNDS = 9,
    THREADS = 2,
    AHEAD = 6
};

static int64_t work_steps;

static void require(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "bench_map: %s: %s\n", what, leat_last_error());
    exit(1);
}

/* Arithmetic that depends on itself, and so takes the same time always. */
static uint64_t work(uint64_t x)
{
    for (int64_t i = 0; i < work_steps; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void calibrate(double microseconds)
{
    uint64_t sum = 0;
    double best = 1;
    work_steps = 1 << 20;
    for (int i = 0; i < 9; i++) {
        double begin = thread_seconds();
        sum += work((uint64_t)i);
        double took = thread_seconds() - begin;
        best = took < best ? took : best;
    }
    work_steps = (int64_t)((double)work_steps * microseconds * 1e-6 / best);
    /* Never so, but the compiler does not know. */
    if (sum == 1)
        work_steps++;
}

/* What the map does: the work, and its result in the sample. */
static int map(void *user, leat_sample *sample)
{
    uint64_t x;
    (void)user;
    memcpy(&x, sample->field[0].data, sizeof(x));
    unsigned char *copy = leat_sample_take(sample, BYTES);
    if (!copy)
        return LEAT_ENOMEM;
    memcpy(copy, sample->field[0].data, BYTES);
    x = work(x);
    memcpy(copy, &x, sizeof(x));
    const int64_t shape[] = {1, 28, 28};
    return leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, copy);
}

/* The same without leat, by one of two threads. */
typedef struct bare_loop {
    pthread_t thread;
    atomic_bool *stops;
    int64_t samples;
    double cpu;
    uint64_t sum;
} bare_loop;

static void *loop(void *argument)
{
    bare_loop *self = argument;
    uint64_t x = 1;
    while (!atomic_load_explicit(self->stops, memory_order_relaxed)) {
        x = work(x);
        self->samples++;
    }
    self->sum = x;
    self->cpu = thread_seconds();
    return NULL;
}

/* Samples a second, and microseconds of processor time a sample. */
typedef struct figures {
    double rate, cpu;
} figures;

static figures run_bare(double seconds)
{
    bare_loop loops[THREADS] = {0};
    atomic_bool stops = false;
    int64_t samples = 0;
    double begin = leat__clock_seconds(), used = 0;
    for (int i = 0; i < THREADS; i++) {
        loops[i].stops = &stops;
        if (pthread_create(&loops[i].thread, NULL, loop, &loops[i]))
            require(LEAT_ENOMEM, "thread");
    }
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&stops, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(loops[i].thread, NULL);
        samples += loops[i].samples;
        used += loops[i].cpu;
    }
    return (figures){(double)samples / (leat__clock_seconds() - begin),
                     1e6 * used / (double)samples};
}

/* Waits until the layer's threads have nothing to do. */
static void settle(void)
{
    double used;
    do {
        used = cpu_seconds();
        usleep(20000);
    } while (cpu_seconds() - used > 1e-3);
}

static figures run_layer(leat_data_layer *layer, double seconds)
{
    leat_blob *top[] = {leat_data_layer_top(layer, 0)};
    for (int i = 0; i < AHEAD; i++)
        require(leat_data_layer_forward(layer, top, 1, LEAT_HOST), "forward");
    double begin = leat__clock_seconds(), used = cpu_seconds(), now;
    int64_t samples = 0;
    do {
        require(leat_data_layer_forward(layer, top, 1, LEAT_HOST), "forward");
        samples += BATCH;
        now = leat__clock_seconds();
    } while (now - begin < seconds);
    return (figures){(double)samples / (now - begin),
                     1e6 * (cpu_seconds() - used) / (double)samples};
}

static char file[] = "/tmp/leat-bench-map-XXXXXX";

static void write_file(void)
{
    static unsigned char record[BYTES];
    int descriptor = mkstemp(file);
    FILE *out = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    for (int i = 0; out && i < RECORDS; i++) {
        memset(record, i, BYTES);
        if (fwrite(record, BYTES, 1, out) != 1)
            require(LEAT_EIO, file);
    }
    if (!out || fclose(out))
        require(LEAT_EIO, file);
}

static leat_pipeline *open_file(void)
{
    char text[128];
    leat_pipeline *made;
    snprintf(text, sizeof(text), "fixed:%s,fields=(data=uint8@0:1x28x28)",
             file);
    require(leat_pipeline_parse(&made, text), text);
    return made;
}

static int keep(void *user, const leat_sample *sample, int *kept)
{
    (void)user;
    (void)sample;
    *kept = 1;
    return LEAT_OK;
}

static leat_pipeline *open_stream(void)
{
    leat_pipeline *base = open_file(), *made;
    require(leat_pipeline_filter(&made, base, keep, NULL, 1, NULL), "filter");
    leat_pipeline_unref(base);
    return made;
}

static int give(void *pass, leat_sample *sample)
{
    static const unsigned char record[BYTES];
    const int64_t shape[] = {1, 28, 28};
    (void)pass;
    sample->stable = 1;
    return leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, record);
}

static leat_pipeline *open_callback(void)
{
    static const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, 28, 28}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = give};
    leat_pipeline *made;
    require(leat_pipeline_callback(&made, &callbacks, NULL), "callback");
    return made;
}

/* With its own number of workers, or two beside a reader's own thread. */
static leat_data_layer *make_layer(leat_pipeline *base, int workers)
{
    const leat_data_layer_options options = {
        .size = sizeof(options), .batch_size = BATCH, .workers = workers};
    leat_pipeline *mapped;
    leat_data_layer *layer;
    require(leat_pipeline_map(&mapped, base, map, NULL, 1, NULL), "map");
    require(leat_data_layer_create(&layer, mapped, &options), "create");
    require(leat_data_layer_setup(layer, NULL, 0), "setup");
    leat_pipeline_unref(mapped);
    leat_pipeline_unref(base);
    return layer;
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

static void measure(const char *name, leat_pipeline *base, int workers,
                    double seconds)
{
    double rate[ROUNDS], share[ROUNDS], cpu[ROUNDS];
    double slice = seconds / (2 * (ROUNDS + 1));
    leat_data_layer *layer = make_layer(base, workers);
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        settle();
        figures bare = run_bare(slice);
        figures mapped = run_layer(layer, slice);
        rate[at] = mapped.rate;
        share[at] = mapped.rate / bare.rate;
        cpu[at] = bare.cpu / mapped.cpu;
    }
    leat_data_layer_destroy(layer);
    double middle = median(share);
    printf("  %-9s %9.0f samples/s, %5.1f %% of the loop's rate (quartiles "
           "%.1f, %.1f), work %5.1f %% of processor time\n",
           name, median(rate), 100 * middle, 100 * share[ROUNDS / 4],
           100 * share[ROUNDS * 3 / 4], 100 * median(cpu));
}

int main(int argc, char **argv)
{
    static const double microseconds[] = {5, 20, 100};
    double seconds = argc > 1 ? atof(argv[1]) : 4;
    if (argc > 2 || seconds <= 0) {
        fprintf(stderr, "usage: bench_map [SECONDS]\n");
        return 64;
    }
    write_file();
    printf("commit %s, %s\n", LEAT_COMMIT, LEAT_BUILD);
    for (int i = 0; i < 3; i++) {
        calibrate(microseconds[i]);
        printf("%g us of work a sample\n", microseconds[i]);
        measure("file", open_file(), 0, seconds);
        measure("stream", open_stream(), 0, seconds);
        measure("callback", open_callback(), 2, seconds);
    }
    unlink(file);
    return 0;
}
