/* The decorators example and sequence_example. */
#include "base/memory.h"
#include "data/example_wire.h"
#include "pipeline/pipeline.h"
#include "support/example_message.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 23 };

static leat_sample sample;

static example_text message;

static void add(const char *key, example_text value)
{
    example_put_entry(&message, LEAT__EXAMPLE_FEATURES, key, value);
}

static void set_up(void)
{
    leat_sample_init(&sample);
    message.size = 0;
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

static unsigned char records[RECORDS][64];
static size_t record_size;

/* Records of one size, so that memory can give them: label i, x of 2. */
static leat_pipeline *memory_pipeline(void)
{
    leat_pipeline *pipeline;
    for (int i = 0; i < RECORDS; i++) {
        message.size = 0;
        add("label", example_one_int(i));
        add("x", example_floats(2, (const float[]){(float)i, (float)(2 * i)}));
        record_size = message.size;
        ck_assert_uint_le(record_size, sizeof(records[0]));
        memcpy((unsigned char *)records + (size_t)i * record_size, message.at,
               record_size);
    }
    const leat_memory_field fields[] = {
        {"other", LEAT_UINT8, 0, {0}, records},
        {"record", LEAT_UINT8, 1, {(int64_t)record_size}, records},
    };
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, RECORDS),
                     LEAT_OK);
    return pipeline;
}

static int stream_next(void *pass, leat_sample *out)
{
    int *at = pass;
    int64_t shape[] = {(int64_t)record_size};
    if (*at == RECORDS)
        return LEAT_END;
    out->stable = 1;
    return leat_sample_set(out, 0, LEAT_BYTES, 1, shape,
                           (unsigned char *)records +
                               (size_t)(*at)++ * record_size);
}

static int stream_reset(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

static leat_pipeline *stream_pipeline(int *pass)
{
    static const leat_field_spec field = {
        .name = "record", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = stream_next,
                                      .reset = stream_reset};
    leat_pipeline *pipeline;
    leat_pipeline_unref(memory_pipeline());
    *pass = 0;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, pass),
                     LEAT_OK);
    return pipeline;
}

static const char *const features[] = {"x=float32[2]", "label=int64"};

static leat_pipeline *over(leat_pipeline *upstream)
{
    leat_example_options options = LEAT_EXAMPLE_OPTIONS_INIT;
    leat_pipeline *pipeline;
    options.field = "record";
    int status =
        leat_pipeline_example(&pipeline, upstream, features, 2, &options);
    leat_pipeline_unref(upstream);
    ck_assert_msg(!status, "%s", leat_last_error());
    return pipeline;
}

static leat_reader *open_pipeline(leat_pipeline *pipeline)
{
    leat_reader *reader;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(!status, "%s", leat_last_error());
    return reader;
}

static void check_record(const leat_sample *one, int64_t i)
{
    int64_t label;
    float x[2];
    ck_assert_int_eq(one->nfields, 2);
    memcpy(x, one->field[0].data, sizeof(x));
    memcpy(&label, one->field[1].data, sizeof(label));
    ck_assert_int_eq(label, i);
    ck_assert(x[0] == (float)i && x[1] == (float)(2 * i));
}

/* Reads from position `i` to the end. */
static void read_on(leat_reader *reader, int64_t i)
{
    for (; i < RECORDS; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        check_record(&sample, i);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}

START_TEST(random_access_stays)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_reader *reader = open_pipeline(pipeline);
    int64_t count;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, RECORDS);
    for (int64_t i = RECORDS - 1; i >= 0; i--) {
        leat_position at = {0, i};
        leat_sample *out[] = {&sample};
        int got;
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        check_record(&sample, i);
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL), LEAT_OK);
        read_on(reader, i);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_stream_resumes_at_every_position)
{
    int pass, other_pass;
    leat_pipeline *pipeline = over(stream_pipeline(&pass));
    leat_pipeline *other = over(stream_pipeline(&other_pass));
    leat_reader *reader = open_pipeline(pipeline);
    leat_reader *resumed = open_pipeline(other);
    leat_token mark;
    leat_token_init(&mark);
    for (int64_t i = 0; i < RECORDS; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(resumed, (leat_position){0, i}, &mark), LEAT_OK);
        read_on(resumed, i);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        check_record(&sample, i);
    }
    leat_token_finish(&mark);
    leat_reader_close(reader);
    leat_reader_close(resumed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(other);
}
END_TEST

START_TEST(text_and_code_make_equal_pipelines)
{
    leat_pipeline *made = over(memory_pipeline());
    leat_pipeline *upstream = memory_pipeline(), *again;
    const leat_reader_type *type;
    int i = 0;
    do
        type = leat_reader_type_at(i++);
    while (type && strcmp(type->name, "example") != 0);
    ck_assert_ptr_nonnull(type);
    ck_assert_int_eq(leat_pipeline_create(&again, type,
                                          "x=float32[2], label=int64, "
                                          "field=record",
                                          NULL, NULL, &upstream, 1),
                     LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(made), leat_pipeline_text(again));
    ck_assert(leat__pipeline_hash(made) == leat__pipeline_hash(again));
    leat_pipeline_unref(made);
    leat_pipeline_unref(again);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made = over(memory_pipeline())),
               "| example:x=float32[2],label=int64,field=record"));
    leat_pipeline_unref(made);
    const char *steps[] = {"w=[float32[2]]?", "field=bytes"};
    ck_assert_int_eq(
        leat_pipeline_sequence_example(&made, upstream, steps, 2, NULL),
        LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made),
               "| sequence_example:w=[float32[2]]?,field\\=bytes"));
    leat_pipeline_unref(made);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(options_and_fields_are_checked)
{
    leat_pipeline *upstream = memory_pipeline(), *pipeline;
    leat_reader *reader;
    leat_example_options options = {0};
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, &options),
        LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_example(&pipeline, upstream, NULL, 1, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 0, NULL),
        LEAT_EINVAL);
    /* No field of bytes, and none is named. */
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, NULL), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "of bytes"));
    leat_pipeline_unref(pipeline);
    options.size = sizeof(options);
    ck_assert_int_eq(leat_example_options_init(&options), LEAT_OK);
    const char *const step = "x=[int64]";
    options.field = "record";
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, &step, 1, &options),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "sequence_example"));
    leat_pipeline_unref(pipeline);
    options.field = "nowhere";
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, &options),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(a_bad_record_is_named_and_passed_by)
{
    leat_pipeline *upstream = memory_pipeline(), *pipeline;
    leat_reader *reader;
    leat_example_options options = LEAT_EXAMPLE_OPTIONS_INIT;
    options.field = "record";
    unsigned char *key = (unsigned char *)records + 2 * record_size + 8;
    *key ^= 1; /* a letter of it */
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, &options),
        LEAT_OK);
    reader = open_pipeline(pipeline);
    for (int64_t i = 0; i < RECORDS; i++) {
        int status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, i == 2 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(sample.from.record, i);
        if (status)
            ck_assert_str_eq(leat_last_error(),
                             "example: memory: record 2: feature \"label\": "
                             "expected int64, found none in the record, "
                             "which has \"lacel\", \"x\"");
        else
            check_record(&sample, i);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

/* Opens and reads two samples, with allocation `n` failing. */
static int read_with_fault(leat_pipeline *upstream, int64_t n)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    leat_example_options options = LEAT_EXAMPLE_OPTIONS_INIT;
    const char *const all[] = {"x=float32[2]", "label=int64", "names=bytes[-1]",
                               "y=float32[4]?1"};
    options.field = "record";
    leat_sample_finish(&sample);
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    int status = leat_pipeline_example(&pipeline, upstream, all, 4, &options);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    if (!status)
        status = leat_reader_next(reader, &sample);
    leat__alloc_fail_at(-1);
    ck_assert_msg(!status || status == LEAT_ENOMEM, "%d: %s", status,
                  leat_last_error());
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    return leat__alloc_count() > last;
}

START_TEST(every_allocation_may_fail)
{
    leat_pipeline *upstream = memory_pipeline();
    int64_t n = 0;
    while (read_with_fault(upstream, n))
        n++;
    ck_assert_int_gt(n, 12);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_reader *reader = open_pipeline(pipeline);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    read_on(reader, 1);
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(cancel_ends_it)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_reader *reader = open_pipeline(pipeline);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_layers_workers_parse)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_top tops[] = {{.size = sizeof(tops[0]), .name = "x"},
                       {.size = sizeof(tops[0]), .name = "label"}};
    leat_data_layer *layer;
    options.batch_size = 4;
    options.workers = 2;
    options.top = tops;
    options.ntop = 2;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    for (int64_t p = 0; p < 60; p += 4) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const float *x = leat_blob_cpu_data(leat_data_layer_top(layer, 0));
        for (int64_t i = 0; i < 4; i++)
            ck_assert(x[2 * i] == (float)((p + i) % RECORDS) &&
                      x[2 * i + 1] == (float)(2 * ((p + i) % RECORDS)));
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Both files of a table, and their parts in any order. */
START_TEST(tfrecord_files_are_parsed)
{
    char path[SHARED_PATH], text[SHARED_PATH + 200];
    leat_pipeline *pipeline;
    leat_reader *reader;
    if (!shared_path(path, "tfrecord/"
                           "toy.nocompress-tfe-tfrecord-00000-of-00002"))
        return;
    path[strlen(path) - strlen("00000-of-00002")] = 0;
    snprintf(text, sizeof(text),
             "tfrecord:%s* | example:Num_1=float32?-1,Cat_set_1=bytes[-1],"
             "Bool_1=int64?-1",
             path);
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    reader = open_pipeline(pipeline);
    const leat_field_spec *spec;
    int n, seen = 0;
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 4);
    while ((status = leat_reader_next(reader, &sample)) == LEAT_OK) {
        ck_assert_int_eq(sample.nfields, 4);
        ck_assert_int_eq(sample.field[0].dtype, LEAT_FLOAT32);
        seen++;
    }
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(seen, 4);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example");
    TCase *tcase = tcase_create("example");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, random_access_stays);
    tcase_add_test(tcase, a_stream_resumes_at_every_position);
    tcase_add_test(tcase, text_and_code_make_equal_pipelines);
    tcase_add_test(tcase, options_and_fields_are_checked);
    tcase_add_test(tcase, a_bad_record_is_named_and_passed_by);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, nothing_is_allocated_in_the_steady_state);
    tcase_add_test(tcase, cancel_ends_it);
    tcase_add_test(tcase, a_layers_workers_parse);
    tcase_add_test(tcase, tfrecord_files_are_parsed);
    return suite_run(suite);
}
