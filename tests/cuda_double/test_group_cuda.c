/*
 * A group over several devices of the double: what the kernels on each see, to
 * which device and from which memory its batches come, and a device that is
 * lost.
 */
#include "living.h"
#include "sight.h"
#include "support/group_fixture.h"
#include "support/layer_fixture.h"
#include "support/watchdog.h"

#include <check.h>
#include <leat/cuda.h>
#include <leat/ext/device.h>
#include <linux/mempolicy.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define STEPS 24
#define BATCH 4
#define SECONDS 100

static const char *const devices[] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static cudaStream_t stream[GROUP_FIXTURE_MAX];

/* A machine of several nodes, at least as far as leat is told. */

static int has_nodes;
static const char *node_text; /* of every device; NULL: one for each */
/* Bytes that were asked for on each, and what pages are said to lie on. */
static size_t placed[GROUP_FIXTURE_MAX];
static int policy_of[GROUP_FIXTURE_MAX];

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    static char text[GROUP_FIXTURE_MAX][4] = {"3\n", "2\n", "1\n", "0\n"};
    int device;
    if (!has_nodes ||
        sscanf(path, "/sys/bus/pci/devices/ffff:%d:00.0/numa_node", &device) !=
            1)
        return __real_fopen(path, mode);
    if (node_text)
        return fmemopen((void *)(uintptr_t)node_text, strlen(node_text), "r");
    return fmemopen(text[device % GROUP_FIXTURE_MAX], 2, "r");
}

/* Of what leat and the watchdog call: more is not there to be read. */
static int count_arguments(long number)
{
    switch (number) {
    case SYS_mbind:
        return 6;
    case SYS_get_mempolicy:
        return 5;
    case SYS_rt_sigaction:
        return 4;
    case SYS_tgkill:
        return 3;
    default:
        return 0;
    }
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    int n = count_arguments(number);
    long a[6] = {0};
    va_list list;
    va_start(list, number);
    for (int i = 0; i < n; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_mbind) {
        const unsigned long *mask = (const unsigned long *)a[3];
        ck_assert_int_eq(a[2], MPOL_PREFERRED);
        for (int node = 0; node < GROUP_FIXTURE_MAX; node++)
            if (mask[0] == 1ul << node) {
                placed[node] += (size_t)a[1];
                policy_of[node]++;
            }
        return 0;
    }
    if (number == SYS_get_mempolicy && has_nodes) {
        *(int *)a[0] = 7;
        return 0;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = BATCH;
    options.prefetch = 2;
    cuda_double_reset();
    cuda_double_set_devices(GROUP_FIXTURE_MAX);
    for (int i = 0; i < GROUP_FIXTURE_MAX; i++) {
        ck_assert_int_eq(cudaSetDevice(i), cudaSuccess);
        stream[i] = cuda_double_stream();
    }
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
    pipeline = layer_fixture_pipeline();
    cuda_double_forget();
    watchdog_start(SECONDS);
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < GROUP_FIXTURE_MAX; i++)
        (void)cudaStreamDestroy(stream[i]);
    living_check_none();
    ck_assert_int_eq(cuda_double_count().destroyed_busy, 0);
    watchdog_stop();
}

/* A step of each member, whose kernels run when their streams come to it. */
static void step(group_fixture *group, int t, sight *seen)
{
    for (int i = 0; i < group->n; i++) {
        leat_blob **top = group->top[i];
        int status = leat_cuda_forward(group_fixture_member(group, i), top, 2,
                                       stream[i]);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_int_eq(cudaSetDevice(i), cudaSuccess);
        sight_launch(top, BATCH, seen + (t * group->n + i) * BATCH, 0,
                     stream[i]);
    }
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
}

START_TEST(kernels_on_all_devices_together_see_every_batch_once)
{
    for (int n = 1; n <= GROUP_FIXTURE_MAX; n++)
        for (int way = 0; way < 8; way++) {
            sight seen[STEPS * GROUP_FIXTURE_MAX * BATCH] = {0};
            options.prefetch = 1 + way % 2;
            options.transform_on =
                way / 2 % 2 ? LEAT_TRANSFORM_ON_DEVICE : LEAT_TRANSFORM_ON_CPU;
            cuda_double_set_eager(way / 4);
            group_fixture group =
                group_fixture_open(pipeline, &options, devices, n);
            for (int t = 0; t < STEPS; t++)
                step(&group, t, seen);
            for (int i = 0; i < n; i++)
                ck_assert_int_eq(cudaStreamSynchronize(stream[i]), cudaSuccess);
            ck_assert_int_eq(sight_count_wrong(seen, STEPS * n * BATCH), 0);
            group_fixture_close(&group);
        }
}
END_TEST

/* Uploads of batches: the calls that copy more than their labels. */
static int count_uploads(int device)
{
    int n;
    int found = 0;
    const cuda_double_call *calls = cuda_double_calls(&n);
    for (int i = 0; i < n; i++)
        found += !strcmp(calls[i].name, "cudaMemcpyAsync") &&
                 calls[i].flags == cudaMemcpyHostToDevice &&
                 calls[i].device == device;
    return found;
}

START_TEST(each_device_gets_its_own_batches_and_no_others)
{
    sight seen[STEPS * GROUP_FIXTURE_MAX * BATCH];
    group_fixture group = group_fixture_open(pipeline, &options, devices, 3);
    for (int t = 0; t < STEPS; t++)
        step(&group, t, seen);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(cudaStreamSynchronize(stream[i]), cudaSuccess);
    group_fixture_close(&group);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_ge(count_uploads(i), STEPS);
        ck_assert_int_le(count_uploads(i), STEPS + options.prefetch + 1);
    }
    ck_assert_int_eq(count_uploads(3), 0);
}
END_TEST

START_TEST(the_pinned_memory_of_each_is_on_its_devices_node)
{
    has_nodes = 1;
    group_fixture group = group_fixture_open(pipeline, &options, devices, 3);
    leat_stats stats[3];
    for (int i = 0; i < 3; i++) {
        stats[i].size = sizeof(stats[i]);
        ck_assert_int_eq(
            leat_data_layer_stats(group_fixture_member(&group, i), &stats[i]),
            0);
        /* As sysfs says, and as the system says of the pages. */
        ck_assert_int_eq(stats[i].device_node, 3 - i);
        ck_assert_int_eq(stats[i].host_node, 7);
        ck_assert_uint_ge(placed[3 - i], (size_t)stats[i].memory.pinned);
        ck_assert_int_gt(policy_of[3 - i], 0);
    }
    ck_assert_int_eq(policy_of[0], 0);
    group_fixture_close(&group);
}
END_TEST

/* A virtual machine says -1; the rest is no node either, or no file. */
START_TEST(a_node_that_nobody_knows_is_no_error)
{
    static const char *const texts[] = {"-1\n",   "-2\n", "1024\n",
                                        "none\n", "\n",   NULL};
    has_nodes = texts[_i] != NULL;
    node_text = texts[_i];
    group_fixture group = group_fixture_open(pipeline, &options, devices, 2);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(
        leat_data_layer_stats(group_fixture_member(&group, 1), &stats), 0);
    ck_assert_int_eq(stats.device_node, -1);
    for (int node = 0; node < GROUP_FIXTURE_MAX; node++)
        ck_assert_int_eq(policy_of[node], 0);
    group_fixture_close(&group);
}
END_TEST

static int forward_on(group_fixture *group, int i)
{
    return leat_cuda_forward(group_fixture_member(group, i), group->top[i], 2,
                             stream[i]);
}

/* Copy or kernel number n kills one of the devices, as a fallen bus does. */
START_TEST(a_device_that_is_lost_ends_it_for_all)
{
    for (int n = 0; n < 10; n++) {
        group_fixture group =
            group_fixture_open(pipeline, &options, devices, 2);
        cuda_double_set_eager(1);
        cuda_double_lose_at(n, cudaErrorECCUncorrectable);
        int status = LEAT_OK;
        for (int k = 0; k < 200 && status == LEAT_OK; k++) {
            status = forward_on(&group, k % 2);
            /* Where nobody reads, streams run when they are waited for. */
            for (int i = 0; i < 2 && status == LEAT_OK; i++)
                (void)cudaStreamSynchronize(stream[i]);
        }
        ck_assert_int_eq(status, LEAT_EDEVICE);
        for (int i = 0; i < 2; i++) {
            int end = LEAT_OK;
            for (int t = 0; t < 20 && end == LEAT_OK; t++)
                end = forward_on(&group, i);
            ck_assert_int_eq(end, LEAT_EDEVICE);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "cuda:"));
        }
        group_fixture_close(&group);
        (void)cudaGetLastError();
        for (int i = 0; i < GROUP_FIXTURE_MAX; i++)
            (void)cudaStreamDestroy(stream[i]);
        cuda_double_reset();
        cuda_double_set_devices(GROUP_FIXTURE_MAX);
        for (int i = 0; i < GROUP_FIXTURE_MAX; i++) {
            ck_assert_int_eq(cudaSetDevice(i), cudaSuccess);
            stream[i] = cuda_double_stream();
        }
        ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
    }
}
END_TEST

/* Every call in turn, of all devices and of set up, forward and destroy. */
START_TEST(a_call_that_fails_ends_in_one_error_for_all)
{
    int failures = 0;
    options.prefetch = 1;
    for (int64_t n = 0, done = 0; !done; n += 1 + n / 16) {
        group_fixture group = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&group.group, pipeline,
                                                      &options, devices, 2),
                         LEAT_OK);
        group_fixture_make_tops(&group, devices, 2);
        cuda_double_fail_at(n, cudaErrorUnknown);
        int status = leat_data_layer_group_setup(group.group, group.top[0], 2);
        int is_up = status == LEAT_OK;
        for (int k = 0; k < 8 && status == LEAT_OK; k++)
            status = forward_on(&group, k % 2);
        for (int i = 0; i < 2 && is_up && status; i++) {
            int end = LEAT_OK;
            for (int t = 0; t < 20 && end == LEAT_OK; t++)
                end = forward_on(&group, i);
            ck_assert_int_eq(end, status);
        }
        done = cuda_double_failed() == NULL;
        failures += status != LEAT_OK;
        cuda_double_fail_at(-1, cudaSuccess);
        ck_assert(status == LEAT_OK || status == LEAT_EDEVICE ||
                  status == LEAT_ENOMEM);
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(cudaStreamSynchronize(stream[i]), cudaSuccess);
        group_fixture_close(&group);
    }
    ck_assert_int_gt(failures, 10);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("group_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, kernels_on_all_devices_together_see_every_batch_once);
    tcase_add_test(tcase, each_device_gets_its_own_batches_and_no_others);
    tcase_add_test(tcase, the_pinned_memory_of_each_is_on_its_devices_node);
    tcase_add_loop_test(tcase, a_node_that_nobody_knows_is_no_error, 0, 6);
    tcase_add_test(tcase, a_device_that_is_lost_ends_it_for_all);
    tcase_add_test(tcase, a_call_that_fails_ends_in_one_error_for_all);
    Suite *suite = suite_create("group_cuda");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
