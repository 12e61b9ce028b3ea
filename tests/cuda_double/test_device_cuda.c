/* What the CUDA device adds to the suite of all devices: how it fails, and that
   its callers' own CUDA never notices it. */
#include "base/error.h"
#include "base/memory.h"
#include "cuda_double.h"
#include "living.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <leat/ext/device.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)10000)

static leat_device *device;

static int use_device(void);

static void set_up(void)
{
    cuda_double_reset();
}

static void open_device(const char *name)
{
    ck_assert_int_eq(leat_device_find(&device, name), LEAT_OK);
}

static void check_refusal(const char *name, int status, const char *text)
{
    leat_device *found = NULL;
    ck_assert_int_eq(leat_device_find(&found, name), status);
    ck_assert_ptr_null(found);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "%s",
                  leat_last_error());
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}

START_TEST(an_ordinal_out_of_range_names_those_there_are)
{
    check_refusal("cuda:2", LEAT_EINVAL, "cuda:0 to cuda:1");
    check_refusal("cuda:9999", LEAT_EINVAL, "\"cuda:9999\"");
}
END_TEST

static void set_visible(const char *text)
{
    ck_assert_int_eq(setenv("CUDA_VISIBLE_DEVICES", text, 1), 0);
}

static void check_bus_id(const char *name, const char *id)
{
    leat_device_description what;
    open_device(name);
    ck_assert_int_eq(device->ops->describe(device, &what), LEAT_OK);
    ck_assert_str_eq(what.bus_id, id);
}

START_TEST(gpus_that_are_hidden_are_told_with_what_hides_them)
{
    set_visible(_i ? "-1" : "");
    check_refusal("cuda:0", LEAT_EDEVICE,
                  _i ? "no NVIDIA GPU is visible here (CUDA_VISIBLE_DEVICES is "
                       "\"-1\"); the device \"cpu\" is there"
                     : "(CUDA_VISIBLE_DEVICES is \"\")");
    set_visible("1");
    check_refusal("cuda:1", LEAT_EINVAL,
                  "cuda:0 to cuda:0 (CUDA_VISIBLE_DEVICES is \"1\")");
    check_bus_id("cuda:0", "ffff:01:00.0");
}
END_TEST

START_TEST(gpus_in_another_order_are_those_that_cuda_numbers)
{
    set_visible("1,0");
    check_bus_id("cuda:0", "ffff:01:00.0");
    check_bus_id("cuda:1", "ffff:00:00.0");
}
END_TEST

/* A process sees one, however many are named. */
START_TEST(a_part_of_a_gpu_is_a_device)
{
    set_visible("MIG-1b2c,MIG-3d4e");
    check_refusal("cuda:1", LEAT_EINVAL, "cuda:0 to cuda:0 (CUDA_VISIBLE_");
    check_bus_id("cuda:0", "ffff:00:00.0");
    ck_assert_int_eq(use_device(), LEAT_OK);
}
END_TEST

START_TEST(a_machine_without_a_driver_says_so_and_has_a_cpu)
{
    cuda_double_set_driver(0);
    check_refusal("cuda:0", LEAT_EDEVICE, "no NVIDIA driver");
    ck_assert_int_eq(leat_device_find(&device, "cpu"), LEAT_OK);
}
END_TEST

START_TEST(a_machine_without_a_gpu_says_so)
{
    cuda_double_set_devices(0);
    check_refusal("cuda:0", LEAT_EDEVICE, "no NVIDIA GPU is visible");
}
END_TEST

START_TEST(a_driver_older_than_the_runtime_is_named_with_both_versions)
{
    cuda_double_set_driver(12040);
    check_refusal("cuda:0", LEAT_EDEVICE, "for CUDA 12.4");
    check_refusal("cuda:0", LEAT_EDEVICE, "leat for 13.0");
    /* A driver of the same major version will do. */
    cuda_double_set_driver(13010);
    open_device("cuda:0");
}
END_TEST

START_TEST(a_device_that_is_taken_says_so_and_can_be_had_later)
{
    int n = 0;
    for (;; n++) {
        cuda_double_fail_at(n, cudaErrorDevicesUnavailable);
        int status = leat_device_find(&device, "cuda:0");
        if (status == LEAT_OK && !cuda_double_failed())
            break;
        if (status)
            ck_assert_int_eq(status, LEAT_EDEVICE);
        if (status == LEAT_OK)
            break;
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "cuda:0"));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "busy or unavail"));
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "another process has this GPU"));
    }
    ck_assert_int_gt(n, 0);
    cuda_double_fail_at(-1, cudaSuccess);
    open_device("cuda:0");
    ck_assert_int_eq(cuda_double_count().pinned_bytes, 0);
}
END_TEST

START_TEST(too_little_memory_on_the_device_is_told_with_the_size)
{
    open_device("cuda:0");
    cuda_double_set_memory(1 << 20);
    void *memory = NULL;
    ck_assert_int_eq(device->ops->alloc(device, 1 << 21, &memory), LEAT_ENOMEM);
    ck_assert_ptr_null(memory);
    ck_assert_str_eq(leat_last_error(),
                     "cuda:0: allocating 2097152 bytes on the device: out of "
                     "memory (cudaErrorMemoryAllocation)");
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}
END_TEST

START_TEST(memory_that_cannot_be_pinned_is_told_and_given_back)
{
    open_device("cuda:0");
    cuda_double_set_pinnable(4096);
    void *memory = NULL;
    ck_assert_int_eq(device->ops->host_alloc(device, BYTES, &memory),
                     LEAT_ENOMEM);
    ck_assert_ptr_null(memory);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "pinning 10000 bytes"));
    ck_assert_int_eq(cuda_double_count().pinned_bytes, 0);
}
END_TEST

START_TEST(where_pages_cannot_be_registered_the_runtime_allocates)
{
    cuda_double_set_registers(0);
    open_device("cuda:0");
    void *memory = NULL;
    ck_assert_int_eq(device->ops->host_alloc(device, BYTES, &memory), LEAT_OK);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_int_eq(((char *)memory)[i], 0);
    ck_assert_int_eq(cuda_double_count().pinned_bytes, BYTES);
    device->ops->host_free(device, memory, BYTES);
    ck_assert_int_eq(cuda_double_count().pinned_bytes, 0);
}
END_TEST

/* One of everything, ended again; the first error. */
static int use_device(void)
{
    const leat_device_ops *ops = device->ops;
    void *host = NULL;
    void *memory = NULL;
    leat_stream stream = LEAT_HOST;
    leat_event event = UINTPTR_MAX;
    int status = ops->host_alloc(device, BYTES, &host);
    if (!status)
        status = ops->alloc(device, BYTES, &memory);
    if (!status)
        status = ops->stream_create(device, &stream);
    if (!status)
        status = ops->event_create(device, &event);
    if (!status)
        status =
            ops->copy(device, memory, host, BYTES, LEAT_COPY_TO_DEVICE, stream);
    if (!status)
        status = ops->event_record(device, event, stream);
    if (!status)
        status = ops->stream_wait(device, 0, event);
    if (!status)
        status = ops->event_synchronize(device, event);
    if (!status && ops->stream_is_capturing(device, stream))
        status = LEAT_ESTATE;
    int waited = LEAT_OK;
    if (stream != LEAT_HOST) {
        waited = ops->stream_synchronize(device, stream);
        ops->stream_destroy(device, stream);
    }
    if (event != UINTPTR_MAX)
        ops->event_destroy(device, event);
    if (memory)
        ops->free(device, memory, BYTES);
    if (host)
        ops->host_free(device, host, BYTES);
    return status ? status : waited;
}

START_TEST(every_call_that_fails_is_told_once_and_leaves_nothing_behind)
{
    int n = 0;
    int told = 0;
    open_device("cuda:1");
    for (;; n++) {
        cuda_double_fail_at(n, cudaErrorUnknown);
        int status = use_device();
        const char *failed = cuda_double_failed();
        cuda_double_fail_at(-1, cudaSuccess);
        living_check_none();
        ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
        if (!failed)
            break;
        if (status) {
            ck_assert_int_eq(status, LEAT_EDEVICE);
            told++;
        }
    }
    ck_assert_int_gt(n, 40);
    /* Frees and looks at captures keep their failure to themselves. */
    ck_assert_int_gt(told, n / 2);
}
END_TEST

START_TEST(every_allocation_that_fails_is_told)
{
    int n = 0;
    int told = 0;
    for (;; n++) {
        (void)leat__alloc_fail_at(n);
        int status = leat_device_find(&device, "cuda:0");
        if (!status)
            status = use_device();
        if (leat__alloc_fail_at(-1) >= 0)
            break;
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        told += status == LEAT_ENOMEM;
        living_check_none();
    }
    /* All but the page that open tries to pin. */
    ck_assert_int_eq(told, n - 1);
    ck_assert_int_gt(told, 0);
    (void)leat__alloc_fail_at(0);
    ck_assert_int_eq(use_device(), LEAT_ENOMEM);
    living_check_none();
}
END_TEST

START_TEST(a_device_that_is_lost_fails_all_calls_and_hangs_none)
{
    open_device("cuda:0");
    cuda_double_lose_at(1, cudaErrorECCUncorrectable);
    ck_assert_int_eq(use_device(), LEAT_EDEVICE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "uncorrectable ECC"));
    ck_assert_int_eq(use_device(), LEAT_EDEVICE);
    living_check_none();
}
END_TEST

START_TEST(the_thread_keeps_its_current_device)
{
    open_device("cuda:1");
    int current = -1;
    ck_assert_int_eq(use_device(), LEAT_OK);
    ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
    ck_assert_int_eq(current, 0);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        if (strcmp(call[i].name, "cudaMalloc") == 0 ||
            strcmp(call[i].name, "cudaEventRecord") == 0)
            ck_assert_int_eq(call[i].device, 1);
    }
}
END_TEST

START_TEST(streams_never_block_and_events_do_not_time)
{
    leat_event event;
    open_device("cuda:0");
    ck_assert_int_eq(use_device(), LEAT_OK);
    ck_assert_int_eq(device->ops->event_create_sleeping(device, &event),
                     LEAT_OK);
    device->ops->event_destroy(device, event);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int made = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(call[i].name, "cudaStreamCreateWithFlags") == 0)
            ck_assert_uint_eq(call[i].flags, cudaStreamNonBlocking);
        else if (strcmp(call[i].name, "cudaEventCreateWithFlags") == 0)
            ck_assert_uint_eq(call[i].flags, made == 3
                                                 ? cudaEventBlockingSync |
                                                       cudaEventDisableTiming
                                                 : cudaEventDisableTiming);
        else
            continue;
        made++;
    }
    ck_assert_int_eq(made, 4);
}
END_TEST

START_TEST(a_capture_by_another_thread_is_not_disturbed)
{
    open_device("cuda:0");
    cudaStream_t captured;
    ck_assert_int_eq(
        cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), 0);
    cuda_double_set_capturing(captured, 1);
    /* What is unsafe fails in this mode, and leat gets by. */
    void *memory;
    ck_assert_int_eq(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    ck_assert_int_eq(use_device(), LEAT_OK);
    ck_assert_int_eq(
        device->ops->stream_is_capturing(device, (leat_stream)captured), 1);
    ck_assert_int_eq(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported);
    cuda_double_set_capturing(captured, 0);
    ck_assert_int_eq(cudaStreamDestroy(captured), cudaSuccess);
}
END_TEST

/* The default stream waits for streams that do not say otherwise. */
START_TEST(the_default_stream_counts_as_captured_with_one_it_waits_for)
{
    open_device("cuda:0");
    cudaStream_t captured;
    ck_assert_int_eq(cudaStreamCreateWithFlags(&captured, 0), cudaSuccess);
    ck_assert_int_eq(device->ops->stream_is_capturing(device, 0), 0);
    cuda_double_set_capturing(captured, 1);
    ck_assert_int_eq(device->ops->stream_is_capturing(device, 0), 1);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
    cuda_double_set_capturing(captured, 0);
    ck_assert_int_eq(cudaStreamDestroy(captured), cudaSuccess);
}
END_TEST

enum { NOT_IT = 10, OPENED, REFUSED, NO_CALL };

/* A device is opened once in a process, so each call fails in one of its own.
 */
static int open_with_failure(int fault, cudaError_t error)
{
    int result;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        cuda_double_fail_at(fault, error);
        int status = leat_device_find(&device, "cuda:0");
        const char *failed = cuda_double_failed();
        if (!failed)
            _exit(NO_CALL);
        if (strcmp(failed, "cudaHostRegister") != 0)
            _exit(NOT_IT);
        _exit(status == LEAT_OK && cudaPeekAtLastError() == cudaSuccess
                  ? OPENED
                  : REFUSED);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result));
    return WEXITSTATUS(result);
}

/* A host that may not pin is no reason to do without the device. */
START_TEST(a_device_opens_where_pinning_is_refused)
{
    static const cudaError_t refusals[] = {
        cudaErrorMemoryAllocation, cudaErrorNotSupported, cudaErrorNotPermitted,
        cudaErrorOperatingSystem};
    int opened = 0;
    int found;
    for (int fault = 0;
         (found = open_with_failure(fault, refusals[_i])) != NO_CALL; fault++) {
        ck_assert_int_ne(found, REFUSED);
        opened += found == OPENED;
    }
    ck_assert_int_eq(opened, 1);
}
END_TEST

START_TEST(timers_tell_the_time_on_the_bus_and_plain_events_do_not)
{
    open_device("cuda:0");
    const leat_device_ops *ops = device->ops;
    cuda_double_set_bus(10, 5);
    void *host, *memory;
    leat_stream stream;
    leat_event event[3];
    double seconds = -1;
    ck_assert_int_eq(ops->host_alloc(device, 1000000, &host), LEAT_OK);
    ck_assert_int_eq(ops->alloc(device, 1000000, &memory), LEAT_OK);
    ck_assert_int_eq(ops->stream_create(device, &stream), LEAT_OK);
    ck_assert_int_eq(ops->timer_create(device, &event[0]), LEAT_OK);
    ck_assert_int_eq(ops->timer_create(device, &event[1]), LEAT_OK);
    ck_assert_int_eq(ops->event_create(device, &event[2]), LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, event[0], stream), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ops->copy(device, memory, host, 1000000,
                                   LEAT_COPY_TO_DEVICE, stream),
                         LEAT_OK);
        ck_assert_int_eq(ops->event_record(device, event[1 + i], stream),
                         LEAT_OK);
    }
    ck_assert_int_eq(ops->event_elapsed(device, event[0], event[1], &seconds),
                     LEAT_OK);
    ck_assert_double_eq_tol(seconds, 105e-6, 1e-9);
    ck_assert_int_eq(ops->event_elapsed(device, event[0], event[2], &seconds),
                     LEAT_EDEVICE);
    ck_assert_double_eq_tol(seconds, 105e-6, 1e-9);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    for (int i = 0; i < 3; i++)
        ops->event_destroy(device, event[i]);
    ops->stream_destroy(device, stream);
    ops->free(device, memory, 1000000);
    ops->host_free(device, host, 1000000);
    living_check_none();
}
END_TEST

/* Seconds of 20 copies of 4000 bytes, from event to event. */
static double time_copies(uint32_t *release, double limit)
{
    const leat_device_ops *ops = device->ops;
    void *host, *memory;
    leat_stream stream;
    leat_event event[2];
    double seconds = -1;
    ck_assert_int_eq(ops->host_alloc(device, 4000, &host), LEAT_OK);
    ck_assert_int_eq(ops->alloc(device, 4000, &memory), LEAT_OK);
    ck_assert_int_eq(ops->stream_create(device, &stream), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(ops->timer_create(device, &event[i]), LEAT_OK);
    ck_assert_int_eq(ops->stream_hold(device, release, limit, stream), LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, event[0], stream), LEAT_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(
            ops->copy(device, memory, host, 4000, LEAT_COPY_TO_DEVICE, stream),
            LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, event[1], stream), LEAT_OK);
    if (limit > 1)
        __atomic_store_n(release, 1, __ATOMIC_RELEASE);
    ck_assert_int_eq(ops->event_synchronize(device, event[1]), LEAT_OK);
    ck_assert_int_eq(ops->event_elapsed(device, event[0], event[1], &seconds),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ops->event_destroy(device, event[i]);
    ops->stream_destroy(device, stream);
    ops->free(device, memory, 4000);
    ops->host_free(device, host, 4000);
    return seconds;
}

START_TEST(copies_on_a_held_stream_take_the_bus_and_no_calls)
{
    open_device("cuda:0");
    const leat_device_ops *ops = device->ops;
    void *release;
    cuda_double_set_bus(4, 1);
    cuda_double_set_call(3);
    cuda_double_set_eager(1);
    ck_assert_int_eq(ops->host_alloc(device, 4096, &release), LEAT_OK);
    /* A word that is set already holds nothing: the calls are what takes long.
     */
    *(uint32_t *)release = 1;
    ck_assert_double_eq_tol(time_copies(release, 60), 62e-6, 2e-6);
    *(uint32_t *)release = 0;
    ck_assert_double_eq_tol(time_copies(release, 60), 40e-6, 1e-9);
    /* Nobody releases it: it ends, and what it held goes on. */
    *(uint32_t *)release = 0;
    ck_assert_double_eq_tol(time_copies(release, 0.01), 40e-6, 1e-9);
    ops->host_free(device, release, 4096);
    living_check_none();
}
END_TEST

START_TEST(host_memory_that_is_not_pinned_neither_holds_nor_is_mapped)
{
    open_device("cuda:0");
    const leat_device_ops *ops = device->ops;
    static uint32_t word[64];
    void *memory;
    leat_stream stream;
    ck_assert_int_eq(ops->alloc(device, sizeof(word), &memory), LEAT_OK);
    ck_assert_int_eq(ops->stream_create(device, &stream), LEAT_OK);
    ck_assert_int_eq(ops->stream_hold(device, word, 60, stream), LEAT_EDEVICE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "holding a stream"));
    ck_assert_int_eq(ops->kernel_copy(device, memory, word, sizeof(word),
                                      LEAT_COPY_TO_DEVICE, stream),
                     LEAT_EDEVICE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "launching a copy"));
    ops->stream_destroy(device, stream);
    ops->free(device, memory, sizeof(word));
    living_check_none();
}
END_TEST

START_TEST(a_description_has_all_of_the_device_or_nothing)
{
    open_device("cuda:1");
    const leat_device_description untouched = {.capability = -1};
    leat_device_description what = untouched;
    int n = 0;
    cuda_double_set_l2(50 << 20);
    for (;; n++) {
        cuda_double_fail_at(n, cudaErrorUnknown);
        int status = device->ops->describe(device, &what);
        if (status == LEAT_OK)
            break;
        ck_assert_int_eq(status, LEAT_EDEVICE);
        ck_assert_mem_eq(&what, &untouched, sizeof(what));
    }
    ck_assert_int_gt(n, 3);
    ck_assert_str_eq(what.bus_id, "ffff:01:00.0");
    ck_assert_int_eq(what.driver_version, CUDART_VERSION);
    ck_assert_int_eq(what.capability, 99);
    ck_assert_int_eq(what.l2_bytes, 50 << 20);
}
END_TEST

START_TEST(device_memory_cannot_be_touched_by_the_host)
{
    open_device("cuda:0");
    void *memory;
    ck_assert_int_eq(device->ops->alloc(device, BYTES, &memory), LEAT_OK);
    /* The kernel's answer to one who tries, without the signal. */
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], memory, 1), -1);
    ck_assert_int_eq(errno, EFAULT);
    device->ops->free(device, memory, BYTES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_cuda");
    TCase *tcase = tcase_create("device_cuda");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, an_ordinal_out_of_range_names_those_there_are);
    tcase_add_loop_test(
        tcase, gpus_that_are_hidden_are_told_with_what_hides_them, 0, 2);
    tcase_add_test(tcase, gpus_in_another_order_are_those_that_cuda_numbers);
    tcase_add_test(tcase, a_part_of_a_gpu_is_a_device);
    tcase_add_test(tcase, a_machine_without_a_driver_says_so_and_has_a_cpu);
    tcase_add_test(tcase, a_machine_without_a_gpu_says_so);
    tcase_add_test(tcase,
                   a_driver_older_than_the_runtime_is_named_with_both_versions);
    tcase_add_test(tcase, a_device_that_is_taken_says_so_and_can_be_had_later);
    tcase_add_test(tcase,
                   too_little_memory_on_the_device_is_told_with_the_size);
    tcase_add_test(tcase, memory_that_cannot_be_pinned_is_told_and_given_back);
    tcase_add_test(tcase,
                   where_pages_cannot_be_registered_the_runtime_allocates);
    tcase_add_test(
        tcase, every_call_that_fails_is_told_once_and_leaves_nothing_behind);
    tcase_add_test(tcase, every_allocation_that_fails_is_told);
    tcase_add_test(tcase, a_device_that_is_lost_fails_all_calls_and_hangs_none);
    tcase_add_test(tcase, the_thread_keeps_its_current_device);
    tcase_add_test(tcase, streams_never_block_and_events_do_not_time);
    tcase_add_test(tcase, a_capture_by_another_thread_is_not_disturbed);
    tcase_add_test(tcase,
                   the_default_stream_counts_as_captured_with_one_it_waits_for);
    tcase_add_loop_test(tcase, a_device_opens_where_pinning_is_refused, 0, 4);
    tcase_add_test(tcase,
                   timers_tell_the_time_on_the_bus_and_plain_events_do_not);
    tcase_add_test(tcase, copies_on_a_held_stream_take_the_bus_and_no_calls);
    tcase_add_test(tcase,
                   host_memory_that_is_not_pinned_neither_holds_nor_is_mapped);
    tcase_add_test(tcase, a_description_has_all_of_the_device_or_nothing);
    tcase_add_test(tcase, device_memory_cannot_be_touched_by_the_host);
    return suite_run(suite);
}
