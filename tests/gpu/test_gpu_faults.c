/*
 * What a GPU can be made to fail at: memory that is used up, and, in another
 * process, a kernel that is killed and a process that is. Not for
 * compute-sanitizer, which such a kernel would stop.
 */
#include "gpu_layer.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 30
#define SECONDS 60
#define BLOCKS 256
#define LEAST ((size_t)1 << 20) /* of a block */

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    pipeline = gpu_pipeline();
    gpu_options(&options, &transform);
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static void run_steps(gpu_layer *feed, int from, int to)
{
    for (int i = from; i < to; i++) {
        gpu_layer_forward(feed, 0);
        for (int top = 0; top < 2; top++)
            gpu_layer_fetch(feed, i, top, 0);
    }
    gpu_layer_wait(feed);
}

static void check_and_close(gpu_layer *feed)
{
    leat_data_layer *twin = gpu_twin(pipeline, &options);
    ck_assert_int_eq(gpu_count_wrong(feed, twin, feed->steps, 1, 0), 0);
    leat_data_layer_destroy(twin);
    gpu_layer_close(feed, 1);
}

/* The device's memory, but for less than LEAST; how many blocks. */
static int take_all(leat_device *device, void *block[], size_t bytes[])
{
    int n = 0;
    for (size_t size = (size_t)1 << 40; size >= LEAST && n < BLOCKS;) {
        if (device->ops->alloc(device, size, &block[n]) == LEAT_OK)
            bytes[n++] = size;
        else
            size /= 2;
    }
    ck_assert_int_lt(n, BLOCKS);
    return n;
}

START_TEST(a_layer_for_which_there_is_no_memory_works_once_there_is)
{
    void *block[BLOCKS];
    size_t bytes[BLOCKS];
    leat_device *device;
    leat_data_layer *layer;
    watchdog_start(SECONDS);
    ck_assert_int_eq(leat_device_find(&device, gpu_device(0)), LEAT_OK);
    /* So that nothing but batches needs memory later. */
    gpu_layer first = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    run_steps(&first, 0, STEPS);
    check_and_close(&first);
    int n = take_all(device, block, bytes);
    ck_assert_int_gt(n, 0);
    options.device = gpu_device(0);
    /* More than can be left. */
    options.batch_size = 16 * GPU_BATCH;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_ENOMEM);
    ck_assert_msg(strstr(leat_last_error(), gpu_device(0)) != NULL, "%s",
                  leat_last_error());
    while (n-- > 0)
        device->ops->free(device, block[n], bytes[n]);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    gpu_layer feed = gpu_layer_of(layer, gpu_device(0), STEPS);
    run_steps(&feed, 0, STEPS);
    check_and_close(&feed);
    watchdog_stop();
}
END_TEST

/* For a child: ends it, with a line, unless the condition holds. */
static void expect(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "the other process: %s: %s\n", what, leat_last_error());
    _exit(1);
}

/* A kernel that reads where no memory is. */
static void kill_kernel(gpu_layer *feed)
{
    const leat_device_ops *ops = feed->device->ops;
    void *choices;
    expect(ops->alloc(feed->device, 4096, &choices) == LEAT_OK, "alloc");
    leat_device_transform what = {.pixels = (const void *)(uintptr_t)0x10000,
                                  .choices = choices,
                                  .top = choices,
                                  .scale = 1,
                                  .top_type = LEAT_FLOAT32,
                                  .images = 1,
                                  .channels = 1,
                                  .height = 8,
                                  .width = 8};
    /* Its call is all right, or it waits for the kernel. */
    (void)ops->transform(feed->device, &what, feed->stream[0]);
    expect(ops->stream_synchronize(feed->device, feed->stream[0]) ==
               LEAT_EDEVICE,
           "a kernel that was killed is not an error of the stream");
    expect(strstr(leat_last_error(), feed->device->ops->name) != NULL,
           "the error does not name the device");
}

/* From then on all of the process fails, and nothing waits. */
static void lose_device(void)
{
    leat_data_layer *second;
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    run_steps(&feed, 0, STEPS);
    kill_kernel(&feed);
    int status = LEAT_OK;
    for (int i = 0; i < STEPS && status == LEAT_OK; i++)
        status = leat_data_layer_forward(feed.layer, NULL, 0, feed.stream[0]);
    expect(status == LEAT_EDEVICE, "forward after the kernel");
    options.device = gpu_device(0);
    status = leat_data_layer_create(&second, pipeline, &options);
    if (status == LEAT_OK) {
        status = leat_data_layer_setup(second, NULL, 0);
        leat_data_layer_destroy(second);
    }
    expect(status == LEAT_EDEVICE || status == LEAT_ENOMEM,
           "another layer after the kernel");
    leat_data_layer_destroy(feed.layer);
}

/* Until somebody ends the process. */
static void run_for_ever(void)
{
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    for (;;)
        run_steps(&feed, 0, STEPS);
}

/* Forks before the device is used; the child runs once it is told to. */
static pid_t start_other(void (*body)(void), int *go)
{
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char byte;
        close(pipes[1]);
        alarm(SECONDS);
        if (read(pipes[0], &byte, 1) == 1)
            body();
        _exit(0);
    }
    close(pipes[0]);
    *go = pipes[1];
    return child;
}

START_TEST(a_kernel_killed_in_another_process_disturbs_nobody)
{
    int go, status;
    pid_t child = start_other(lose_device, &go);
    watchdog_start(SECONDS);
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    run_steps(&feed, 0, STEPS / 3);
    ck_assert_int_eq(write(go, "", 1), 1);
    run_steps(&feed, STEPS / 3, 2 * STEPS / 3);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "the other process ended with %d", status);
    run_steps(&feed, 2 * STEPS / 3, STEPS);
    check_and_close(&feed);
    close(go);
    watchdog_stop();
}
END_TEST

START_TEST(a_process_killed_in_the_midst_disturbs_nobody)
{
    int go, status;
    pid_t child = start_other(run_for_ever, &go);
    watchdog_start(SECONDS);
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    ck_assert_int_eq(write(go, "", 1), 1);
    run_steps(&feed, 0, STEPS / 2);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    run_steps(&feed, STEPS / 2, STEPS);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_and_close(&feed);
    close(go);
    watchdog_stop();
}
END_TEST

int main(int argc, char **argv)
{
    int absent = gpu_take_devices(argc, argv);
    if (absent)
        return absent;
    Suite *suite = suite_create("gpu_faults");
    TCase *tcase = tcase_create("gpu_faults");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase,
                   a_layer_for_which_there_is_no_memory_works_once_there_is);
    tcase_add_test(tcase, a_kernel_killed_in_another_process_disturbs_nobody);
    tcase_add_test(tcase, a_process_killed_in_the_midst_disturbs_nobody);
    return suite_run(suite);
}
