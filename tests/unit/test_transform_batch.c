/*
 * What one device thread does of a transform, run thread by thread on the CPU
 * over memory that ends with what it holds, against the slow reference.
 */
#include "device/float16.h"
#include "support/transform_case.h"

#include <check.h>
#include <stdlib.h>

#define JOBS 6000
#define GUARD 64

/* Loads and stores of words that are misplaced, or of what is not a batch's. */
static const transform_case *now;
static int misplaced;

static int is_within(const void *place, size_t bytes, const void *base,
                     size_t size)
{
    uintptr_t at = (uintptr_t)place - (uintptr_t)base;
    return at <= size && bytes <= size - at;
}

static inline void leat__words_load(uint32_t to[], const void *from, int n)
{
    size_t bytes = (size_t)n * 4;
    const leat_device_transform *what = now ? &now->what : NULL;
    misplaced += (uintptr_t)from % bytes != 0;
    misplaced +=
        what && !is_within(from, bytes, what->pixels, now->pixel_bytes) &&
        !is_within(from, bytes, what->choices,
                   (size_t)what->images * sizeof(*what->choices)) &&
        !is_within(from, bytes, what->mean, now->mean_floats * sizeof(float));
    memcpy(to, from, bytes);
}

static inline void leat__words_store(void *to, const uint32_t from[], int n)
{
    misplaced += (uintptr_t)to % ((uintptr_t)n * 4) != 0;
    memcpy(to, from, (size_t)n * 4);
}

static inline uint16_t leat__device_float16(float value)
{
    return leat__float16(value);
}

#define LEAT__DEVICE_UNROLL
#include "device/transform_batch.h"
#include "support/suite.h"

START_TEST(every_batch_has_the_bits_of_the_reference)
{
    for (uint32_t k = 0; k < JOBS; k++) {
        transform_case job;
        transform_case_init(&job, k + (uint32_t)_i * JOBS);
        void *memory;
        ck_assert_int_eq(posix_memalign(&memory, 256, job.top_bytes + GUARD),
                         0);
        char *top = memory;
        memset(top, 0x5c, job.top_bytes + GUARD);
        job.what.top = top;
        leat__transform_batch batch;
        leat__transform_batch_init(&batch, &job.what);
        now = &job;
        /* Backwards, as no thread may count on one before it. */
        for (int64_t i = leat__transform_batch_threads(&batch) + 9; i-- > 0;)
            leat__transform_batch_work(&batch, i);
        ck_assert_msg(memcmp(top, job.expected, job.top_bytes) == 0,
                      "job %u: %s", k, transform_case_text(&job));
        ck_assert_msg(misplaced == 0, "job %u: %s", k,
                      transform_case_text(&job));
        for (size_t i = 0; i < GUARD; i++)
            ck_assert_int_eq(top[job.top_bytes + i], 0x5c);
        free(memory);
        transform_case_finish(&job);
    }
}
END_TEST

static void check_division(uint32_t dividend, uint32_t divisor)
{
    leat__divisor by = leat__divisor_of(divisor);
    ck_assert_uint_eq(leat__divide(dividend, &by), dividend / divisor);
}

START_TEST(a_product_divides_as_a_division_does)
{
    static const uint32_t ends[] = {
        1, 2, 3, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};
    uint32_t x = 1;
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 8; k++)
            check_division(ends[i], ends[k]);
    }
    for (int i = 0; i < 200000; i++) {
        x = x * 1664525u + 1013904223u;
        uint32_t divisor = (x >> (i % 32)) | 1u << (31 - i % 32);
        x = x * 1664525u + 1013904223u;
        check_division(x, divisor);
        check_division(x - x % divisor, divisor);
        check_division(x - x % divisor - 1, divisor);
    }
}
END_TEST

/* Only the choice of an image is read for that. */
START_TEST(elements_beyond_32_bits_are_found)
{
    void *memory;
    ck_assert_int_eq(
        posix_memalign(&memory, 256, 9 * sizeof(leat_device_choice)), 0);
    leat_device_choice *choices = memory;
    for (int i = 0; i < 9; i++)
        choices[i] = (leat_device_choice){.h_off = i};
    const leat_device_transform job = {.pixels = memory,
                                       .choices = choices,
                                       .top_type = LEAT_UINT8,
                                       .images = 9,
                                       .channels = 3,
                                       .height = 20000,
                                       .width = 17000};
    leat__transform_batch batch;
    leat__transform_batch_init(&batch, &job);
    const int64_t count = (int64_t)3 * 20000 * 17000;
    const int64_t place = ((int64_t)2 * 20000 + 19998) * 17000 + 16999;
    for (int64_t i = 0; i < 9; i++) {
        leat__transform_cursor at;
        leat__transform_seek(&batch, i * count + place, &at);
        ck_assert_int_eq(at.image, i);
        ck_assert_int_eq(at.choice.h_off, i);
        ck_assert_uint_eq(at.c, 2);
        ck_assert_uint_eq(at.h, 19998);
        ck_assert_uint_eq(at.x, 16999);
    }
    free(choices);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transform_batch");
    TCase *tcase = tcase_create("transform_batch");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, every_batch_has_the_bits_of_the_reference, 0, 4);
    tcase_add_test(tcase, a_product_divides_as_a_division_does);
    tcase_add_test(tcase, elements_beyond_32_bits_are_found);
    return suite_run(suite);
}
