/*
 * How busy a layer on cuda:0 keeps a bus of 55 GB/s, what forward takes of its
 * caller, and how much of the copies kernels hide: in the double's time, in
 * which what the CPU does costs nothing but calls of the runtime, and those
 * only where the test says so. Prints the figures, which benchmarks/RESULTS.md
 * has.
 */
#include "cuda_double.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 48
#define PREFETCH 4

/* An H200: its bus, the start of a copy, and kernels at 75 % of its memory. */
#define BUS_GB_PER_S 55
#define COPY_US 1
#define KERNEL_GB_PER_S (0.75 * 4300)
/* Calls that ask the driver, and threads that wake up after an event. */
#define CALL_US 3
#define WAKE_US 20
/* Of a batch: 7 that enqueue it, and 2 that wait for its former contents. */
#define CALLS 9

typedef struct workload {
    const char *name;
    int64_t shape[3];
    int crop;
    int batch;
} workload;

static const workload workloads[] = {
    {"MNIST-like 1x28x28", {1, 28, 28}, 0, 1024},
    {"CIFAR-like 3x32x32", {3, 32, 32}, 0, 1000},
    {"raw 3x256x256 to 227", {3, 256, 256}, 227, 64},
};

enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

static cudaStream_t stream;
static leat_pipeline *images;

static void set_up(void)
{
    cuda_double_reset();
    cuda_double_set_bus(BUS_GB_PER_S, COPY_US);
    cuda_double_set_memory_bus(KERNEL_GB_PER_S);
    cuda_double_set_computes(0);
    stream = cuda_double_stream();
}

static void make_calls_take_time(void)
{
    cuda_double_set_call(CALL_US);
    cuda_double_set_query(CALL_US);
    cuda_double_set_wake(WAKE_US);
}

static void tear_down(void)
{
    leat_pipeline_unref(images);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
    ck_assert_int_eq(cuda_double_count().streams, 0);
    ck_assert_int_eq(cuda_double_count().device_bytes, 0);
}

/* One worker, whose time is then that of all enqueuing. */
static layer_fixture open_layer(const workload *what, int prefetch)
{
    static unsigned char pixels[16 * 3 * 256 * 256];
    static int32_t labels[16];
    const leat_memory_field fields[] = {
        {"data",
         LEAT_UINT8,
         3,
         {what->shape[0], what->shape[1], what->shape[2]},
         pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    transform.crop_size = what->crop;
    transform.scale = 0.00390625F;
    options.transform = &transform;
    options.batch_size = what->batch;
    options.device = "cuda:0";
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    options.prefetch = prefetch;
    options.workers = 1;
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    if (!images)
        ck_assert_int_eq(leat_pipeline_memory(&images, fields, 2, 16), LEAT_OK);
    return layer_fixture_open(images, &options);
}

static void forward(layer_fixture *layer)
{
    int status = leat_cuda_forward(layer->layer, layer->top, 2, stream);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

static void compute(double us)
{
    ck_assert_int_eq(cuda_double_launch(NULL, NULL, 0, us, stream),
                     cudaSuccess);
}

/* The microseconds of a batch, those that were there before left out. */
static double time_batches(layer_fixture *layer, double kernel_us)
{
    double begin = 0;
    for (int i = -2 * (PREFETCH + 1); i < BATCHES; i++) {
        if (i == 0)
            begin = cuda_double_time(stream);
        forward(layer);
        if (kernel_us > 0)
            compute(kernel_us);
    }
    return (cuda_double_time(stream) - begin) / BATCHES;
}

static size_t copy_bytes(const layer_fixture *layer)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(layer->layer, &stats), LEAT_OK);
    int i = 0;
    while (i < stats.nstages && strcmp(stats.stage[i].name, "copy") != 0)
        i++;
    ck_assert_int_lt(i, stats.nstages);
    return (size_t)(stats.stage[i].bytes / stats.stage[i].items);
}

/* The microseconds of each of many copies from pinned memory, one after the
   other. */
static double time_copies(size_t bytes)
{
    void *host, *device;
    cudaStream_t copies = cuda_double_stream();
    ck_assert_int_eq(cudaHostAlloc(&host, bytes, 0), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&device, bytes), cudaSuccess);
    double begin = 0;
    for (int i = 0; i <= BATCHES; i++) {
        ck_assert_int_eq(cudaMemcpyAsync(device, host, bytes,
                                         cudaMemcpyHostToDevice, copies),
                         cudaSuccess);
        if (i == 0)
            begin = cuda_double_time(copies);
    }
    double us = (cuda_double_time(copies) - begin) / BATCHES;
    ck_assert_int_eq(cudaFree(device), cudaSuccess);
    ck_assert_int_eq(cudaFreeHost(host), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(copies), cudaSuccess);
    return us;
}

/* How much of the shorter of two times was hidden, as `leat bench` has it. */
static double hidden(double one, double other, double together)
{
    return (one + other - together) / (one < other ? one : other);
}

/* What a layer reaches. */
typedef struct figures {
    double copy;     /* microseconds of a bare copy */
    double delivery; /* and of a batch */
    double overlap;  /* with kernels as long as a delivery */
} figures;

static figures measure(const workload *what, int prefetch)
{
    figures out;
    layer_fixture layer = open_layer(what, prefetch);
    out.delivery = time_batches(&layer, 0);
    double together = time_batches(&layer, out.delivery);
    size_t bytes = copy_bytes(&layer);
    layer_fixture_close(&layer);
    out.copy = time_copies(bytes);
    out.overlap = hidden(out.delivery, out.delivery, together);
    printf("| %s | %d | %.1f | %.1f | %.3f | %.3f |\n", what->name, prefetch,
           out.copy, out.delivery, out.copy / out.delivery, out.overlap);
    fflush(stdout);
    return out;
}

START_TEST(the_bus_is_what_limits_a_layer)
{
    for (int prefetch = 1; prefetch <= PREFETCH; prefetch += PREFETCH - 1) {
        figures found = measure(&workloads[_i], prefetch);
        ck_assert_double_ge(found.copy / found.delivery, 0.99);
        ck_assert_double_ge(found.overlap, 0.95);
    }
}
END_TEST

/* Copies shorter than the calls that one worker makes for them wait for it. */
START_TEST(calls_that_take_time_are_hidden_by_longer_copies)
{
    make_calls_take_time();
    for (int prefetch = 1; prefetch <= PREFETCH; prefetch += PREFETCH - 1) {
        figures found = measure(&workloads[_i], prefetch);
        double calls = CALLS * CALL_US;
        double ideal = found.copy > calls ? found.copy : calls;
        ck_assert_double_ge(ideal / found.delivery, 0.99);
        ck_assert_double_ge(found.overlap, 0.95);
    }
}
END_TEST

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * Its batch is there, since what the caller computes takes longer. These are
 * the calls of the runtime: leat's own code takes no time in the model.
 */
START_TEST(forward_takes_its_caller_less_than_ten_microseconds)
{
    double us[BATCHES];
    make_calls_take_time();
    layer_fixture layer = open_layer(&workloads[_i], PREFETCH);
    for (int i = 0; i < BATCHES; i++) {
        double begin = cuda_double_host_time();
        forward(&layer);
        us[i] = cuda_double_host_time() - begin;
        compute(1000);
        ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    }
    layer_fixture_close(&layer);
    qsort(us, BATCHES, sizeof(us[0]), compare);
    printf("| %s | %.1f | %.1f |\n", workloads[_i].name, us[BATCHES / 2],
           us[BATCHES - 1]);
    fflush(stdout);
    ck_assert_double_lt(us[BATCHES / 2], 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bus_cuda");
    TCase *tcase = tcase_create("bus_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, the_bus_is_what_limits_a_layer, 0, WORKLOADS);
    tcase_add_loop_test(tcase, calls_that_take_time_are_hidden_by_longer_copies,
                        0, WORKLOADS);
    tcase_add_loop_test(tcase,
                        forward_takes_its_caller_less_than_ten_microseconds, 0,
                        WORKLOADS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
