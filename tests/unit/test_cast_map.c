/* Fields of other types: test_cast has the conversions themselves. */
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 2 };

static const double numbers[COUNT][3] = {{-1.5, 2.5, 300.75}, {NAN, 1e300, 7}};
static const int32_t labels[COUNT] = {-3, 70000};
static const leat_memory_field fields[] = {
    {"x", LEAT_FLOAT64, 1, {3}, numbers},
    {"label", LEAT_INT32, 0, {0}, labels},
};

/* What C makes of a double in an integer type, clamped. */
static double clamped(double value, double least, double most)
{
    if (isnan(value))
        return 0;
    return value < least ? least : value > most ? most : trunc(value);
}

START_TEST(every_type_becomes_every_other)
{
    static const struct {
        leat_dtype dtype;
        double least, most;
    } types[] = {
        {LEAT_UINT8, 0, 255},          {LEAT_INT8, -128, 127},
        {LEAT_UINT16, 0, 65535},       {LEAT_INT16, -32768, 32767},
        {LEAT_UINT32, 0, 4294967295.}, {LEAT_INT32, INT32_MIN, INT32_MAX},
    };
    leat_sample sample;
    leat_sample_init(&sample);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char text[64];
        const leat_field_spec *spec;
        int n;
        snprintf(text, sizeof(text), "cast:x=%s,label=%s",
                 leat_dtype_name(types[i].dtype),
                 leat_dtype_name(types[i].dtype));
        leat_reader *reader = map_fixture_open(fields, 2, COUNT, text);
        ck_assert_msg(reader, "%s", leat_last_error());
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(spec[0].dtype, types[i].dtype);
        ck_assert_int_eq(spec[0].shape[0], 3);
        for (int r = 0; r < COUNT; r++) {
            ck_assert_int_eq(map_fixture_read(reader, r, &sample), LEAT_OK);
            ck_assert_int_eq(sample.field[0].dtype, types[i].dtype);
            ck_assert_int_eq(sample.field[1].ndim, 0);
            ck_assert_int_eq(sample.stable, 0);
            for (int k = 0; k < 3; k++)
                ck_assert_double_eq(
                    map_fixture_number(&sample, 0, k),
                    clamped(numbers[r][k], types[i].least, types[i].most));
            ck_assert_double_eq(
                map_fixture_number(&sample, 1, 0),
                clamped(labels[r], types[i].least, types[i].most));
        }
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(floats_are_rounded_once_and_the_same_type_is_not_copied)
{
    leat_sample sample;
    leat_sample_init(&sample);
    leat_reader *reader =
        map_fixture_open(fields, 2, COUNT, "cast:x=float64,label=bfloat16");
    ck_assert_int_eq(map_fixture_read(reader, 1, &sample), LEAT_OK);
    ck_assert_ptr_eq(sample.field[0].data, numbers[1]);
    ck_assert_double_eq(map_fixture_number(&sample, 1, 0), 70144);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(bytes_are_elements_of_uint8_and_back)
{
    static const char lines[COUNT][5] = {"abcd", "efgh"};
    static const leat_memory_field text[] = {
        {"line", LEAT_UINT8, 1, {4}, lines}};
    const leat_field_spec *spec;
    leat_sample sample;
    int n;
    leat_sample_init(&sample);
    leat_reader *reader =
        map_fixture_open(text, 1, 1, "reshape:line=2x2 | cast:line=bytes");
    ck_assert_msg(reader, "%s", leat_last_error());
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_BYTES);
    ck_assert_int_eq(spec[0].ndim, 1);
    ck_assert_int_eq(spec[0].shape[0], 4);
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_BYTES);
    ck_assert_ptr_eq(sample.field[0].data, lines[0]);
    leat_reader_close(reader);
    reader = map_fixture_open(text, 1, 1,
                              "cast:line=bytes | cast:line=uint8 | "
                              "cast:line=bytes,line=int16");
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[0].ndim, 1);
    ck_assert_int_eq(sample.field[0].shape[0], 4);
    for (int k = 0; k < 4; k++)
        ck_assert_double_eq(map_fixture_number(&sample, 0, k), lines[0][k]);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(groups_of_bytes_keep_their_shape)
{
    static const char lines[COUNT][3] = {"abc", "def"};
    static const leat_memory_field text[] = {
        {"line", LEAT_UINT8, 1, {3}, lines}};
    static const char *const casts[] = {
        "cast:line=bytes | batch:2 | cast:line=int16",
        "cast:line=bytes | batch:2 | cast:line=uint8",
        "batch:2 | cast:line=bytes",
        "cast:line=bytes | batch:2 | batch:1 | unbatch | cast:line=float32",
    };
    leat_sample sample;
    leat_sample_init(&sample);
    for (size_t i = 0; i < sizeof(casts) / sizeof(casts[0]); i++) {
        const leat_field_spec *spec;
        int n;
        leat_reader *reader = map_fixture_open(text, 1, COUNT, casts[i]);
        ck_assert_msg(reader, "%s", leat_last_error());
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(spec[0].ndim, 2);
        ck_assert_int_eq(spec[0].shape[1], 3);
        ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
        ck_assert_int_eq(sample.field[0].ndim, 2);
        ck_assert_int_eq(sample.field[0].shape[0], COUNT);
        ck_assert_int_eq(sample.field[0].shape[1], 3);
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(what_is_no_cast_is_refused)
{
    map_fixture_refuses(fields, 2, "cast:y=int8",
                        "cast: there is no field \"y\"");
    map_fixture_refuses(fields, 2, "cast:x=int9",
                        "there is no element type \"int9\"");
    map_fixture_refuses(fields, 2, "cast:x", "expected FIELD=TYPE");
    map_fixture_refuses(fields, 2, "cast:label=bytes",
                        "field \"label\": int32 cannot become bytes");
}
END_TEST

START_TEST(code_and_text_make_equal_pipelines)
{
    leat_pipeline *base, *made;
    ck_assert_int_eq(leat_pipeline_memory(&base, fields, 2, COUNT), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_cast(&made, base, "label", LEAT_INT64),
                     LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made), "| cast:label=int64"));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_cast(&made, base, "a,b|c=", LEAT_INT64),
                     LEAT_OK);
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_cast(&made, base, NULL, LEAT_INT64),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_cast(&made, base, "label", (leat_dtype)99),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "cast: unknown dtype 99");
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast");
    TCase *tcase = tcase_create("cast");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_type_becomes_every_other);
    tcase_add_test(tcase,
                   floats_are_rounded_once_and_the_same_type_is_not_copied);
    tcase_add_test(tcase, bytes_are_elements_of_uint8_and_back);
    tcase_add_test(tcase, groups_of_bytes_keep_their_shape);
    tcase_add_test(tcase, what_is_no_cast_is_refused);
    tcase_add_test(tcase, code_and_text_make_equal_pipelines);
    return suite_run(suite);
}
