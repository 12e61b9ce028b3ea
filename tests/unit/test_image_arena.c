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

START_TEST(a_block_far_larger_than_recent_images_need_shrinks)
{
    leat__arena arena = {0};
    take(&arena, (size_t)10 << 20);
    leat__arena_reset(&arena);
    ck_assert_uint_gt(arena.size, (size_t)10 << 20);
    int64_t before = leat__alloc_count();
    for (int i = 2; i < LEAT__DEMAND_IMAGES; i++) {
        take(&arena, 1000);
        leat__arena_reset(&arena);
    }
    ck_assert_uint_gt(arena.size, (size_t)10 << 20);
    ck_assert_int_eq(leat__alloc_count(), before);
    for (int i = 0; i < LEAT__DEMAND_IMAGES + 1; i++) {
        take(&arena, 1000);
        leat__arena_reset(&arena);
    }
    ck_assert_uint_ge(arena.size, 1000);
    ck_assert_uint_lt(arena.size, 2000);
    ck_assert_int_eq(leat__alloc_count(), before + 1);
    leat__arena_finish(&arena);
}
END_TEST

START_TEST(a_block_shrinks_by_a_factor_of_more_than_eight)
{
    leat__demand demand = {0};
    size_t capacity = (size_t)16 << 20, least = (size_t)2 << 20;
    for (int i = 0; i < 4 * LEAT__DEMAND_IMAGES; i++)
        ck_assert_uint_eq(leat__demand_record(&demand, least, capacity),
                          capacity);
    for (int i = 1; i < LEAT__DEMAND_IMAGES; i++)
        ck_assert_uint_eq(leat__demand_record(&demand, 7, capacity), capacity);
    ck_assert_uint_eq(leat__demand_record(&demand, least - 1, capacity),
                      least - 1);
    /* Nor for a few megabytes. */
    for (int i = 0; i < 4 * LEAT__DEMAND_IMAGES; i++)
        ck_assert_uint_eq(leat__demand_record(&demand, 7, (size_t)4 << 20),
                          (size_t)4 << 20);
}
END_TEST

START_TEST(no_more_is_in_use_than_the_limit)
{
    leat__arena arena = {.limit = 10 * LEAT__ALIGNMENT,
                         .reserved = 2 * LEAT__ALIGNMENT};
    for (int round = 0; round < 3; round++) {
        /* A piece of n bytes takes up to a line more. */
        take(&arena, 5 * LEAT__ALIGNMENT - 1);
        ck_assert_ptr_null(leat__arena_alloc(&arena, 3 * LEAT__ALIGNMENT));
        ck_assert_int_eq(arena.status, LEAT_EDATA);
        ck_assert_str_eq(
            leat_last_error(),
            "decoding the image takes more than 703 bytes of memory; "
            "max_image_bytes allows 640");
        take(&arena, 3 * LEAT__ALIGNMENT - 1);
        ck_assert_uint_eq(arena.peak, 8 * LEAT__ALIGNMENT);
        ck_assert_ptr_null(leat__arena_alloc(&arena, 0));
        ck_assert_ptr_null(leat__arena_alloc(&arena, SIZE_MAX));
        ck_assert_int_eq(arena.status, LEAT_EDATA);
        leat__arena_reset(&arena);
    }
    leat__arena_finish(&arena);
}
END_TEST

/* The limit must not depend on what came before. */
START_TEST(what_is_in_use_is_the_same_in_the_block_and_beside_it)
{
    leat__arena arena = {0};
    size_t in_use[3];
    for (int round = 0; round < 3; round++) {
        void *first = leat__arena_alloc(&arena, 100);
        void *second = leat__arena_alloc(&arena, 300);
        leat__arena_free(&arena, first);
        leat__arena_free(&arena, second);
        leat__arena_free(&arena, second);
        leat__arena_free(&arena, first);
        in_use[round] = arena.used + arena.spilled;
        take(&arena, 1000);
        leat__arena_reset(&arena);
    }
    ck_assert_uint_eq(in_use[0], 2 * LEAT__ALIGNMENT);
    ck_assert_uint_eq(in_use[1], in_use[0]);
    ck_assert_uint_eq(in_use[2], in_use[0]);
    leat__arena_finish(&arena);
}
END_TEST

START_TEST(an_absurd_size_is_out_of_memory)
{
    leat__arena arena = {0};
    ck_assert_ptr_null(leat__arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(leat__arena_alloc(&arena, SIZE_MAX / 2 + 1));
    ck_assert_int_eq(arena.status, LEAT_ENOMEM);
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
    tcase_add_test(tcase, a_block_far_larger_than_recent_images_need_shrinks);
    tcase_add_test(tcase, a_block_shrinks_by_a_factor_of_more_than_eight);
    tcase_add_test(tcase, no_more_is_in_use_than_the_limit);
    tcase_add_test(tcase,
                   what_is_in_use_is_the_same_in_the_block_and_beside_it);
    tcase_add_test(tcase, an_absurd_size_is_out_of_memory);
    return suite_run(suite);
}
