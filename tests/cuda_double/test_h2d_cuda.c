/* What leat bench h2d asks of a device in a sample, and what it leaves. */
#include "cuda_double.h"
#include "living.h"
#include "support/suite.h"
#include "tools/bench/h2d.h"

#include "base/memory.h"

#include <leat/device.h>

#include <check.h>
#include <math.h>
#include <string.h>

#define BYTES ((size_t)65536)

static leat_device *device[2];

static void set_up(void)
{
    cuda_double_reset();
    ck_assert_int_eq(leat_device_find(&device[0], "cuda:0"), LEAT_OK);
    ck_assert_int_eq(leat_device_find(&device[1], "cuda:1"), LEAT_OK);
    cuda_double_set_bus(25, 2);
    cuda_double_set_call(3);
}

static void check_nothing_lives(void)
{
    living_check_none();
    ck_assert_int_eq(cuda_double_count().destroyed_busy, 0);
}

static const struct h2d_options all = {
    .bytes = BYTES, .streams = 4, .pageable = true, .to_host = true};

static struct h2d_case cases[] = {
    {.pinned = true, .bytes = BYTES, .streams = 1},
    {.pinned = true, .bytes = BYTES, .streams = 4},
    {.pinned = true, .bytes = BYTES, .streams = 1, .to_host = true},
    {.pinned = true, .bytes = BYTES, .streams = 1, .both = true},
    {.pinned = true,
     .bytes = BYTES,
     .streams = 1,
     .to_host = true,
     .both = true},
    {.pinned = true, .bytes = BYTES, .streams = 1, .by_kernel = true},
    {.pinned = true,
     .bytes = BYTES,
     .streams = 1,
     .to_host = true,
     .by_kernel = true},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* Waits for nothing that a stream does. */
static bool may_be_made_while_held(const char *name)
{
    static const char *const names[] = {"cudaMemcpyAsync",
                                        "cudaEventRecord",
                                        "cudaStreamWaitEvent",
                                        "cuda_double_launch",
                                        "cuda_double_launch_hold",
                                        "cudaHostGetDevicePointer",
                                        "cudaThreadExchangeStreamCaptureMode",
                                        "cuCtxGetCurrent",
                                        "cuCtxGetId",
                                        "cuCtxPushCurrent",
                                        "cuCtxPopCurrent"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* From a sample's hold on up to the first wait: its copies, warm-ups too. */
static int count_copies(const cuda_double_call *call, int n, int i)
{
    int copies = 0;
    for (; i < n && strcmp(call[i].name, "cudaEventSynchronize") != 0; i++) {
        ck_assert_msg(may_be_made_while_held(call[i].name), "%s", call[i].name);
        copies += !strcmp(call[i].name, "cudaMemcpyAsync") ||
                  !strcmp(call[i].name, "cuda_double_launch");
    }
    return copies;
}

START_TEST(a_warm_up_copies_and_leaves_nothing_under_way)
{
    struct h2d *h2d = h2d_open(device[0], &all);
    ck_assert_ptr_nonnull(h2d);
    memset(h2d->pinned, 7, BYTES);
    h2d_warm_up(h2d);
    ck_assert_mem_eq(cuda_double_bytes(h2d->memory), h2d->pinned, BYTES);
    h2d_close(h2d);
    check_nothing_lives();
}
END_TEST

START_TEST(a_sample_is_enqueued_whole_while_its_stream_is_held)
{
    struct h2d_case what = cases[_i];
    struct h2d *h2d = h2d_open(device[0], &all);
    ck_assert_ptr_nonnull(h2d);
    ck_assert(h2d_holds(h2d));
    cuda_double_forget();
    h2d_measure(h2d, &what);
    int n, samples = 0;
    int flows = what.streams + what.both;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(call[i].name, "cuda_double_launch_hold")) {
            ck_assert_int_eq(count_copies(call, n, i),
                             (what.copies + 4) * flows);
            samples++;
        }
    /* One that does not count comes first. */
    ck_assert_int_eq(samples, what.samples + 1);
    ck_assert_int_ge(what.copies, 16);
    ck_assert_int_le(what.copies * flows, 512);
    ck_assert(what.held);
    h2d_close(h2d);
    check_nothing_lives();
}
END_TEST

START_TEST(a_rate_is_the_bus_of_the_model)
{
    struct h2d_case what = cases[_i];
    struct h2d *h2d = h2d_open(device[0], &all);
    double ns = (double)BYTES / 25;
    if (!what.by_kernel)
        ns += 2000.0 * what.streams;
    h2d_measure(h2d, &what);
    ck_assert_double_eq_tol(what.gb_per_s, (double)BYTES / ns, 0.01);
    ck_assert(what.p10 <= what.gb_per_s && what.gb_per_s <= what.p90);
    h2d_close(h2d);
}
END_TEST

START_TEST(devices_at_once_have_a_bus_each)
{
    struct h2d *h2d[2];
    struct h2d_case what[2] = {cases[0], cases[2]};
    for (int i = 0; i < 2; i++)
        h2d[i] = h2d_open(device[i], &all);
    h2d_measure_together(h2d, what, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq_tol(what[i].gb_per_s,
                                (double)BYTES / (2000 + (double)BYTES / 25),
                                0.01);
        ck_assert_int_eq(what[i].samples, what[0].samples);
        h2d_close(h2d[i]);
    }
    check_nothing_lives();
}
END_TEST

START_TEST(pageable_copies_hold_nothing)
{
    struct h2d_case what = cases[0];
    struct h2d *h2d = h2d_open(device[0], &all);
    what.pinned = false;
    /* As a driver may that stages them: it would wait for ever. */
    cuda_double_set_blocking(1);
    h2d_measure(h2d, &what);
    ck_assert(!what.held);
    ck_assert(what.gb_per_s > 0);
    h2d_close(h2d);
    check_nothing_lives();
}
END_TEST

START_TEST(too_little_memory_is_told_and_leaves_nothing)
{
    for (int i = 0; i < 2; i++) {
        size_t most = 1 + (size_t)i * BYTES;
        cuda_double_set_pinnable(most);
        ck_assert_ptr_null(h2d_open(device[0], &all));
        cuda_double_set_pinnable(SIZE_MAX);
        cuda_double_set_memory(most);
        ck_assert_ptr_null(h2d_open(device[0], &all));
        cuda_double_set_memory((size_t)1 << 30);
        check_nothing_lives();
    }
    int failed = 0;
    struct h2d *h2d;
    for (;; failed++) {
        leat__alloc_fail_at(failed);
        h2d = h2d_open(device[0], &all);
        leat__alloc_fail_at(-1);
        if (h2d)
            break;
        check_nothing_lives();
    }
    ck_assert_int_ge(failed, 4);
    h2d_close(h2d);
    check_nothing_lives();
}
END_TEST

START_TEST(a_layer_without_pinned_memory_has_no_ceiling)
{
    struct h2d_ceiling ceiling;
    cuda_double_set_pinnable(0);
    h2d_measure_ceiling(&ceiling, device[0], BYTES);
    ck_assert(isnan(ceiling.rate) && isnan(ceiling.best));
    ck_assert_ptr_nonnull(strstr(ceiling.why, "pinning"));
    check_nothing_lives();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("h2d_cuda");
    TCase *tcase = tcase_create("h2d_cuda");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_warm_up_copies_and_leaves_nothing_under_way);
    tcase_add_loop_test(
        tcase, a_sample_is_enqueued_whole_while_its_stream_is_held, 0, CASES);
    tcase_add_loop_test(tcase, a_rate_is_the_bus_of_the_model, 0, CASES);
    tcase_add_test(tcase, devices_at_once_have_a_bus_each);
    tcase_add_test(tcase, pageable_copies_hold_nothing);
    tcase_add_test(tcase, too_little_memory_is_told_and_leaves_nothing);
    tcase_add_test(tcase, a_layer_without_pinned_memory_has_no_ceiling);
    return suite_run(suite);
}
