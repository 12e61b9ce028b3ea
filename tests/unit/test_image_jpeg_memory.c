/* libjpeg's memory manager over an arena: what libjpeg may ask of it. */
#include "data/image_jpeg_memory.h"
#include "support/suite.h"

#include <check.h>
#include <jerror.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

/* Of pools nothing depends. */
enum { POOL = JPOOL_IMAGE };

/* A codec that has nothing but a memory manager, and an escape from errors. */
typedef struct bare_codec {
    struct jpeg_common_struct base; /* first: the manager holds its address */
    struct jpeg_error_mgr errors;
    leat__jpeg_memory memory;
    leat__arena arena;
    jmp_buf escape;
} bare_codec;

static bare_codec codec;
static j_common_ptr base = &codec.base;

static void escape(j_common_ptr failed)
{
    ck_assert_ptr_eq(failed, base);
    longjmp(codec.escape, 1);
}

static void set_up(void)
{
    memset(&codec, 0, sizeof(codec));
    base->err = jpeg_std_error(&codec.errors);
    codec.errors.error_exit = escape;
    leat__jpeg_memory_init(&codec.memory, &codec.arena);
    base->mem = &codec.memory.manager;
}

static void tear_down(void)
{
    leat__arena_finish(&codec.arena);
}

static struct jpeg_memory_mgr *manager(void)
{
    return &codec.memory.manager;
}

/* Whether the call leaves by an error; which, stands in codec.errors. */
static int fails(void (*call)(void))
{
    codec.errors.msg_code = -1;
    if (setjmp(codec.escape))
        return 1;
    call();
    return 0;
}

static void ask_small(void)
{
    manager()->alloc_small(base, POOL, 1000);
}

static void ask_large(void)
{
    manager()->alloc_large(base, POOL, 1000);
}

static void ask_rows(void)
{
    manager()->alloc_sarray(base, POOL, 1000, 10);
}

static void ask_blocks(void)
{
    manager()->alloc_barray(base, POOL, 10, 10);
}

static void ask_image(void)
{
    manager()->request_virt_barray(base, POOL, TRUE, 10, 10, 1);
}

static void (*const asks[])(void) = {ask_small, ask_large, ask_rows, ask_blocks,
                                     ask_image};

START_TEST(memory_that_is_short_is_libjpegs_error_for_it)
{
    ck_assert(!fails(asks[_i]));
    int64_t calls = leat__alloc_count();
    ck_assert(!fails(asks[_i]));
    calls = leat__alloc_count() - calls;
    ck_assert_int_gt(calls, 0);
    for (int64_t n = 0; n < calls; n++) {
        leat__alloc_fail_at(n);
        ck_assert(fails(asks[_i]));
        ck_assert_int_eq(codec.errors.msg_code, JERR_OUT_OF_MEMORY);
        ck_assert_int_eq(codec.errors.msg_parm.i[0], 0);
        ck_assert_int_eq(codec.arena.status, LEAT_ENOMEM);
    }
    leat__alloc_fail_at(-1);
    codec.arena.limit = 1;
    ck_assert(fails(asks[_i]));
    ck_assert_int_eq(codec.errors.msg_code, JERR_OUT_OF_MEMORY);
    ck_assert_int_eq(codec.arena.status, LEAT_EDATA);
}
END_TEST

/* libjpeg's vector code writes a row up to the next multiple of its width. */
START_TEST(rows_are_aligned_and_padded)
{
    static const JDIMENSION samples[] = {1, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        size_t pitch = ((size_t)samples[i] + 63) / 64 * 64;
        JSAMPARRAY rows = manager()->alloc_sarray(base, POOL, samples[i], 3);
        for (size_t y = 0; y < 3; y++) {
            ck_assert_uint_eq((uintptr_t)rows[y] % LEAT__ALIGNMENT, 0);
            ck_assert_ptr_eq(rows[y], rows[0] + y * pitch);
            memset(rows[y], 1, pitch);
        }
    }
}
END_TEST

START_TEST(rows_of_blocks_follow_one_another)
{
    JBLOCKARRAY rows = manager()->alloc_barray(base, POOL, 5, 4);
    for (size_t y = 0; y < 4; y++) {
        ck_assert_uint_eq((uintptr_t)rows[y] % 16, 0);
        ck_assert_ptr_eq(rows[y], rows[0] + 5 * y);
        memset(rows[y], 1, 5 * sizeof(JBLOCK));
    }
}
END_TEST

static size_t used_since(size_t before)
{
    return codec.arena.used + codec.arena.spilled - before;
}

START_TEST(no_more_is_taken_than_rows_need)
{
    manager()->alloc_sarray(base, POOL, 4096, 100);
    ck_assert_uint_le(used_since(0), 4096 * 100 + 100 * sizeof(void *) + 256);
    size_t before = used_since(0);
    manager()->alloc_barray(base, POOL, 32, 100);
    ck_assert_uint_le(used_since(before),
                      32 * sizeof(JBLOCK) * 100 + 100 * sizeof(void *) + 256);
}
END_TEST

static int is_zero(const void *memory, size_t bytes)
{
    const unsigned char *byte = memory;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i])
            return 0;
    return 1;
}

enum { BLOCKS = 3, HEIGHT = 7 };

static jvirt_barray_ptr image;
static JDIMENSION wanted_first, wanted_rows;
static JBLOCKARRAY got;

static void access_image(void)
{
    got = manager()->access_virt_barray(base, image, wanted_first, wanted_rows,
                                        TRUE);
}

static JBLOCKARRAY access_rows(JDIMENSION first, JDIMENSION n)
{
    wanted_first = first;
    wanted_rows = n;
    ck_assert(!fails(access_image));
    return got;
}

/* Its memory is what an image before left there. */
static void make_image(void)
{
    memset(manager()->alloc_large(base, POOL, 100000), 0xa5, 100000);
    leat__arena_reset(&codec.arena);
    memset(codec.arena.block, 0xa5, codec.arena.size);
    image = manager()->request_virt_barray(base, POOL, TRUE, BLOCKS, HEIGHT, 1);
    manager()->realize_virt_arrays(base);
}

START_TEST(coefficients_are_zero_when_first_reached_and_kept_from_then_on)
{
    make_image();
    for (JDIMENSION y = 0; y < HEIGHT; y++) {
        JBLOCKARRAY rows = access_rows(y, 1);
        ck_assert(is_zero(rows[0], BLOCKS * sizeof(JBLOCK)));
        memset(rows[0], (int)y + 1, BLOCKS * sizeof(JBLOCK));
    }
    JBLOCKARRAY rows = access_rows(0, HEIGHT);
    for (int y = 0; y < HEIGHT; y++) {
        const unsigned char *bytes = (const unsigned char *)rows[y];
        ck_assert_int_eq(bytes[0], y + 1);
        ck_assert_int_eq(bytes[BLOCKS * sizeof(JBLOCK) - 1], y + 1);
    }
}
END_TEST

START_TEST(rows_that_are_skipped_are_zero_too)
{
    make_image();
    JBLOCKARRAY last = access_rows(HEIGHT - 2, 2);
    ck_assert(is_zero(last[0], BLOCKS * sizeof(JBLOCK)));
    ck_assert(is_zero(last[1], BLOCKS * sizeof(JBLOCK)));
    JBLOCKARRAY first = access_rows(0, HEIGHT);
    ck_assert_ptr_eq(first + HEIGHT - 2, last);
    for (int y = 0; y < HEIGHT; y++)
        ck_assert(is_zero(first[y], BLOCKS * sizeof(JBLOCK)));
}
END_TEST

/* Not before: memory that is never reached need not be there. */
START_TEST(rows_that_are_not_reached_are_not_touched)
{
    make_image();
    JBLOCKARRAY rows = access_rows(0, 2);
    ck_assert(!is_zero(rows[2], BLOCKS * sizeof(JBLOCK)));
}
END_TEST

START_TEST(rows_outside_of_the_image_are_an_error)
{
    static const JDIMENSION wrong[][2] = {
        {0, HEIGHT + 1},     {HEIGHT, 1},         {HEIGHT - 1, 2},
        {HEIGHT + 1, 0},     {1, (JDIMENSION)-1}, {(JDIMENSION)-1, 2},
        {(JDIMENSION)-1, 0},
    };
    make_image();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        wanted_first = wrong[i][0];
        wanted_rows = wrong[i][1];
        ck_assert(fails(access_image));
        ck_assert_int_eq(codec.errors.msg_code, JERR_BAD_VIRTUAL_ACCESS);
    }
    access_rows(HEIGHT - 1, 1);
    access_rows(HEIGHT, 0);
}
END_TEST

static void ask_samples(void)
{
    manager()->request_virt_sarray(base, POOL, FALSE, 10, 10, 1);
}

static void access_samples(void)
{
    manager()->access_virt_sarray(base, NULL, 0, 1, FALSE);
}

START_TEST(whole_images_of_samples_are_refused)
{
    ck_assert(fails(ask_samples));
    ck_assert_int_eq(codec.errors.msg_code, JERR_NOT_COMPILED);
    ck_assert(fails(access_samples));
    ck_assert_int_eq(codec.errors.msg_code, JERR_NOT_COMPILED);
}
END_TEST

START_TEST(only_the_arena_takes_memory_back)
{
    unsigned char *piece = manager()->alloc_small(base, POOL, 100);
    memset(piece, 1, 100);
    size_t before = used_since(0);
    manager()->free_pool(base, POOL);
    manager()->self_destruct(base);
    ck_assert_uint_eq(used_since(0), before);
    ck_assert_int_eq(piece[99], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_jpeg_memory");
    TCase *tcase = tcase_create("image_jpeg_memory");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, memory_that_is_short_is_libjpegs_error_for_it, 0,
                        (int)(sizeof(asks) / sizeof(asks[0])));
    tcase_add_test(tcase, rows_are_aligned_and_padded);
    tcase_add_test(tcase, rows_of_blocks_follow_one_another);
    tcase_add_test(tcase, no_more_is_taken_than_rows_need);
    tcase_add_test(
        tcase, coefficients_are_zero_when_first_reached_and_kept_from_then_on);
    tcase_add_test(tcase, rows_that_are_skipped_are_zero_too);
    tcase_add_test(tcase, rows_that_are_not_reached_are_not_touched);
    tcase_add_test(tcase, rows_outside_of_the_image_are_an_error);
    tcase_add_test(tcase, whole_images_of_samples_are_refused);
    tcase_add_test(tcase, only_the_arena_takes_memory_back);
    return suite_run(suite);
}
