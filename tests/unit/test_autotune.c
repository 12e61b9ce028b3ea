/* The defaults that depend on machine and data. */
#include "layer/autotune.h"
#include "support/suite.h"

#include <check.h>
#include <leat/data_layer.h>
#include <leat/sample.h>
#include <limits.h>

#define MIB ((size_t)1 << 20)
#define SAMPLE sizeof(leat_sample)

START_TEST(a_caller_that_helps_counts_as_a_worker)
{
    ck_assert_int_eq(leat__autotune_workers(1, true, false, true), 1);
    ck_assert_int_eq(leat__autotune_workers(1, false, false, true), 1);
    ck_assert_int_eq(leat__autotune_workers(8, true, false, false), 7);
    ck_assert_int_eq(leat__autotune_workers(8, false, false, false), 8);
}
END_TEST

START_TEST(a_thread_that_copies_has_a_core_and_the_driver_some)
{
    ck_assert_int_eq(leat__autotune_workers(4, true, true, false), 2);
    ck_assert_int_eq(leat__autotune_workers(4, false, true, false), 3);
    ck_assert_int_eq(leat__autotune_workers(8, true, true, false), 6);
    ck_assert_int_eq(leat__autotune_workers(16, true, true, false), 12);
    ck_assert_int_eq(leat__autotune_workers(16, true, true, true), 14);
    ck_assert_int_eq(leat__autotune_workers(1, true, true, true), 1);
}
END_TEST

START_TEST(a_chunk_is_a_batch_where_that_is_cheap)
{
    static const struct {
        leat__autotune_load load;
        int alone;
        int beside;
    } cases[] = {
        /* An encoded image is a chunk. */
        {{0, 0, 64, 1, 3, 2, 0}, 1, 1},
        /* Small images: the batch, whatever the workers. */
        {{4000, 0, 64, 1, 3, 2, 0}, 64, 64},
        {{4000, 0, 64, 16, 3, 17, 0}, 64, 64},
        /* At most 4 MiB; 512 KiB beside a thread that reads ahead. */
        {{4 * MIB / 32, 0, 64, 1, 3, 2, 0}, 32, 4},
        /* More workers than batches share a batch. */
        {{64 << 10, 0, 60, 6, 3, 7, 0}, 30, 8},
        {{64 << 10, 0, 60, 7, 3, 8, 0}, 20, 8},
        /* But no smaller chunks than 512 KiB. */
        {{64 << 10, 0, 60, 60, 3, 61, 0}, 8, 8},
        /* At most 1024 samples, however small. */
        {{8, 0, 4096, 1, 3, 2, 0}, 1024, 1024},
        {{1, 0, 1 << 30, 1, 3, 2, 0}, 1024, 1024},
        /* At least a sample. */
        {{64 * MIB, 0, 60, 1, 3, 2, 0}, 1, 1},
        /* No more than the buffers of a chunk hold, but a sample. */
        {{4000, 1 << 20, 64, 1, 3, 2, 0}, 16, 64},
        {{4000, 64 * MIB, 64, 1, 3, 2, 0}, 1, 64},
        {{4000, 1 << 20, 64, 2, 3, 2, 16 * MIB}, 4, 64},
        /* Samples in half of the memory; but 64 for a worker. */
        {{8, 0, 4096, 2, 3, 3, 16 * MIB}, 2 * MIB / SAMPLE, 2 * MIB / SAMPLE},
        {{8, 0, 4096, 15, 3, 16, MIB}, 64, MIB / 34 / SAMPLE},
        {{8, 0, 4096, 15, 3, 16, 1}, 64, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const leat__autotune_load *load = &cases[i].load;
        ck_assert_int_eq(leat__autotune_chunk_size(load, false),
                         cases[i].alone);
        ck_assert_int_eq(leat__autotune_chunk_size(load, true),
                         cases[i].beside);
    }
}
END_TEST

START_TEST(a_thread_reads_so_many_samples_ahead)
{
    static const struct {
        leat__autotune_ahead ahead;
        int chunks;
        size_t buffers; /* of one */
    } cases[] = {
        /* Four batches; more than there are takers. */
        {{64, 64, 4, 3, 0, 0}, 4, 16 * MIB},
        {{10, 64, 4, 3, 0, 0}, 28, 256 * MIB / 28 - 10 * SAMPLE},
        {{64, 64, 1, 3, 0, 0}, 4, 16 * MIB},
        /* 16384 samples at most, but for the takers. */
        {{1024, 1 << 20, 4, 3, 0, 0}, 16, 16 * MIB - 1024 * SAMPLE},
        {{4, 4, 1 << 20, 3, 0, 0}, 4096, MIB / 16 - 4 * SAMPLE},
        {{1 << 20, 1 << 20, 4, 3, 0, 0}, 4, 16 * MIB},
        {{1, INT_MAX, 1 << 20, 3, 0, 0}, 16384, MIB / 64 - SAMPLE},
        /* Buffers of 256 MiB, or less. */
        {{16, 16, 1000, 3, 2 * MIB - 16 * SAMPLE, 0},
         128,
         2 * MIB - 16 * SAMPLE},
        {{16, 16, 1000, 3, 2 * MIB - 16 * SAMPLE, 4096 * MIB},
         128,
         2 * MIB - 16 * SAMPLE},
        {{16, 16, 1000, 3, 2 * MIB - 16 * SAMPLE, 16 * MIB},
         8,
         2 * MIB - 16 * SAMPLE},
        {{16, 16, 1000, 3, 64 * MIB, 16 * MIB}, 4, 4 * MIB - 16 * SAMPLE},
        {{16, 16, 4, 3, 100, 16 * MIB}, 4, 4 * MIB - 16 * SAMPLE},
        /* Samples without buffers take memory, too; of a chunk at most half. */
        {{16, 16, 1 << 20, 3, 0, 256 * SAMPLE}, 16, 8 * SAMPLE},
        {{16, 16, 1 << 20, 3, 0, SAMPLE}, 4, SAMPLE / 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat__autotune_chunks got =
            leat__autotune_chunks_ahead(&cases[i].ahead);
        ck_assert_int_eq(got.n, cases[i].chunks);
        ck_assert_uint_eq(got.buffers, cases[i].buffers);
    }
}
END_TEST

START_TEST(a_worker_has_buffers_for_its_part_of_the_memory)
{
    ck_assert_uint_eq(leat__autotune_own_buffers(4, 0), 16 * MIB);
    ck_assert_uint_eq(leat__autotune_own_buffers(4, 1024 * MIB), 16 * MIB);
    ck_assert_uint_eq(leat__autotune_own_buffers(4, 8 * MIB), MIB);
    ck_assert_uint_eq(leat__autotune_own_buffers(4, 1), MIB / 16);
}
END_TEST

START_TEST(batches_are_as_many_as_memory_holds)
{
    static const struct {
        int prefetch;
        size_t bytes;
        size_t max_memory;
        int all; /* 0: too little memory */
        int circulating;
    } cases[] = {
        {4, MIB, 0, 5, 5},
        {4, MIB, 3 * MIB, 3, 3},
        {4, MIB, 2 * MIB, 2, 2},
        {4, MIB, 2 * MIB - 1, 0, 0},
        {4, 0, 1, 5, 5},
        /* AUTO: 256 MiB, 64 batches, and at least three. */
        {LEAT_PREFETCH_AUTO, MIB, 0, 64, 3},
        {LEAT_PREFETCH_AUTO, 8 * MIB, 0, 32, 3},
        {LEAT_PREFETCH_AUTO, 100 * MIB, 0, 3, 3},
        {LEAT_PREFETCH_AUTO, MIB, 8 * MIB, 8, 3},
        {LEAT_PREFETCH_AUTO, MIB, 2 * MIB, 2, 2},
        {LEAT_PREFETCH_AUTO, MIB, MIB, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat__autotune_batches n = {0, 0};
        bool fits = leat__autotune_count_batches(
            &n, cases[i].prefetch, cases[i].bytes, cases[i].max_memory);
        ck_assert(fits == (cases[i].all > 0));
        ck_assert_int_eq(n.all, cases[i].all);
        ck_assert_int_eq(n.circulating, cases[i].circulating);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autotune");
    TCase *tcase = tcase_create("autotune");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_caller_that_helps_counts_as_a_worker);
    tcase_add_test(tcase, a_thread_that_copies_has_a_core_and_the_driver_some);
    tcase_add_test(tcase, a_chunk_is_a_batch_where_that_is_cheap);
    tcase_add_test(tcase, a_thread_reads_so_many_samples_ahead);
    tcase_add_test(tcase, a_worker_has_buffers_for_its_part_of_the_memory);
    tcase_add_test(tcase, batches_are_as_many_as_memory_holds);
    return suite_run(suite);
}
