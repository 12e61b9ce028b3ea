/*
 * bench_cold: what the feed makes of storage that it must wait for.
 *
 *     bench_cold [--latency US] [--mb-per-s N] [--batch N] DIRECTORY
 *     bench_cold --here [--batch N] DIRECTORY
 *
 * DIRECTORY holds data.mdb. It is served by slow_storage: 1,000 us and 200 MB/s
 * unless said otherwise. With --here it is read where it lies, once the page
 * cache has been told to drop it. Each line is one pass over it, nothing of it
 * in memory at the beginning: in order, or every other record as one of two
 * ranks does, which reads at random access; with leat's read-ahead or the
 * kernel's own; by a consumer that takes no time, and by one that takes 1.5
 * times what the storage needs for its batch.
 *
 * busy   share of the time in which the storage's wire was in use, from the end
 *        of setup to that of the pass; 100 % is what it can do at most. With
 *        --here, the rate as a share of that of a bare read in large blocks
 * waited share of the time that the consumer spent in forward
 */
#include "base/clock.h"
#include "slow_storage.h"

#include <leat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct setting {
    const char *directory;
    int is_here;     /* no slow_storage, but what the directory is on */
    int64_t latency; /* ns */
    int64_t bytes_per_second;
    int64_t batch;
} setting;

typedef struct bench_case {
    const char *name;
    const char *arguments;
    int ranks;
    double slowness; /* of the consumer, in times of the storage; 0: none */
} bench_case;

static const bench_case cases[] = {
    {"in order, kernel's read-ahead, fast consumer", ",read_ahead=-1", 1, 0},
    {"in order, fast consumer", "", 1, 0},
    {"in order, drop-behind, fast consumer", ",drop_behind=1", 1, 0},
    {"in order, kernel's read-ahead, slow consumer", ",read_ahead=-1", 1, 1.5},
    {"in order, slow consumer", "", 1, 1.5},
    {"every other, kernel's read-ahead, fast consumer", ",read_ahead=-1", 2, 0},
    {"every other, fast consumer", "", 2, 0},
    {"every other, slow consumer", "", 2, 1.5},
};

typedef struct bench_result {
    double seconds;
    double busy;
    double waited;
    double first_ms;
    double worst_ms; /* of the forwards after the first two */
    int64_t images;
    int64_t bytes;
    int64_t requests;
    int threads; /* of the reader */
} bench_result;

static int fail(void)
{
    fprintf(stderr, "bench_cold: %s\n", leat_last_error());
    return -1;
}

static double elapsed(int64_t since)
{
    return (double)(leat__clock_now() - since) * 1e-9;
}

static void consume(double seconds)
{
    struct timespec time = {(time_t)seconds,
                            (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* Forwards until the first epoch is over. */
static int forward_all(leat_data_layer *layer, leat_blob *const top[2],
                       double compute, bench_result *out)
{
    for (int64_t n = 0;; n++) {
        int64_t begin = leat__clock_now();
        if (leat_data_layer_forward(layer, top, 2, LEAT_HOST))
            return fail();
        double took = elapsed(begin);
        const leat_batch *batch = leat_data_layer_batch(layer);
        if (batch->from[batch->n - 1].epoch > 0)
            return 0;
        out->waited += took;
        if (n == 0)
            out->first_ms = took * 1e3;
        else if (n > 1 && took * 1e3 > out->worst_ms)
            out->worst_ms = took * 1e3;
        out->images += batch->n;
        if (compute > 0)
            consume(compute);
    }
}

/* The file's bytes for each of its records. */
static double record_bytes(const leat_data_layer *layer,
                           const slow_storage *storage)
{
    leat_reader *reader;
    int64_t count = 1;
    if (leat_pipeline_open(leat_data_layer_pipeline(layer), &reader))
        return 0;
    (void)leat_reader_count(reader, &count);
    leat_reader_close(reader);
    return (double)storage->size / (double)count;
}

static int measure(const setting *setting, const bench_case *one,
                   slow_storage *storage, bench_result *out)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_pipeline *pipeline = NULL;
    leat_data_layer *layer = NULL;
    leat_blob *top[2] = {NULL, NULL};
    slow_storage_totals before, totals;
    leat_stats stats = {.size = sizeof(stats)};
    char text[512];
    int status = -1;
    options.batch_size = setting->batch;
    options.world_size = one->ranks;
    snprintf(text, sizeof(text), "lmdb:%s%s", storage->path, one->arguments);
    if (leat_pipeline_parse(&pipeline, text) ||
        leat_data_layer_create(&layer, pipeline, &options) ||
        leat_blob_create(&top[0], NULL) || leat_blob_create(&top[1], NULL) ||
        leat_data_layer_setup(layer, top, 2)) {
        fail();
        goto done;
    }
    double compute = one->slowness * one->ranks * (double)setting->batch *
                     record_bytes(layer, storage) /
                     (double)setting->bytes_per_second;
    slow_storage_read(storage, &before);
    int64_t begin = leat__clock_now();
    status = forward_all(layer, top, compute, out);
    out->seconds = elapsed(begin);
    out->waited /= out->seconds;
    slow_storage_read(storage, &totals);
    out->busy = (double)(totals.busy - before.busy) * 1e-9 / out->seconds;
    out->bytes = totals.bytes - before.bytes;
    out->requests = totals.requests - before.requests;
    if (!status)
        status = leat_data_layer_stats(layer, &stats);
    out->threads = stats.stage[0].threads;

done:
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    leat_pipeline_unref(pipeline);
    return status;
}

/* Opens data.mdb with nothing of it in memory. */
static int open_dropped(const char *directory, int64_t *size)
{
    char path[4096];
    struct stat found;
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) != 0 || fsync(fd) != 0 ||
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) {
        perror(path);
        return -1;
    }
    *size = found.st_size;
    return fd;
}

/* Bytes a second that a bare read gets from the storage; 0 on failure. */
static double bare_rate(const char *directory)
{
    enum { BLOCK = 4 << 20 };
    int64_t size, done = 0;
    ssize_t got = 1;
    int fd = open_dropped(directory, &size);
    if (fd < 0)
        return 0;
    char *block = malloc(BLOCK);
    int64_t begin = leat__clock_now();
    while (block && (got = read(fd, block, BLOCK)) > 0)
        done += got;
    double rate = (double)done / elapsed(begin);
    free(block);
    close(fd);
    return got == 0 ? rate : 0;
}

static int measure_here(const setting *given, const bench_case *one,
                        bench_result *out)
{
    setting here = *given;
    slow_storage storage = {.totals = NULL};
    double rate = bare_rate(given->directory);
    int fd = rate > 0 ? open_dropped(given->directory, &storage.size) : -1;
    if (fd < 0)
        return -1;
    close(fd);
    here.bytes_per_second = (int64_t)rate;
    snprintf(storage.path, sizeof(storage.path), "%s", given->directory);
    int status = measure(&here, one, &storage, out);
    out->bytes = storage.size;
    out->busy = (double)storage.size / out->seconds / rate;
    return status;
}

static int measure_slow(const setting *given, const bench_case *one,
                        bench_result *out)
{
    slow_storage storage;
    int status = slow_storage_mount(&storage, given->directory, given->latency,
                                    given->bytes_per_second);
    if (status > 0)
        printf("skipped: FUSE cannot be used here\n");
    if (status)
        return status;
    status = measure(given, one, &storage, out);
    slow_storage_unmount(&storage);
    return status;
}

static int run(const setting *setting, const bench_case *one)
{
    bench_result result = {0};
    int status = setting->is_here ? measure_here(setting, one, &result)
                                  : measure_slow(setting, one, &result);
    if (status)
        return status;
    printf("| %s | %.0f | %.0f | %.0f | %.0f | %.1f | %.0f | %d |\n", one->name,
           result.busy * 100, (double)result.bytes * 1e-6 / result.seconds,
           (double)result.images / result.seconds, result.waited * 100,
           result.worst_ms,
           result.requests
               ? (double)result.bytes / 1024 / (double)result.requests
               : 0,
           result.threads);
    fflush(stdout);
    return 0;
}

static int read_options(setting *out, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i], "--latency") == 0)
            out->latency = atoll(argv[++i]) * 1000;
        else if (has_value && strcmp(argv[i], "--mb-per-s") == 0)
            out->bytes_per_second = atoll(argv[++i]) * 1000000;
        else if (has_value && strcmp(argv[i], "--batch") == 0)
            out->batch = atoll(argv[++i]);
        else if (strcmp(argv[i], "--here") == 0)
            out->is_here = 1;
        else if (argv[i][0] != '-' && !out->directory)
            out->directory = argv[i];
        else
            return -1;
    }
    return out->directory && out->bytes_per_second > 0 && out->batch > 0 ? 0
                                                                         : -1;
}

int main(int argc, char **argv)
{
    setting setting = {NULL, 0, 1000000, 200000000, 64};
    if (read_options(&setting, argc, argv) != 0) {
        fprintf(stderr, "usage: bench_cold [--latency US] [--mb-per-s N] "
                        "[--batch N] [--here] DIRECTORY\n");
        return 2;
    }
    if (setting.is_here)
        printf("commit %s, %s, where the file lies\n\n", LEAT_COMMIT,
               LEAT_COMPILER);
    else
        printf("commit %s, %s, latency %lld us, %lld MB/s\n\n", LEAT_COMMIT,
               LEAT_COMPILER, (long long)setting.latency / 1000,
               (long long)setting.bytes_per_second / 1000000);
    printf(
        "| one pass | busy, %% | MB/s | images/s | waited, %% | worst forward, "
        "ms | KiB a request | reader threads |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = run(&setting, &cases[i]);
        if (status)
            return status > 0 ? 77 : 1;
    }
    return 0;
}
