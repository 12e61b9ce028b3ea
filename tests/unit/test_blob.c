#include "base/memory.h"
#include "data/blob.h"
#include "support/late_device.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static leat_device *late;
static leat_blob *blob;

static void set_up(void)
{
    late_device_register();
    ck_assert_int_eq(leat_device_find(&late, "late:0"), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&blob, NULL), LEAT_OK);
}

static void tear_down(void)
{
    leat_blob_destroy(blob);
    ck_assert_int_eq(late_device_count(late).live_bytes, 0);
    ck_assert_int_eq(late_device_count(late).live_host_bytes, 0);
}

/* Gives the blob up to four axes; the first 0 ends them. */
static int reshape(leat_blob *of, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t shape[] = {a, b, c, d};
    int ndim = 0;
    while (ndim < 4 && shape[ndim] != 0)
        ndim++;
    return leat_blob_reshape(of, LEAT_FLOAT32, ndim, shape);
}

START_TEST(a_new_blob_has_no_axes_and_no_elements)
{
    ck_assert_int_eq(leat_blob_ndim(blob), 0);
    ck_assert_int_eq(leat_blob_count(blob), 0);
    ck_assert_uint_eq(leat_blob_bytes(blob), 0);
    ck_assert_int_eq(leat_blob_dim(blob, 0), 1);
    ck_assert_int_eq(leat_blob_head(blob), LEAT_UNINITIALIZED);
    ck_assert_str_eq(leat_device_name(leat_blob_device(blob)), "cpu");
    ck_assert_ptr_null(leat_blob_cpu_data(blob));
    ck_assert_ptr_null(leat_blob_mutable_gpu_data(blob));
    ck_assert_int_eq(leat_blob_async_gpu_push(blob, 0), LEAT_ESTATE);
    leat_blob_destroy(NULL);
}
END_TEST

START_TEST(the_count_is_the_product_of_the_dimensions)
{
    ck_assert_int_eq(reshape(blob, 2, 3, 4, 5), LEAT_OK);
    ck_assert_int_eq(leat_blob_count(blob), 120);
    ck_assert_uint_eq(leat_blob_bytes(blob), 480);
    ck_assert_int_eq(leat_blob_ndim(blob), 4);
    ck_assert_int_eq(leat_blob_dim(blob, 1), 3);
    ck_assert_int_eq(leat_blob_dim(blob, -1), 5);
    ck_assert_int_eq(leat_blob_dim(blob, -4), 2);
    ck_assert_int_eq(leat_blob_dim(blob, 4), 1);
    ck_assert_int_eq(leat_blob_dim(blob, -5), 1);
    ck_assert_int_eq(
        leat_blob_reshape(blob, LEAT_INT64, 4, leat_blob_shape(blob)), LEAT_OK);
    ck_assert_uint_eq(leat_blob_bytes(blob), 960);
    ck_assert_int_eq(leat_blob_dtype(blob), LEAT_INT64);
}
END_TEST

START_TEST(a_dimension_of_0_makes_no_elements)
{
    const int64_t shape[] = {4, 0, INT64_MAX};
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_FLOAT64, 3, shape), LEAT_OK);
    ck_assert_int_eq(leat_blob_count(blob), 0);
    ck_assert_ptr_nonnull(leat_blob_mutable_cpu_data(blob));
    ck_assert_ptr_nonnull(leat_blob_gpu_data(blob));
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_UINT8, 0, NULL), LEAT_OK);
    ck_assert_int_eq(leat_blob_count(blob), 0);
    ck_assert_int_eq(leat_blob_ndim(blob), 0);
}
END_TEST

START_TEST(impossible_shapes_leave_the_blob_as_it_was)
{
    const int64_t shapes[][9] = {
        {2, -1}, {INT64_MAX, 2}, {1 << 30, 1 << 30, 4}, {INT64_MAX / 2, 1}};
    const int axes[] = {2, 2, 3, 2};
    ck_assert_int_eq(reshape(blob, 2, 3, 0, 0), LEAT_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat_blob_reshape(blob, LEAT_FLOAT64, axes[i], shapes[i]),
            LEAT_EINVAL);
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_UINT8, 9, shapes[0]),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_UINT8, -1, shapes[0]),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_blob_reshape(blob, (leat_dtype)99, 1, shapes[3]),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_blob_count(blob), 6);
    ck_assert_int_eq(leat_blob_dtype(blob), LEAT_FLOAT32);
}
END_TEST

START_TEST(memory_stays_while_it_is_large_enough)
{
    ck_assert_int_eq(reshape(blob, 10, 10, 0, 0), LEAT_OK);
    const void *before = leat_blob_cpu_data(blob);
    int64_t allocations = leat__alloc_count();
    ck_assert_int_eq(reshape(blob, 3, 0, 0, 0), LEAT_OK);
    ck_assert_int_eq(reshape(blob, 100, 0, 0, 0), LEAT_OK);
    ck_assert_ptr_eq(leat_blob_cpu_data(blob), before);
    ck_assert_int_eq(leat__alloc_count(), allocations);
    ck_assert_int_eq(reshape(blob, 101, 0, 0, 0), LEAT_OK);
    ck_assert_int_eq(leat_blob_head(blob), LEAT_UNINITIALIZED);
    const float *data = leat_blob_cpu_data(blob);
    for (int i = 0; i < 101; i++)
        ck_assert(data[i] == 0);
}
END_TEST

START_TEST(a_shape_without_memory_gives_way_to_a_smaller_one)
{
    leat_blob *away;
    ck_assert_int_eq(leat_blob_create(&away, late), LEAT_OK);
    ck_assert_int_eq(reshape(away, 1 << 20, 0, 0, 0), LEAT_OK);
    ck_assert_int_eq(reshape(away, 4, 0, 0, 0), LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(away));
    ck_assert_int_eq(late_device_count(late).live_host_bytes,
                     4 * (int)sizeof(float));
    leat_blob_destroy(away);
}
END_TEST

START_TEST(a_blob_that_shrank_and_grew_is_the_same_on_both_sides)
{
    leat_blob *away;
    ck_assert_int_eq(leat_blob_create(&away, late), LEAT_OK);
    ck_assert_int_eq(reshape(away, 8, 0, 0, 0), LEAT_OK);
    float *host = leat_blob_mutable_cpu_data(away);
    for (int i = 0; i < 8; i++)
        host[i] = (float)i;
    ck_assert_int_eq(reshape(away, 2, 0, 0, 0), LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_gpu_data(away));
    ck_assert_int_eq(reshape(away, 8, 0, 0, 0), LEAT_OK);
    float last;
    late_device_peek(&last, (const float *)leat_blob_gpu_data(away) + 7,
                     sizeof(last));
    ck_assert(last == 7);
    leat_blob_destroy(away);
}
END_TEST

/* A slab whose host side is filled with `value`. */
static leat__slab *slab_of(leat_device *device, size_t bytes, int value)
{
    leat__slab *slab;
    ck_assert_int_eq(leat__slab_create(&slab, device, bytes), LEAT_OK);
    ck_assert_int_eq(leat__slab_ensure_host(slab), LEAT_OK);
    memset(slab->host, value, bytes);
    return slab;
}

START_TEST(a_lent_blob_shares_the_memory_and_keeps_it_alive)
{
    leat_device *cpu = leat_blob_device(blob);
    leat__slab *slab = slab_of(cpu, 200, 4);
    const int64_t shape[] = {5, 20};
    ck_assert_int_eq(reshape(blob, 7, 0, 0, 0), LEAT_OK);
    ck_assert_int_eq(leat__blob_lend(blob, LEAT_UINT8, 2, shape, slab, 100,
                                     LEAT_HEAD_AT_CPU, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_count(blob), 100);
    ck_assert_int_eq(leat_blob_head(blob), LEAT_HEAD_AT_CPU);
    const unsigned char *data = leat_blob_cpu_data(blob);
    ck_assert_ptr_eq(data, (unsigned char *)slab->host + 100);
    leat__slab_unref(slab);
    ck_assert_int_eq(data[99], 4);
}
END_TEST

START_TEST(lending_the_same_slab_again_counts_it_once)
{
    leat__slab *slab = slab_of(leat_blob_device(blob), 100, 4);
    const int64_t shape[] = {50};
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(leat__blob_lend(blob, LEAT_UINT8, 1, shape, slab,
                                         i % 2 * 50, LEAT_HEAD_AT_CPU, NULL),
                         LEAT_OK);
    ck_assert_int_eq(atomic_load(&slab->references), 2);
    ck_assert_int_eq(reshape(blob, 1, 0, 0, 0), LEAT_OK);
    ck_assert_int_eq(atomic_load(&slab->references), 1);
    leat__slab_unref(slab);
}
END_TEST

START_TEST(reshaping_a_lent_blob_leaves_the_lender_alone)
{
    leat__slab *slab = slab_of(leat_blob_device(blob), 100, 4);
    const int64_t shape[] = {100};
    const int64_t smaller[] = {10};
    const int64_t negative[] = {-1};
    ck_assert_int_eq(leat__blob_lend(blob, LEAT_UINT8, 1, shape, slab, 0,
                                     LEAT_HEAD_AT_CPU, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__blob_lend(blob, LEAT_UINT8, 1, negative, slab, 0,
                                     LEAT_HEAD_AT_CPU, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_blob_count(blob), 100);
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_UINT8, 1, smaller), LEAT_OK);
    unsigned char *data = leat_blob_mutable_cpu_data(blob);
    ck_assert_ptr_ne(data, slab->host);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(data[i], 0);
    memset(data, 9, 10);
    ck_assert_int_eq(*(unsigned char *)slab->host, 4);
    leat__slab_unref(slab);
}
END_TEST

START_TEST(a_blob_on_a_device_is_pushed_and_read_back)
{
    leat_blob *away;
    unsigned char byte;
    const int64_t shape[] = {1000};
    ck_assert_int_eq(leat_blob_create(&away, late), LEAT_OK);
    ck_assert_int_eq(leat_blob_reshape(away, LEAT_UINT8, 1, shape), LEAT_OK);
    memset(leat_blob_mutable_cpu_data(away), 3, 1000);
    ck_assert_int_eq(leat_blob_async_gpu_push(away, 0), LEAT_OK);
    ck_assert_int_eq(late->ops->stream_synchronize(late, 0), LEAT_OK);
    late_device_peek(&byte, leat_blob_gpu_data(away), 1);
    ck_assert_int_eq(byte, 3);
    byte = 8;
    late_device_poke((char *)leat_blob_mutable_gpu_data(away) + 999, &byte, 1);
    const unsigned char *host = leat_blob_cpu_data(away);
    ck_assert_int_eq(host[998], 3);
    ck_assert_int_eq(host[999], 8);
    leat_blob_destroy(away);
}
END_TEST

START_TEST(short_memory_leaves_the_blob_as_it_was)
{
    leat_blob *none = NULL;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_blob_create(&none, NULL), LEAT_ENOMEM);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(reshape(blob, 2, 3, 0, 0), LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(blob));
    leat__alloc_fail_at(0);
    ck_assert_int_eq(reshape(blob, 1000, 0, 0, 0), LEAT_ENOMEM);
    ck_assert_int_eq(leat_blob_count(blob), 6);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(blob));
    ck_assert_int_eq(reshape(blob, 1000, 0, 0, 0), LEAT_OK);
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat_blob_cpu_data(blob));
    ck_assert_ptr_nonnull(leat_blob_cpu_data(blob));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob");
    TCase *tcase = tcase_create("blob");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_new_blob_has_no_axes_and_no_elements);
    tcase_add_test(tcase, the_count_is_the_product_of_the_dimensions);
    tcase_add_test(tcase, a_dimension_of_0_makes_no_elements);
    tcase_add_test(tcase, impossible_shapes_leave_the_blob_as_it_was);
    tcase_add_test(tcase, memory_stays_while_it_is_large_enough);
    tcase_add_test(tcase, a_shape_without_memory_gives_way_to_a_smaller_one);
    tcase_add_test(tcase,
                   a_blob_that_shrank_and_grew_is_the_same_on_both_sides);
    tcase_add_test(tcase, a_lent_blob_shares_the_memory_and_keeps_it_alive);
    tcase_add_test(tcase, lending_the_same_slab_again_counts_it_once);
    tcase_add_test(tcase, reshaping_a_lent_blob_leaves_the_lender_alone);
    tcase_add_test(tcase, a_blob_on_a_device_is_pushed_and_read_back);
    tcase_add_test(tcase, short_memory_leaves_the_blob_as_it_was);
    return suite_run(suite);
}
