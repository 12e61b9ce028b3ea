/*
 * Tops by name: random fields and random lists of tops, against a slow
 * reference that goes over the samples one by one; and what is refused.
 */
#include "data/cast.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 6, SAMPLES = 23, BYTES = 4096, TRIALS = 60 };

/* A field of random shape, and its values of every sample. */
struct data {
    leat_field_spec spec;
    char name[8], divides[8];
    int64_t shape[SAMPLES][LEAT_MAX_DIMS];
    unsigned char value[SAMPLES][BYTES]; /* of its type */
};

static struct data data[FIELDS];
static leat_field_spec specs[FIELDS];
static int fields;
static int lie_at, lie_field; /* a sample that is not as promised; -1: none */

static const leat_dtype types[] = {LEAT_UINT8,   LEAT_UINT16,  LEAT_UINT32,
                                   LEAT_INT8,    LEAT_INT16,   LEAT_INT32,
                                   LEAT_INT64,   LEAT_FLOAT16, LEAT_BFLOAT16,
                                   LEAT_FLOAT32, LEAT_FLOAT64};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static int below(int n)
{
    return rand() % n;
}

static int64_t count(const struct data *from, int i)
{
    int64_t n = 1;
    for (int k = 0; k < from->spec.ndim; k++)
        n *= from->shape[i][k];
    return n;
}

/* Small whole numbers, which every type holds. */
static void fill(struct data *field, int i)
{
    for (int64_t k = 0; k < count(field, i); k++) {
        int64_t number = below(100);
        leat__cast(field->value[i] +
                       (size_t)k * leat_dtype_size(field->spec.dtype),
                   field->spec.dtype, &number, LEAT_INT64, 1);
    }
}

static struct data *add(leat_dtype dtype, int ndim)
{
    struct data *field = &data[fields];
    memset(field, 0, sizeof(*field));
    snprintf(field->name, sizeof(field->name), "f%d", fields++);
    field->spec =
        (leat_field_spec){.name = field->name, .dtype = dtype, .ndim = ndim};
    return field;
}

/* Dimensions up to 4, some of which vary. */
static struct data *add_random(void)
{
    struct data *field = add(types[below(TYPES)], below(4));
    for (int k = 0; k < field->spec.ndim; k++) {
        bool varies = below(2);
        int64_t dim = below(5);
        for (int i = 0; i < SAMPLES; i++)
            field->shape[i][k] = varies ? below(5) : dim;
        field->spec.shape[k] = varies ? -1 : dim;
    }
    for (int i = 0; i < SAMPLES; i++)
        fill(field, i);
    return field;
}

/* Offsets that divide the rows, or the groups, of field `of`. */
static void add_offsets(const struct data *of)
{
    struct data *field = add(LEAT_INT64, 1);
    bool divides_offsets = of->spec.offsets_of != NULL;
    field->spec.shape[0] = -1;
    snprintf(field->divides, sizeof(field->divides), "%s", of->name);
    field->spec.offsets_of = field->divides;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t rows = of->shape[i][0] - divides_offsets, at = 0;
        int64_t *out = (int64_t *)(void *)field->value[i];
        int n = 0;
        out[n++] = 0;
        while (at < rows || (n < 4 && below(2))) {
            at += below((int)(rows - at) + 1);
            at = n > 8 ? rows : at;
            out[n++] = at;
        }
        field->shape[i][0] = n;
    }
}

static int next_sample(void *pass, leat_sample *sample)
{
    int i = (int)sample->from.record;
    (void)pass;
    if (i == SAMPLES)
        return LEAT_END;
    for (int k = 0; k < fields; k++) {
        const struct data *field = &data[k];
        leat_sample_set(sample, k, field->spec.dtype, field->spec.ndim,
                        field->shape[i], field->value[i]);
        if (i == lie_at && k == lie_field)
            sample->field[k].dtype = LEAT_BYTES;
        if (i == lie_at && k == lie_field && k == 0)
            sample->field[k].shape[0] = INT64_MAX;
    }
    sample->stable = 1;
    return LEAT_OK;
}

static int reset(void *pass)
{
    (void)pass;
    return LEAT_OK;
}

static leat_pipeline *open_data(void)
{
    leat_pipeline *pipeline;
    for (int i = 0; i < fields; i++) {
        specs[i] = data[i].spec;
    }
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = specs,
                                      .nfields = fields,
                                      .next = next_sample,
                                      .reset = reset};
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL),
                     LEAT_OK);
    return pipeline;
}

static leat_data_layer *open_layer(leat_pipeline *pipeline,
                                   const leat_top *tops, int n, int batch,
                                   int workers)
{
    leat_data_layer *layer;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.top = tops;
    options.ntop = n;
    options.batch_size = batch;
    options.workers = workers;
    options.prefetch = 3;
    options.top_mode = workers == 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    ck_assert_msg(!leat_data_layer_create(&layer, pipeline, &options), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                  leat_last_error());
    return layer;
}

/* The number at these places of a sample, as the top's type has it. */
static void element(const struct data *field, int i, int64_t at, leat_dtype to,
                    void *out)
{
    leat__cast(out, to,
               field->value[i] +
                   (size_t)at * leat_dtype_size(field->spec.dtype),
               field->spec.dtype, 1);
}

static void assert_shape(leat_blob *blob, leat_dtype dtype, int ndim,
                         const int64_t shape[])
{
    ck_assert_int_eq(leat_blob_dtype(blob), dtype);
    ck_assert_int_eq(leat_blob_ndim(blob), ndim);
    for (int k = 0; k < ndim; k++)
        ck_assert_int_eq(leat_blob_dim(blob, k), shape[k]);
}

/* One top of the batch of samples `sample`, without its lengths or offsets. */
static void check_dense(leat_blob *blob, const struct data *field,
                        leat_dtype type, const int sample[], int n)
{
    int64_t shape[LEAT_MAX_DIMS] = {n};
    size_t each = leat_dtype_size(type);
    const char *got = leat_blob_cpu_data(blob);
    for (int k = 0; k < field->spec.ndim; k++)
        shape[k + 1] = field->shape[sample[0]][k];
    assert_shape(blob, type, field->spec.ndim + 1, shape);
    for (int s = 0; s < n; s++)
        for (int64_t k = 0; k < count(field, sample[s]); k++, got += each) {
            char want[8];
            element(field, sample[s], k, type, want);
            ck_assert(memcmp(got, want, each) == 0);
        }
}

static void check_ragged(leat_data_layer *layer, int top,
                         const struct data *field, leat_dtype type,
                         const int sample[], int n)
{
    leat_blob *values = leat_data_layer_top(layer, top);
    const int64_t *offsets =
        leat_blob_cpu_data(leat_data_layer_top(layer, top + 1));
    int64_t shape[LEAT_MAX_DIMS] = {0}, rows = 0;
    size_t each = leat_dtype_size(type);
    const char *got = leat_blob_cpu_data(values);
    ck_assert_int_eq(leat_blob_dim(leat_data_layer_top(layer, top + 1), 0),
                     n + 1);
    for (int s = 0; s < n; s++) {
        ck_assert_int_eq(offsets[s], rows);
        rows += field->shape[sample[s]][0];
        for (int64_t k = 0; k < count(field, sample[s]); k++, got += each) {
            char want[8];
            element(field, sample[s], k, type, want);
            ck_assert(memcmp(got, want, each) == 0);
        }
    }
    ck_assert_int_eq(offsets[n], rows);
    shape[0] = rows;
    for (int k = 1; k < field->spec.ndim; k++)
        shape[k] = field->shape[sample[0]][k];
    assert_shape(values, type, field->spec.ndim, shape);
}

/* The element at an index of the padded array, or the padding. */
static void padded(const struct data *field, int i, const int64_t dims[],
                   int64_t at, leat_dtype type, double value, void *out)
{
    int64_t place = 0, stride = 1;
    bool is_inside = true;
    for (int k = field->spec.ndim - 1; k >= 0; k--) {
        int64_t index = at % dims[k];
        at /= dims[k];
        is_inside &= index < field->shape[i][k];
        place += index * stride;
        stride *= field->shape[i][k];
    }
    if (is_inside)
        element(field, i, place, type, out);
    else
        leat__cast(out, type, &value, LEAT_FLOAT64, 1);
}

static void check_padded(leat_data_layer *layer, int top,
                         const struct data *field, const leat_top *asked,
                         leat_dtype type, const int sample[], int n)
{
    leat_blob *blob = leat_data_layer_top(layer, top);
    leat_blob *lengths = leat_data_layer_top(layer, top + 1);
    int64_t shape[LEAT_MAX_DIMS] = {n}, all = 1;
    int ndim = field->spec.ndim, nlengths = 0, axis[LEAT_MAX_DIMS];
    for (int k = 0; k < ndim; k++) {
        shape[k + 1] = asked->ndim ? asked->shape[k] : 0;
        for (int s = 0; s < n && !shape[k + 1]; s++)
            for (int r = 0; r < n; r++)
                if (field->shape[sample[r]][k] > shape[k + 1])
                    shape[k + 1] = field->shape[sample[r]][k];
        all *= shape[k + 1];
        if (field->spec.shape[k] < 0)
            axis[nlengths++] = k;
    }
    for (int k = 0; k < ndim && !nlengths; k++)
        axis[k] = k;
    nlengths = nlengths ? nlengths : ndim;
    assert_shape(blob, type, ndim + 1, shape);
    const int64_t lengths_shape[] = {n, nlengths};
    assert_shape(lengths, LEAT_INT64, nlengths == 1 ? 1 : 2, lengths_shape);
    const int64_t *length = leat_blob_cpu_data(lengths);
    const char *got = leat_blob_cpu_data(blob);
    size_t each = leat_dtype_size(type);
    for (int s = 0; s < n; s++) {
        for (int k = 0; k < nlengths; k++)
            ck_assert_int_eq(*length++, field->shape[sample[s]][axis[k]]);
        for (int64_t k = 0; k < all; k++, got += each) {
            char want[8];
            padded(field, sample[s], shape + 1, k, type, asked->pad_value,
                   want);
            ck_assert(memcmp(got, want, each) == 0);
        }
    }
}

/* Whether only the first dimension, or none, varies. */
static bool has_fixed_rows(const struct data *field)
{
    for (int k = 1; k < field->spec.ndim; k++)
        if (field->spec.shape[k] < 0)
            return false;
    return field->spec.ndim > 0;
}

static bool is_fixed(const struct data *field)
{
    return (has_fixed_rows(field) && field->spec.shape[0] >= 0) ||
           field->spec.ndim == 0;
}

/* A list of random tops of random fields; one field for several, too. */
static int make_tops(leat_top tops[], struct data *of[], char names[][16])
{
    int n = 1 + below(8);
    for (int i = 0; i < n; i++) {
        struct data *field = of[i] = &data[below(fields)];
        snprintf(names[i], 16, "top%d", i);
        tops[i] = (leat_top){.size = sizeof(tops[i]),
                             .name = names[i],
                             .field = field->name,
                             .dtype = below(3) ? types[below(TYPES)] : 0,
                             .cast_lossy = true};
        if (field->spec.ndim > 0 && (!is_fixed(field) || below(2))) {
            tops[i].form = LEAT_TOP_PAD;
            tops[i].pad_value = below(100);
            if (below(2)) {
                tops[i].ndim = field->spec.ndim;
                for (int k = 0; k < field->spec.ndim; k++)
                    tops[i].shape[k] = below(3) ? 9 : 0;
            }
        }
        if (has_fixed_rows(field) && below(2)) {
            tops[i] = (leat_top){.size = sizeof(tops[i]),
                                 .name = names[i],
                                 .field = field->name,
                                 .dtype = tops[i].dtype,
                                 .form = LEAT_TOP_RAGGED,
                                 .cast_lossy = true};
        }
    }
    return n;
}

static void check_batch(leat_data_layer *layer, const leat_top tops[],
                        struct data *const of[], int n, const int sample[],
                        int batch)
{
    for (int i = 0, at = 0; i < n; i++) {
        leat_dtype type = tops[i].dtype ? tops[i].dtype : of[i]->spec.dtype;
        ck_assert_str_eq(leat_data_layer_top_name(layer, at), tops[i].name);
        if (tops[i].form == LEAT_TOP_DENSE)
            check_dense(leat_data_layer_top(layer, at), of[i], type, sample,
                        batch);
        else if (tops[i].form == LEAT_TOP_RAGGED)
            check_ragged(layer, at, of[i], type, sample, batch);
        else
            check_padded(layer, at, of[i], &tops[i], type, sample, batch);
        at += tops[i].form == LEAT_TOP_DENSE ? 1 : 2;
    }
}

START_TEST(random_tops_are_those_of_a_slow_reference)
{
    leat_top tops[8];
    struct data *of[8];
    char names[8][16];
    srand((unsigned)_i);
    fields = 0;
    lie_at = -1;
    for (int i = 1 + below(FIELDS); i > 0; i--)
        add_random();
    int n = make_tops(tops, of, names), batch = 1 + below(9);
    leat_pipeline *pipeline = open_data();
    leat_data_layer *layer = open_layer(pipeline, tops, n, batch, 1 + below(3));
    for (int b = 0, at = 0; b < 10; b++) {
        int sample[16];
        for (int s = 0; s < batch; s++, at++)
            sample[s] = at % SAMPLES;
        ck_assert_msg(!leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), "%s",
                      leat_last_error());
        check_batch(layer, tops, of, n, sample, batch);
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* x, its groups, and groups of those: three tops of offsets. */
START_TEST(offsets_of_offsets_are_levels)
{
    srand((unsigned)_i);
    fields = 0;
    lie_at = -1;
    struct data *values = add(LEAT_INT16, 1);
    values->spec.shape[0] = -1;
    for (int i = 0; i < SAMPLES; i++) {
        values->shape[i][0] = below(7);
        fill(values, i);
    }
    add_offsets(&data[0]);
    add_offsets(&data[1]);
    const leat_top top = {
        .size = sizeof(top), .name = "f0", .form = LEAT_TOP_RAGGED};
    leat_pipeline *pipeline = open_data();
    leat_data_layer *layer = open_layer(pipeline, &top, 1, 5, 2);
    ck_assert_int_eq(leat_data_layer_top_count(layer), 4);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 1), "f0.offsets");
    ck_assert_str_eq(leat_data_layer_top_name(layer, 3), "f0.offsets.2");
    for (int b = 0; b < 7; b++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
        const int16_t *x = leat_blob_cpu_data(leat_data_layer_top(layer, 0));
        const int64_t *level[3];
        for (int k = 0; k < 3; k++)
            level[k] = leat_blob_cpu_data(leat_data_layer_top(layer, k + 1));
        for (int s = 0; s < 5; s++) {
            int i = (b * 5 + s) % SAMPLES;
            const int64_t *inner = (const int64_t *)(void *)data[1].value[i];
            const int64_t *outer = (const int64_t *)(void *)data[2].value[i];
            int64_t groups = level[0][s + 1] - level[0][s];
            ck_assert_int_eq(groups, data[2].shape[i][0] - 1);
            int64_t first = level[1][level[0][s]];
            for (int64_t g = 0; g <= groups; g++)
                ck_assert_int_eq(level[1][level[0][s] + g], first + outer[g]);
            int64_t begin = level[2][first];
            for (int64_t g = 0; g < data[1].shape[i][0]; g++)
                ck_assert_int_eq(level[2][first + g], begin + inner[g]);
            ck_assert(memcmp(x + begin, data[0].value[i],
                             (size_t)data[0].shape[i][0] * 2) == 0);
        }
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_sample_that_is_not_as_promised_is_a_bad_record)
{
    fields = 0;
    struct data *wide = add(LEAT_FLOAT32, 2);
    wide->spec.shape[0] = -1;
    wide->spec.shape[1] = 3;
    for (int i = 0; i < SAMPLES; i++) {
        wide->shape[i][0] = i % 2;
        wide->shape[i][1] = i == 7 ? 4 : 3;
    }
    add(LEAT_INT32, 0);
    lie_at = 5;
    lie_field = 1;
    const leat_top top = {
        .size = sizeof(top), .name = "f0", .form = LEAT_TOP_RAGGED};
    leat_pipeline *pipeline = open_data();
    leat_data_layer *layer = open_layer(pipeline, &top, 1, 4, 2);
    static const char *const lines[] = {
        NULL, "field f1: expected int32 scalar, found bytes scalar", NULL};
    for (int b = 0; b < 3; b++) {
        int status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
        ck_assert_int_eq(status, lines[b] ? LEAT_EDATA : LEAT_OK);
        if (lines[b])
            ck_assert_msg(strstr(leat_last_error(), lines[b]) != NULL, "%s",
                          leat_last_error());
    }
    leat_data_layer_destroy(layer);
    lie_at = -1;
    layer = open_layer(pipeline, &top, 1, 4, 2);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_EDATA);
    ck_assert_msg(
        strstr(leat_last_error(),
               "field f0: expected float32 -1x3, found float32 1x4") != NULL,
        "%s", leat_last_error());
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Setup reads the first batch, and its shape is that of the others. */
START_TEST(a_bad_record_in_the_first_batch_has_no_part_in_its_shape)
{
    fields = 0;
    struct data *row = add(LEAT_INT32, 1);
    row->spec.shape[0] = -1;
    for (int i = 0; i < SAMPLES; i++) {
        row->shape[i][0] = 2;
        fill(row, i);
    }
    row->spec.varies = _i;
    lie_at = 2;
    lie_field = 0;
    const leat_top top = {
        .size = sizeof(top), .name = "f0", .form = LEAT_TOP_RAGGED};
    leat_pipeline *pipeline = open_data();
    leat_data_layer *layer = open_layer(pipeline, &top, 1, 4, 2);
    ck_assert_int_eq(leat_blob_dim(leat_data_layer_top(layer, 0), 0), 6);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_EDATA);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_int_eq(leat_blob_dim(leat_data_layer_top(layer, 0), 0), 8);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

static int64_t grown(const leat_data_layer *layer)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
    return stats.grown_batches;
}

/* Batches grow until the largest fits, and those that join late as well. */
START_TEST(memory_settles)
{
    fields = 0;
    lie_at = -1;
    struct data *row = add(LEAT_FLOAT64, 1);
    row->spec.shape[0] = -1;
    for (int i = 0; i < SAMPLES; i++) {
        row->shape[i][0] = i < 10 ? 1 : 500;
        fill(row, i);
    }
    const leat_top top = {
        .size = sizeof(top), .name = "f0", .form = LEAT_TOP_RAGGED};
    leat_pipeline *pipeline = open_data();
    leat_data_layer *layer = open_layer(pipeline, &top, 1, 4, 1);
    int64_t before = -1;
    for (int round = 0; grown(layer) != before; round++) {
        ck_assert_int_lt(round, 20);
        before = grown(layer);
        for (int b = 0; b < 100; b++)
            ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                             0);
    }
    ck_assert_int_gt(before, 0);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("top_list");
    TCase *tcase = tcase_create("top_list");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, random_tops_are_those_of_a_slow_reference, 0,
                        TRIALS);
    tcase_add_loop_test(tcase, offsets_of_offsets_are_levels, 0, 5);
    tcase_add_loop_test(
        tcase, a_bad_record_in_the_first_batch_has_no_part_in_its_shape, 0, 2);
    tcase_add_test(tcase, memory_settles);
    tcase_add_test(tcase, a_sample_that_is_not_as_promised_is_a_bad_record);
    return suite_run(suite);
}
