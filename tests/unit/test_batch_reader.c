/* batch:N, with tf.data's batch and padded_batch as the oracle, and a layer
 * that makes the same batches itself. */
#include "base/memory.h"
#include "data/pad.h"
#include "support/decorator_chain.h"
#include "support/rows_source.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 3 }; /* after tokens, their offsets and cell */

static rows_source source;
static leat_sample sample;
static leat_reader *reader;

static void set_up(void)
{
    source = (rows_source)ROWS_SOURCE_INIT;
    leat_sample_init(&sample);
    reader = NULL;
}

static void tear_down(void)
{
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}

static void open_pipeline(leat_pipeline *pipeline)
{
    leat_reader_close(reader);
    reader = NULL;
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(!status, "%s", leat_last_error());
}

static void open_chain(const char *text)
{
    open_pipeline(rows_source_chain(&source, text));
}

/* x, int64: 0 to n - 1, each of `ndim` dimensions {2} or none. */
static leat_pipeline *make_range(int n, int ndim, const char *text)
{
    static int64_t numbers[64];
    leat_pipeline *pipeline;
    for (int i = 0; i < 64; i++)
        numbers[i] = i;
    const leat_memory_field x = {"x", LEAT_INT64, ndim, {2}, numbers};
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, &x, 1, n), LEAT_OK);
    return decorator_chain_make(text, pipeline);
}

static void expect(int field, const char *text)
{
    char found[ROWS_TEXT_MAX];
    ck_assert_int_lt(field, sample.nfields);
    ck_assert_str_eq(rows_source_text(&sample.field[field], found), text);
}

static void expect_next(const char *text)
{
    int status = leat_reader_next(reader, &sample);
    ck_assert_msg(!status, "%d: %s", status, leat_last_error());
    expect(0, text);
}

/* CASES 2: batch_dataset_op_test and padded_batch_dataset_op_test. */
static const struct tf_case {
    int samples, ndim;
    const char *text;
    const char *batch[6];
} tf_cases[] = {
    {12, 0, "batch:4", {"4: 0 1 2 3", "4: 4 5 6 7", "4: 8 9 10 11"}},
    {12,
     0,
     "batch:4,drop_last=1",
     {"4: 0 1 2 3", "4: 4 5 6 7", "4: 8 9 10 11"}},
    {10, 0, "batch:3", {"3: 0 1 2", "3: 3 4 5", "3: 6 7 8", "1: 9"}},
    {10, 0, "batch:3,drop_last=1", {"3: 0 1 2", "3: 3 4 5", "3: 6 7 8"}},
    {10, 0, "batch:12", {"10: 0 1 2 3 4 5 6 7 8 9"}},
    {10, 0, "batch:12,drop_last=1", {NULL}},
    {0, 0, "batch:4", {NULL}},
    {4, 1, "batch:2,pad=1,pad_to=3", {"2x3: 0 1 1 2 3 1", "2x3: 4 5 1 6 7 1"}},
    {3, 1, "batch:2,pad=1,pad_to=3", {"2x3: 0 1 1 2 3 1", "1x3: 4 5 1"}},
    {3, 1, "batch:2,pad=1,pad_to=3,drop_last=1", {"2x3: 0 1 1 2 3 1"}},
    {3, 1, "batch:2,pad=(x=1),pad_to=(x=-1)", {"2x2: 0 1 2 3", "1x2: 4 5"}},
};

START_TEST(batches_are_those_of_tf_data)
{
    const struct tf_case *one = &tf_cases[_i];
    int64_t count;
    int n = 0, got;
    while (one->batch[n])
        n++;
    open_pipeline(make_range(one->samples, one->ndim, one->text));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, n);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < n; i++)
            expect_next(one->batch[i]);
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        const leat_position begin = {epoch + 1, 0};
        ck_assert_int_eq(leat_reader_seek(reader, begin, NULL), LEAT_OK);
    }
    for (int i = n - 1; i >= 0; i--) {
        const leat_position at = {0, i};
        leat_sample *const out = &sample;
        ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got), 0);
        expect(0, one->batch[i]);
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL), LEAT_OK);
        expect_next(one->batch[i]);
    }
}
END_TEST

/* Rows that stay where they are are a batch as they lie. */
START_TEST(rows_in_memory_are_not_copied)
{
    open_pipeline(make_range(12, 1, _i ? "batch:4 | unbatch" : "batch:4"));
    const char *first = NULL;
    for (int i = 0; i < (_i ? 12 : 3); i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        first = first ? first : sample.field[0].data;
        ck_assert_int_eq(sample.stable, 1);
        ck_assert_ptr_eq(sample.field[0].data, first + i * (_i ? 16 : 64));
        ck_assert_ptr_eq(sample.from.key, NULL);
    }
}
END_TEST

/* What is refused, when the pipeline is made or opened. */
static const struct refusal {
    const char *text;
    const char *line;
} refused[] = {
    {"batch:0", "size: expected 1 to 16777216, found '0'"},
    {"batch:-1", "size: expected 1 to 16777216, found '-1'"},
    {"batch", "size is missing"},
    {"batch:2,pad=(y=1)", "pad: \"y=1\" names no field"},
    {"batch:2,pad_to=(y=1)", "pad_to: \"y=1\" names no field"},
    {"batch:2,ragged=y", "ragged: \"y\" names no field"},
    {"batch:2,ragged=label", "field label is int64 scalar: it has no rows"},
    {"batch:2,pad=one", "padded with \"one\": expected a number"},
    {"batch:2,pad=(tokens=1.5)", "does not hold the padding 1.5"},
    {"batch:2,pad=(tokens=9007199254740993)", "that a float64 holds"},
    {"batch:2,pad=(tokens=9223372036854775806)", "that a float64 holds"},
    {"batch:2,pad=(cell=256)", "field cell is uint8 2x-1, which does not hold"},
    {"batch:2,pad_to=(cell=2)", "is padded to 1 dimensions"},
    {"batch:2,pad_to=3", "field cell is uint8 2x-1, but is padded to 1"},
    {"batch:2,pad_to=(cell=1x3)", "dimension 0 is padded to 1"},
    {"batch:2,pad_to=(tokens=)", "the shape of field tokens is \"\""},
    {"batch:2,pad_to=(tokens=-2)", "is \"-2\": expected 1 to 7 dimensions"},
    {"batch:2,pad_to=(tokens=1x)", "the shape of field tokens is \"1x\""},
    {"batch:2,pad_to=(tokens=1x1x1x1x1x1x1x1)", "expected 1 to 7 dimensions"},
};

START_TEST(arguments_that_fit_no_field_are_refused)
{
    leat_pipeline *pipeline = rows_source_chain(&source, refused[_i].text);
    int status = LEAT_EINVAL;
    if (pipeline)
        status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), refused[_i].line) != NULL, "%s",
                  leat_last_error());
}
END_TEST

/* Over a stream the fields are known when it is read. */
START_TEST(a_stream_refuses_them_when_it_is_read)
{
    const leat_field_spec *spec;
    int n;
    source.is_stream = 1;
    open_chain("batch:2,ragged=label");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EINVAL);
}
END_TEST

/* Samples that do not fit: the line has the field, the records and shapes. */
static const struct misfit {
    const char *text;
    int wide;
    int batch; /* it is bad */
    int record;
    const char *line;
} misfits[] = {
    {"batch:4", -1, 0, 1,
     "batch: field tokens is int32 4 in rows, record 1, but int32 2 in record "
     "0: expected one shape; pad and ragged take several"},
    {"batch:4,ragged=tokens", 6, 1, 6,
     "batch: field cell is uint8 2x4 in rows, record 6, but uint8 2x3 in "
     "record 4: expected one shape"},
    {"batch:4,ragged=tokens", 4, 1, 5,
     "field cell is uint8 2x3 in rows, record 5, but uint8 2x4 in record "
     "4"},
    {"batch:2,ragged=(tokens,cell)", 3, 1, 3,
     "expected the same but for the first dimension"},
    {"batch:3,pad_to=(tokens=3)", -1, 0, 1,
     "field tokens is int32 4 in rows, record 1: it is larger than what it is "
     "padded to"},
};

START_TEST(samples_that_do_not_fit_make_their_batch_bad)
{
    const struct misfit *one = &misfits[_i / 3];
    source.wide = one->wide;
    source.is_stream = _i % 3 == 1;
    open_chain(one->text);
    const leat_position at = {0, one->batch};
    leat_sample *const out = &sample;
    int status, got, i = 0;
    if (_i % 3 == 2)
        status = leat_reader_read_at(reader, &at, &out, 1, &got);
    else
        do
            status = leat_reader_next(reader, &sample);
        while (!status && i++ < one->batch);
    ck_assert_int_eq(status, LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), one->line) != NULL, "%s",
                  leat_last_error());
    ck_assert_int_eq(sample.from.record, one->record);
}
END_TEST

START_TEST(varying_fields_are_padded_to_the_longest)
{
    source.is_stream = _i % 2;
    source.is_stable = _i / 2;
    source.wide = 5;
    const leat_field_spec *spec;
    int n;
    open_chain("batch:3,pad=7");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(spec[0].ndim, 2);
    ck_assert_int_eq(spec[1].shape[1], 2);
    for (int i = 0; i < n; i++) {
        ck_assert(spec[i].is_batch);
        ck_assert_int_eq(spec[i].shape[0], -1);
    }
    expect_next("3x4: 0 1 7 7 100 101 102 103 200 7 7 7");
    expect(1, "3x2x3: 0 0 0 0 0 0 1 1 1 1 1 1 2 2 2 2 2 2");
    expect(2, "3: 0 1 2");
    ck_assert_int_eq(sample.from.record, 0);
    expect_next("3x3: 300 301 302 7 7 7 500 501 7");
    expect(1, "3x2x4: 3 3 3 7 3 3 3 7 4 4 4 7 4 4 4 7 5 5 5 5 5 5 5 5");
    ck_assert_str_eq(sample.from.source, "rows");
    ck_assert_int_eq(sample.from.record, 3);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    expect_next("1x0:");
    expect(2, "1: 9");
}
END_TEST

START_TEST(each_field_has_its_own_padding_and_shape)
{
    open_chain("batch:2,pad=(tokens=-1),pad_to=(cell=2x5,tokens=6)");
    expect_next("2x6: 0 1 -1 -1 -1 -1 100 101 102 103 -1 -1");
    expect(1, "2x2x5: 0 0 0 0 0 0 0 0 0 0 1 1 1 0 0 1 1 1 0 0");
}
END_TEST

/* The data of such rows may be NULL, which has no second one. */
START_TEST(rows_without_elements_are_all_padding)
{
    static const int64_t shape[] = {3, 2};
    const leat_field field = {.dtype = LEAT_INT32, .ndim = 2, .shape = {2, 0}};
    int32_t out[6] = {0};
    leat__padding padding;
    leat__padding_init(&padding, LEAT_INT32, 2, shape, 7);
    leat__padding_put(&padding, &field, out);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(out[i], 7);
}
END_TEST

START_TEST(rows_of_ragged_fields_lie_end_to_end)
{
    source.is_stream = _i;
    const leat_field_spec *spec;
    int n;
    open_chain("batch:3,ragged=(tokens,cell),drop_last=1");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 5);
    ck_assert_str_eq(spec[1].name, "tokens.offsets");
    ck_assert_str_eq(spec[1].offsets_of, "tokens");
    ck_assert_int_eq(spec[1].shape[0], 4);
    ck_assert_str_eq(spec[3].name, "cell.offsets");
    ck_assert_int_eq(spec[4].shape[0], 3);
    expect_next("7: 0 1 100 101 102 103 200");
    expect(1, "4: 0 2 6 7");
    expect(2, "6x3: 0 0 0 0 0 0 1 1 1 1 1 1 2 2 2 2 2 2");
    expect(3, "4: 0 2 4 6");
    expect(4, "3: 0 1 2");
    expect_next("5: 300 301 302 500 501");
    expect(1, "4: 0 3 3 5");
}
END_TEST

START_TEST(what_is_ragged_already_gets_one_level_more)
{
    const leat_field_spec *spec;
    int n;
    source.has_groups = 1;
    source.is_stream = _i;
    open_chain("batch:2 | batch:2");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 6);
    ck_assert_str_eq(spec[3].name, "groups.offsets.offsets");
    ck_assert_str_eq(spec[3].offsets_of, "groups.offsets");
    ck_assert_str_eq(spec[4].name, "groups.offsets");
    ck_assert_str_eq(spec[4].offsets_of, "groups");
    ck_assert_str_eq(spec[5].name, "groups");
    ck_assert_str_eq(spec[5].offsets_of, "tokens");
    expect_next("10: 0 1 100 101 102 103 200 300 301 302");
    expect(3, "3: 0 2 4");
    expect(4, "5: 0 2 4 6 8");
    expect(5, "9: 0 1 2 4 6 6 7 8 10");
    expect(2, "2x2: 0 1 2 3");
}
END_TEST

/* Batches have the same samples, wherever the bad record is. */
START_TEST(a_bad_record_makes_its_batch_bad)
{
    int drops = _i % 2;
    source.is_stream = _i / 2 % 2;
    source.bad = _i / 4;
    open_chain(drops ? "batch:3,ragged=tokens,drop_last=1"
                     : "batch:3,ragged=tokens");
    for (int b = 0; b < 4 - drops; b++) {
        int status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, source.bad / 3 == b ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(sample.from.record, status ? source.bad : 3 * b);
        if (status)
            ck_assert_msg(strstr(leat_last_error(), "is bad") != NULL, "%s",
                          leat_last_error());
        else
            ck_assert_int_eq(*(const int64_t *)sample.field[3].data, 3 * b);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}
END_TEST

/* The same type, shape and bytes. */
static void compare_blobs(leat_blob *a, leat_blob *b)
{
    size_t bytes = leat_dtype_size(leat_blob_dtype(a));
    ck_assert_int_eq(leat_blob_ndim(a), leat_blob_ndim(b));
    ck_assert_int_eq(leat_blob_dtype(a), leat_blob_dtype(b));
    for (int k = 0; k < leat_blob_ndim(a); k++) {
        ck_assert_int_eq(leat_blob_dim(a, k), leat_blob_dim(b, k));
        bytes *= (size_t)leat_blob_dim(a, k);
    }
    ck_assert_mem_eq(leat_blob_cpu_data(a), leat_blob_cpu_data(b), bytes);
}

static leat_data_layer *open_layer(const char *text, int batch_size,
                                   const leat_top tops[], int n)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_pipeline *pipeline =
        text ? rows_source_chain(&source, text) : rows_source_pipeline(&source);
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    options.batch_size = batch_size;
    options.workers = 2;
    options.top = tops;
    options.ntop = n;
    int status = leat_data_layer_create(&layer, pipeline, &options);
    leat_pipeline_unref(pipeline);
    if (!status)
        status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    return layer;
}

#define TOP(...)                                                               \
    {                                                                          \
        .size = sizeof(leat_top), __VA_ARGS__                                  \
    }

/* The tops of a layer of batches, and those of one of samples they are like. */
static const struct layer_case {
    const char *text;
    int has_groups;
    leat_top samples[3];
    int n;
    leat_top batches[5];
    int same[5];
} layer_cases[] = {
    {"batch:6,ragged=tokens",
     0,
     {TOP(.name = "tokens", .form = LEAT_TOP_RAGGED), TOP(.name = "cell"),
      TOP(.name = "label")},
     4,
     {TOP(.name = "tokens"), TOP(.name = "tokens.offsets"), TOP(.name = "cell"),
      TOP(.name = "label")},
     {0, 1, 2, 3}},
    {"batch:6,pad=7",
     0,
     {TOP(.name = "tokens", .form = LEAT_TOP_PAD, .pad_value = 7),
      TOP(.name = "cell"), TOP(.name = "label")},
     3,
     {TOP(.name = "tokens"), TOP(.name = "cell"), TOP(.name = "label")},
     {0, 2, 3}},
    {"batch:6",
     1,
     {TOP(.name = "tokens", .form = LEAT_TOP_RAGGED), TOP(.name = "cell"),
      TOP(.name = "label")},
     5,
     {TOP(.name = "tokens"), TOP(.name = "groups.offsets"),
      TOP(.name = "groups"), TOP(.name = "cell"), TOP(.name = "label")},
     {0, 1, 2, 3, 4}},
};

START_TEST(a_layer_of_batches_delivers_what_one_of_samples_does)
{
    const struct layer_case *one = &layer_cases[_i / 2];
    source.count = 24;
    source.is_stream = _i % 2;
    source.has_groups = one->has_groups;
    leat_data_layer *samples = open_layer(NULL, 6, one->samples, 3);
    leat_data_layer *batches = open_layer(one->text, 1, one->batches, one->n);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(leat_data_layer_forward(samples, NULL, 0, LEAT_HOST),
                         0);
        ck_assert_int_eq(leat_data_layer_forward(batches, NULL, 0, LEAT_HOST),
                         0);
        for (int k = 0; k < one->n; k++)
            compare_blobs(leat_data_layer_top(samples, one->same[k]),
                          leat_data_layer_top(batches, k));
        ck_assert_int_eq(leat_data_layer_batch(samples)->from[0].record,
                         leat_data_layer_batch(batches)->from[0].record);
    }
    leat_data_layer_destroy(samples);
    leat_data_layer_destroy(batches);
}
END_TEST

/* Of five groups in an epoch the second of two ranks has the second and fourth,
 * and in the next epoch the others. */
START_TEST(a_rank_without_a_group_has_a_batch_without_rows)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_pipeline *pipeline = make_range(10, 0, "batch:2");
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    const leat_top x = TOP(.name = "x");
    options.batch_size = 1;
    options.top = &x;
    options.ntop = 1;
    options.world_size = 2;
    options.rank = 1;
    options.phase = LEAT_TRAIN;
    options.epoch_end = LEAT_EPOCH_END_PARTIAL;
    int status = leat_data_layer_create(&layer, pipeline, &options);
    leat_pipeline_unref(pipeline);
    if (!status)
        status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    static const int first[] = {2, 6, -1, 0, 4, 8}; /* -1: no group */
    for (int b = 0; b < 12; b++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
        leat_blob *blob = leat_data_layer_top(layer, 0);
        int has_group = first[b % 6] >= 0;
        ck_assert_int_eq(leat_data_layer_batch(layer)->n, has_group);
        ck_assert_int_eq(leat_blob_ndim(blob), 1);
        ck_assert_int_eq(leat_blob_dim(blob, 0), 2 * has_group);
        if (has_group)
            ck_assert_int_eq(*(const int64_t *)leat_blob_cpu_data(blob),
                             first[b % 6]);
    }
    leat_data_layer_destroy(layer);
}
END_TEST

/* Caffe's tops: an image as floats, and its label. */
START_TEST(a_layer_delivers_images_in_batches)
{
    static unsigned char pixels[12 * 2 * 3 * 4];
    static int32_t labels[12];
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {2, 3, 4}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels}};
    leat_data_layer *layers[2];
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (unsigned char)(7 * i);
    for (int i = 0; i < 12; i++)
        labels[i] = 3 * i;
    for (int k = 0; k < 2; k++) {
        leat_pipeline *pipeline;
        leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
        ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, 12), 0);
        if (k)
            pipeline = decorator_chain_make("batch:4", pipeline);
        leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
        transform.scale = _i ? 0.5f : 0;
        options.transform = &transform;
        options.batch_size = k ? 1 : 4;
        ck_assert_int_eq(leat_data_layer_create(&layers[k], pipeline, &options),
                         0);
        leat_pipeline_unref(pipeline);
        int status = leat_data_layer_setup(layers[k], NULL, 0);
        ck_assert_msg(!status, "%s", leat_last_error());
    }
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(
                leat_data_layer_forward(layers[k], NULL, 0, LEAT_HOST), 0);
        for (int k = 0; k < 2; k++)
            compare_blobs(leat_data_layer_top(layers[0], k),
                          leat_data_layer_top(layers[1], k));
    }
    leat_data_layer_destroy(layers[0]);
    leat_data_layer_destroy(layers[1]);
}
END_TEST

/* They would be taken for one image. */
START_TEST(images_in_batches_are_not_cropped_or_mirrored)
{
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    static const float means[] = {3, 4};
    if (_i == 0)
        transform.crop_size = 1;
    if (_i == 1)
        transform.mirror = 1;
    if (_i == 2) {
        transform.mean_value = means;
        transform.mean_values = 2;
    }
    options.transform = &transform;
    options.batch_size = 1;
    static unsigned char pixels[12 * 8];
    const leat_memory_field x = {"x", LEAT_UINT8, 3, {2, 2, 2}, pixels};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, &x, 1, 12), LEAT_OK);
    pipeline = decorator_chain_make("batch:4", pipeline);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(),
                         "the samples of field x are batches, whose images "
                         "are not cropped, mirrored or centered"),
                  "%s", leat_last_error());
    leat_data_layer_destroy(layer);
}
END_TEST

/* Batches that are pulled and dropped leave nothing behind. */
START_TEST(dropped_batches_are_found_again)
{
    leat_sample more[3];
    leat_sample *out[3] = {&more[0], &more[1], &more[2]};
    int64_t memory = 0;
    source.count = 100;
    open_chain("batch:4,ragged=tokens");
    for (int i = 0; i < 3; i++)
        leat_sample_init(out[i]);
    for (int i = 0; i < 300; i++) {
        int got, k = i % 3;
        leat_sample_clear(out[k]);
        ck_assert_int_eq(leat_reader_pull(reader, &out[k], 1, &got), LEAT_OK);
        if (i % 4 == 0)
            leat_sample_swap(out[0], out[1]);
        if (i % 20 == 19)
            leat_reader_seek(reader, (leat_position){0, 0}, NULL);
        if (i == 30)
            memory = reader->ops->memory(reader);
    }
    ck_assert_int_gt(memory, 0);
    ck_assert_int_eq(reader->ops->memory(reader), memory);
    for (int i = 0; i < 3; i++)
        leat_sample_finish(out[i]);
}
END_TEST

/* One in 49 takes 1 MB beside its number. */
static int give_rare_long(void *user, leat_sample *one)
{
    int64_t *given = user;
    int64_t *number =
        leat_sample_take(one, ++*given % 49 == 48 ? 1000000 : sizeof(*number));
    if (!number)
        return LEAT_ENOMEM;
    *number = *given;
    return leat_sample_set(one, 0, LEAT_INT64, 0, NULL, number);
}

/* One or two of a group are long, not each that ever was. */
START_TEST(rare_long_samples_leave_no_buffers)
{
    static const char *const texts[] = {"batch:25", "window:25,20"};
    const leat_field_spec field = {.name = "x", .dtype = LEAT_INT64};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = give_rare_long};
    const leat_open_options options = {.size = sizeof(options),
                                       .max_memory = 10000000};
    leat_pipeline *rare, *grouped;
    int64_t given = 0;
    ck_assert_int_eq(leat_pipeline_callback(&rare, &callbacks, &given),
                     LEAT_OK);
    grouped = decorator_chain_make(texts[_i], rare);
    ck_assert_int_eq(leat_pipeline_open_with(grouped, &options, &reader),
                     LEAT_OK);
    for (int i = 0; i < 1000; i++)
        ck_assert_msg(leat_reader_next(reader, &sample) == LEAT_OK,
                      "%s, %d: %s", texts[_i], i, leat_last_error());
    leat_pipeline_unref(grouped);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    static const char *const texts[] = {"batch:4,pad=0",
                                        "batch:4,ragged=tokens",
                                        "batch:2,ragged=tokens | batch:2"};
    source.count = 60;
    source.is_stream = _i % 2;
    open_chain(texts[_i / 2]);
    int64_t before = 0;
    for (int epoch = 0; epoch < 4; epoch++) {
        while (leat_reader_next(reader, &sample) == LEAT_OK)
            ;
        leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL);
        if (epoch == 1)
            before = leat__alloc_count();
    }
    ck_assert_int_eq(leat__alloc_count(), before);
}
END_TEST

/* Buffers are made for samples that are there, give or take one call. */
START_TEST(a_batch_far_larger_than_the_data_takes_no_memory_for_it)
{
    source.is_stream = _i;
    open_chain("batch:1000000,ragged=tokens");
    int64_t before = leat__alloc_count();
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    expect(LABEL, "10: 0 1 2 3 4 5 6 7 8 9");
    ck_assert_int_lt(leat__alloc_count() - before, 2000);
}
END_TEST

START_TEST(a_batch_beyond_the_last_position_is_refused)
{
    const leat_position last = {0, INT64_MAX / 16 - 1};
    const leat_position beyond[] = {
        {0, INT64_MAX / 16 + 1}, {0, (int64_t)1 << 60}, {0, INT64_MAX - 1}};
    leat_sample *out[] = {&sample};
    int got;
    leat_pipeline *pipeline = NULL;
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline, "range:40 | repeat | batch:16"),
        LEAT_OK);
    open_pipeline(pipeline);
    ck_assert_int_eq(leat_reader_read_at(reader, &last, out, 1, &got), LEAT_OK);
    ck_assert_int_eq(sample.field[0].shape[0], 16);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_reader_read_at(reader, &beyond[i], out, 1, &got),
                         LEAT_EINVAL);
        ck_assert_msg(strstr(leat_last_error(), "is out of range: there are "
                                                "576460752303423487"),
                      "%s", leat_last_error());
        ck_assert_int_eq(leat_reader_seek(reader, beyond[i], NULL),
                         LEAT_EINVAL);
    }
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    source.is_stream = _i;
    source.has_groups = 1;
    leat_pipeline *pipeline =
        rows_source_chain(&source, "batch:3,pad=(cell=2)");
    int64_t n = 0;
    for (int status = LEAT_ENOMEM; status == LEAT_ENOMEM; n++) {
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n);
        status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < 3 && !status; i++)
            status = leat_reader_next(reader, &sample);
        leat__alloc_fail_at(-1);
        leat_reader_close(reader);
        reader = NULL;
    }
    ck_assert_int_gt(n, 10);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_cancelled_reader_gives_no_batch)
{
    leat_sample *const out = &sample;
    const leat_position at = {0, 0};
    int got;
    source.is_stream = _i;
    open_chain("batch:3,pad=0");
    leat_sample_clear(&sample);
    ck_assert_int_eq(leat_reader_pull(reader, &out, 1, &got), LEAT_OK);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_materialize(reader, &out, 1, &got),
                     LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    if (!source.is_stream)
        ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got),
                         LEAT_ECANCELLED);
}
END_TEST

/* One pass takes some milliseconds, one for each name minutes. */
START_TEST(many_names_are_read_in_one_pass)
{
    enum { NAMES = 200000 };
    static const char *const list[] = {"pad", "ragged"};
    static const char *const name[] = {",x=0", ",x"};
    char *text = malloc(4 * NAMES + 64);
    leat_pipeline *pipeline;
    size_t at =
        (size_t)sprintf(text, "random:4,shape=2,name=x | batch:2,%s=(%s",
                        list[_i], name[_i] + 1);
    for (int i = 1; i < NAMES; i++)
        at += (size_t)sprintf(text + at, "%s", name[_i]);
    memcpy(text + at, ")", 2);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    open_pipeline(pipeline);
    free(text);
}
END_TEST

START_TEST(code_makes_what_text_makes)
{
    leat_pipeline *upstream = rows_source_pipeline(&source), *made;
    leat_group_options options = {.size = sizeof(options),
                                  .pad = "tokens=0,cell=3",
                                  .pad_to = "tokens=8",
                                  .drop_last = 1};
    ck_assert_int_eq(leat_pipeline_batch(&made, upstream, 4, &options), 0);
    ck_assert_msg(strstr(leat_pipeline_text(made),
                         "batch:4,drop_last=1,pad=(tokens\\=0,cell\\=3),"
                         "pad_to=(tokens\\=8)") != NULL,
                  "%s", leat_pipeline_text(made));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_batch(&made, upstream, 4, NULL), 0);
    open_pipeline(made);
    ck_assert_int_eq(leat_pipeline_batch(&made, upstream, 0, NULL),
                     LEAT_EINVAL);
    for (options.size = 0; options.size < 2; options.size++) {
        ck_assert_int_eq(leat_pipeline_batch(&made, upstream, 4, &options),
                         LEAT_EINVAL);
        ck_assert_int_eq(leat_group_options_init(&options), LEAT_EINVAL);
    }
    options.size = sizeof(options);
    ck_assert_int_eq(leat_group_options_init(&options), LEAT_OK);
    ck_assert_ptr_null(options.pad);
    leat_pipeline_unref(upstream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch_reader");
    TCase *tcase = tcase_create("batches");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, batches_are_those_of_tf_data, 0,
                        sizeof(tf_cases) / sizeof(tf_cases[0]));
    tcase_add_loop_test(tcase, rows_in_memory_are_not_copied, 0, 2);
    tcase_add_loop_test(tcase, arguments_that_fit_no_field_are_refused, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tcase, a_stream_refuses_them_when_it_is_read);
    tcase_add_loop_test(tcase, samples_that_do_not_fit_make_their_batch_bad, 0,
                        3 * sizeof(misfits) / sizeof(misfits[0]));
    tcase_add_loop_test(tcase, varying_fields_are_padded_to_the_longest, 0, 4);
    tcase_add_test(tcase, each_field_has_its_own_padding_and_shape);
    tcase_add_test(tcase, rows_without_elements_are_all_padding);
    tcase_add_loop_test(tcase, rows_of_ragged_fields_lie_end_to_end, 0, 2);
    tcase_add_loop_test(tcase, what_is_ragged_already_gets_one_level_more, 0,
                        2);
    tcase_add_loop_test(tcase, a_bad_record_makes_its_batch_bad, 0, 36);
    tcase_add_loop_test(
        tcase, a_layer_of_batches_delivers_what_one_of_samples_does, 0, 6);
    tcase_add_test(tcase, a_rank_without_a_group_has_a_batch_without_rows);
    tcase_add_loop_test(tcase, a_layer_delivers_images_in_batches, 0, 2);
    tcase_add_loop_test(tcase, images_in_batches_are_not_cropped_or_mirrored, 0,
                        3);
    tcase_add_test(tcase, dropped_batches_are_found_again);
    tcase_add_test(tcase, a_batch_beyond_the_last_position_is_refused);
    tcase_add_loop_test(tcase, rare_long_samples_leave_no_buffers, 0, 2);
    tcase_add_loop_test(tcase, nothing_is_allocated_in_the_steady_state, 0, 6);
    tcase_add_loop_test(
        tcase, a_batch_far_larger_than_the_data_takes_no_memory_for_it, 0, 2);
    tcase_add_loop_test(tcase, every_failed_allocation_is_an_error, 0, 2);
    tcase_add_loop_test(tcase, a_cancelled_reader_gives_no_batch, 0, 2);
    tcase_add_loop_test(tcase, many_names_are_read_in_one_pass, 0, 2);
    tcase_add_test(tcase, code_makes_what_text_makes);
    return suite_run(suite);
}
