#include "base/memory.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const wanted = "out of memory: cannot allocate 100 bytes";

static int is_zero(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i])
            return 0;
    }
    return 1;
}

START_TEST(every_kind_of_memory_is_usable_also_of_size_0)
{
    const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 5 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i];
        char *plain = leat__alloc(n);
        char *zero = leat__alloc_zero(n, 1);
        char *aligned = leat__alloc_aligned(n);
        char *pages = leat__alloc_pages(n);
        ck_assert(plain && zero && aligned && pages);
        ck_assert_uint_eq((uintptr_t)aligned % LEAT__ALIGNMENT, 0);
        ck_assert_uint_eq((uintptr_t)pages % LEAT__ALIGNMENT, 0);
        ck_assert(is_zero(zero, n) && is_zero(pages, n));
        memset(plain, 1, n);
        memset(zero, 1, n);
        memset(aligned, 1, n);
        memset(pages, 1, n);
        plain = leat__realloc(plain, 2 * n);
        ck_assert(plain && (n == 0 || plain[n - 1] == 1));
        leat__free(plain);
        leat__free(zero);
        leat__free(aligned);
        leat__free_pages(pages, n);
    }
    leat__free(NULL);
    leat__free_pages(NULL, 7);
}
END_TEST

START_TEST(sizes_that_overflow_are_out_of_memory)
{
    size_t product;
    ck_assert_ptr_null(leat__alloc_zero(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(leat__alloc_aligned(SIZE_MAX));
    ck_assert_ptr_null(leat__alloc_aligned(SIZE_MAX - 63));
    ck_assert_int_ne(leat__multiply(SIZE_MAX, 2, &product), 0);
    ck_assert_int_eq(leat__multiply(SIZE_MAX, 1, &product), 0);
    ck_assert_uint_eq(product, SIZE_MAX);
    ck_assert_int_eq(leat__multiply(0, SIZE_MAX, &product), 0);
    ck_assert_uint_eq(product, 0);
}
END_TEST

START_TEST(the_allocation_that_is_to_fail_does_and_no_other)
{
    for (int64_t n = 0; n < 3; n++) {
        void *got[4];
        leat__alloc_fail_at(n);
        for (int i = 0; i < 4; i++) {
            got[i] = leat__alloc(100);
            ck_assert_int_eq(got[i] == NULL, i == n);
            leat__free(got[i]);
        }
        ck_assert_str_eq(leat_last_error(), wanted);
    }
}
END_TEST

START_TEST(every_kind_of_allocation_can_fail)
{
    void *memory = leat__alloc(1);
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__alloc_zero(10, 10));
    ck_assert_str_eq(leat_last_error(), wanted);
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__alloc_aligned(100));
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__alloc_pages(100));
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__strdup("text"));
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__realloc(memory, 100));
    leat__free(memory);
}
END_TEST

START_TEST(a_fault_can_be_taken_back)
{
    leat__alloc_fail_at(0);
    leat__alloc_fail_at(-1);
    void *memory = leat__alloc(1);
    ck_assert_ptr_nonnull(memory);
    leat__free(memory);
}
END_TEST

static void *allocate(void *got)
{
    void *memory = leat__alloc(1);
    *(bool *)got = memory != NULL;
    leat__free(memory);
    return NULL;
}

START_TEST(a_threads_own_fault_is_not_met_by_others)
{
    leat__alloc_fail_own(1);
    leat__free(leat__alloc(1));
    pthread_t thread;
    bool got = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate, &got), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(got);
    ck_assert_ptr_null(leat__alloc(1));
    ck_assert_int_lt(leat__alloc_fail_own(2), 0);
    ck_assert_int_eq(leat__alloc_fail_own(-1), 2);
}
END_TEST

START_TEST(allocations_are_counted)
{
    int64_t before = leat__alloc_count();
    leat__free(leat__alloc(1));
    leat__free(leat__alloc_zero(1, 1));
    leat__free(leat__alloc_aligned(1));
    char *copy = leat__strdup("text");
    ck_assert_str_eq(copy, "text");
    leat__free(leat__realloc(copy, 9));
    leat__free_pages(leat__alloc_pages(1), 1);
    ck_assert_int_eq(leat__alloc_count() - before, 6);
}
END_TEST

START_TEST(what_was_touched_is_there_and_as_it_was)
{
    enum { BYTES = 5 << 20, PAGES = BYTES / 4096 };
    unsigned char present[PAGES];
    unsigned char *memory = leat__alloc_pages(BYTES);
    ck_assert_ptr_nonnull(memory);
    memory[BYTES - 1] = 7;
    ck_assert_int_eq(mincore(memory, BYTES, present), 0);
    ck_assert_int_eq(present[PAGES / 2] & 1, 0);
    ck_assert_int_eq(leat__populate(memory + 1, BYTES - 1), LEAT_OK);
    ck_assert_int_eq(mincore(memory, BYTES, present), 0);
    for (int i = 0; i < PAGES; i++)
        ck_assert_int_eq(present[i] & 1, 1);
    ck_assert_int_eq(memory[0], 0);
    ck_assert_int_eq(memory[BYTES - 1], 7);
    ck_assert_int_eq(leat__populate(memory, 0), LEAT_OK);
    leat__free_pages(memory, BYTES);
}
END_TEST

/* An address that has no memory stands for a machine that has none left. */
START_TEST(what_cannot_be_touched_is_out_of_memory)
{
    unsigned char *memory = leat__alloc_pages(8192);
    ck_assert_int_eq(munmap(memory, 8192), 0);
    ck_assert_int_eq(leat__populate(memory, 8192), LEAT_ENOMEM);
}
END_TEST

/* malloc keeps a large block once it has freed another one of that size. */
START_TEST(large_blocks_that_are_freed_are_the_systems_again)
{
    enum { BYTES = 3 << 20 };
    unsigned char is_resident;
    for (int i = 0; i < 3; i++) {
        char *block = leat__alloc_from(NULL, BYTES, LEAT__ALIGNMENT);
        char *grown = leat__resize_pages(NULL, 0, BYTES / 2);
        ck_assert(block && grown);
        memset(block, 1, BYTES);
        memset(grown, 2, BYTES / 2);
        grown = leat__resize_pages(grown, BYTES / 2, BYTES);
        ck_assert_ptr_nonnull(grown);
        ck_assert_int_eq(grown[BYTES / 2 - 1], 2);
        grown = leat__resize_pages(grown, BYTES, 4096);
        ck_assert_ptr_nonnull(grown);
        ck_assert_int_eq(grown[4095], 2);
        leat__free_to(NULL, block, BYTES, LEAT__ALIGNMENT);
        ck_assert_int_eq(
            mincore(block + 4096 - (uintptr_t)block % 4096, 4096, &is_resident),
            -1);
        leat__free_pages(grown, 4096);
    }
}
END_TEST

START_TEST(pages_that_cannot_be_resized_stay)
{
    char *pages = leat__resize_pages(NULL, 0, 4096);
    ck_assert_ptr_nonnull(pages);
    pages[0] = 3;
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat__resize_pages(pages, 4096, 8192));
    ck_assert_int_eq(leat__alloc_fail_at(-1), -1);
    ck_assert_int_eq(pages[0], 3);
    leat__free_pages(pages, 4096);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tcase = tcase_create("memory");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_kind_of_memory_is_usable_also_of_size_0);
    tcase_add_test(tcase, sizes_that_overflow_are_out_of_memory);
    tcase_add_test(tcase, large_blocks_that_are_freed_are_the_systems_again);
    tcase_add_test(tcase, pages_that_cannot_be_resized_stay);
    tcase_add_test(tcase, the_allocation_that_is_to_fail_does_and_no_other);
    tcase_add_test(tcase, every_kind_of_allocation_can_fail);
    tcase_add_test(tcase, a_fault_can_be_taken_back);
    tcase_add_test(tcase, a_threads_own_fault_is_not_met_by_others);
    tcase_add_test(tcase, allocations_are_counted);
    tcase_add_test(tcase, what_was_touched_is_there_and_as_it_was);
    tcase_add_test(tcase, what_cannot_be_touched_is_out_of_memory);
    return suite_run(suite);
}
