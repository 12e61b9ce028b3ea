/* Each offset of an EXIF block ends exactly where the block does. */
#include "data/image_exif.h"
#include "support/suite.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY 12
#define FIRST_ENTRY 10 /* after the TIFF header and the number of entries */

/* A TIFF block in either byte order. */
typedef struct tiff {
    unsigned char bytes[256];
    size_t size;
    int is_little;
} tiff;

static void put(tiff *block, size_t at, size_t bytes, uint32_t value)
{
    for (size_t i = 0; i < bytes; i++) {
        size_t shift = 8 * (block->is_little ? i : bytes - 1 - i);
        block->bytes[at + i] = (unsigned char)(value >> shift);
    }
    if (at + bytes > block->size)
        block->size = at + bytes;
}

static void begin(tiff *block, int is_little, unsigned entries)
{
    memset(block, 0, sizeof(*block));
    block->is_little = is_little;
    memcpy(block->bytes, is_little ? "II" : "MM", 2);
    put(block, 2, 2, 0x2a);
    put(block, 4, 4, 8);
    put(block, 8, 2, entries);
}

static void put_entry(tiff *block, int i, uint32_t tag, uint32_t count,
                      uint32_t value)
{
    size_t at = FIRST_ENTRY + ENTRY * (size_t)i;
    put(block, at, 2, tag);
    put(block, at + 2, 2, 0);
    put(block, at + 4, 4, count);
    put(block, at + 8, 4, value);
}

/* The orientation of a short stands in the first half of the entry's value. */
static void put_orientation(tiff *block, int i, uint32_t orientation)
{
    put_entry(block, i, 0x112, 1, 0);
    put(block, FIRST_ENTRY + ENTRY * (size_t)i + 8, 2, orientation);
}

/*
 * Of the first `size` bytes: with no readable byte after them, for a
 * sanitizer, and with those that are there.
 */
static int orientation_of(const tiff *block, size_t size)
{
    unsigned char *exact = malloc(size + !size);
    memcpy(exact, block->bytes, size);
    int orientation = leat__exif_orientation(exact, size);
    free(exact);
    ck_assert_int_eq(leat__exif_orientation(block->bytes, size), orientation);
    return orientation;
}

START_TEST(the_orientation_is_the_last_that_must_be_there)
{
    for (int is_little = 0; is_little < 2; is_little++) {
        tiff block;
        begin(&block, is_little, 1);
        put_orientation(&block, 0, 6);
        /* Its two bytes; those after them are not looked at. */
        size_t needed = FIRST_ENTRY + 10;
        for (size_t size = 0; size <= block.size; size++)
            ck_assert_int_eq(orientation_of(&block, size),
                             size < needed ? 1 : 6);
    }
}
END_TEST

START_TEST(orientations_are_one_to_eight)
{
    tiff block;
    for (uint32_t value = 0; value < 300; value++) {
        begin(&block, 1, 1);
        put_orientation(&block, 0, value);
        ck_assert_int_eq(orientation_of(&block, block.size),
                         value >= 1 && value <= 8 ? (int)value : 1);
    }
}
END_TEST

START_TEST(only_as_many_entries_are_read_as_there_are)
{
    tiff block;
    begin(&block, 1, 2);
    put_entry(&block, 0, 0x100, 1, 0);
    put_orientation(&block, 1, 3);
    ck_assert_int_eq(orientation_of(&block, block.size), 3);
    put(&block, 8, 2, 1);
    ck_assert_int_eq(orientation_of(&block, block.size), 1);
    /* The first orientation counts. */
    begin(&block, 1, 2);
    put_orientation(&block, 0, 5);
    put_orientation(&block, 1, 3);
    ck_assert_int_eq(orientation_of(&block, block.size), 5);
}
END_TEST

START_TEST(the_directory_lies_where_the_header_says)
{
    tiff block;
    begin(&block, 1, 1);
    put_orientation(&block, 0, 6);
    memmove(block.bytes + 8 + 5, block.bytes + 8, block.size - 8);
    block.size += 5;
    for (uint32_t offset = 8; offset < 20; offset++) {
        put(&block, 4, 4, offset);
        ck_assert_int_eq(orientation_of(&block, block.size),
                         offset == 13 ? 6 : 1);
    }
    put(&block, 4, 4, UINT32_MAX);
    ck_assert_int_eq(orientation_of(&block, block.size), 1);
    begin(&block, 1, 1);
    put_orientation(&block, 0, 6);
    put(&block, 2, 2, 0x2b);
    ck_assert_int_eq(orientation_of(&block, block.size), 1);
}
END_TEST

/* Of a directory and of a value that lie beyond what 16 bits can tell. */
START_TEST(offsets_have_32_bits)
{
    enum { FAR = 0x10020, SIZE = FAR + 2 + ENTRY + 10 };
    unsigned char *far = calloc(1, SIZE);
    ck_assert_ptr_nonnull(far);
    for (int is_little = 0; is_little < 2; is_little++) {
        tiff block;
        begin(&block, is_little, 2);
        put_entry(&block, 0, 0x11a, 1, SIZE - 8);
        put_orientation(&block, 1, 6);
        put(&block, 4, 4, FAR);
        memset(far, 0, SIZE);
        memcpy(far, block.bytes, 8);
        memcpy(far + FAR, block.bytes + 8, 2 + ENTRY + 10);
        ck_assert_int_eq(leat__exif_orientation(far, SIZE), 6);
        /* The value ends a byte too late. */
        ck_assert_int_eq(leat__exif_orientation(far, SIZE - 1), 1);
    }
    free(far);
}
END_TEST

/*
 * An entry whose value lies at an offset, in `bytes`, and an orientation after
 * it: OpenCV gives up where the value is not inside the block.
 */
typedef struct remote_value {
    const char *name;
    uint32_t tag;
    uint32_t count;
    size_t bytes;
} remote_value;

static const remote_value remotes[] = {
    {"description", 0x10e, 20, 20},   {"make", 0x10f, 5, 5},
    {"model", 0x110, 6, 6},           {"software", 0x131, 7, 7},
    {"date and time", 0x132, 20, 20}, {"copyright", 0x8298, 9, 9},
    {"x resolution", 0x11a, 1, 8},    {"y resolution", 0x11b, 1, 8},
    {"white point", 0x13e, 2, 16},    {"chromaticities", 0x13f, 6, 48},
    {"coefficients", 0x211, 3, 24},   {"black and white", 0x214, 6, 48},
};

START_TEST(a_value_may_end_where_the_block_does)
{
    const remote_value *remote = &remotes[_i];
    for (int is_little = 0; is_little < 2; is_little++) {
        tiff block;
        begin(&block, is_little, 2);
        put_orientation(&block, 1, 7);
        block.size = FIRST_ENTRY + 2 * ENTRY + 60;
        for (size_t over = 0; over < 3; over++) {
            put_entry(&block, 0, remote->tag, remote->count,
                      (uint32_t)(block.size - remote->bytes + over));
            ck_assert_msg(orientation_of(&block, block.size) == (over ? 1 : 7),
                          "%s, %zu bytes too far", remote->name, over);
        }
        put_entry(&block, 0, remote->tag, remote->count, UINT32_MAX);
        ck_assert_int_eq(orientation_of(&block, block.size), 1);
    }
}
END_TEST

/* As OpenCV has it, a text of up to 4 bytes is looked for at offset 8. */
START_TEST(a_short_text_has_no_offset)
{
    tiff block;
    for (uint32_t count = 0; count < 7; count++) {
        begin(&block, 1, 2);
        put_entry(&block, 0, 0x10f, count, UINT32_MAX);
        put_orientation(&block, 1, 7);
        ck_assert_int_eq(orientation_of(&block, block.size),
                         count <= 4 ? 7 : 1);
    }
    /* A text that takes up all that is behind offset 8, and one byte more. */
    begin(&block, 1, 2);
    put_orientation(&block, 1, 7);
    put_entry(&block, 0, 0x10f, (uint32_t)block.size - 8, 8);
    ck_assert_int_eq(orientation_of(&block, block.size), 7);
    put_entry(&block, 0, 0x10f, (uint32_t)block.size - 7, 8);
    ck_assert_int_eq(orientation_of(&block, block.size), 1);
}
END_TEST

START_TEST(tags_without_a_meaning_are_passed_over)
{
    static const uint32_t tags[] = {0x100, 0x111, 0x113, 0x128,
                                    0x213, 0x212, 0x8769};
    tiff block;
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        begin(&block, 1, 2);
        put_entry(&block, 0, tags[i], UINT32_MAX, UINT32_MAX);
        put_orientation(&block, 1, 4);
        ck_assert_int_eq(orientation_of(&block, block.size), 4);
    }
}
END_TEST

/* Whatever does not begin with II is big-endian, MM or not. */
START_TEST(the_first_two_bytes_tell_the_order)
{
    tiff block;
    begin(&block, 0, 1);
    put_orientation(&block, 0, 8);
    memcpy(block.bytes, "??", 2);
    ck_assert_int_eq(orientation_of(&block, block.size), 8);
    memcpy(block.bytes, "IM", 2);
    ck_assert_int_eq(orientation_of(&block, block.size), 8);
    memcpy(block.bytes, "MI", 2);
    ck_assert_int_eq(orientation_of(&block, block.size), 8);
    memcpy(block.bytes, "II", 2);
    ck_assert_int_eq(orientation_of(&block, block.size), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_exif");
    TCase *tcase = tcase_create("image_exif");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_orientation_is_the_last_that_must_be_there);
    tcase_add_test(tcase, orientations_are_one_to_eight);
    tcase_add_test(tcase, only_as_many_entries_are_read_as_there_are);
    tcase_add_test(tcase, the_directory_lies_where_the_header_says);
    tcase_add_test(tcase, offsets_have_32_bits);
    tcase_add_loop_test(tcase, a_value_may_end_where_the_block_does, 0,
                        (int)(sizeof(remotes) / sizeof(remotes[0])));
    tcase_add_test(tcase, a_short_text_has_no_offset);
    tcase_add_test(tcase, tags_without_a_meaning_are_passed_over);
    tcase_add_test(tcase, the_first_two_bytes_tell_the_order);
    return suite_run(suite);
}
