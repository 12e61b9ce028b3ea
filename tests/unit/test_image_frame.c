/* Limits on the size of an image, and the buffer that holds its pixels. */
#include "base/memory.h"
#include "data/image_frame.h"
#include "support/suite.h"

#include <check.h>
#include <stdint.h>
#include <string.h>

#define SIDE_MAX ((uint64_t)1 << 20)
#define ROWS_MAX (LEAT_IMAGE_PIXELS_MAX / SIDE_MAX)

static leat__image_frame frame_of(int width, int height, int channels)
{
    return (leat__image_frame){
        .channels = channels, .height = height, .width = width};
}

START_TEST(a_size_is_accepted_up_to_each_bound_and_refused_past_it)
{
    static const struct {
        uint64_t width, height;
        const char *line; /* NULL: accepted */
    } sizes[] = {
        {1, 1, NULL},
        {SIDE_MAX, 1, NULL},
        {1, SIDE_MAX, NULL},
        {SIDE_MAX, ROWS_MAX, NULL},
        {ROWS_MAX, SIDE_MAX, NULL},
        {SIDE_MAX + 1, 1,
         "image of 1048577 x 1 pixels; sides go up to 1048576"},
        {1, SIDE_MAX + 1,
         "image of 1 x 1048577 pixels; sides go up to 1048576"},
        /* The product of these wraps to 0. */
        {(uint64_t)1 << 32, (uint64_t)1 << 32,
         "image of 4294967296 x 4294967296 pixels; sides go up to 1048576"},
        {SIDE_MAX, ROWS_MAX + 1,
         "image of 1048576 x 129 pixels; at most 134217728 are decoded"},
        {ROWS_MAX + 1, SIDE_MAX,
         "image of 129 x 1048576 pixels; at most 134217728 are decoded"},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int status = leat__image_check_size(sizes[i].width, sizes[i].height);
        ck_assert_int_eq(status, sizes[i].line ? LEAT_EDATA : LEAT_OK);
        if (sizes[i].line)
            ck_assert_str_eq(leat_last_error(), sizes[i].line);
    }
}
END_TEST

START_TEST(pixels_take_a_byte_for_each_channel)
{
    leat__image_frame frame = frame_of(7, 5, 3);
    ck_assert_uint_eq(leat__image_pixel_bytes(&frame), 7 * 5 * 3);
    /* Beyond what an int holds. */
    frame = frame_of(1 << 20, 1 << 11, 4);
    ck_assert_uint_eq(leat__image_pixel_bytes(&frame), (uint64_t)1 << 33);
}
END_TEST

/*
 * Sixteen bytes past a boundary: where rows are aligned for its vectors,
 * libjpeg-turbo writes around the cache, which makes decoding slower.
 */
START_TEST(pixels_start_off_the_alignment_of_vectors)
{
    leat__pixel_buffer buffer = {0};
    for (int width = 1; width < 300; width += 37) {
        leat__image_frame frame = frame_of(width, 3, 3);
        ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &frame), LEAT_OK);
        ck_assert_uint_eq((uintptr_t)buffer.bytes % LEAT__ALIGNMENT, 16);
        ck_assert_uint_eq(buffer.capacity, (size_t)width * 9);
        /* A sanitizer sees a byte that is not there. */
        memset(buffer.bytes, 1, buffer.capacity);
    }
    leat__pixel_buffer_finish(&buffer);
}
END_TEST

START_TEST(a_buffer_is_kept_for_what_fits_and_grows_for_a_byte_more)
{
    leat__pixel_buffer buffer = {0};
    leat__image_frame frame = frame_of(100, 10, 1);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &frame), LEAT_OK);
    int64_t before = leat__alloc_count();
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &frame), LEAT_OK);
    frame = frame_of(1, 1, 1);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &frame), LEAT_OK);
    ck_assert_int_eq(leat__alloc_count(), before);
    ck_assert_uint_eq(buffer.capacity, 1000);
    frame = frame_of(1001, 1, 1);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &frame), LEAT_OK);
    ck_assert_int_eq(leat__alloc_count(), before + 1);
    ck_assert_uint_eq(buffer.capacity, 1001);
    leat__pixel_buffer_finish(&buffer);
    ck_assert_ptr_null(buffer.block);
    ck_assert_ptr_null(buffer.bytes);
    ck_assert_uint_eq(buffer.capacity, 0);
}
END_TEST

START_TEST(a_buffer_that_cannot_grow_is_empty_and_works_again)
{
    leat__pixel_buffer buffer = {0};
    leat__image_frame small = frame_of(10, 10, 1), large = frame_of(20, 10, 1);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &small), LEAT_OK);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &large), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    ck_assert_uint_eq(buffer.capacity, 0);
    ck_assert_ptr_null(buffer.bytes);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &small), LEAT_OK);
    ck_assert_uint_eq(buffer.capacity, 100);
    leat__pixel_buffer_finish(&buffer);
}
END_TEST

START_TEST(a_buffer_shrinks_to_the_largest_of_many_small_images)
{
    leat__pixel_buffer buffer = {0};
    leat__image_frame large = frame_of(4096, 4096, 3);
    leat__image_frame most = frame_of(200, 100, 3), small = frame_of(9, 9, 3);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &large), LEAT_OK);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &most), LEAT_OK);
    for (int i = 2; i < LEAT__DEMAND_IMAGES; i++)
        ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &small), LEAT_OK);
    ck_assert_uint_eq(buffer.capacity, leat__image_pixel_bytes(&large));
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &small), LEAT_OK);
    ck_assert_uint_eq(buffer.capacity, leat__image_pixel_bytes(&most));
    leat__pixel_buffer_finish(&buffer);
}
END_TEST

START_TEST(a_buffer_that_images_do_without_is_given_back)
{
    leat__pixel_buffer buffer = {0};
    leat__image_frame large = frame_of(4096, 4096, 3);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &large), LEAT_OK);
    for (int i = 1; i < LEAT__DEMAND_IMAGES; i++)
        leat__pixel_buffer_skip(&buffer);
    ck_assert_ptr_nonnull(buffer.block);
    leat__pixel_buffer_skip(&buffer);
    ck_assert_ptr_null(buffer.block);
    ck_assert_uint_eq(buffer.capacity, 0);
    /* One that is worth no allocation stays. */
    leat__image_frame small = frame_of(1024, 1024, 4);
    ck_assert_int_eq(leat__pixel_buffer_reserve(&buffer, &small), LEAT_OK);
    for (int i = 0; i < 3 * LEAT__DEMAND_IMAGES; i++)
        leat__pixel_buffer_skip(&buffer);
    ck_assert_uint_eq(buffer.capacity, 1024 * 1024 * 4);
    leat__pixel_buffer_finish(&buffer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_frame");
    TCase *tcase = tcase_create("image_frame");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   a_size_is_accepted_up_to_each_bound_and_refused_past_it);
    tcase_add_test(tcase, pixels_take_a_byte_for_each_channel);
    tcase_add_test(tcase, pixels_start_off_the_alignment_of_vectors);
    tcase_add_test(tcase,
                   a_buffer_is_kept_for_what_fits_and_grows_for_a_byte_more);
    tcase_add_test(tcase, a_buffer_that_cannot_grow_is_empty_and_works_again);
    tcase_add_test(tcase, a_buffer_shrinks_to_the_largest_of_many_small_images);
    tcase_add_test(tcase, a_buffer_that_images_do_without_is_given_back);
    return suite_run(suite);
}
