#include "data/image_arena.h"
#include "support/suite.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void take(leat__arena *arena, size_t bytes)
{
    unsigned char *memory = leat__arena_alloc(arena, bytes);
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % LEAT__ALIGNMENT, 0);
    memset(memory, 0xa5, bytes);
}

START_TEST(a_second_round_of_the_same_sizes_allocates_nothing)
{
    leat__arena arena = {0};
    int64_t before = 0;
    for (int round = 0; round < 3; round++) {
        if (round)
            before = leat__alloc_count();
        for (size_t bytes = 0; bytes < 5000; bytes += 77)
            take(&arena, bytes);
        if (round)
            ck_assert_int_eq(leat__alloc_count(), before);
        leat__arena_reset(&arena);
    }
    leat__arena_finish(&arena);
}
END_TEST

START_TEST(pieces_do_not_overlap)
{
    leat__arena arena = {0};
    for (int round = 0; round < 2; round++) {
        unsigned char *first = leat__arena_alloc(&arena, 100);
        unsigned char *second = leat__arena_alloc(&arena, 100);
        memset(first, 1, 100);
        memset(second, 2, 100);
        ck_assert_int_eq(first[99], 1);
        ck_assert_int_eq(second[0], 2);
        leat__arena_reset(&arena);
    }
    leat__arena_finish(&arena);
}
END_TEST

START_TEST(the_latest_piece_can_be_given_back)
{
    leat__arena arena = {0};
    for (int round = 0; round < 2; round++) {
        void *kept = leat__arena_alloc(&arena, 100);
        for (int i = 0; i < 1000; i++) {
            void *memory = leat__arena_alloc(&arena, 5000);
            ck_assert_ptr_ne(memory, kept);
            leat__arena_free(&arena, memory);
        }
        ck_assert_uint_lt(arena.peak, 6000);
        leat__arena_free(&arena, kept);
        leat__arena_free(&arena, NULL);
        leat__arena_reset(&arena);
    }
    leat__arena_finish(&arena);
}
END_TEST

START_TEST(what_a_giant_took_is_not_kept)
{
    leat__arena arena = {0};
    ck_assert_ptr_nonnull(leat__arena_alloc(&arena, (size_t)100 << 20));
    leat__arena_reset(&arena);
    ck_assert_uint_eq(arena.size, 0);
    leat__arena_finish(&arena);
}
END_TEST

START_TEST(an_absurd_size_is_out_of_memory)
{
    leat__arena arena = {0};
    ck_assert_ptr_null(leat__arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(leat__arena_alloc(&arena, SIZE_MAX / 2 + 1));
    leat__arena_finish(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_arena");
    TCase *tcase = tcase_create("image_arena");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_second_round_of_the_same_sizes_allocates_nothing);
    tcase_add_test(tcase, pieces_do_not_overlap);
    tcase_add_test(tcase, the_latest_piece_can_be_given_back);
    tcase_add_test(tcase, what_a_giant_took_is_not_kept);
    tcase_add_test(tcase, an_absurd_size_is_out_of_memory);
    return suite_run(suite);
}
