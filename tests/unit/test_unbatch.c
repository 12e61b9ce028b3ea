/* unbatch: what batches are made of comes out of them again. */
#include "base/memory.h"
#include "pipeline/reader_form.h"
#include "support/decorator_chain.h"
#include "support/rows_source.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static rows_source source;
static leat_sample sample, other;
static leat_reader *reader, *model;

static void set_up(void)
{
    source = (rows_source)ROWS_SOURCE_INIT;
    leat_sample_init(&sample);
    leat_sample_init(&other);
    reader = model = NULL;
}

static void tear_down(void)
{
    leat_reader_close(reader);
    leat_reader_close(model);
    leat_sample_finish(&sample);
    leat_sample_finish(&other);
}

static leat_reader *open_chain(const char *text)
{
    leat_reader *opened = NULL;
    leat_pipeline *pipeline =
        text ? rows_source_chain(&source, text) : rows_source_pipeline(&source);
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    int status = leat_pipeline_open(pipeline, &opened);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    return opened;
}

/* The field of `sample` that is called so in one of the readers. */
static const leat_field *field_called(leat_reader *of, const leat_sample *from,
                                      const char *name)
{
    const leat_field_spec *spec;
    int n, i = 0;
    ck_assert_int_eq(leat_reader_fields(of, &spec, &n), LEAT_OK);
    while (i < n && strcmp(spec[i].name, name) != 0)
        i++;
    ck_assert_msg(i < n, "there is no field %s", name);
    return &from->field[i];
}

static void compare(const char *name)
{
    char one[ROWS_TEXT_MAX], two[ROWS_TEXT_MAX];
    ck_assert_str_eq(rows_source_text(field_called(reader, &sample, name), one),
                     rows_source_text(field_called(model, &other, name), two));
}

/* What is there before and after, and the fields that are the same. */
static const struct round_trip {
    const char *text;  /* with unbatch at its end */
    const char *model; /* NULL: the samples themselves */
    int has_groups;
    int is_random_access; /* over random access */
    const char *field[6];
} round_trips[] = {
    {"batch:3,ragged=tokens | unbatch",
     NULL,
     0,
     0,
     {"tokens", "cell", "label"}},
    {"batch:1,ragged=tokens | unbatch",
     NULL,
     0,
     1,
     {"tokens", "cell", "label"}},
    {"batch:4,ragged=(tokens,cell) | unbatch",
     NULL,
     0,
     0,
     {"tokens", "cell", "label"}},
    {"batch:5,ragged=tokens,drop_last=1 | unbatch",
     NULL,
     0,
     1,
     {"tokens", "cell", "label"}},
    {"batch:4,ragged=tokens | batch:2 | unbatch | unbatch",
     NULL,
     0,
     0,
     {"tokens", "cell", "label"}},
    {"batch:5 | unbatch", NULL, 1, 1, {"tokens", "groups", "cell", "label"}},
    {"batch:2 | batch:3 | unbatch",
     "batch:2",
     1,
     0,
     {"tokens", "groups.offsets", "groups", "cell", "label"}},
    {"batch:2 | batch:5 | unbatch | unbatch",
     NULL,
     1,
     1,
     {"tokens", "groups", "cell", "label"}},
};
enum { TRIPS = sizeof(round_trips) / sizeof(round_trips[0]) };

START_TEST(batches_come_apart_again)
{
    const struct round_trip *trip = &round_trips[_i / 4];
    source.is_stream = _i % 2;
    source.is_stable = _i / 2 % 2;
    source.has_groups = trip->has_groups;
    reader = open_chain(trip->text);
    model = open_chain(trip->model);
    ck_assert_int_eq(leat_reader_is_random_access(reader),
                     trip->is_random_access && !source.is_stream);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        const leat_position begin = {epoch, 0};
        ck_assert_int_eq(leat_reader_seek(reader, begin, NULL), LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(model, begin, NULL), LEAT_OK);
        while (leat_reader_next(model, &other) == LEAT_OK) {
            int status = leat_reader_next(reader, &sample);
            ck_assert_msg(!status, "%s", leat_last_error());
            for (int i = 0; i < 6 && trip->field[i]; i++)
                compare(trip->field[i]);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    }
}
END_TEST

START_TEST(fields_are_those_of_samples)
{
    const leat_field_spec *spec;
    int n;
    reader = open_chain("batch:3,ragged=tokens,drop_last=1 | unbatch");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(spec[0].ndim, 1);
    ck_assert_int_eq(spec[0].shape[0], -1);
    ck_assert_int_eq(spec[1].ndim, 2);
    ck_assert_int_eq(spec[1].shape[0], 2);
    ck_assert_int_eq(spec[2].ndim, 0);
    for (int i = 0; i < n; i++) {
        ck_assert(!spec[i].is_batch);
        ck_assert_ptr_null(spec[i].offsets_of);
    }
}
END_TEST

/* Rows in any order, where each batch has as many. */
START_TEST(rows_are_found_by_index)
{
    int64_t count;
    leat_sample *const out[] = {&sample, &other};
    reader = open_chain("batch:4,ragged=tokens,drop_last=1 | unbatch");
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 8);
    for (int64_t i = 0; i < count; i++) {
        const leat_position at[] = {{0, i}, {0, (i + 1) % count}};
        int got;
        leat_reader_advise(reader, at, 2);
        ck_assert_int_eq(leat_reader_read_at(reader, at, out, 2, &got), 0);
        ck_assert_int_eq(got, i % 4 == 3 ? 1 : 2);
        ck_assert_int_eq(*(const int64_t *)sample.field[2].data, i);
        ck_assert_int_eq(sample.field[0].shape[0], rows_source_length(i));
        ck_assert_int_eq(leat_reader_seek(reader, at[0], NULL), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(*(const int64_t *)sample.field[2].data, i);
    }
    for (int64_t past = 0; past < 6; past++)
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){0, count + past}, NULL),
            past == 0 ? LEAT_OK : LEAT_EINVAL);
}
END_TEST

/* A bad batch has bad rows: as many as it would have, where that is known. */
START_TEST(a_bad_batch_has_bad_rows)
{
    source.bad = 5;
    source.is_stream = _i % 2;
    source.counts = _i / 2;
    reader = open_chain("batch:4,ragged=tokens,drop_last=1 | unbatch");
    for (int i = 0; i < 8; i++) {
        int status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, i < 4 ? LEAT_OK : LEAT_EDATA);
        ck_assert_int_eq(sample.from.record, i < 4 ? 0 : 5);
        if (status)
            ck_assert_msg(strstr(leat_last_error(), "record 5 is bad") != NULL,
                          "%s", leat_last_error());
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
    reader = open_chain("batch:4,ragged=tokens | unbatch");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample),
                         i < 4 ? LEAT_OK : LEAT_EDATA);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(*(const int64_t *)sample.field[2].data, 8);
}
END_TEST

/* One field, or two that do not fit together. */
static int next_batch(void *pass, leat_sample *out)
{
    static const int64_t numbers[12] = {0, 2, 1, 4};
    const char *kind = pass;
    const int64_t four = 4, three = 3;
    if (out->from.record > 0)
        return LEAT_END;
    out->stable = 1;
    leat_sample_set(out, 0, LEAT_INT64, 1, &four, numbers);
    if (*kind == 's')
        return leat_sample_set(out, 1, LEAT_INT64, 0, NULL, numbers);
    return leat_sample_set(out, 1, LEAT_INT64, 1, *kind == 'o' ? &four : &three,
                           numbers);
}

static const struct refusal {
    const char *kind; /* scalars, rows, offsets, circles */
    leat_field_spec field[2];
    int status;
    const char *line;
} refused[] = {
    {"s",
     {{.name = "x", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}},
      {.name = "y", .dtype = LEAT_INT64}},
     LEAT_EINVAL,
     "unbatch: field y is a scalar: it has no rows"},
    {"s",
     {{.name = "x", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}},
      {.name = "y", .dtype = LEAT_INT64, .ndim = -1}},
     LEAT_EDATA,
     "unbatch: field y is int64 scalar in callback, record 0: it has no "
     "rows"},
    {"r",
     {{.name = "x", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}},
      {.name = "y", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}}},
     LEAT_EDATA,
     "field y is int64 3 in callback, record 0: expected as many rows"},
    {"r",
     {{.name = "x", .dtype = LEAT_INT64, .ndim = 1, .shape = {5}},
      {.name = "y", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}}},
     LEAT_EDATA,
     "field x is int64 4 in callback, record 0: expected as many rows"},
    {"o",
     {{.name = "x", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}},
      {.name = "y",
       .dtype = LEAT_INT64,
       .ndim = 1,
       .shape = {-1},
       .offsets_of = "x"}},
     LEAT_EDATA,
     "field y is int64 4 in callback, record 0: its offsets do not ascend"},
    {"o",
     {{.name = "x",
       .dtype = LEAT_INT64,
       .ndim = 1,
       .shape = {-1},
       .offsets_of = "y"},
      {.name = "y",
       .dtype = LEAT_INT64,
       .ndim = 1,
       .shape = {-1},
       .offsets_of = "x"}},
     LEAT_EINVAL,
     "the offsets of field x divide themselves"},
};

START_TEST(samples_that_are_no_batches_are_refused)
{
    const struct refusal *one = &refused[_i];
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = one->field,
                                      .nfields = 2,
                                      .next = next_batch};
    leat_pipeline *pipeline;
    int status = leat_pipeline_callback(&pipeline, &callbacks,
                                        (void *)(uintptr_t)one->kind);
    ck_assert_msg(!status, "%s", leat_last_error());
    pipeline = decorator_chain_make("unbatch", pipeline);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_reader_next(reader, &sample), one->status);
    ck_assert_msg(strstr(leat_last_error(), one->line) != NULL, "%s",
                  leat_last_error());
}
END_TEST

/* Over a stream every row's mark leads back to it. */
START_TEST(marks_lead_into_batches)
{
    leat_token mark;
    leat_token_init(&mark);
    source.is_stream = 1;
    source.bad = _i ? 4 : -1;
    reader = open_chain("batch:3,ragged=tokens | unbatch");
    model = open_chain("batch:3,ragged=tokens | unbatch");
    for (int i = 0;; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(model, (leat_position){0, i}, &mark),
                         LEAT_OK);
        ck_assert_uint_eq(mark.cursor, mark.size);
        int status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(leat_reader_next(model, &other), status);
        if (status == LEAT_END)
            break;
        if (!status)
            compare("label");
    }
    leat_token_finish(&mark);
}
END_TEST

START_TEST(a_mark_of_other_data_is_refused)
{
    leat_token mark;
    leat_token_init(&mark);
    const leat_position at = {0, 0}, last = {0, 10};
    const int64_t rows[] = {-1, 99, 1};
    source.is_stream = 1;
    reader = open_chain("batch:3,ragged=tokens | unbatch");
    for (int i = 0; i < 3; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat__reader_put_form(reader, &mark), LEAT_OK);
        leat_token_put(&mark, i < 2 ? &at : &last, sizeof(at));
        leat_token_put(&mark, &rows[i], sizeof(rows[i]));
        ck_assert_int_eq(leat_reader_seek(reader, at, &mark), LEAT_EINVAL);
    }
    leat_token_finish(&mark);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    int64_t before = 0;
    source.is_stream = _i;
    source.count = 40;
    reader = open_chain("batch:4,ragged=tokens,drop_last=1 | unbatch");
    for (int epoch = 0; epoch < 4; epoch++) {
        while (leat_reader_next(reader, &sample) == LEAT_OK)
            ;
        leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL);
        if (epoch == 1)
            before = leat__alloc_count();
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    ck_assert_int_gt(reader->ops->memory(reader), 0);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    source.is_stream = _i;
    leat_pipeline *pipeline = rows_source_chain(
        &source, "batch:4,ragged=tokens,drop_last=1 | unbatch");
    int64_t n = 0;
    for (int status = LEAT_ENOMEM; status == LEAT_ENOMEM; n++) {
        leat_sample *const out = &sample;
        const leat_position at = {0, 5};
        int got;
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n);
        status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < 6 && !status; i++)
            status = leat_reader_next(reader, &sample);
        if (!status && !source.is_stream)
            status = leat_reader_read_at(reader, &at, &out, 1, &got);
        leat__alloc_fail_at(-1);
        leat_reader_close(reader);
        reader = NULL;
    }
    ck_assert_int_gt(n, 10);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Reads the row at `index` alone. */
static int read_row(int64_t index)
{
    leat_sample *const out = &sample;
    const leat_position at = {0, index};
    int got;
    return leat_reader_read_at(reader, &at, &out, 1, &got);
}

START_TEST(a_batch_is_made_once_for_rows_in_order)
{
    source.count = 9;
    reader = open_chain("batch:3,ragged=tokens | unbatch");
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(read_row(i), LEAT_OK);
        ck_assert_int_eq(*(const int64_t *)sample.field[2].data, i);
    }
    ck_assert_int_eq(source.made, 9);
    ck_assert_int_gt(reader->ops->memory(reader), 3 * 2 * 3);
}
END_TEST

START_TEST(a_bad_batch_is_made_once_for_rows_in_order)
{
    source.count = 9;
    source.bad = 5;
    reader = open_chain("batch:3,ragged=tokens | unbatch");
    for (int i = 0; i < 9; i++) {
        int status = read_row(i);
        ck_assert_int_eq(status, i / 3 == 1 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(sample.from.record, i / 3 == 1 ? 5 : i / 3 * 3);
        if (status)
            ck_assert_msg(strstr(leat_last_error(), "record 5 is bad") != NULL,
                          "%s", leat_last_error());
    }
    ck_assert_int_eq(source.made, 9);
}
END_TEST

START_TEST(without_memory_a_bad_batch_is_no_good_one)
{
    source.count = 9;
    source.bad = 5;
    int64_t n = 0;
    for (int status = LEAT_ENOMEM; status == LEAT_ENOMEM; n++) {
        leat_sample_finish(&sample);
        reader = open_chain("batch:3,ragged=tokens | unbatch");
        leat__alloc_fail_at(n);
        status = read_row(4);
        leat__alloc_fail_at(-1);
        ck_assert_int_eq(read_row(4), LEAT_EDATA);
        ck_assert_int_eq(read_row(0), LEAT_OK);
        leat_reader_close(reader);
        reader = NULL;
        ck_assert(status == LEAT_ENOMEM || status == LEAT_EDATA);
    }
    ck_assert_int_gt(n, 3);
}
END_TEST

START_TEST(a_kept_batch_is_of_its_epoch)
{
    leat_sample *const out = &sample;
    const leat_position first = {0, 1}, second = {1, 1};
    int got;
    reader = open_chain("shuffle:seed=3 | batch:5,ragged=tokens | unbatch");
    model = open_chain("shuffle:seed=3");
    for (int i = 0; i < 4; i++) {
        const leat_position *at = i % 2 ? &second : &first;
        leat_sample *const expected = &other;
        ck_assert_int_eq(leat_reader_read_at(reader, at, &out, 1, &got), 0);
        ck_assert_int_eq(leat_reader_read_at(model, at, &expected, 1, &got), 0);
        compare("label");
    }
}
END_TEST

START_TEST(a_cancelled_reader_gives_no_row_of_a_batch_that_is_kept)
{
    source.count = 8;
    reader = open_chain("batch:4,ragged=tokens | unbatch");
    ck_assert_int_eq(read_row(0), LEAT_OK);
    leat_reader_cancel(reader);
    ck_assert_int_eq(read_row(1), LEAT_ECANCELLED);
}
END_TEST

START_TEST(a_cancelled_reader_gives_no_row)
{
    reader = open_chain("batch:4,ragged=tokens | unbatch");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
}
END_TEST

START_TEST(code_makes_what_text_makes)
{
    leat_pipeline *upstream = rows_source_pipeline(&source), *made;
    ck_assert_int_eq(leat_pipeline_unbatch(&made, upstream), LEAT_OK);
    ck_assert_msg(strstr(leat_pipeline_text(made), "unbatch") != NULL, "%s",
                  leat_pipeline_text(made));
    leat_pipeline_unref(made);
    leat_pipeline_unref(upstream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unbatch");
    TCase *tcase = tcase_create("rows");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, batches_come_apart_again, 0, 4 * TRIPS);
    tcase_add_test(tcase, fields_are_those_of_samples);
    tcase_add_test(tcase, rows_are_found_by_index);
    tcase_add_loop_test(tcase, a_bad_batch_has_bad_rows, 0, 4);
    tcase_add_loop_test(tcase, samples_that_are_no_batches_are_refused, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tcase, marks_lead_into_batches, 0, 2);
    tcase_add_test(tcase, a_mark_of_other_data_is_refused);
    tcase_add_loop_test(tcase, nothing_is_allocated_in_the_steady_state, 0, 2);
    tcase_add_loop_test(tcase, every_failed_allocation_is_an_error, 0, 2);
    tcase_add_test(tcase, a_batch_is_made_once_for_rows_in_order);
    tcase_add_test(tcase, a_bad_batch_is_made_once_for_rows_in_order);
    tcase_add_test(tcase, without_memory_a_bad_batch_is_no_good_one);
    tcase_add_test(tcase, a_kept_batch_is_of_its_epoch);
    tcase_add_test(tcase,
                   a_cancelled_reader_gives_no_row_of_a_batch_that_is_kept);
    tcase_add_test(tcase, a_cancelled_reader_gives_no_row);
    tcase_add_test(tcase, code_makes_what_text_makes);
    return suite_run(suite);
}
