/*
 * bench_instructions: a layer that does the same thing every time, for
 * scripts/instructions.sh to count its instructions.
 *
 *     bench_instructions --build
 *     bench_instructions WORKLOAD DB BATCHES
 *
 * Takes so many batches of one of the workloads of scripts/bench.sh from a
 * layer with one worker, a caller that does not help and a fixed seed, and ends
 * when the worker has filled all slots and rests. Beginning and end are alike
 * for any number of batches, so the difference of two runs is what batches
 * cost.
 * --build says what counts depend on besides the source.
 */
#include "device/transform_rows.h"

#include <leat.h>

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* It needs stdio.h before it. */
#include <jpeglib.h>

/* So few that every empty slot wakes the worker: it rests with all full. */
enum { PREFETCH = 2 };

struct workload {
    const char *name;
    int batch;
    int has_mean_file; /* DB.binaryproto */
    int mean_values;
    int crop_size;
    int mirror;
    float scale;
};

static const struct workload workloads[] = {
    {"mnist", 64, 0, 0, 0, 0, 0.00390625f},
    {"cifar", 100, 1, 0, 0, 0, 1},
    {"raw", 64, 0, 3, 227, 1, 1},
    {"jpeg", 64, 0, 0, 227, 1, 1},
};
enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

static int print_build(void)
{
    printf("%s, %s, kernels %s, glibc %s, libjpeg-turbo %d\n", LEAT_COMPILER,
           LEAT_BUILD, leat__row_kernels_choose()->name, gnu_get_libc_version(),
           LIBJPEG_TURBO_VERSION_NUMBER);
    return 0;
}

static int create(leat_data_layer **out, const struct workload *what,
                  const char *database)
{
    static const float mean_values[] = {104, 117, 123};
    char mean_file[4096];
    snprintf(mean_file, sizeof(mean_file), "%s.binaryproto", database);
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.crop_size = what->crop_size;
    transform.mirror = what->mirror;
    transform.scale = what->scale;
    transform.mean_file = what->has_mean_file ? mean_file : NULL;
    transform.mean_value = what->mean_values ? mean_values : NULL;
    transform.mean_values = what->mean_values;

    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = what->batch;
    options.prefetch = PREFETCH;
    options.transform = &transform;
    options.random_seed = 1;
    options.workers = 1;
    options.reader_thread = LEAT_READER_OFF;
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    leat_pipeline *pipeline;
    int status = leat_pipeline_lmdb(&pipeline, database, NULL);
    if (status)
        return status;
    status = leat_data_layer_create(out, pipeline, &options);
    leat_pipeline_unref(pipeline);
    return status;
}

/* Waits until the worker has made all that there are slots for. */
static int settle(const leat_data_layer *layer, int64_t samples)
{
    const struct timespec pause = {0, 50000000};
    for (;;) {
        leat_stats stats = {.size = sizeof(stats)};
        int status = leat_data_layer_stats(layer, &stats);
        if (status)
            return status;
        /* The last stage is forward, what is before it the workers'. */
        if (stats.stage[stats.nstages - 2].items >= samples)
            return LEAT_OK;
        nanosleep(&pause, NULL);
    }
}

static int run(const struct workload *what, const char *database,
               int64_t batches)
{
    leat_data_layer *layer = NULL;
    leat_blob *top[2] = {NULL, NULL};
    int status = create(&layer, what, database);
    for (int i = 0; !status && i < 2; i++)
        status = leat_blob_create(&top[i], NULL);
    if (!status)
        status = leat_data_layer_setup(layer, top, 2);
    for (int64_t i = 0; !status && i < batches; i++)
        status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
    if (!status)
        status = settle(layer, (batches + PREFETCH) * what->batch);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    if (!status)
        printf("%lld\n", (long long)batches * what->batch);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--build"))
        return print_build();
    for (int i = 0; argc == 4 && i < WORKLOADS; i++) {
        if (strcmp(argv[1], workloads[i].name) != 0)
            continue;
        if (run(&workloads[i], argv[2], atoll(argv[3]))) {
            fprintf(stderr, "bench_instructions: %s\n", leat_last_error());
            return 1;
        }
        return 0;
    }
    fprintf(stderr,
            "usage: bench_instructions mnist|cifar|raw|jpeg DB BATCHES\n"
            "       bench_instructions --build\n");
    return 2;
}
