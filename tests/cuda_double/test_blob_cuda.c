/* A blob on cuda:N: every transition of its head, and the copies it takes. */
#include "cuda_double.h"
#include "data/blob.h"
#include "device/device.h"
#include "support/suite.h"

#include <check.h>
#include <leat/blob.h>
#include <leat/cuda.h>
#include <stdlib.h>
#include <string.h>

#define N 100

static leat_blob *blob;

static void set_up(void)
{
    leat_device *device;
    const int64_t shape[] = {N};
    cuda_double_reset();
    ck_assert_int_eq(leat_device_find(&device, "cuda:0"), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&blob, device), LEAT_OK);
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_UINT8, 1, shape), LEAT_OK);
    cuda_double_forget();
}

static void tear_down(void)
{
    leat_blob_destroy(blob);
    cuda_double_living living = cuda_double_count();
    ck_assert_int_eq(living.streams, 0);
    ck_assert_int_eq(living.device_bytes, 0);
    ck_assert_int_eq(living.pinned_bytes, 0);
}

/* Copies of that kind since the test began. */
static int count(enum cudaMemcpyKind kind)
{
    int n;
    int copies = 0;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++)
        copies += strcmp(call[i].name, "cudaMemcpyAsync") == 0 &&
                  call[i].flags == (unsigned int)kind;
    return copies;
}

static void check(leat_head head, int to_device, int to_host)
{
    ck_assert_int_eq(leat_blob_head(blob), head);
    ck_assert_int_eq(count(cudaMemcpyHostToDevice), to_device);
    ck_assert_int_eq(count(cudaMemcpyDeviceToHost), to_host);
}

START_TEST(each_side_is_copied_once_and_only_when_it_is_older)
{
    check(LEAT_UNINITIALIZED, 0, 0);
    unsigned char *host = leat_blob_mutable_cpu_data(blob);
    check(LEAT_HEAD_AT_CPU, 0, 0);
    memset(host, 7, N);
    const unsigned char *device = leat_blob_gpu_data(blob);
    check(LEAT_SYNCED, 1, 0);
    ck_assert_int_eq(((unsigned char *)cuda_double_bytes(device))[N - 1], 7);
    ck_assert_ptr_eq(leat_blob_gpu_data(blob), device);
    ck_assert_ptr_eq(leat_blob_cpu_data(blob), host);
    check(LEAT_SYNCED, 1, 0);
    memset(cuda_double_bytes(leat_blob_mutable_gpu_data(blob)), 9, N);
    check(LEAT_HEAD_AT_GPU, 1, 0);
    ck_assert_int_eq(((const unsigned char *)leat_blob_cpu_data(blob))[0], 9);
    check(LEAT_SYNCED, 1, 1);
    ck_assert_ptr_eq(leat_blob_mutable_cpu_data(blob), host);
    check(LEAT_HEAD_AT_CPU, 1, 1);
}
END_TEST

START_TEST(what_is_new_on_both_sides_is_copied_from_neither)
{
    const unsigned char *device = leat_blob_gpu_data(blob);
    check(LEAT_HEAD_AT_GPU, 0, 0);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(((unsigned char *)cuda_double_bytes(device))[i], 0);
}
END_TEST

START_TEST(a_push_goes_on_the_stream_and_does_not_wait)
{
    cudaStream_t stream = cuda_double_stream();
    memset(leat_blob_mutable_cpu_data(blob), 5, N);
    ck_assert_int_eq(leat_cuda_push(blob, stream), LEAT_OK);
    check(LEAT_SYNCED, 1, 0);
    const unsigned char *bytes = cuda_double_bytes(leat_blob_gpu_data(blob));
    check(LEAT_SYNCED, 1, 0);
    /* The stream is late: nobody has waited for it. */
    ck_assert_int_eq(bytes[0], 0);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    ck_assert_int_eq(bytes[0], 5);
    ck_assert_int_eq(leat_cuda_push(blob, stream), LEAT_ESTATE);
    (void)leat_blob_mutable_gpu_data(blob);
    ck_assert_int_eq(leat_cuda_push(blob, stream), LEAT_ESTATE);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
}
END_TEST

START_TEST(every_call_that_fails_gives_no_pointer_and_leaves_the_head)
{
    int n = 0;
    memset(leat_blob_mutable_cpu_data(blob), 3, N);
    for (;; n++) {
        cuda_double_fail_at(n, cudaErrorUnknown);
        const unsigned char *device = leat_blob_gpu_data(blob);
        const char *failed = cuda_double_failed();
        cuda_double_fail_at(-1, cudaSuccess);
        if (device)
            break;
        ck_assert_ptr_nonnull(failed);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "cuda:0: "));
        ck_assert_int_eq(leat_blob_head(blob), LEAT_HEAD_AT_CPU);
    }
    ck_assert_int_gt(n, 0);
    const unsigned char *device = leat_blob_gpu_data(blob);
    ck_assert_int_eq(((unsigned char *)cuda_double_bytes(device))[N - 1], 3);
}
END_TEST

/* Both sides have memory, and one is copied to the other. */
START_TEST(a_copy_has_ended_where_a_call_fails)
{
    static const char *const calls[] = {"cuCtxGetCurrent", "cuCtxGetId"};
    (void)leat_blob_mutable_cpu_data(blob);
    for (int n = 0; n < 8; n++) {
        ck_assert_ptr_nonnull(leat_blob_mutable_gpu_data(blob));
        if (_i % 2)
            ck_assert_ptr_nonnull(leat_blob_mutable_cpu_data(blob));
        cuda_double_fail_named(calls[_i / 2], n, cudaErrorUnknown);
        (void)(_i % 2 ? leat_blob_gpu_data(blob) : leat_blob_cpu_data(blob));
        cuda_double_fail_at(-1, cudaSuccess);
        ck_assert_int_eq(cuda_double_count().destroyed_busy, 0);
    }
}
END_TEST

/* Another memory for the blob, of the caller's choice. */
static int take_other_memory(int is_lent)
{
    const int64_t longer[] = {2 * N};
    leat__slab *slab;
    if (!is_lent)
        return leat_blob_reshape(blob, LEAT_UINT8, 1, longer);
    ck_assert_int_eq(
        leat__slab_create(&slab, leat_blob_device(blob), longer[0]), LEAT_OK);
    int status = leat__blob_lend(blob, LEAT_UINT8, 1, longer, slab, 0,
                                 LEAT_HEAD_AT_GPU, NULL);
    leat__slab_unref(slab);
    return status;
}

/* The device goes on, and the copy is still to run. */
START_TEST(memory_stays_where_the_wait_for_its_copy_fails)
{
    cudaStream_t stream = cuda_double_stream();
    leat_device *device = leat_blob_device(blob);
    leat__fence *written;
    memset(leat_blob_mutable_cpu_data(blob), 5, N);
    ck_assert_int_eq(leat__fence_create(&written, device), LEAT_OK);
    ck_assert_int_eq(leat_cuda_push(blob, stream), LEAT_OK);
    ck_assert_int_eq(device->ops->event_record(device, written->event,
                                               leat_cuda_stream(stream)),
                     LEAT_OK);
    leat__blob_set_written(blob, written);
    const unsigned char *bytes = cuda_double_bytes(leat_blob_gpu_data(blob));
    cuda_double_fail_named("cudaEventSynchronize", 0, cudaErrorUnknown);
    ck_assert_int_eq(take_other_memory(_i), LEAT_EDEVICE);
    ck_assert_ptr_nonnull(cuda_double_failed());
    ck_assert_int_eq(leat_blob_count(blob), N);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    ck_assert_int_eq(bytes[N - 1], 5);
    ck_assert_int_eq(take_other_memory(_i), LEAT_OK);
    ck_assert_int_eq(leat_blob_count(blob), 2 * N);
    leat__fence_unref(written);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob_cuda");
    TCase *tcase = tcase_create("blob_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, each_side_is_copied_once_and_only_when_it_is_older);
    tcase_add_test(tcase, what_is_new_on_both_sides_is_copied_from_neither);
    tcase_add_test(tcase, a_push_goes_on_the_stream_and_does_not_wait);
    tcase_add_test(tcase,
                   every_call_that_fails_gives_no_pointer_and_leaves_the_head);
    tcase_add_loop_test(tcase, a_copy_has_ended_where_a_call_fails, 0, 4);
    tcase_add_loop_test(tcase, memory_stays_where_the_wait_for_its_copy_fails,
                        0, 2);
    return suite_run(suite);
}
