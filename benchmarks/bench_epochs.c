/*
 * bench_epochs: what a cold start costs, epoch by epoch.
 *
 *     bench_epochs [--batch N] [--rounds N] DIRECTORY
 *
 * DIRECTORY holds data.mdb. Each round takes three epochs from a layer that is
 * opened over a database in memory, and three from one that is opened once the
 * page cache has been told to drop it. Memory must have room for all of it. The
 * share is of the rate of the same round's epoch of the layer opened warm.
 */
#include "base/clock.h"

#include <leat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 3, ROUNDS_MAX = 99 };

typedef struct pass {
    double rate[EPOCHS]; /* images a second */
    double first_ms;     /* from create to the first batch */
} pass;

static int fail(void)
{
    fprintf(stderr, "bench_epochs: %s\n", leat_last_error());
    return -1;
}

/* Reads data.mdb into the page cache, or drops it from there. */
static int prepare(const char *directory, int is_cold)
{
    char path[4096];
    char block[65536];
    ssize_t got = 1;
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) != 0;
    if (!code && is_cold)
        code = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0;
    while (!code && !is_cold && (got = read(fd, block, sizeof(block))) > 0)
        ;
    if (code || got < 0)
        perror(path);
    if (fd >= 0)
        close(fd);
    return code || got < 0 ? -1 : 0;
}

/* Forwards until the epochs are over; a batch belongs to its first sample's. */
static int take_epochs(leat_data_layer *layer, leat_blob *const top[2],
                       int64_t created, pass *out)
{
    int64_t images = 0;
    int64_t since = leat__clock_now();
    for (int epoch = 0, n = 0; epoch < EPOCHS; n++) {
        if (leat_data_layer_forward(layer, top, 2, LEAT_HOST))
            return fail();
        int64_t now = leat__clock_now();
        if (n == 0)
            out->first_ms = (double)(now - created) * 1e-6;
        const leat_batch *batch = leat_data_layer_batch(layer);
        if (batch->epoch > epoch) {
            out->rate[epoch++] =
                (double)images / ((double)(now - since) * 1e-9);
            since = now;
            images = 0;
        }
        images += batch->n;
    }
    return 0;
}

static int measure(const leat_pipeline *pipeline, int64_t batch_size, pass *out)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer = NULL;
    leat_blob *top[2] = {NULL, NULL};
    int status = -1;
    int64_t created = leat__clock_now();
    options.batch_size = batch_size;
    if (leat_data_layer_create(&layer, pipeline, &options) ||
        leat_blob_create(&top[0], NULL) || leat_blob_create(&top[1], NULL) ||
        leat_data_layer_setup(layer, top, 2))
        fail();
    else
        status = take_epochs(layer, top, created, out);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints "median (least to most)". */
static void print_range(double *value, int n, int places)
{
    qsort(value, (size_t)n, sizeof(*value), compare);
    printf(" %.*f (%.*f to %.*f) |", places, value[n / 2], places, value[0],
           places, value[n - 1]);
}

static void print_table(const pass *warm, const pass *cold, int rounds)
{
    double value[ROUNDS_MAX];
    printf("| | opened warm, images/s | opened cold, images/s | share, %% |\n"
           "| --- | --- | --- | --- |\n");
    for (int e = 0; e < EPOCHS; e++) {
        printf("| epoch %d |", e + 1);
        for (int i = 0; i < rounds; i++)
            value[i] = warm[i].rate[e];
        print_range(value, rounds, 0);
        for (int i = 0; i < rounds; i++)
            value[i] = cold[i].rate[e];
        print_range(value, rounds, 0);
        for (int i = 0; i < rounds; i++)
            value[i] = cold[i].rate[e] / warm[i].rate[e] * 100;
        print_range(value, rounds, 0);
        printf("\n");
    }
    printf("| first batch, ms |");
    for (int i = 0; i < rounds; i++)
        value[i] = warm[i].first_ms;
    print_range(value, rounds, 1);
    for (int i = 0; i < rounds; i++)
        value[i] = cold[i].first_ms;
    print_range(value, rounds, 1);
    printf(" |\n");
}

static int run(const char *directory, int64_t batch_size, int rounds)
{
    pass warm[ROUNDS_MAX], cold[ROUNDS_MAX];
    leat_pipeline *pipeline;
    int status = 0;
    if (leat_pipeline_lmdb(&pipeline, directory, NULL))
        return fail();
    for (int i = 0; i < rounds && !status; i++) {
        status =
            prepare(directory, 0) || measure(pipeline, batch_size, &warm[i]) ||
            prepare(directory, 1) || measure(pipeline, batch_size, &cold[i]);
    }
    leat_pipeline_unref(pipeline);
    if (!status)
        print_table(warm, cold, rounds);
    return status;
}

int main(int argc, char **argv)
{
    int64_t batch_size = 64;
    int rounds = 5;
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        int value = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--batch") == 0 && value > 0)
            batch_size = value;
        else if (strcmp(argv[i], "--rounds") == 0 && value > 0 &&
                 value <= ROUNDS_MAX)
            rounds = value;
        else
            break;
    }
    if (i + 1 != argc) {
        fprintf(stderr, "usage: bench_epochs [--batch N] [--rounds N] "
                        "DIRECTORY\n");
        return 2;
    }
    return run(argv[i], batch_size, rounds) ? 1 : 0;
}
