#include "data/wire.h"
#include "support/suite.h"

#include <stdint.h>
#include <string.h>

/* The last field comes from the general way, whatever its size. */
static int next_of(const void *message, size_t size, leat__wire_field *field)
{
    leat__wire wire;
    leat__wire_init(&wire, message, size);
    int status = leat__wire_next_any(&wire, field);
    if (!status)
        ck_assert_ptr_eq(wire.at, wire.end);
    return status;
}

#define NEXT(field, ...)                                                       \
    next_of((const unsigned char[]){__VA_ARGS__},                              \
            sizeof((const unsigned char[]){__VA_ARGS__}), field)

static void assert_malformed(const unsigned char *message, size_t size,
                             const char *line)
{
    leat__wire_field field;
    leat__wire wire;
    leat__wire_init(&wire, message, size);
    ck_assert_int_eq(leat__wire_next_any(&wire, &field), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), line);
}

#define MALFORMED(line, ...)                                                   \
    assert_malformed((const unsigned char[]){__VA_ARGS__},                     \
                     sizeof((const unsigned char[]){__VA_ARGS__}), line)

START_TEST(each_type_is_taken_whole)
{
    /* What the field points to outlives the assertion that reads it. */
    static const unsigned char fixed[] = {0x11, 1, 2, 3, 4, 5, 6, 7, 8};
    static const unsigned char bytes[] = {0x22, 2, 'a', 'b'};
    leat__wire_field field;
    ck_assert_int_eq(NEXT(&field, 0x08, 0x7f), LEAT_OK);
    ck_assert_uint_eq(field.number, 1);
    ck_assert_int_eq(field.type, LEAT__WIRE_VARINT);
    ck_assert_uint_eq(field.value, 127);
    ck_assert_int_eq(next_of(fixed, sizeof(fixed), &field), LEAT_OK);
    ck_assert_uint_eq(field.number, 2);
    ck_assert_uint_eq(field.size, 8);
    ck_assert_uint_eq(field.bytes[0], 1);
    ck_assert_int_eq(NEXT(&field, 0x1d, 1, 2, 3, 4), LEAT_OK);
    ck_assert_uint_eq(field.number, 3);
    ck_assert_int_eq(field.type, LEAT__WIRE_FIXED32);
    ck_assert_uint_eq(field.size, 4);
    ck_assert_int_eq(next_of(bytes, sizeof(bytes), &field), LEAT_OK);
    ck_assert_uint_eq(field.number, 4);
    ck_assert_int_eq(field.type, LEAT__WIRE_BYTES);
    ck_assert_mem_eq(field.bytes, "ab", 2);
    ck_assert_uint_eq(field.size, 2);
}
END_TEST

START_TEST(varints_have_up_to_64_bits)
{
    leat__wire_field field;
    ck_assert_int_eq(NEXT(&field, 0x08, 0x80, 0x01), LEAT_OK);
    ck_assert_uint_eq(field.value, 128);
    ck_assert_int_eq(NEXT(&field, 0x88, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff,
                          0xff, 0xff, 0xff, 0xff, 0x01),
                     LEAT_OK);
    ck_assert_uint_eq(field.number, 1);
    ck_assert_uint_eq(field.value, UINT64_MAX);
    MALFORMED("malformed protobuf at byte 1: a varint is longer than 10 bytes",
              0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
              0x00);
}
END_TEST

START_TEST(numbers_are_from_1_to_2_to_the_29)
{
    leat__wire_field field;
    static const char none[] =
        "malformed protobuf at byte 0: no field has that number";
    ck_assert_int_eq(NEXT(&field, 0xf8, 0xff, 0xff, 0xff, 0x0f, 0), LEAT_OK);
    ck_assert_uint_eq(field.number, (1u << 29) - 1);
    /* The largest tag is of a type that is none, one more of no number. */
    MALFORMED("malformed protobuf at byte 5: no such wire type", 0xff, 0xff,
              0xff, 0xff, 0x0f, 0);
    MALFORMED(none, 0x80, 0x80, 0x80, 0x80, 0x10, 0);
    MALFORMED(none, 0x07, 0);
    MALFORMED(none, 0x00, 0);
}
END_TEST

START_TEST(what_is_cut_short_is_malformed)
{
    MALFORMED("malformed protobuf at byte 0: it ends within a varint", 0x80);
    MALFORMED("malformed protobuf at byte 1: it ends within a varint", 0x08);
    MALFORMED("malformed protobuf at byte 1: it ends within a varint", 0x08,
              0xff);
    MALFORMED("malformed protobuf at byte 1: it ends within a varint", 0x22);
    MALFORMED("malformed protobuf at byte 2: field 4 has 2 bytes, 1 are left",
              0x22, 2, 'a');
    MALFORMED("malformed protobuf at byte 1: field 2 has 8 bytes, 7 are left",
              0x11, 1, 2, 3, 4, 5, 6, 7);
    MALFORMED("malformed protobuf at byte 1: field 3 has 4 bytes, 3 are left",
              0x1d, 1, 2, 3);
    MALFORMED("malformed protobuf at byte 11: field 4 has "
              "18446744073709551615 bytes, 0 are left",
              0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
}
END_TEST

START_TEST(a_message_ends_once_it_is_read)
{
    leat__wire_field field;
    leat__wire wire;
    leat__wire_init(&wire, NULL, 0);
    ck_assert_int_eq(leat__wire_next_any(&wire, &field), LEAT_END);
    leat__wire_init(&wire, "\x08\x01\x0b\x0c", 4);
    ck_assert_int_eq(leat__wire_next(&wire, &field), LEAT_OK);
    ck_assert_int_eq(leat__wire_next(&wire, &field), LEAT_OK);
    ck_assert_int_eq(field.type, LEAT__WIRE_GROUP);
    ck_assert_int_eq(leat__wire_next(&wire, &field), LEAT_END);
    ck_assert_int_eq(leat__wire_next_any(&wire, &field), LEAT_END);
}
END_TEST

START_TEST(a_group_is_skipped_with_all_that_is_in_it)
{
    leat__wire_field field = {.bytes = (const unsigned char *)"", .size = 7};
    ck_assert_int_eq(NEXT(&field, 0x0b, 0x10, 0x01, 0x13, 0x1a, 0x01, 0x0c,
                          0x14, 0x25, 1, 2, 3, 4, 0x0c),
                     LEAT_OK);
    ck_assert_uint_eq(field.number, 1);
    ck_assert_int_eq(field.type, LEAT__WIRE_GROUP);
    ck_assert_ptr_null(field.bytes);
    ck_assert_uint_eq(field.size, 0);
}
END_TEST

START_TEST(a_group_that_is_damaged_is_malformed)
{
    MALFORMED("malformed protobuf at byte 1: it ends within a group", 0x0b);
    MALFORMED("malformed protobuf at byte 3: it ends within a group", 0x0b,
              0x13, 0x14);
    MALFORMED("malformed protobuf at byte 1: a group ends that did not begin",
              0x0c);
    MALFORMED("malformed protobuf at byte 2: a group ends that did not begin",
              0x0b, 0x14, 0x0c);
    MALFORMED("malformed protobuf at byte 1: no field has that number", 0x0b,
              0x00, 0x0c);
    MALFORMED("malformed protobuf at byte 1: it ends within a varint", 0x0b,
              0x80);
    MALFORMED("malformed protobuf at byte 2: it ends within a varint", 0x0b,
              0x10, 0x80);
    MALFORMED("malformed protobuf at byte 2: no such wire type", 0x0b, 0x16,
              0x0c);
}
END_TEST

/* `depth` groups, each in the one before. */
static size_t nested(unsigned char *out, int depth)
{
    memset(out, 0x0b, (size_t)depth);
    memset(out + depth, 0x0c, (size_t)depth);
    return 2 * (size_t)depth;
}

START_TEST(groups_are_nested_100_deep_at_most)
{
    unsigned char message[202];
    leat__wire_field field;
    ck_assert_int_eq(next_of(message, nested(message, 100), &field), LEAT_OK);
    assert_malformed(
        message, nested(message, 101),
        "malformed protobuf at byte 101: groups are nested too deeply");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *tcase = tcase_create("fields");
    tcase_add_test(tcase, each_type_is_taken_whole);
    tcase_add_test(tcase, varints_have_up_to_64_bits);
    tcase_add_test(tcase, numbers_are_from_1_to_2_to_the_29);
    tcase_add_test(tcase, what_is_cut_short_is_malformed);
    tcase_add_test(tcase, a_message_ends_once_it_is_read);
    tcase_add_test(tcase, a_group_is_skipped_with_all_that_is_in_it);
    tcase_add_test(tcase, a_group_that_is_damaged_is_malformed);
    tcase_add_test(tcase, groups_are_nested_100_deep_at_most);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
