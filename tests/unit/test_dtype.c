/* Types of elements, by number and by name. */
#include "support/suite.h"

#include <leat/dtype.h>

#include <check.h>
#include <string.h>

static const struct {
    leat_dtype type;
    const char *name;
    size_t bytes;
} types[] = {{LEAT_BYTES, "bytes", 1},     {LEAT_UINT8, "uint8", 1},
             {LEAT_INT32, "int32", 4},     {LEAT_INT64, "int64", 8},
             {LEAT_FLOAT16, "float16", 2}, {LEAT_BFLOAT16, "bfloat16", 2},
             {LEAT_FLOAT32, "float32", 4}, {LEAT_FLOAT64, "float64", 8},
             {LEAT_UINT16, "uint16", 2},   {LEAT_INT8, "int8", 1},
             {LEAT_INT16, "int16", 2},     {LEAT_UINT32, "uint32", 4}};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

START_TEST(a_type_has_a_name_and_a_size)
{
    for (int i = 0; i < TYPES; i++) {
        leat_dtype type = (leat_dtype)-1;
        ck_assert_uint_eq(leat_dtype_size(types[i].type), types[i].bytes);
        ck_assert_str_eq(leat_dtype_name(types[i].type), types[i].name);
        ck_assert_int_eq(leat_dtype_parse(&type, types[i].name), LEAT_OK);
        ck_assert_int_eq(type, types[i].type);
    }
}
END_TEST

START_TEST(what_is_no_type_has_neither)
{
    static const int numbers[] = {TYPES, -1, 77};
    static const char *const names[] = {"",         "float", "float3",
                                        "float322", "UINT8", "?"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(leat_dtype_size((leat_dtype)numbers[i]), 0);
        ck_assert_str_eq(leat_dtype_name((leat_dtype)numbers[i]), "?");
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        leat_dtype type = LEAT_INT64;
        ck_assert_int_eq(leat_dtype_parse(&type, names[i]), LEAT_EINVAL);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "there is no element type"));
        ck_assert_int_eq(type, LEAT_INT64);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dtype");
    TCase *tcase = tcase_create("dtype");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_type_has_a_name_and_a_size);
    tcase_add_test(tcase, what_is_no_type_has_neither);
    return suite_run(suite);
}
