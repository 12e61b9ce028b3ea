/* Other shapes of the same elements. */
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <string.h>

enum { COUNT = 2 };

static const int16_t numbers[COUNT][12] = {{1, 2, 3}, {4}};
static const int32_t labels[COUNT] = {10, 11};
static const leat_memory_field fields[] = {
    {"data", LEAT_INT16, 1, {12}, numbers},
    {"label", LEAT_INT32, 0, {0}, labels},
};

START_TEST(a_field_takes_any_shape_of_as_many_elements)
{
    static const struct {
        const char *text;
        int ndim;
        int64_t shape[LEAT_MAX_DIMS];
    } cases[] = {
        {"reshape:data=3x4", 2, {3, 4}},
        {"reshape:data=3x2x2", 3, {3, 2, 2}},
        {"reshape:data=2x-1", 2, {2, 6}},
        {"reshape:data=-1", 1, {12}},
        {"reshape:data=12", 1, {12}},
        {"reshape:data=1x1x1x1x1x1x12x-1", 8, {1, 1, 1, 1, 1, 1, 12, 1}},
        {"reshape:data=4x3,label=1x1", 2, {4, 3}},
        {"reshape:label=1,label=scalar,data=3x4", 2, {3, 4}},
        {"reshape:data=2x6 | reshape:data=6x2", 2, {6, 2}},
    };
    leat_sample sample;
    leat_sample_init(&sample);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const leat_field_spec *spec;
        int n;
        leat_reader *reader = map_fixture_open(fields, 2, COUNT, cases[i].text);
        ck_assert_msg(reader, "%s", leat_last_error());
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(map_fixture_read(reader, 1, &sample), LEAT_OK);
        ck_assert_ptr_eq(sample.field[0].data, numbers[1]);
        ck_assert_int_eq(sample.field[0].ndim, cases[i].ndim);
        ck_assert_int_eq(spec[0].ndim, cases[i].ndim);
        for (int k = 0; k < cases[i].ndim; k++) {
            ck_assert_int_eq(sample.field[0].shape[k], cases[i].shape[k]);
            ck_assert_int_eq(spec[0].shape[k], cases[i].shape[k]);
        }
        leat_reader_close(reader);
    }
    ck_assert_uint_eq(sample.buffer_size, 0);
    leat_sample_finish(&sample);
}
END_TEST

/* Samples of 4, then of 3 elements. */
static int give(void *pass, leat_sample *sample)
{
    int *n = pass;
    const int64_t shape[] = {*n};
    return leat_sample_set(sample, 0, LEAT_INT16, 1, shape,
                           numbers[(*n)-- & 1]);
}

START_TEST(a_sample_that_does_not_fit_is_bad)
{
    static const leat_field_spec spec = {
        .name = "x", .dtype = LEAT_INT16, .ndim = 1, .shape = {-1}};
    int next = 4;
    const leat_callbacks callbacks = {
        .size = sizeof(callbacks), .fields = &spec, .nfields = 1, .next = give};
    leat_pipeline *base;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_callback(&base, &callbacks, &next), LEAT_OK);
    leat_reader *reader = map_fixture_open_over(base, "reshape:x=2x-1", 0);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[0].shape[1], 2);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(),
                     "reshape: callback: record 1: field \"x\" of shape 3 "
                     "cannot have 2x-1");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(what_is_no_shape_is_refused)
{
    static const char *const bad[] = {"data=3x5",
                                      "data=scalar",
                                      "data=-1x-1",
                                      "data=5x-1",
                                      "data=3x",
                                      "data=a",
                                      "data=-2",
                                      "data=",
                                      "data",
                                      "data=3 4",
                                      "data=(3,4)",
                                      "data=x12",
                                      "data=+12",
                                      "data=3xx4",
                                      "data=0x-1",
                                      "data=1x1x1x1x1x1x1x1x12",
                                      "data=4294967296x4294967296"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[64] = "reshape:";
        strcat(text, bad[i]);
        leat_reader *reader = map_fixture_open(fields, 2, 1, text);
        ck_assert_msg(!reader, "%s was taken", text);
    }
    map_fixture_refuses(fields, 2, "reshape:data=3x5",
                        "reshape: field \"data\" of shape 12 cannot have "
                        "3x5");
    map_fixture_refuses(fields, 2, "reshape:data=3xa",
                        "'3xa' is no shape: expected up to 8 dimensions");
    map_fixture_refuses(fields, 2,
                        "cast:data=uint8 | cast:data=bytes | "
                        "reshape:data=3x4",
                        "field \"data\" is of bytes");
}
END_TEST

START_TEST(code_and_text_make_equal_pipelines)
{
    const int64_t shape[] = {3, -1};
    leat_pipeline *base, *made;
    ck_assert_int_eq(leat_pipeline_memory(&base, fields, 2, COUNT), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_reshape(&made, base, "data", 2, shape),
                     LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made), "| reshape:data=3x-1"));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_reshape(&made, base, "label", 0, NULL),
                     LEAT_OK);
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_reshape(&made, base, "label", 9, shape),
                     LEAT_EINVAL);
    static const int64_t wrong[][2] = {
        {-1, -1}, {2, -2}, {INT64_MAX, 2}, {INT64_MIN, 1}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(
            leat_pipeline_reshape(&made, base, "data", 2, wrong[i]),
            LEAT_EINVAL);
        ck_assert_msg(strncmp(leat_last_error(), "reshape: '", 10) == 0, "%s",
                      leat_last_error());
    }
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reshape");
    TCase *tcase = tcase_create("reshape");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_field_takes_any_shape_of_as_many_elements);
    tcase_add_test(tcase, a_sample_that_does_not_fit_is_bad);
    tcase_add_test(tcase, what_is_no_shape_is_refused);
    tcase_add_test(tcase, code_and_text_make_equal_pipelines);
    return suite_run(suite);
}
