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

/* What is not there is any word, which nothing that is written may depend on.
 */
static uint32_t any_word = 0x2545f491;

static inline uint32_t leat__device_load(const void *from, int bytes,
                                         int is_there)
{
    const leat_device_transform *what = &now->what;
    uint32_t word = 0;
    if (!is_there)
        return any_word = any_word * 1664525 + 1013904223;
    misplaced += (uintptr_t)from % (uintptr_t)bytes != 0;
    misplaced +=
        !is_within(from, (size_t)bytes, what->pixels, now->pixel_bytes) &&
        !is_within(from, (size_t)bytes, what->mean,
                   now->mean_floats * sizeof(float));
    memcpy(&word, from, (size_t)bytes);
    return word;
}

/* What a warp has near it, and where that came from. */
static _Alignas(16) unsigned char near_bytes[4096];
static size_t near_size;

static inline const unsigned char *
leat__device_fetch(const unsigned char *from, uint32_t bytes,
                   const unsigned char *first, const unsigned char *last,
                   uint32_t lane, int spreads)
{
    const leat_device_transform *what = &now->what;
    misplaced += first != what->pixels || last != first + now->pixel_bytes;
    misplaced += !is_within(from, bytes, what->pixels, now->pixel_bytes);
    misplaced += (uintptr_t)from % 16 + bytes > (spreads ? 2304 : 1920);
    misplaced += lane >= 32;
    near_size = bytes;
    unsigned char *near = near_bytes + (uintptr_t)from % 16;
    memcpy(near, from, bytes);
    return near;
}

static inline uint32_t leat__device_near_byte(const void *from, int is_there)
{
    if (!is_there)
        return any_word = any_word * 1664525 + 1013904223;
    misplaced += !is_within(from, 1, near_bytes, near_size + 15);
    return *(const unsigned char *)from;
}

static inline uint32_t leat__device_near_word(const void *from)
{
    uint32_t word = 0;
    misplaced += (uintptr_t)from % 4 != 0;
    misplaced += !is_within(from, 4, near_bytes, near_size + 15);
    memcpy(&word, from, 4);
    return word;
}

static inline void leat__device_store(void *to, uint32_t word, int bytes)
{
    misplaced += (uintptr_t)to % (uintptr_t)bytes != 0;
    misplaced += !is_within(to, (size_t)bytes, now->what.top, now->top_bytes);
    memcpy(to, &word, (size_t)bytes);
}

static inline leat_device_choice
leat__device_choice_load(const leat_device_choice *from)
{
    return *from;
}

static inline uint64_t leat__device_product(uint32_t a, uint32_t b)
{
    return (uint64_t)a * b;
}

static inline uint32_t leat__device_halves(leat_dtype type, float low,
                                           float high)
{
    if (type == LEAT_FLOAT16)
        return leat__float16(low) | (uint32_t)leat__float16(high) << 16;
    return leat__bfloat16(low) | (uint32_t)leat__bfloat16(high) << 16;
}

#define LEAT__DEVICE_UNROLL
#define LEAT__DEVICE_LOOP
#include "device/transform_lane.h"
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
        now = &job;
        leat__transform_batch batch;
        leat__transform_batch_init(&batch, &job.what);
        /* Small batches have more than one unit, or piece, if these are small.
         */
        if (k % 4 > 0)
            leat__transform_divide(
                &batch, leat__divide_up(k % 4 > 1 ? 40 : 9, batch.row),
                leat__divide_up(k % 4 > 1 ? 1024 : 12, batch.channels));
        leat__transform_run(&batch);
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

/* Nothing of it is read. */
START_TEST(elements_beyond_32_bits_are_found)
{
    const leat__transform_kind kind = {LEAT_FLOAT32, LEAT__SAME_ORDER, 0, 0};
    static unsigned char base[16];
    const leat_device_transform job = {.pixels = base,
                                       .top = base,
                                       .top_type = LEAT_FLOAT32,
                                       .images = 9,
                                       .channels = 3,
                                       .height = 20000,
                                       .width = 17000};
    const int64_t count = (int64_t)3 * 20000 * 17000;
    const int64_t place = ((int64_t)2 * 20000 + 19998) * 17000 + 6144;
    leat__transform_batch batch;
    leat__transform_batch_init(&batch, &job);
    for (int64_t i = 0; i < 9; i++) {
        const leat_device_choice choice = {.mirror = i % 2};
        leat__transform_strip strip = leat__transform_open(
            &batch, kind, i, &choice, 0, 2 * 20000 + 19998, 6144);
        int64_t turned = i % 2 ? 17000 - 1 - 2 * 6144 : 0;
        ck_assert_int_eq((intptr_t)strip.pixels - (intptr_t)base,
                         i * count + place + turned);
        ck_assert_int_eq((intptr_t)strip.top - (intptr_t)base,
                         4 * (i * count + place));
        ck_assert_uint_eq(strip.length, LEAT__NEAR - 15);
    }
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
