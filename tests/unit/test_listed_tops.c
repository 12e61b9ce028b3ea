/*
 * Lists of tops: images and their choices, samples that are batches, bad
 * records, devices, and what is refused.
 */
#include "support/bad_records.h"
#include "support/late_device.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/device.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 11, SIDE = 8, CROP = 3 };

static uint8_t image[COUNT][2][SIDE][SIDE];
static uint8_t mask[COUNT][1][SIDE][SIDE];
static int32_t label[COUNT];
static leat_pipeline *pipeline;
static leat_data_layer *layer;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    const leat_data_layer_options none = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options plain = LEAT_TRANSFORM_OPTIONS_INIT;
    for (int i = 0; i < COUNT; i++) {
        label[i] = 1000 + i;
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                mask[i][0][y][x] = (uint8_t)(y * SIDE + x);
                image[i][0][y][x] = (uint8_t)(y * SIDE + x);
                image[i][1][y][x] = (uint8_t)(200 + i);
            }
    }
    const leat_memory_field fields[] = {
        {"image", LEAT_UINT8, 3, {2, SIDE, SIDE}, image},
        {"mask", LEAT_UINT8, 3, {1, SIDE, SIDE}, mask},
        {"label", LEAT_INT32, 0, {0}, label},
        {"row", LEAT_UINT8, 1, {SIDE}, image},
    };
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 4, COUNT), 0);
    options = none;
    transform = plain;
    options.batch_size = 4;
    options.random_seed = 7;
    transform.crop_size = CROP;
    transform.mirror = true;
    options.transform = &transform;
    layer = NULL;
}

static void tear_down(void)
{
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}

static void open_layer(const leat_top *tops, int n)
{
    options.top = tops;
    options.ntop = n;
    ck_assert_msg(!leat_data_layer_create(&layer, pipeline, &options), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                  leat_last_error());
}

static void *forward(int top)
{
    if (top == 0)
        ck_assert_msg(!leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), "%s",
                      leat_last_error());
    return leat_blob_mutable_cpu_data(leat_data_layer_top(layer, top));
}

#define TOP(...)                                                               \
    {                                                                          \
        .size = sizeof(leat_top), __VA_ARGS__                                  \
    }

/* The mask has the image's pixels: so it must have its crops and mirrors. */
START_TEST(a_mask_is_cropped_and_mirrored_as_its_image)
{
    const leat_transform_options own = {
        .size = sizeof(own), .crop_size = CROP, .mirror = true};
    transform.scale = 2;
    const leat_top tops[] = {
        TOP(.name = "mask", .is_image = true, .dtype = LEAT_UINT8,
            .transform = &own, .choices_of = "image"),
        TOP(.name = "image", .is_image = true),
        TOP(.name = "other", .field = "mask", .is_image = true,
            .dtype = LEAT_FLOAT16, .transform = &own)};
    options.rng = _i ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    options.phase = LEAT_TRAIN;
    open_layer(tops, 3);
    int differ = 0;
    for (int b = 0; b < 9; b++) {
        const uint8_t *small = forward(0);
        const float *large = forward(1);
        const uint16_t *other = forward(2);
        for (int s = 0; s < 4; s++)
            for (int k = 0; k < CROP * CROP; k++)
                ck_assert_float_eq(large[s * 2 * CROP * CROP + k],
                                   2.f * small[s * CROP * CROP + k]);
        uint16_t first;
        for (int s = 0; s < 4; s++) {
            float value = (float)small[s * CROP * CROP];
            uint32_t bits;
            memcpy(&bits, &value, sizeof(bits));
            first = (uint16_t)(value == 0 ? 0
                                          : ((bits >> 23) - 112) << 10 |
                                                (bits >> 13 & 1023));
            differ += first != other[s * CROP * CROP];
        }
    }
    ck_assert_int_gt(differ, 18);
}
END_TEST

/* The first image of a list has the choices of a layer without one. */
START_TEST(the_first_image_is_that_of_a_layer_without_a_list)
{
    const leat_top tops[] = {
        TOP(.name = "data", .field = "image", .is_image = true),
        TOP(.name = "class", .field = "label", .dtype = LEAT_FLOAT32,
            .cast_lossy = true)};
    static float kept[9][4 * 2 * CROP * CROP];
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), 0);
    for (int b = 0; b < 9; b++)
        memcpy(kept[b], forward(0), sizeof(kept[b]));
    leat_data_layer_destroy(layer);
    open_layer(tops, 2);
    for (int b = 0; b < 9; b++) {
        ck_assert(memcmp(kept[b], forward(0), sizeof(kept[b])) == 0);
        ck_assert_float_eq(*(float *)forward(1), 1000.f + 4 * b % COUNT);
    }
}
END_TEST

#define RAGGED TOP(.name = "row", .form = LEAT_TOP_RAGGED)
static const leat_top longest = TOP(.name = "row", .form = LEAT_TOP_PAD);

/* What a device has of a blob, in memory of host_alloc. */
static void *read_back(leat_device *device, leat_blob *blob, leat_stream stream)
{
    size_t bytes = leat_blob_bytes(blob);
    void *back;
    ck_assert_int_eq(device->ops->host_alloc(device, bytes, &back), 0);
    ck_assert_int_eq(device->ops->copy(device, back, leat_blob_gpu_data(blob),
                                       bytes, LEAT_COPY_TO_HOST, stream),
                     0);
    ck_assert_int_eq(device->ops->stream_synchronize(device, stream), 0);
    return back;
}

/* On a device the crops are made of one image; the rest goes along. */
START_TEST(a_device_gets_all_tops)
{
    late_device_register();
    leat_device *device;
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    const leat_top tops[] = {
        TOP(.name = "label", .dtype = LEAT_INT64), RAGGED,
        TOP(.name = "image", .is_image = true),
        TOP(.name = "mask", .is_image = true, .choices_of = "image"),
        TOP(.name = "pad", .field = "row", .form = LEAT_TOP_PAD)};
    char *kept[7][9];
    for (int on = 0; on < 2; on++) {
        leat_stream stream = LEAT_HOST;
        if (on)
            ck_assert_int_eq(device->ops->stream_create(device, &stream), 0);
        options.device = on ? "late:0" : "cpu";
        options.transform_on = LEAT_TRANSFORM_ON_CPU;
        open_layer(tops, 5);
        ck_assert_int_eq(leat_data_layer_top_count(layer), 7);
        for (int b = 0; b < 9; b++) {
            ck_assert_msg(!leat_data_layer_forward(layer, NULL, 0, stream),
                          "%s", leat_last_error());
            for (int i = 0; i < 7; i++) {
                leat_blob *blob = leat_data_layer_top(layer, i);
                size_t bytes = leat_blob_bytes(blob);
                if (!on) {
                    kept[i][b] = malloc(bytes);
                    memcpy(kept[i][b], leat_blob_cpu_data(blob), bytes);
                    continue;
                }
                void *back = read_back(device, blob, stream);
                ck_assert(memcmp(back, kept[i][b], bytes) == 0);
                device->ops->host_free(device, back, bytes);
                free(kept[i][b]);
            }
        }
        leat_data_layer_destroy(layer);
        layer = NULL;
        if (on)
            device->ops->stream_destroy(device, stream);
    }
}
END_TEST

/* Of three samples in an epoch the second of two ranks has the second, then
 * none: the offsets lie where its row was. */
START_TEST(a_device_gets_the_offsets_of_a_batch_without_samples)
{
    late_device_register();
    leat_device *device;
    leat_stream stream;
    const leat_top ragged = RAGGED;
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    ck_assert_int_eq(device->ops->stream_create(device, &stream), 0);
    leat_pipeline *all = pipeline;
    ck_assert_int_eq(leat_pipeline_take(&pipeline, all, 3), LEAT_OK);
    leat_pipeline_unref(all);
    options.device = "late:0";
    options.top_mode = _i ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options.batch_size = 1;
    options.prefetch = 1;
    options.world_size = 2;
    options.rank = 1;
    options.phase = LEAT_TRAIN;
    options.epoch_end = LEAT_EPOCH_END_PARTIAL;
    options.transform = NULL;
    open_layer(&ragged, 1);
    for (int b = 0; b < 8; b++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, stream), 0);
        leat_blob *offsets = leat_data_layer_top(layer, 1);
        size_t bytes = leat_blob_bytes(offsets);
        int64_t n = b % 4 != 1;
        ck_assert_int_eq(leat_data_layer_batch(layer)->n, n);
        ck_assert_int_eq(leat_blob_dim(leat_data_layer_top(layer, 0), 0),
                         n * SIDE);
        ck_assert_uint_eq(bytes, (size_t)(n + 1) * sizeof(int64_t));
        int64_t *back = read_back(device, offsets, stream);
        ck_assert_int_eq(back[0], 0);
        ck_assert_int_eq(back[n], n * SIDE);
        device->ops->host_free(device, back, bytes);
    }
    leat_data_layer_destroy(layer);
    layer = NULL;
    device->ops->stream_destroy(device, stream);
}
END_TEST

START_TEST(tops_of_the_callers_keep_their_memory_in_copy_mode)
{
    const leat_top tops[] = {TOP(.name = "label"), RAGGED};
    options.top_mode = LEAT_TOP_COPY;
    open_layer(tops, 2);
    const void *address = NULL;
    for (int b = 0; b < 9; b++) {
        const int32_t *got = forward(0);
        const int64_t *offsets = forward(2);
        ck_assert(b == 0 || got == address);
        address = got;
        for (int s = 0; s < 4; s++) {
            ck_assert_int_eq(got[s], 1000 + (b * 4 + s) % COUNT);
            ck_assert_int_eq(offsets[s + 1], (s + 1) * SIDE);
        }
    }
}
END_TEST

/* Bad records: the third, and the first of all with `_i` of 1. */
static int bad_at;

static int next_row(void *pass, leat_sample *sample)
{
    static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    int64_t i = sample->from.record, rows = i % 5;
    (void)pass;
    if (i == 10)
        return LEAT_END;
    if (i == bad_at || i == bad_at + 3)
        return leat_error(LEAT_EDATA, "record %lld is bad", (long long)i);
    leat_sample_set(sample, 0, LEAT_FLOAT32, 1, &rows, values + i % 5);
    leat_sample_set(sample, 1, LEAT_FLOAT32, 0, NULL, values + i);
    sample->stable = 1;
    return LEAT_OK;
}

static int reset(void *pass)
{
    (void)pass;
    return LEAT_OK;
}

static void open_rows(leat_on_error on_error)
{
    static const leat_field_spec fields[] = {
        {.name = "row", .dtype = LEAT_FLOAT32, .ndim = 1, .shape = {-1}},
        {.name = "one", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 2,
                                      .next = next_row,
                                      .reset = reset};
    static const leat_top tops[] = {RAGGED, TOP(.name = "one"),
                                    TOP(.name = "pad", .field = "row",
                                        .form = LEAT_TOP_PAD, .pad_value = -1),
                                    TOP(.name = "five", .field = "row",
                                        .form = LEAT_TOP_PAD, .ndim = 1,
                                        .shape = {5}, .pad_value = -2)};
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL), 0);
    options.on_error = on_error;
    options.batch_size = 5;
    open_layer(tops, 4);
}

/* What stands at position `p`: a record, or -1 for zeros. */
static int expected(int p, leat_on_error on_error)
{
    int i = p % 10;
    if (i != bad_at && i != bad_at + 3)
        return i;
    if (on_error == LEAT_ON_ERROR_ZERO || (p == 0 && bad_at == 0))
        return -1;
    return i == 0 ? 9 : i - 1;
}

static void check_rows(int b, leat_on_error on_error)
{
    const float *row = forward(0), *one = forward(2), *pad = forward(3),
                *five = forward(5);
    const int64_t *offsets = forward(1), *lengths = forward(4);
    int64_t at = 0, width = leat_blob_dim(leat_data_layer_top(layer, 3), 1);
    for (int s = 0; s < 5; s++) {
        int i = expected(b * 5 + s, on_error);
        int64_t rows = i < 0 ? 0 : i % 5;
        ck_assert_int_eq(offsets[s], at);
        ck_assert_int_eq(lengths[s], rows);
        ck_assert_float_eq(one[s], i < 0 ? 0 : (float)i + 1);
        for (int64_t k = 0; k < rows; k++) {
            ck_assert_float_eq(row[at + k], (float)(i % 5 + k + 1));
            ck_assert_float_eq(pad[s * width + k], (float)(i % 5 + k + 1));
            ck_assert_float_eq(five[s * 5 + k], (float)(i % 5 + k + 1));
        }
        for (int64_t k = rows; k < width; k++)
            ck_assert_float_eq(pad[s * width + k], -1);
        for (int64_t k = rows; k < 5; k++)
            ck_assert_float_eq(five[s * 5 + k], -2);
        at += rows;
    }
    ck_assert_int_eq(offsets[5], at);
}

START_TEST(bad_records_are_replaced_in_ragged_and_padded_tops)
{
    for (leat_on_error on_error = LEAT_ON_ERROR_ZERO;
         on_error <= LEAT_ON_ERROR_REPLACE; on_error++) {
        bad_at = _i;
        options.workers = 1 + _i % 3;
        open_rows(on_error);
        for (int b = 0; b < 12; b++)
            check_rows(b, on_error);
        leat_data_layer_destroy(layer);
        layer = NULL;
    }
}
END_TEST

/* Replacements that are other ranks' records are read again one by one, and all
   of them must last until the batch is written. */
START_TEST(records_read_back_stand_in_ragged_tops)
{
    static const bad_records planted = {
        .count = 12,
        .kind = {[5] = BAD_RECORDS_UNREADABLE, [7] = BAD_RECORDS_SHORT}};
    static const leat_top tops[] = {
        TOP(.name = "data", .form = LEAT_TOP_RAGGED),
        TOP(.name = "label", .dtype = LEAT_INT64)};
    enum { PIXELS = 2 * 5 * 6 };
    leat_pipeline_unref(pipeline);
    pipeline = bad_records_pipeline(&planted);
    options.on_error = LEAT_ON_ERROR_REPLACE;
    options.world_size = 2;
    options.rank = 1;
    options.phase = LEAT_TRAIN;
    options.batch_size = 6;
    open_layer(tops, 2);
    for (int b = 0; b < 8; b++) {
        const uint8_t *data = forward(0);
        const int64_t *offsets = forward(1), *labels = forward(2);
        for (int s = 0; s < 6; s++) {
            int i = 2 * s + 1;
            int good = i == 5 ? 4 : i == 7 ? 6 : i;
            ck_assert_int_eq(offsets[s + 1], (s + 1) * 2);
            ck_assert_int_eq(labels[s], 1000 + good);
            for (int k = 0; k < PIXELS; k++)
                ck_assert_int_eq(data[s * PIXELS + k],
                                 (unsigned char)(37 * good + 3 * k + 1));
        }
    }
}
END_TEST

/* Batches of their reader's, the last one shorter. */
static int next_batch(void *pass, leat_sample *sample)
{
    static const int16_t values[30];
    int64_t i = sample->from.record;
    const int64_t shape[] = {i == 2 ? 3 : 5, 2};
    (void)pass;
    if (i == 3)
        return LEAT_END;
    leat_sample_set(sample, 0, LEAT_INT16, 2, shape, values);
    sample->stable = 1;
    return LEAT_OK;
}

START_TEST(samples_that_are_batches_get_no_axis_more)
{
    static const leat_field_spec field = {.name = "batch",
                                          .dtype = LEAT_INT16,
                                          .ndim = 2,
                                          .shape = {-1, 2},
                                          .is_batch = true};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = next_batch,
                                      .reset = reset};
    const leat_top top = TOP(.name = "batch");
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL), 0);
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(),
                         "the samples of field batch are batches: expected a "
                         "batch_size of 1, found 4") != NULL,
                  "%s", leat_last_error());
    leat_data_layer_destroy(layer);
    options.batch_size = 1;
    open_layer(&top, 1);
    for (int b = 0; b < 7; b++) {
        (void)forward(0);
        leat_blob *blob = leat_data_layer_top(layer, 0);
        ck_assert_int_eq(leat_blob_ndim(blob), 2);
        ck_assert_int_eq(leat_blob_dim(blob, 0), b % 3 == 2 ? 3 : 5);
        ck_assert_int_eq(leat_blob_dim(blob, 1), 2);
    }
}
END_TEST

/* What create or setup refuses, with a part of its line. */
static const struct refusal {
    leat_top top[3];
    int n;
    const char *line;
} refused[] = {
    {{TOP(.name = NULL)}, 1, "top 0 has no name"},
    {{TOP(.name = "")}, 1, "its name has 0 letters"},
    {{TOP(.name = "x")},
     1,
     "top x: there is no field x; the reader's are image, mask, label, row"},
    {{TOP(.name = "label"), TOP(.name = "label")},
     2,
     "two tops are called label"},
    {{TOP(.name = "row", .form = LEAT_TOP_PAD),
      TOP(.name = "row.lengths", .field = "label")},
     2,
     "top row.lengths is called like one that top row brings along"},
    {{TOP(.name = "row", .form = LEAT_TOP_RAGGED),
      TOP(.name = "row.offsets.1", .field = "label")},
     2,
     "top row.offsets.1 is called like one that top row brings along"},
    {{TOP(.name = "label", .dtype = (leat_dtype)40)},
     1,
     "top label: unknown dtype 40"},
    {{TOP(.name = "label", .form = (leat_top_form)3)},
     1,
     "top label: form is 3: expected DENSE, PAD or RAGGED"},
    {{TOP(.name = "label", .dtype = LEAT_FLOAT32)},
     1,
     "top label: its field is int32, of which float32 does not hold every "
     "value; cast_lossy would cast all the same"},
    {{TOP(.name = "row", .dtype = LEAT_INT8)}, 1, "of which int8 does not"},
    {{TOP(.name = "row", .form = LEAT_TOP_PAD, .pad_value = 256)},
     1,
     "top row: pad_value is 256, which uint8 does not hold"},
    {{TOP(.name = "row", .form = LEAT_TOP_PAD, .ndim = 1, .shape = {SIDE - 1})},
     1,
     "top row: dimension 0 of its shape is 7, but field row has 8 there"},
    {{TOP(.name = "row", .form = LEAT_TOP_PAD, .ndim = 2, .shape = {9, 9})},
     1,
     "top row: its shape has 2 dimensions, field row 1"},
    {{TOP(.name = "row", .form = LEAT_TOP_PAD, .ndim = 2,
          .shape = {INT64_MAX, 4})},
     1,
     "no more elements than memory can have"},
    {{TOP(.name = "row", .form = LEAT_TOP_PAD, .ndim = 8)},
     1,
     "top row: ndim is 8: expected 0 to 7"},
    {{TOP(.name = "row", .ndim = 1)}, 1, "top row: shape is for the form PAD"},
    {{TOP(.name = "row", .pad_value = 1)},
     1,
     "top row: pad_value is for the form PAD"},
    {{TOP(.name = "label", .form = LEAT_TOP_RAGGED)},
     1,
     "top label: its field has 0 dimensions"},
    {{TOP(.name = "label", .form = LEAT_TOP_PAD)},
     1,
     "top label: its shape has 0 dimensions"},
    {{TOP(.name = "image", .is_image = true, .form = LEAT_TOP_PAD)},
     1,
     "top image: an image's form is DENSE"},
    {{TOP(.name = "image", .is_image = true, .dtype = LEAT_INT32)},
     1,
     "top image: a top of type int32 is not supported"},
    {{TOP(.name = "label", .is_image = true)},
     1,
     "top label: field label is of int32 and no image: expected uint8"},
    {{TOP(.name = "image", .choices_of = "mask")},
     1,
     "top image: choices_of is for images"},
    {{TOP(.name = "image", .is_image = true, .choices_of = "image")},
     1,
     "top image: choices_of names image: expected another image"},
    {{TOP(.name = "image", .is_image = true, .choices_of = "mask"),
      TOP(.name = "mask", .is_image = true, .choices_of = "image")},
     2,
     "expected another image with choices of its own"},
};

START_TEST(lists_that_fit_nothing_are_refused_by_name)
{
    const struct refusal *what = &refused[_i];
    options.top = what->top;
    options.ntop = what->n;
    int status = leat_data_layer_create(&layer, pipeline, &options);
    if (!status)
        status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), what->line) != NULL, "%s",
                  leat_last_error());
}
END_TEST

static void assert_refused(const char *line)
{
    leat_data_layer_destroy(layer);
    layer = NULL;
    int status = leat_data_layer_create(&layer, pipeline, &options);
    if (!status)
        status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), line) != NULL, "%s",
                  leat_last_error());
}

START_TEST(a_mask_of_another_geometry_is_refused)
{
    leat_transform_options own = {
        .size = sizeof(own), .crop_size = CROP - 1, .mirror = true};
    static uint8_t small[COUNT][4][4];
    const leat_memory_field fields[] = {
        {"image", LEAT_UINT8, 3, {2, SIDE, SIDE}, image},
        {"mask", LEAT_UINT8, 3, {1, 4, 4}, small},
    };
    const leat_top tops[] = {TOP(.name = "image", .is_image = true),
                             TOP(.name = "mask", .is_image = true,
                                 .transform = &own, .choices_of = "image")};
    options.top = tops;
    options.ntop = 2;
    assert_refused("top mask takes the choices of image: expected the same "
                   "crop_size and mirror, found 2 and 3, 1 and 1");
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, COUNT), 0);
    own.crop_size = CROP;
    leat_data_layer_destroy(layer);
    layer = NULL;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_ne(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_msg(strstr(leat_last_error(),
                         "top mask takes the choices of image, but its image "
                         "is 4 x 4, and the other one 8 x 8") != NULL,
                  "%s", leat_last_error());
}
END_TEST

START_TEST(a_list_itself_is_checked)
{
    leat_top tops[LEAT_MAX_FIELDS];
    char names[LEAT_MAX_FIELDS][8];
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        snprintf(names[i], sizeof(names[i]), "t%d", i);
        tops[i] = (leat_top){.size = sizeof(leat_top),
                             .name = names[i],
                             .field = "row",
                             .form = i ? LEAT_TOP_DENSE : LEAT_TOP_PAD};
    }
    options.top = tops;
    options.ntop = LEAT_MAX_FIELDS;
    assert_refused("33 tops, lengths and offsets included: expected at most "
                   "32");
    options.ntop = 33;
    assert_refused("ntop is 33: expected 0 to 32 tops");
    options.ntop = 0;
    assert_refused("top has tops and ntop is 0");
    options.ntop = 3;
    tops[1].size = 8;
    assert_refused("top 1 has size 8");
    tops[1].size = sizeof(leat_top);
    static const char *const given[] = {"a", NULL};
    options.tops = given;
    assert_refused("tops names the tops, and top lists them");
    options.tops = NULL;
    options.top = NULL;
    assert_refused("ntop is 3 without tops");
}
END_TEST

/* A batch has one axis more, unless its rows are end to end. */
START_TEST(a_field_of_eight_dimensions_is_one_too_many)
{
    static const uint8_t byte[COUNT];
    const leat_memory_field field = {
        "row", LEAT_UINT8, 8, {1, 1, 1, 1, 1, 1, 1, 1}, byte};
    static const leat_top tops[] = {TOP(.name = "row"), RAGGED};
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, &field, 1, COUNT), 0);
    options.transform = NULL;
    assert_refused("top 0: a field has 8 dimensions, expected at most 7");
    options.top = &tops[0];
    options.ntop = 1;
    assert_refused("top row: its field has 8 dimensions");
    leat_data_layer_destroy(layer);
    open_layer(&tops[1], 1);
    (void)forward(0);
    ck_assert_int_eq(leat_blob_ndim(leat_data_layer_top(layer, 0)), 8);
}
END_TEST

/* A caller's tops are as many as the list makes. */
START_TEST(setup_takes_as_many_tops_as_the_list_makes)
{
    options.top = &longest;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 1), "row.lengths");
    ck_assert_ptr_null(leat_data_layer_top_name(layer, 2));
    ck_assert_int_eq(leat_data_layer_top_count(layer), 2);
    leat_blob *blob;
    ck_assert_int_eq(leat_blob_create(&blob, NULL), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, &blob, 1), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "1 tops, but the list makes 2") !=
                      NULL,
                  "%s", leat_last_error());
    leat_blob_destroy(blob);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listed_tops");
    TCase *tcase = tcase_create("listed_tops");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_mask_is_cropped_and_mirrored_as_its_image, 0,
                        2);
    tcase_add_test(tcase, the_first_image_is_that_of_a_layer_without_a_list);
    tcase_add_test(tcase, a_device_gets_all_tops);
    tcase_add_loop_test(
        tcase, a_device_gets_the_offsets_of_a_batch_without_samples, 0, 2);
    tcase_add_test(tcase, tops_of_the_callers_keep_their_memory_in_copy_mode);
    tcase_add_loop_test(
        tcase, bad_records_are_replaced_in_ragged_and_padded_tops, 0, 5);
    tcase_add_test(tcase, records_read_back_stand_in_ragged_tops);
    tcase_add_test(tcase, samples_that_are_batches_get_no_axis_more);
    tcase_add_loop_test(tcase, lists_that_fit_nothing_are_refused_by_name, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tcase, a_mask_of_another_geometry_is_refused);
    tcase_add_test(tcase, a_list_itself_is_checked);
    tcase_add_test(tcase, a_field_of_eight_dimensions_is_one_too_many);
    tcase_add_test(tcase, setup_takes_as_many_tops_as_the_list_makes);
    return suite_run(suite);
}
