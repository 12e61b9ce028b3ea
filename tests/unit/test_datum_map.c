/* Datums in fields of bytes: test_datum has the parser itself. */
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/datum.h>
#include <leat/decorators.h>

#include <check.h>
#include <string.h>

static unsigned char message[1024];
static size_t message_size;

/* Gives the message, in the sample's own buffer, whose rest is full. */
static int give(void *pass, leat_sample *sample)
{
    const int64_t shape[] = {(int64_t)message_size};
    (void)pass;
    unsigned char *copy = leat_sample_take(sample, message_size);
    if (!copy)
        return LEAT_ENOMEM;
    memcpy(copy, message, message_size);
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, shape, copy);
}

static leat_reader *open_message(const char *text)
{
    static const leat_field_spec spec = {
        .name = "record", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    const leat_callbacks callbacks = {
        .size = sizeof(callbacks), .fields = &spec, .nfields = 1, .next = give};
    leat_pipeline *base = NULL;
    ck_assert_int_eq(leat_pipeline_callback(&base, &callbacks, NULL), LEAT_OK);
    leat_reader *reader = map_fixture_open_over(base, text, 0);
    ck_assert_msg(reader, "%s", leat_last_error());
    return reader;
}

static void write_message(const leat_datum *datum)
{
    ck_assert_uint_le(leat_datum_size(datum), sizeof(message));
    message_size = leat_datum_write(datum, message);
}

static int read_one(const char *text, leat_sample *sample)
{
    leat_reader *reader = open_message(text);
    leat_sample_finish(sample);
    int status = leat_reader_next(reader, sample);
    if (!status)
        status = leat_sample_own(sample);
    leat_reader_close(reader);
    return status;
}

static const unsigned char pixels[] = {1, 2, 3, 4, 5, 6};
static const float floats[] = {0.5f, -1, 2, 3, 4, 1e9f};

START_TEST(each_kind_of_datum_becomes_data_and_label)
{
    leat_sample sample;
    leat_sample_init(&sample);
    leat_datum datum = {.channels = 3,
                        .height = 1,
                        .width = 2,
                        .label = -4,
                        .data = pixels,
                        .data_size = 6};
    write_message(&datum);
    for (int i = 0; i < 10; i++) {
        ck_assert_msg(read_one("datum", &sample) == LEAT_OK, "%s",
                      leat_last_error());
        ck_assert_int_eq(sample.nfields, 2);
        ck_assert_int_eq(sample.field[0].ndim, 3);
        ck_assert_int_eq(sample.field[0].shape[0], 3);
        for (int k = 0; k < 6; k++)
            ck_assert_double_eq(map_fixture_number(&sample, 0, k), pixels[k]);
        ck_assert_double_eq(map_fixture_number(&sample, 1, 0), -4);
    }
    datum.float_data = (const unsigned char *)floats;
    datum.float_count = 6;
    datum.label = 0;
    write_message(&datum);
    ck_assert_int_eq(read_one("datum:record,labels=6", &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[1].dtype, LEAT_FLOAT32);
    for (int k = 0; k < 6; k++) {
        ck_assert_double_eq(map_fixture_number(&sample, 0, k), pixels[k]);
        ck_assert_double_eq(map_fixture_number(&sample, 1, k),
                            (double)floats[k]);
    }
    ck_assert_int_eq(read_one("datum:labels=-1", &sample), LEAT_OK);
    datum.data_size = 0;
    datum.label = 9;
    write_message(&datum);
    ck_assert_int_eq(read_one("datum:type=float32", &sample), LEAT_OK);
    for (int k = 0; k < 6; k++)
        ck_assert_double_eq(map_fixture_number(&sample, 0, k),
                            (double)floats[k]);
    ck_assert_double_eq(map_fixture_number(&sample, 1, 0), 9);
    leat_datum encoded = {.data = pixels, .data_size = 6, .encoded = 1};
    write_message(&encoded);
    ck_assert_int_eq(read_one("datum:type=ENCODED", &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_BYTES);
    ck_assert_uint_eq(sample.field[0].bytes, 6);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(a_datum_of_another_type_is_bad_and_says_which_argument)
{
    leat_sample sample;
    leat_sample_init(&sample);
    leat_datum datum = {
        .channels = 3, .height = 1, .width = 2, .data = pixels, .data_size = 6};
    write_message(&datum);
    ck_assert_int_eq(read_one("datum:type=FLOAT32", &sample), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(),
                     "datum: callback: record 0: field \"record\": its data is "
                     "uint8 3x1x2, and float32 was expected: see the "
                     "argument type");
    ck_assert_int_eq(read_one("datum:labels=2", &sample), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "see the argument labels"));
    /* Cut short; what ends before the label is whole, too. */
    size_t whole = leat_datum_size(&datum) - 2;
    while (--message_size > 0)
        ck_assert_int_eq(read_one("datum", &sample),
                         message_size == whole ? LEAT_OK : LEAT_EDATA);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(fields_that_do_not_fit_are_refused)
{
    static const int32_t number[] = {1};
    static const leat_memory_field fields[] = {
        {"label", LEAT_INT32, 0, {0}, number},
        {"record", LEAT_BYTES, 1, {3}, "abc"}};
    map_fixture_refuses(fields, 2, "datum",
                        "there is a field \"label\" already");
    map_fixture_refuses(fields, 2, "datum:label",
                        "field \"label\" is int32: expected the bytes");
}
END_TEST

START_TEST(code_and_text_make_equal_pipelines)
{
    static const leat_memory_field fields[] = {
        {"record", LEAT_BYTES, 1, {3}, "abc"}};
    leat_pipeline *base, *made;
    ck_assert_int_eq(leat_pipeline_memory(&base, fields, 1, 1), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_datum(&made, base, "record", LEAT_BYTES, 3),
                     LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made), "datum:record,type=ENCODED,labels=3"));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_datum(&made, base, NULL, LEAT_UINT8, 0),
                     LEAT_OK);
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_datum(&made, base, NULL, LEAT_INT8, 0),
                     LEAT_EINVAL);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("datum");
    TCase *tcase = tcase_create("datum");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, each_kind_of_datum_becomes_data_and_label);
    tcase_add_test(tcase,
                   a_datum_of_another_type_is_bad_and_says_which_argument);
    tcase_add_test(tcase, fields_that_do_not_fit_are_refused);
    tcase_add_test(tcase, code_and_text_make_equal_pipelines);
    return suite_run(suite);
}
