/* Pipelines over files by code are those of the texts. */
#include "pipeline/pipeline.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <string.h>

static const char *const paths[] = {"a.bin", "b,(c) = {}|.bin", "@list"};

/* The text, and the hash of the text's pipeline. */
static void check_text(leat_pipeline *made, const char *text)
{
    leat_pipeline *parsed;
    ck_assert_str_eq(leat_pipeline_text(made), text);
    ck_assert_msg(leat_pipeline_parse(&parsed, text) == LEAT_OK, "%s",
                  leat_last_error());
    ck_assert_str_eq(leat_pipeline_text(parsed), text);
    ck_assert_uint_eq(leat__pipeline_hash(parsed), leat__pipeline_hash(made));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(made);
}

START_TEST(defaults_are_not_written)
{
    leat_pipeline *made;
    leat_file_options options = LEAT_FILE_OPTIONS_INIT;
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 1, NULL), LEAT_OK);
    check_text(made, "tfrecord:a.bin");
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 1, &options),
                     LEAT_OK);
    check_text(made, "tfrecord:a.bin");
    options = (leat_file_options){.size = sizeof(options)};
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 3, &options),
                     LEAT_OK);
    check_text(made, "tfrecord:a.bin,b\\,\\(c\\) \\= \\{}\\|.bin,@list");
}
END_TEST

START_TEST(every_option_has_its_argument)
{
    leat_pipeline *made;
    leat_file_options options = {sizeof(options),
                                 LEAT_COMPRESSION_ZLIB,
                                 1000,
                                 LEAT_FILE_INDEX_KEEP,
                                 -1,
                                 1,
                                 4096};
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 1, &options),
                     LEAT_OK);
    check_text(made, "tfrecord:a.bin,compression=ZLIB,max_record=1000,"
                     "index=KEEP,read_ahead=-1,drop_behind=1,"
                     "keep_behind=4096");
    /* As an older caller knows it. */
    options.size = offsetof(leat_file_options, index);
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 1, &options),
                     LEAT_OK);
    check_text(made, "tfrecord:a.bin,compression=ZLIB,max_record=1000");
}
END_TEST

START_TEST(fields_of_records_of_one_size_are_written)
{
    leat_pipeline *made;
    const leat_fixed_field fields[] = {
        {"label", LEAT_UINT8, 0, 0, 0, {0}},
        {"data", LEAT_UINT16, 1, 1, 3, {3, 32, 32}}};
    leat_fixed_options fixed = LEAT_FIXED_OPTIONS_INIT;
    fixed.record = 7000;
    fixed.header = 5;
    fixed.footer = 2;
    ck_assert_int_eq(leat_pipeline_fixed(&made, paths, 1, &fixed, NULL),
                     LEAT_OK);
    check_text(made, "fixed:a.bin,record=7000,header=5,footer=2");
    fixed = (leat_fixed_options){
        .size = sizeof(fixed), .fields = fields, .nfields = 2};
    ck_assert_int_eq(leat_pipeline_fixed(&made, paths, 1, &fixed, NULL),
                     LEAT_OK);
    check_text(made, "fixed:a.bin,fields=(label\\=uint8@0,"
                     "data\\=uint16be@1:3x32x32)");
    ck_assert_int_eq(leat_pipeline_fixed(&made, paths, 1, NULL, NULL), LEAT_OK);
    check_text(made, "fixed:a.bin");
}
END_TEST

START_TEST(values_out_of_range_are_refused)
{
    leat_pipeline *made;
    const char *const none[] = {"a", ""};
    static const leat_file_options bad[] = {
        {.size = 0},
        {.size = sizeof(leat_file_options), .compression = 4},
        {.size = sizeof(leat_file_options), .max_record = -1},
        {.size = sizeof(leat_file_options), .index = 2},
        {.size = sizeof(leat_file_options), .read_ahead = -2},
        {.size = sizeof(leat_file_options), .drop_behind = 2},
        {.size = sizeof(leat_file_options), .keep_behind = -2}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 1, &bad[i]),
                         LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, paths, 0, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, NULL, 1, NULL), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_tfrecord(&made, none, 2, NULL), LEAT_EINVAL);
    const leat_fixed_field field = {.ndim = 9, .name = "a"};
    const leat_fixed_options wrong[] = {
        {.size = 0},
        {.size = sizeof(leat_fixed_options), .nfields = 1},
        {.size = sizeof(leat_fixed_options), .nfields = 33, .fields = &field},
        {.size = sizeof(leat_fixed_options), .nfields = 1, .fields = &field},
        {.size = sizeof(leat_fixed_options), .record = -1},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(leat_pipeline_fixed(&made, paths, 1, &wrong[i], NULL),
                         LEAT_EINVAL);
}
END_TEST

START_TEST(the_initialisers_write_every_default)
{
    leat_file_options options;
    leat_fixed_options fixed;
    memset(&options, 255, sizeof(options));
    memset(&fixed, 255, sizeof(fixed));
    options.size = sizeof(options);
    fixed.size = sizeof(fixed);
    ck_assert_int_eq(leat_file_options_init(&options), LEAT_OK);
    ck_assert_int_eq(leat_fixed_options_init(&fixed), LEAT_OK);
    ck_assert_int_eq(options.compression, LEAT_COMPRESSION_AUTO);
    ck_assert_int_eq(options.keep_behind, 0);
    ck_assert_int_eq(fixed.nfields, 0);
    ck_assert_ptr_null(fixed.fields);
    options.size = 0;
    ck_assert_int_eq(leat_file_options_init(&options), LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_pipeline");
    TCase *tcase = tcase_create("record_pipeline");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, defaults_are_not_written);
    tcase_add_test(tcase, every_option_has_its_argument);
    tcase_add_test(tcase, fields_of_records_of_one_size_are_written);
    tcase_add_test(tcase, values_out_of_range_are_refused);
    tcase_add_test(tcase, the_initialisers_write_every_default);
    return suite_run(suite);
}
