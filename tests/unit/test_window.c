/* window:SIZE,SHIFT, by a model of tf.data's window. */
#include "base/memory.h"
#include "pipeline/reader_form.h"
#include "support/rows_source.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LABEL = 3 }; /* after tokens, tokens.offsets and cell */

static rows_source source;
static leat_sample sample;
static leat_reader *reader, *other;

static void set_up(void)
{
    source = (rows_source)ROWS_SOURCE_INIT;
    leat_sample_init(&sample);
    reader = other = NULL;
}

static void tear_down(void)
{
    leat_reader_close(reader);
    leat_reader_close(other);
    leat_sample_finish(&sample);
}

static leat_reader *open_chain(const char *text)
{
    leat_reader *opened = NULL;
    leat_pipeline *pipeline = rows_source_chain(&source, text);
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    int status = leat_pipeline_open(pipeline, &opened);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(!status, "%s", leat_last_error());
    return opened;
}

/* A window of a model, as its labels. */
typedef struct window_model {
    int n, size, shift, stride, drops;
} window_model;

static int model_count(const window_model *model)
{
    int count = 0, extent = (model->size - 1) * model->stride + 1;
    for (int first = 0; first < model->n; first += model->shift)
        count += !model->drops || first + extent <= model->n;
    return count;
}

/* The labels of window `w`; `*bad` is its first bad record, or -1. */
static void model_text(const window_model *model, int w, char out[],
                       int64_t *bad)
{
    char labels[ROWS_TEXT_MAX] = "";
    int n = 0, at = 0;
    *bad = -1;
    for (int k = 0; k < model->size; k++) {
        int i = w * model->shift + k * model->stride;
        if (i >= model->n)
            break;
        at += snprintf(labels + at, sizeof(labels) - (size_t)at, " %d", i);
        if (i == source.bad && *bad < 0)
            *bad = i;
        n++;
    }
    snprintf(out, ROWS_TEXT_MAX, "%d:%.1000s", n, labels);
}

static void check_window(const window_model *model, int w, int status)
{
    char expected[ROWS_TEXT_MAX], found[ROWS_TEXT_MAX];
    int64_t bad;
    model_text(model, w, expected, &bad);
    ck_assert_msg(status == (bad >= 0 ? LEAT_EDATA : LEAT_OK),
                  "window %d of %d, %d, %d over %d: %d, %s", w, model->size,
                  model->shift, model->stride, model->n, status,
                  leat_last_error());
    if (bad >= 0) {
        ck_assert_int_eq(sample.from.record, bad);
        ck_assert_msg(strstr(leat_last_error(), "is bad") != NULL, "%s",
                      leat_last_error());
        return;
    }
    ck_assert_str_eq(rows_source_text(&sample.field[LABEL], found), expected);
    ck_assert_int_eq(sample.from.record, w * model->shift);
}

static void open_model(const window_model *model)
{
    char text[128];
    snprintf(text, sizeof(text),
             "window:%d,%d,stride=%d,drop_last=%d,ragged=tokens", model->size,
             model->shift, model->stride, model->drops);
    source.count = model->n;
    reader = open_chain(text);
    other = open_chain(text);
}

/* Every window from `w` on, of a reader that stands there. */
static void check_from(leat_reader *from, const window_model *model, int w,
                       int most)
{
    int count = model_count(model);
    for (; w < count && most > 0; w++, most--)
        check_window(model, w, leat_reader_next(from, &sample));
    if (w == count)
        ck_assert_int_eq(leat_reader_next(from, &sample), LEAT_END);
}

/* By index, by seek, and by the mark of each window. */
static void check_places(const window_model *model)
{
    int count = model_count(model), got;
    leat_token mark;
    leat_token_init(&mark);
    leat_sample *const out = &sample;
    const leat_position begin = {1, 0};
    ck_assert_int_eq(leat_reader_seek(reader, begin, NULL), LEAT_OK);
    for (int w = 0; w < count; w++) {
        const leat_position at = {1, w};
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(other, at, &mark), LEAT_OK);
        check_from(other, model, w, 3);
        check_from(reader, model, w, 1);
        if (source.is_stream)
            continue;
        int status = leat_reader_read_at(reader, &at, &out, 1, &got);
        check_window(model, w, status);
        ck_assert_int_eq(leat_reader_seek(other, at, NULL), LEAT_OK);
        check_from(other, model, w, 2);
    }
    leat_token_finish(&mark);
}

START_TEST(windows_are_those_of_tf_data)
{
    source.is_stream = _i / 2 % 2;
    source.is_stable = _i / 4;
    for (int n = 0; n < 10; n += 3)
        for (int size = 1; size < 5; size++)
            for (int shift = 1; shift < 6; shift++)
                for (int stride = 1; stride < 4; stride++) {
                    const window_model model = {n, size, shift, stride, _i % 2};
                    int64_t count;
                    source.bad = size == 3 ? n / 2 : -1;
                    open_model(&model);
                    if (!source.is_stream) {
                        ck_assert_int_eq(leat_reader_count(reader, &count), 0);
                        ck_assert_int_eq(count, model_count(&model));
                    }
                    check_from(reader, &model, 0, 100);
                    check_places(&model);
                    leat_reader_close(reader);
                    leat_reader_close(other);
                    reader = other = NULL;
                }
}
END_TEST

/* As far as the end, where windows hold fewer samples than before. */
START_TEST(the_last_windows_of_a_stream_are_found_by_their_marks)
{
    source.is_stream = 1;
    for (int n = 1; n < 50; n += 3)
        for (int shift = 1; shift < 6; shift++)
            for (int stride = 1; stride < 12; stride += 5) {
                const window_model model = {n, 4, shift, stride, _i};
                leat_token mark;
                open_model(&model);
                check_places(&model);
                int count = model_count(&model);
                leat_token_init(&mark);
                ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
                const leat_position end = {1, count};
                ck_assert_int_eq(leat_reader_seek(other, end, &mark), LEAT_OK);
                check_from(other, &model, count, 1);
                leat_token_finish(&mark);
                leat_reader_close(reader);
                leat_reader_close(other);
                reader = other = NULL;
            }
}
END_TEST

/* The examples of tf.data's documentation. */
static const struct tf_case {
    const char *text;
    const char *labels[8];
} tf_cases[] = {
    {"window:3,ragged=tokens", {"3: 0 1 2", "3: 3 4 5", "1: 6"}},
    {"window:3,1,ragged=tokens",
     {"3: 0 1 2", "3: 1 2 3", "3: 2 3 4", "3: 3 4 5", "3: 4 5 6", "2: 5 6",
      "1: 6"}},
    {"window:3,2,stride=2,ragged=tokens",
     {"3: 0 2 4", "3: 2 4 6", "2: 4 6", "1: 6"}},
    {"window:3,1,stride=2,drop_last=1,ragged=tokens",
     {"3: 0 2 4", "3: 1 3 5", "3: 2 4 6"}},
};

START_TEST(windows_are_those_of_its_documentation)
{
    char found[ROWS_TEXT_MAX];
    source.count = 7;
    source.is_stream = _i % 2;
    reader = open_chain(tf_cases[_i / 2].text);
    for (int i = 0; i < 8 && tf_cases[_i / 2].labels[i]; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_str_eq(rows_source_text(&sample.field[LABEL], found),
                         tf_cases[_i / 2].labels[i]);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}
END_TEST

/* A sample that does not fit is bad in each window, and named. */
START_TEST(samples_that_do_not_fit_make_their_windows_bad)
{
    source.wide = 4;
    source.is_stream = _i;
    reader = open_chain("window:2,1,ragged=tokens");
    for (int w = 0; w < 10; w++) {
        int status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, w == 3 || w == 4 ? LEAT_EDATA : LEAT_OK);
        if (status)
            ck_assert_msg(strstr(leat_last_error(), "window: field cell is"),
                          "%s", leat_last_error());
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}
END_TEST

START_TEST(fields_have_a_first_axis)
{
    const leat_field_spec *spec;
    int n;
    source.is_stream = _i % 2;
    source.count = 8;
    reader = open_chain(_i / 2 ? "window:2,2,stride=2,ragged=tokens"
                               : "window:4,1,drop_last=1,ragged=tokens");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert(spec[LABEL].is_batch);
    ck_assert_int_eq(spec[LABEL].shape[0], _i / 2 ? -1 : 4);
    ck_assert_str_eq(spec[1].name, "tokens.offsets");
}
END_TEST

static const struct refusal {
    const char *text;
    const char *line;
} refused[] = {
    {"window", "size is missing"},
    {"window:0", "size: expected 1 to"},
    {"window:3,0", "shift: expected 1 to"},
    {"window:3,1,stride=0", "stride: expected 1 to"},
    {"window:3,1,stride=2000000000", "is held over a stream"},
    {"window:3,ragged=x", "ragged: \"x\" names no field"},
};

START_TEST(arguments_out_of_range_are_refused)
{
    leat_pipeline *pipeline = rows_source_chain(&source, refused[_i].text);
    int status = LEAT_EINVAL;
    leat_pipeline_unref(pipeline);
    source.is_stream = !strstr(refused[_i].text, "ragged");
    pipeline = rows_source_chain(&source, refused[_i].text);
    if (pipeline)
        status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), refused[_i].line) != NULL, "%s",
                  leat_last_error());
}
END_TEST

static const struct endless_window {
    const char *text;
    int64_t shift;
    int64_t extent;
    int size;
} endless[] = {
    {"select:label | repeat | window:1,1", 1, 1, 1},
    {"select:label | repeat | window:2,2", 2, 2, 2},
    {"select:label | repeat | window:3,1", 1, 3, 3},
    {"select:label | repeat | window:4,5,stride=3", 5, 10, 4},
    {"select:label | repeat | window:2,2147483647", 2147483647, 2, 2},
};

/* A sample's position is a number, and the largest one is no position. */
START_TEST(an_endless_epoch_has_whole_windows_alone)
{
    const struct endless_window *one = &endless[_i];
    int64_t count = (INT64_MAX - one->extent) / one->shift + 1;
    leat_sample *out[] = {&sample};
    int got;
    reader = open_chain(one->text);
    for (int64_t from = count - (count > 1 ? 2 : 1); from < count; from++) {
        const leat_position at = {0, from};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        ck_assert_int_eq(sample.field[0].shape[0], one->size);
        ck_assert_int_eq(*(const int64_t *)sample.field[0].data,
                         from * one->shift % 10);
    }
    const leat_position last = {0, count - 1}, after = {0, count};
    ck_assert_int_eq(leat_reader_seek(reader, last, NULL), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[0].shape[0], one->size);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_read_at(reader, &after, out, 1, &got),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "is out of range"));
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    int64_t before = 0;
    source.is_stream = _i;
    source.count = 40;
    reader = open_chain("window:4,1,ragged=tokens");
    for (int epoch = 0; epoch < 4; epoch++) {
        while (leat_reader_next(reader, &sample) == LEAT_OK)
            ;
        leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL);
        if (epoch == 1)
            before = leat__alloc_count();
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    ck_assert_int_gt(reader->ops->memory(reader), 4 * 256);
}
END_TEST

/* Buffers are made for samples that are there, give or take one call. */
START_TEST(a_window_far_larger_than_the_data_takes_no_memory_for_it)
{
    source.is_stream = _i;
    reader = open_chain("window:1000000,ragged=tokens");
    int64_t before = leat__alloc_count();
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[LABEL].shape[0], 10);
    ck_assert_int_lt(leat__alloc_count() - before, 2000);
}
END_TEST

/* For each window all samples that are held were moved: half a minute. */
START_TEST(a_long_stride_over_a_stream_takes_no_time_for_each_place)
{
    enum { WINDOWS = 600000, STRIDE = 20000, SECONDS = 8 };
    leat_pipeline *pipeline = NULL;
    clock_t begun = clock();
    ck_assert_int_eq(leat_pipeline_parse(&pipeline,
                                         "range:620000 | where:value=0.. | "
                                         "window:2,1,stride=20000"),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    for (int64_t i = 0; i < WINDOWS; i++) {
        ck_assert(leat_reader_next(reader, &sample) == LEAT_OK);
        const int64_t *value = sample.field[0].data;
        ck_assert(value[0] == i && value[1] == i + STRIDE);
    }
    ck_assert_int_lt((clock() - begun) / CLOCKS_PER_SEC, SECONDS);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    source.is_stream = _i % 2;
    source.bad = _i / 2 ? 3 : -1;
    leat_pipeline *pipeline =
        rows_source_chain(&source, "window:4,2,ragged=tokens");
    int64_t n = 0;
    for (int status = LEAT_ENOMEM; status == LEAT_ENOMEM; n++) {
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n);
        status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < 4 && (!status || status == LEAT_EDATA); i++)
            status = leat_reader_next(reader, &sample);
        leat__alloc_fail_at(-1);
        leat_reader_close(reader);
        reader = NULL;
    }
    ck_assert_int_gt(n, 10);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_cancelled_reader_gives_no_window)
{
    source.is_stream = _i;
    reader = open_chain("window:4,1,ragged=tokens");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
}
END_TEST

START_TEST(a_mark_of_another_chain_is_refused)
{
    leat_token mark;
    leat_token_init(&mark);
    const leat_position at = {0, 0};
    const int64_t first[] = {-2, 2 * (4 + 1) + 1, INT64_MAX / 2};
    source.is_stream = 1;
    reader = open_chain("window:4,1,ragged=tokens");
    for (int i = 0; i < 3; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat__reader_put_form(reader, &mark), LEAT_OK);
        leat_token_put(&mark, &at, sizeof(at));
        leat_token_put(&mark, &first[i], sizeof(first[i]));
        ck_assert_int_eq(leat_reader_seek(reader, at, &mark), LEAT_EINVAL);
    }
    leat_token_finish(&mark);
}
END_TEST

START_TEST(code_makes_what_text_makes)
{
    leat_pipeline *upstream = rows_source_pipeline(&source), *made;
    ck_assert_int_eq(leat_pipeline_window(&made, upstream, 4, 0, 0, NULL), 0);
    ck_assert_msg(strstr(leat_pipeline_text(made), "window:4,4,stride=1"), "%s",
                  leat_pipeline_text(made));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_window(&made, upstream, 4, -1, 0, NULL),
                     LEAT_EINVAL);
    leat_pipeline_unref(upstream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tcase = tcase_create("windows");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, windows_are_those_of_tf_data, 0, 8);
    tcase_add_loop_test(
        tcase, the_last_windows_of_a_stream_are_found_by_their_marks, 0, 2);
    tcase_add_loop_test(tcase, windows_are_those_of_its_documentation, 0,
                        2 * sizeof(tf_cases) / sizeof(tf_cases[0]));
    tcase_add_loop_test(tcase, samples_that_do_not_fit_make_their_windows_bad,
                        0, 2);
    tcase_add_loop_test(tcase, fields_have_a_first_axis, 0, 4);
    tcase_add_loop_test(tcase, arguments_out_of_range_are_refused, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tcase, an_endless_epoch_has_whole_windows_alone, 0,
                        sizeof(endless) / sizeof(endless[0]));
    tcase_add_loop_test(tcase, nothing_is_allocated_in_the_steady_state, 0, 2);
    tcase_add_loop_test(
        tcase, a_window_far_larger_than_the_data_takes_no_memory_for_it, 0, 2);
    tcase_add_test(tcase,
                   a_long_stride_over_a_stream_takes_no_time_for_each_place);
    tcase_add_loop_test(tcase, every_failed_allocation_is_an_error, 0, 4);
    tcase_add_loop_test(tcase, a_cancelled_reader_gives_no_window, 0, 2);
    tcase_add_test(tcase, a_mark_of_another_chain_is_refused);
    tcase_add_test(tcase, code_makes_what_text_makes);
    return suite_run(suite);
}
