/* Samples whose fields have another shape than those before them. */
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <string.h>

#define BATCH 4

/* Sample i has fields of shape[i % n]; the other field is a scalar. */
typedef struct shapes {
    int n;
    leat_field shape[2 * BATCH];
    int field; /* that which has them: 0 or 1 */
    int next;
} shapes;

static shapes script;
static leat_pipeline *pipeline;
static leat_data_layer *layer;
static leat_data_layer_options options;

static int shapes_next(void *pass, leat_sample *sample)
{
    static const float values[16];
    shapes *self = pass;
    const leat_field *shape = &self->shape[self->next++ % self->n];
    int status = LEAT_OK;
    sample->stable = 1;
    for (int i = 0; i < 2 && !status; i++)
        status = leat_sample_set(
            sample, i, LEAT_FLOAT32, i == self->field ? shape->ndim : 0,
            i == self->field ? shape->shape : NULL, values);
    return status;
}

static void add(int ndim, const int64_t shape[])
{
    leat_field *field = &script.shape[script.n++];
    field->ndim = ndim;
    memcpy(field->shape, shape, (size_t)ndim * sizeof(shape[0]));
}

static void open_layer(void)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32, .ndim = -1},
        {.name = "label", .dtype = LEAT_FLOAT32, .ndim = -1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .name = "shapes",
                                      .fields = fields,
                                      .nfields = 2,
                                      .next = shapes_next};
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &script),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
}

static int forward(void)
{
    return leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
}

static void set_up(void)
{
    memset(&script, 0, sizeof(script));
    options =
        (leat_data_layer_options){.size = sizeof(options), .batch_size = BATCH};
}

static void tear_down(void)
{
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}

static const int64_t ones[LEAT_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};

/* A top has one dimension more than a sample. */
START_TEST(a_sample_of_too_many_dimensions_is_bad)
{
    script.field = _i % 2;
    options.top_mode = _i < 2 ? LEAT_TOP_LEND : LEAT_TOP_COPY;
    for (int i = 0; i < 2 * BATCH; i++)
        add(i < BATCH ? LEAT_MAX_DIMS - 1 : LEAT_MAX_DIMS, ones);
    open_layer();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(forward(), LEAT_OK);
        leat_blob *top = leat_data_layer_top(layer, script.field);
        ck_assert_int_eq(leat_blob_ndim(top), LEAT_MAX_DIMS);
        ck_assert_int_eq(forward(), LEAT_EDATA);
        const char *line = leat_last_error();
        ck_assert_msg(strstr(line, "8 dimensions, expected at most 7") &&
                          strstr(line, "shapes: record"),
                      "%s", line);
    }
}
END_TEST

START_TEST(nor_can_it_be_the_first)
{
    script.field = _i % 2;
    add(LEAT_MAX_DIMS, ones);
    open_layer();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EINVAL);
}
END_TEST

START_TEST(nor_does_it_decide_a_batch_of_replacements)
{
    options.on_error = LEAT_ON_ERROR_ZERO;
    for (int i = 0; i < 2 * BATCH; i++)
        add(i < BATCH ? 3 : LEAT_MAX_DIMS, ones);
    open_layer();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(forward(), LEAT_OK);
        ck_assert_int_eq(leat_blob_ndim(leat_data_layer_top(layer, 0)), 4);
        ck_assert_int_eq(leat_data_layer_batch(layer)->bad, i % 2 * BATCH);
    }
}
END_TEST

/* As many elements, but other dimensions: in whichever order, for any field. */
START_TEST(as_many_elements_in_another_shape_are_bad)
{
    static const leat_field other[] = {{.ndim = 2, .shape = {3, 5}},
                                       {.ndim = 2, .shape = {5, 3}},
                                       {.ndim = 1, .shape = {15}},
                                       {.ndim = 3, .shape = {1, 1, 15}},
                                       {.ndim = 4, .shape = {1, 1, 1, 15}}};
    int first = _i / 5 % 5, second = _i % 5;
    script.field = _i / 25;
    for (int i = 0; i < 2 * BATCH; i++) {
        const leat_field *field = &other[i == BATCH + 2 ? second : first];
        add(field->ndim, field->shape);
    }
    open_layer();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(forward(), LEAT_OK);
    ck_assert_int_eq(forward(), first == second ? LEAT_OK : LEAT_EDATA);
    if (first != second)
        ck_assert_msg(strstr(leat_last_error(), "shapes: record 6") != NULL,
                      "%s", leat_last_error());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_shapes");
    TCase *tcase = tcase_create("layer_shapes");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_sample_of_too_many_dimensions_is_bad, 0, 4);
    tcase_add_loop_test(tcase, nor_can_it_be_the_first, 0, 2);
    tcase_add_test(tcase, nor_does_it_decide_a_batch_of_replacements);
    tcase_add_loop_test(tcase, as_many_elements_in_another_shape_are_bad, 0,
                        50);
    return suite_run(suite);
}
