/* The published checksums, and the instruction against the tables. */
#include "base/crc32c.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t crc_function(uint32_t crc, const void *bytes, size_t size);

static crc_function *const functions[] = {leat__crc32c, leat__crc32c_portable};

START_TEST(published_checksums_come_out)
{
    crc_function *crc = functions[_i];
    unsigned char bytes[32];
    static const unsigned char iscsi[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
        0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
        0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
    memset(bytes, 0, 32);
    ck_assert_uint_eq(crc(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 255, 32);
    ck_assert_uint_eq(crc(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    ck_assert_uint_eq(crc(0, bytes, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    ck_assert_uint_eq(crc(0, bytes, 32), 0x113fdb5c);
    ck_assert_uint_eq(crc(0, iscsi, 48), 0xd9963a56);
    ck_assert_uint_eq(crc(0, iscsi, 41), 0xdd1b19be);
    ck_assert_uint_eq(crc(0, iscsi + 1, 44), 0x4930c4b1);
    ck_assert_uint_eq(crc(0, "123456789", 9), 0xe3069283);
    ck_assert_uint_eq(leat__crc32c_mask(crc(0, "123456789", 9)), 0xc78ab0e5);
    ck_assert_uint_eq(crc(0, "", 0), 0);
}
END_TEST

START_TEST(parts_make_up_the_whole)
{
    static const char digits[] = "123456789";
    crc_function *crc = functions[_i];
    for (size_t i = 0; i <= 9; i++)
        ck_assert_uint_eq(crc(crc(0, digits, i), &digits[i], 9 - i),
                          0xe3069283);
}
END_TEST

/* Around the sizes of the streams, at any address. */
START_TEST(the_instruction_agrees_with_the_tables)
{
    const size_t around[] = {0, 8, 384, 768, 6144, 6528, 12288, 20000};
    unsigned char *bytes = malloc(20100);
    ck_assert_ptr_nonnull(bytes);
    uint32_t drawn = 1;
    for (size_t i = 0; i < 20100; i++) {
        drawn = drawn * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(drawn >> 24);
    }
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++)
        for (size_t more = 0; more < 20; more++) {
            size_t size = around[i] + more < 7 ? 0 : around[i] + more - 7;
            for (size_t at = 0; at < 9; at++)
                ck_assert_uint_eq(leat__crc32c(17, bytes + at, size),
                                  leat__crc32c_portable(17, bytes + at, size));
        }
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crc32c");
    TCase *tcase = tcase_create("crc32c");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, published_checksums_come_out, 0, 2);
    tcase_add_loop_test(tcase, parts_make_up_the_whole, 0, 2);
    tcase_add_test(tcase, the_instruction_agrees_with_the_tables);
    return suite_run(suite);
}
