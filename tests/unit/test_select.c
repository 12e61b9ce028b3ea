/* Which fields a sample has, and their names. */
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <string.h>

enum { COUNT = 3 };

static const unsigned char pixels[COUNT][4] = {{1, 2, 3, 4}, {5}, {9}};
static const int32_t labels[COUNT] = {10, 11, 12};
static const int64_t offsets[COUNT][2] = {{0, 4}, {0, 4}, {0, 4}};
static const leat_memory_field fields[] = {
    {"data", LEAT_UINT8, 1, {4}, pixels},
    {"label", LEAT_INT32, 0, {0}, labels},
    {"ends", LEAT_INT64, 1, {2}, offsets},
};

START_TEST(fields_are_renamed_reused_and_left_out_without_a_copy)
{
    const leat_field_spec *spec;
    leat_sample sample;
    int n;
    leat_reader *reader = map_fixture_open(
        fields, 3, COUNT, "select:image=data,label,again = data");
    ck_assert_ptr_nonnull(reader);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 3);
    ck_assert_str_eq(spec[0].name, "image");
    ck_assert_str_eq(spec[1].name, "label");
    ck_assert_str_eq(spec[2].name, "again");
    ck_assert_int_eq(spec[2].shape[0], 4);
    ck_assert_int_eq(leat_reader_is_random_access(reader), 1);
    leat_sample_init(&sample);
    for (int i = COUNT - 1; i >= 0; i--) {
        ck_assert_int_eq(map_fixture_read(reader, i, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 3);
        ck_assert_ptr_eq(sample.field[0].data, pixels[i]);
        ck_assert_ptr_eq(sample.field[1].data, &labels[i]);
        ck_assert_ptr_eq(sample.field[2].data, pixels[i]);
        ck_assert_int_eq(sample.stable, 1);
    }
    ck_assert_uint_eq(sample.buffer_size, 0);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

static const leat_field_spec ragged[] = {
    {.name = "rows", .dtype = LEAT_INT32, .ndim = 1, .shape = {-1}},
    {.name = "ends",
     .dtype = LEAT_INT64,
     .ndim = 1,
     .shape = {-1},
     .offsets_of = "rows"},
};

static int end(void *pass, leat_sample *sample)
{
    (void)pass;
    (void)sample;
    return LEAT_END;
}

START_TEST(offsets_follow_the_new_name_of_their_rows)
{
    const leat_callbacks callbacks = {
        .size = sizeof(callbacks), .fields = ragged, .nfields = 2, .next = end};
    static const struct {
        const char *text;
        const char *offsets_of;
    } cases[] = {{"select:ends,words=rows", "words"},
                 {"select:ends,a=rows,b=rows", "a"},
                 {"select:ends", NULL}};
    for (int i = 0; i < 3; i++) {
        const leat_field_spec *spec;
        int n;
        leat_pipeline *base;
        ck_assert_int_eq(leat_pipeline_callback(&base, &callbacks, NULL),
                         LEAT_OK);
        leat_reader *reader = map_fixture_open_over(base, cases[i].text, 0);
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        if (cases[i].offsets_of)
            ck_assert_str_eq(spec[0].offsets_of, cases[i].offsets_of);
        else
            ck_assert_ptr_null(spec[0].offsets_of);
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(unknown_fields_and_double_names_are_refused)
{
    map_fixture_refuses(fields, 3, "select:labl",
                        "select: there is no field \"labl\": expected one of "
                        "data, label, ends; did you mean label?");
    map_fixture_refuses(fields, 3, "select:data,data=label",
                        "two fields are \"data\"");
    map_fixture_refuses(fields, 3, "select:=data", "expected the name");
    map_fixture_refuses(fields, 3, "select", "field is missing");
}
END_TEST

START_TEST(code_and_text_make_equal_pipelines)
{
    leat_pipeline *base, *made;
    ck_assert_int_eq(leat_pipeline_memory(&base, fields, 3, COUNT), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_select(&made, base, "image=data, label"),
                     LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made), "| select:image=data,label"));
    ck_assert_int_eq(leat_pipeline_select(&made, base, NULL), LEAT_EINVAL);
    leat_pipeline_unref(made);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("select");
    TCase *tcase = tcase_create("select");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   fields_are_renamed_reused_and_left_out_without_a_copy);
    tcase_add_test(tcase, offsets_follow_the_new_name_of_their_rows);
    tcase_add_test(tcase, unknown_fields_and_double_names_are_refused);
    tcase_add_test(tcase, code_and_text_make_equal_pipelines);
    return suite_run(suite);
}
