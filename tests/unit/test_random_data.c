/* Random numbers as samples: what they depend on, and how they are spread. */
#include "base/memory.h"
#include "data/cast.h"
#include "pipeline/pipeline.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/choice.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static leat_pipeline *pipeline;
static leat_reader *reader;
static leat_sample sample;

static void open_seeded(const char *text, uint64_t seed)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.seed = seed;
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    status = leat_pipeline_open_with(pipeline, &options, &reader);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
}

static void finish(void)
{
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    reader = NULL;
    pipeline = NULL;
}

static void set_up(void)
{
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    finish();
    leat_sample_finish(&sample);
}

static const void *read_next(void)
{
    int status = leat_reader_next(reader, &sample);
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert_int_eq(sample.nfields, 1);
    return sample.field[0].data;
}

START_TEST(a_sample_is_a_function_of_seed_epoch_and_position)
{
    unsigned char first[2][4][60];
    open_seeded("random:4,shape=3x4x5,dtype=uint8", 9);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 4; i++)
            memcpy(first[epoch][i], read_next(), 60);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL),
            LEAT_OK);
    }
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++)
            ck_assert_mem_ne(first[i / 4][i % 4], first[k / 4][k % 4], 60);
    /* By index, by seek, and in another reader. */
    finish();
    open_seeded("random:4,shape=3x4x5,dtype=uint8", 9);
    for (int i = 7; i >= 0; i--) {
        leat_position at = {i / 4, i % 4};
        leat_sample *out[] = {&sample};
        int got;
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        ck_assert_mem_eq(sample.field[0].data, first[i / 4][i % 4], 60);
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL), LEAT_OK);
        ck_assert_mem_eq(read_next(), first[i / 4][i % 4], 60);
        ck_assert_int_eq(sample.from.record, i % 4);
    }
    finish();
    open_seeded("random:4,shape=3x4x5,dtype=uint8", 10);
    ck_assert_mem_ne(read_next(), first[0][0], 60);
    finish();
    open_seeded("random:4,shape=3x4x5,dtype=uint8,seed=3", 9);
    memcpy(first[0][0], read_next(), 60);
    finish();
    open_seeded("random:4,shape=3x4x5,dtype=uint8,seed=3", 10);
    ck_assert_mem_eq(read_next(), first[0][0], 60);
}
END_TEST

/* The longer of two samples begins as the shorter one. */
START_TEST(elements_do_not_depend_on_how_many_there_are)
{
    float few[3];
    open_seeded("random:1,shape=3,seed=1", 0);
    memcpy(few, read_next(), sizeof(few));
    finish();
    open_seeded("random:1,shape=7x11,seed=1", 0);
    ck_assert_mem_eq(read_next(), few, sizeof(few));
}
END_TEST

static double mean_of(const double *values, int n, double *deviation)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    for (int i = 0; i < n; i++)
        squares += (values[i] - sum / n) * (values[i] - sum / n);
    *deviation = sqrt(squares / n);
    return sum / n;
}

enum { MANY = 40000 };

/* Reads MANY numbers of any type as doubles. */
static double *read_many(const char *text)
{
    static double values[MANY];
    open_seeded(text, 4);
    const char *data = read_next();
    for (int i = 0; i < MANY; i++) {
        float f;
        int32_t n;
        switch (sample.field[0].dtype) {
        case LEAT_FLOAT32:
            memcpy(&f, data + i * 4, 4);
            values[i] = (double)f;
            break;
        case LEAT_FLOAT64:
            memcpy(&values[i], data + i * 8, 8);
            break;
        case LEAT_INT32:
            memcpy(&n, data + i * 4, 4);
            values[i] = n;
            break;
        case LEAT_INT8:
            values[i] = ((const signed char *)data)[i];
            break;
        default:
            values[i] = ((const unsigned char *)data)[i];
        }
    }
    finish();
    return values;
}

START_TEST(distributions_have_their_mean_and_deviation)
{
    static const struct {
        const char *text;
        double mean, deviation, least, most;
    } cases[] = {
        {"random:1,shape=40000", .5, .2887, 0, .9999999999},
        {"random:1,shape=40000,dtype=float64,low=-3,high=5", 1, 2.309, -3, 5},
        {"random:1,shape=40000,dtype=uint8", 127.5, 73.9, 0, 255},
        {"random:1,shape=40000,dtype=int8", -.5, 73.9, -128, 127},
        {"random:1,shape=40000,dtype=int32,low=-2,high=3", 0, 1.414, -2, 2},
        {"random:1,shape=40000,dtype=uint8,high=10", 4.5, 2.872, 0, 9},
        {"random:1,shape=40000,distribution=NORMAL", 0, 1, -7, 7},
        {"random:1,shape=40000,distribution=normal,mean=10,deviation=.5", 10,
         .5, 6, 14},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const double *values = read_many(cases[k].text);
        double deviation, mean = mean_of(values, MANY, &deviation);
        double error = 5 * cases[k].deviation / sqrt(MANY);
        ck_assert_msg(fabs(mean - cases[k].mean) < error, "%s: mean %g",
                      cases[k].text, mean);
        ck_assert_msg(fabs(deviation / cases[k].deviation - 1) < .03,
                      "%s: deviation %g", cases[k].text, deviation);
        for (int i = 0; i < MANY; i++)
            ck_assert_msg(values[i] >= cases[k].least &&
                              values[i] <= cases[k].most,
                          "%s: %g", cases[k].text, values[i]);
    }
}
END_TEST

/* Neighbours, halves of a block and blocks have nothing in common. */
START_TEST(elements_are_independent)
{
    const double *values = read_many("random:1,shape=40000,dtype=float64");
    for (int lag = 1; lag < 9; lag++) {
        double sum = 0;
        for (int i = 0; i + lag < MANY; i++)
            sum += (values[i] - .5) * (values[i + lag] - .5);
        ck_assert_msg(fabs(sum / MANY * 12) < 5 / sqrt(MANY), "lag %d: %g", lag,
                      sum / MANY * 12);
    }
}
END_TEST

START_TEST(constants_are_random_numbers_of_one_value)
{
    int64_t number;
    open_seeded("random:1,dtype=int64,low=7,high=8,name=label", 4);
    memcpy(&number, read_next(), sizeof(number));
    ck_assert_int_eq(number, 7);
    const leat_field_spec *spec;
    int n;
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_str_eq(spec->name, "label");
    finish();
    open_seeded("random:1,low=2.5,high=2.5", 4);
    float value;
    memcpy(&value, read_next(), sizeof(value));
    ck_assert(value == 2.5f);
}
END_TEST

START_TEST(what_a_type_does_not_hold_is_refused)
{
    static const char *const bad[] = {
        "random:1,dtype=bytes",
        "random:1,dtype=float",
        "random:1,shape=3x0",
        "random:1,shape=1x1x1x1x1x1x1x1x1",
        "random:1,shape=x",
        "random:1,shape=-1",
        "random:1,shape=3x",
        "random:1,shape=99999999x99999999",
        "random:1,low=2,high=1",
        "random:1,low=a",
        "random:1,low=inf",
        "random:1,dtype=uint8,high=257",
        "random:1,dtype=uint8,low=-1",
        "random:1,dtype=uint8,low=1.5",
        "random:1,dtype=int8,low=3,high=3",
        "random:1,distribution=NORMAL,deviation=-1",
        "random:1,dtype=float16,high=65505",
        "random:1,dtype=bfloat16,low=-3.4e38",
        "random:1,low=-1e39",
        "random:1,dtype=float64,low=-1e308,high=1e308",
        "random:1,dtype=float16,distribution=NORMAL,mean=65000,deviation=60",
        "random:1,distribution=NORMAL,deviation=1e38",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, bad[i]), LEAT_OK);
        int status = leat_pipeline_open(pipeline, &reader);
        ck_assert_msg(status == LEAT_EINVAL, "%s: %d", bad[i], status);
        ck_assert_msg(strncmp(leat_last_error(), "random: ", 8) == 0, "%s",
                      leat_last_error());
        leat_pipeline_unref(pipeline);
    }
    pipeline = NULL;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "random:-2"), LEAT_EINVAL);
}
END_TEST

/* Of a product beyond 64 bits, too. */
START_TEST(too_many_elements_are_told_from_what_is_no_shape)
{
    static const char *const bad[] = {"random:1,shape=65536x65536",
                                      "random:1,shape=65536x65536x65536x65536"};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, bad[i]), LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
        ck_assert_str_eq(leat_last_error(), "random: shape: expected at most "
                                            "4294967295 elements");
        leat_pipeline_unref(pipeline);
        pipeline = NULL;
    }
}
END_TEST

START_TEST(text_and_code_make_equal_pipelines)
{
    leat_random_options options = LEAT_RANDOM_OPTIONS_INIT;
    leat_pipeline *made;
    options.name = "x=";
    options.ndim = 2;
    options.shape[0] = 3;
    options.shape[1] = 4;
    options.dtype = LEAT_FLOAT64;
    options.has_bounds = true;
    options.low = -.1;
    options.high = 1e300;
    options.has_seed = true;
    options.seed = -5;
    ck_assert_int_eq(leat_pipeline_random(&made, 6, &options), LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline,
                            "random:6,shape=3x4,dtype=float64,low="
                            "-0.10000000000000001,high="
                            "1.0000000000000001e+300,seed=-5,name=x\\="),
        LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(made), leat_pipeline_text(pipeline));
    ck_assert(leat__pipeline_hash(made) == leat__pipeline_hash(pipeline));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_random(&made, -1, NULL), LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(made), "random:-1");
    leat_pipeline_unref(made);
    options.size = 0;
    ck_assert_int_eq(leat_pipeline_random(&made, -1, &options), LEAT_EINVAL);
    options.size = sizeof(options);
    options.ndim = 9;
    ck_assert_int_eq(leat_pipeline_random(&made, -1, &options), LEAT_EINVAL);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "random:2,shape=9"),
                     LEAT_OK);
    for (int64_t n = 0;; n++) {
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n);
        int status = leat_pipeline_open(pipeline, &reader);
        if (!status)
            status = leat_reader_next(reader, &sample);
        int64_t left = leat__alloc_fail_at(-1);
        ck_assert(!status || status == LEAT_ENOMEM);
        leat_reader_close(reader);
        reader = NULL;
        if (left >= 0)
            break;
    }
}
END_TEST

START_TEST(an_endless_one_counts_and_is_cancelled)
{
    int64_t count, skipped;
    open_seeded("random", 1);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert(count == LEAT_ENDLESS);
    ck_assert_int_eq(leat_reader_skip(reader, 1000000, &skipped), LEAT_OK);
    read_next();
    ck_assert_int_eq(sample.from.record, 1000000);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
}
END_TEST

/* A layer's workers make them; the seed is the layer's. */
START_TEST(layers_of_one_seed_have_the_same_batches)
{
    float first[2][24];
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "random:100,shape=1x2x3"),
                     LEAT_OK);
    for (int i = 0; i < 2; i++) {
        leat_data_layer *layer;
        leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
        const leat_top top = {.size = sizeof(top), .name = "data"};
        options.batch_size = 4;
        options.workers = 1 + i;
        options.has_random_seed = true;
        options.random_seed = 12;
        options.top = &top;
        options.ntop = 1;
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        int status = leat_data_layer_setup(layer, NULL, 0);
        ck_assert_msg(!status, "%s", leat_last_error());
        for (int k = 0; k < 30; k++)
            ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                             LEAT_OK);
        memcpy(first[i], leat_blob_cpu_data(leat_data_layer_top(layer, 0)),
               sizeof(first[i]));
        leat_data_layer_destroy(layer);
    }
    ck_assert_mem_eq(first[0], first[1], sizeof(first[0]));
}
END_TEST

/* 16 of them from each choice, as leat/choice.h has it. */
START_TEST(bytes_are_those_of_the_choices)
{
    uint32_t words[4];
    open_seeded("random:1,shape=40,dtype=uint8,seed=3", 0);
    const unsigned char *bytes = read_next();
    for (uint32_t block = 0; block < 3; block++) {
        leat_choice(3, 0, 0, block, words);
        ck_assert_mem_eq(bytes + (size_t)16 * block, words, block < 2 ? 16 : 8);
    }
}
END_TEST

/* The end is not reached, to whatever the type rounds. */
START_TEST(no_float_is_rounded_to_the_end)
{
    static const char *const types[] = {"float16", "bfloat16", "float32",
                                        "float64"};
    for (int i = 0; i < 4; i++) {
        static double values[MANY];
        char text[80];
        snprintf(text, sizeof(text), "random:1,shape=%d,dtype=%s,seed=3", MANY,
                 types[i]);
        open_seeded(text, 0);
        const void *data = read_next();
        leat__cast(values, LEAT_FLOAT64, data, sample.field[0].dtype, MANY);
        for (int k = 0; k < MANY; k++)
            ck_assert_msg(values[k] >= 0 && values[k] < 1, "%s: %g", types[i],
                          values[k]);
        finish();
    }
}
END_TEST

/* And none is infinite. */
START_TEST(the_greatest_bounds_of_a_type_are_held)
{
    static const char *const texts[] = {
        "random:1,shape=999,dtype=float16,low=-65504,high=65504",
        "random:1,shape=999,dtype=bfloat16,low=-3.38e38,high=3.38e38",
        "random:1,shape=999,low=-3.4e38,high=3.4e38",
        "random:1,shape=999,dtype=float64,low=-8.9e307,high=8.9e307",
        "random:1,shape=999,dtype=float16,distribution=NORMAL,deviation=7600"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        static double values[999];
        open_seeded(texts[i], 4);
        const void *data = read_next();
        leat__cast(values, LEAT_FLOAT64, data, sample.field[0].dtype, 999);
        for (int k = 0; k < 999; k++)
            ck_assert_msg(isfinite(values[k]), "%s: %d", texts[i], k);
        finish();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random_data");
    TCase *tcase = tcase_create("random");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_sample_is_a_function_of_seed_epoch_and_position);
    tcase_add_test(tcase, elements_do_not_depend_on_how_many_there_are);
    tcase_add_test(tcase, distributions_have_their_mean_and_deviation);
    tcase_add_test(tcase, elements_are_independent);
    tcase_add_test(tcase, constants_are_random_numbers_of_one_value);
    tcase_add_test(tcase, what_a_type_does_not_hold_is_refused);
    tcase_add_test(tcase, too_many_elements_are_told_from_what_is_no_shape);
    tcase_add_test(tcase, bytes_are_those_of_the_choices);
    tcase_add_test(tcase, no_float_is_rounded_to_the_end);
    tcase_add_test(tcase, the_greatest_bounds_of_a_type_are_held);
    tcase_add_test(tcase, text_and_code_make_equal_pipelines);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, an_endless_one_counts_and_is_cancelled);
    tcase_add_test(tcase, layers_of_one_seed_have_the_same_batches);
    return suite_run(suite);
}
