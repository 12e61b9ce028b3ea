/* bucket:FIELD,BOUNDS, by a model of tf.data's bucket_by_sequence_length. */
#include "base/memory.h"
#include "support/decorator_chain.h"
#include "support/rows_source.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_MAX = 128, SAMPLES_MAX = 256, LABEL = 2, FILTERS = 2 };

static rows_source source;
static int every[FILTERS]; /* nth record a filter has bad; 0: no filter */
static leat_sample sample;
static leat_reader *reader, *other;

static void set_up(void)
{
    source = (rows_source)ROWS_SOURCE_INIT;
    memset(every, 0, sizeof(every));
    leat_sample_init(&sample);
    reader = other = NULL;
}

static void tear_down(void)
{
    leat_reader_close(reader);
    leat_reader_close(other);
    leat_sample_finish(&sample);
}

static leat_reader *open_pipeline(leat_pipeline *pipeline)
{
    leat_reader *opened = NULL;
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    int status = leat_pipeline_open(pipeline, &opened);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(!status, "%s", leat_last_error());
    return opened;
}

static leat_reader *open_chain(const char *text)
{
    return open_pipeline(rows_source_chain(&source, text));
}

static bool refuses(const int *nth, int64_t i)
{
    return *nth > 0 && i % *nth == *nth - 1;
}

static bool is_bad(int i)
{
    return i == source.bad || refuses(&every[0], i) || refuses(&every[1], i);
}

/* Buckets, and what they give: the samples of each batch, or a bad record. */
typedef struct bucket_case {
    const char *text;
    int nbounds, bound[BUCKETS_MAX];
    int size[BUCKETS_MAX];
    int drops, to_bound;
} bucket_case;

typedef struct expected_batch {
    int n, bad;
    int record[SAMPLES_MAX];
    int length; /* to which tokens are padded */
} expected_batch;

static struct model {
    int n;
    expected_batch batch[SAMPLES_MAX];
    int held[BUCKETS_MAX], sample[BUCKETS_MAX][SAMPLES_MAX];
} model;

static void model_give(const bucket_case *one, int b)
{
    expected_batch *batch = &model.batch[model.n++];
    *batch = (expected_batch){.n = model.held[b], .bad = -1};
    for (int i = 0; i < model.held[b]; i++) {
        int length = rows_source_length(model.sample[b][i]);
        batch->record[i] = model.sample[b][i];
        batch->length = batch->length > length ? batch->length : length;
    }
    if (one->to_bound)
        batch->length = one->bound[b] - 1;
    model.held[b] = 0;
}

static void make_model(const bucket_case *one)
{
    memset(&model, 0, sizeof(model));
    for (int i = 0; i < source.count; i++) {
        int b = 0;
        if (is_bad(i)) {
            model.batch[model.n++] = (expected_batch){.bad = i};
            continue;
        }
        while (b < one->nbounds && rows_source_length(i) >= one->bound[b])
            b++;
        model.sample[b][model.held[b]++] = i;
        if (model.held[b] == one->size[b])
            model_give(one, b);
    }
    for (int b = 0; b <= one->nbounds && !one->drops; b++)
        if (model.held[b] > 0)
            model_give(one, b);
}

static void check_batch(int i, int status)
{
    const expected_batch *batch = &model.batch[i];
    if (batch->bad >= 0) {
        ck_assert_int_eq(status, LEAT_EDATA);
        ck_assert_int_eq(sample.from.record, batch->bad);
        return;
    }
    ck_assert_msg(!status, "batch %d: %s", i, leat_last_error());
    ck_assert_int_eq(sample.field[LABEL].shape[0], batch->n);
    ck_assert_int_eq(sample.field[0].shape[1], batch->length);
    ck_assert_int_eq(sample.from.record, batch->record[0]);
    const int32_t *tokens = sample.field[0].data;
    for (int k = 0; k < batch->n; k++) {
        const int64_t *labels = sample.field[LABEL].data;
        int record = batch->record[k];
        ck_assert_int_eq(labels[k], record);
        for (int t = 0; t < batch->length; t++)
            ck_assert_int_eq(*tokens++, t < rows_source_length(record)
                                            ? 100 * record + t
                                            : 0);
    }
}

static void check_from(leat_reader *from, int i, int most)
{
    for (; i < model.n && most > 0; i++, most--)
        check_batch(i, leat_reader_next(from, &sample));
    if (i == model.n)
        ck_assert_int_eq(leat_reader_next(from, &sample), LEAT_END);
}

/* Bytes of a mark of the source, and of a filter. */
enum {
    SOURCE_MARK = sizeof(leat_position),
    FILTER_MARK = sizeof(leat_position) + sizeof(int64_t)
};

/* The mark of each place, in a reader that was elsewhere; `below`: bytes of the
 * mark of the reader below the buckets. */
static void check_marks(size_t below)
{
    leat_token mark;
    leat_token_init(&mark);
    for (int i = 0; i <= model.n; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_uint_eq(mark.size, sizeof(uint64_t) + below + 32);
        int status = leat_reader_seek(other, (leat_position){1, i}, &mark);
        ck_assert_msg(!status, "%d: %s", i, leat_last_error());
        ck_assert_uint_eq(mark.cursor, mark.size);
        /* It takes marks as well, also of what it has read again. */
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(other, &mark), LEAT_OK);
        check_from(other, i, 3);
        ck_assert_int_eq(leat_reader_seek(other, (leat_position){1, i}, &mark),
                         LEAT_OK);
        check_from(other, i, SAMPLES_MAX);
        check_from(reader, i, 1);
    }
    leat_token_finish(&mark);
}

static const bucket_case cases[] = {
    {.text = "bucket:tokens,3,batch=4",
     .nbounds = 1,
     .bound = {3},
     .size = {4, 4}},
    {.text = "bucket:tokens,(1,3),batch=(2,7,3)",
     .nbounds = 2,
     .bound = {1, 3},
     .size = {2, 7, 3}},
    {.text = "bucket:tokens,(1,3),batch=(2,7,3),drop_last=1",
     .nbounds = 2,
     .bound = {1, 3},
     .size = {2, 7, 3},
     .drops = 1},
    {.text = "bucket:tokens,(2,5),batch=(5,30,1),to_bound=1",
     .nbounds = 2,
     .bound = {2, 5},
     .size = {5, 30, 1},
     .to_bound = 1},
    {.text = "bucket:tokens,(2,3,9),batch=(1,1,100,8)",
     .nbounds = 3,
     .bound = {2, 3, 9},
     .size = {1, 1, 100, 8}},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

START_TEST(buckets_are_those_of_tf_data)
{
    source.is_stream = _i % 2;
    source.is_stable = _i / 2 % 2;
    source.bad = _i / 4 % 2 ? 17 : -1;
    for (source.count = 0; source.count < 150; source.count += 49) {
        make_model(&cases[_i / 8]);
        reader = open_chain(cases[_i / 8].text);
        other = open_chain(cases[_i / 8].text);
        check_from(reader, 0, SAMPLES_MAX);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                         LEAT_OK);
        check_marks(SOURCE_MARK);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 1}, NULL),
                         LEAT_EUNSUPPORTED);
        leat_reader_close(reader);
        leat_reader_close(other);
        reader = other = NULL;
    }
}
END_TEST

static int filter(void *nth, const leat_sample *from, int *keep)
{
    int64_t label;
    memcpy(&label, from->field[LABEL].data, sizeof(label));
    *keep = 1;
    return refuses(nth, label) ? leat_error(LEAT_EDATA, "refused") : LEAT_OK;
}

static leat_reader *open_filtered(const char *text)
{
    leat_pipeline *made = rows_source_pipeline(&source);
    for (int i = 0; i < FILTERS; i++) {
        leat_pipeline *below = made;
        ck_assert_int_eq(
            leat_pipeline_filter(&made, below, filter, &every[i], i, NULL),
            LEAT_OK);
        leat_pipeline_unref(below);
    }
    return open_pipeline(decorator_chain_make(text, made));
}

/* A filter that refuses the last sample of a call has a bad record to come
 * below, before which there is no mark. */
START_TEST(filters_have_bad_records_at_every_distance)
{
    every[0] = _i;
    source.count = 200;
    for (every[1] = 2; every[1] < 14; every[1]++) {
        make_model(&cases[0]);
        reader = open_filtered(cases[0].text);
        other = open_filtered(cases[0].text);
        check_from(reader, 0, SAMPLES_MAX);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                         LEAT_OK);
        check_marks(FILTERS * FILTER_MARK + SOURCE_MARK);
        leat_reader_close(reader);
        leat_reader_close(other);
        reader = other = NULL;
    }
}
END_TEST

/* The counts of so many buckets are more than a mark can have. */
START_TEST(many_buckets_resume_from_the_epochs_begin)
{
    static char text[1024];
    static bucket_case many;
    size_t at = (size_t)snprintf(text, sizeof(text), "bucket:tokens,(1");
    many = (bucket_case){.nbounds = 104};
    for (int i = 0; i <= many.nbounds; i++) {
        many.bound[i] = i + 1;
        many.size[i] = 3;
        if (i > 0 && i < many.nbounds)
            at += (size_t)snprintf(text + at, sizeof(text) - at, ",%d", i + 1);
    }
    snprintf(text + at, sizeof(text) - at, "),batch=3");
    source.count = 71;
    source.bad = 13;
    make_model(&many);
    reader = open_chain(text);
    other = open_chain(text);
    check_marks(SOURCE_MARK);
}
END_TEST

/* Looked up one by one, they took time by the square of their number. */
START_TEST(many_bounds_are_read_in_one_pass)
{
    enum { BOUNDS = 400000 };
    leat_pipeline *upstream = rows_source_pipeline(&source), *made;
    char *bounds = malloc(8 * BOUNDS);
    size_t at = (size_t)sprintf(bounds, "1");
    for (int i = 2; i <= BOUNDS; i++)
        at += (size_t)sprintf(bounds + at, ",%d", i);
    ck_assert_int_eq(
        leat_pipeline_bucket(&made, upstream, "tokens", bounds, "2", 0, NULL),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(made, &reader), LEAT_OK);
    leat_pipeline_unref(upstream);
    leat_pipeline_unref(made);
    free(bounds);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[LABEL].shape[0], 2);
}
END_TEST

/* A mark over other data finds other samples. */
START_TEST(a_mark_of_other_data_is_refused)
{
    leat_token mark;
    leat_token_init(&mark);
    source.count = 60;
    reader = open_chain("bucket:tokens,(1,3),batch=(20,20,20)");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    source.count = 10;
    other = open_chain("bucket:tokens,(1,3),batch=(20,20,20)");
    ck_assert_int_eq(leat_reader_seek(other, (leat_position){0, 1}, &mark),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "the mark is of other data"), "%s",
                  leat_last_error());
    leat_token_finish(&mark);
}
END_TEST

START_TEST(samples_beyond_the_last_bound_are_bad_records)
{
    reader = open_chain("bucket:tokens,(2,4),batch=2,to_bound=1");
    int bad = 0, status;
    while ((status = leat_reader_next(reader, &sample)) != LEAT_END)
        if (status) {
            ck_assert_int_eq(status, LEAT_EDATA);
            ck_assert_int_eq(rows_source_length(sample.from.record), 4);
            ck_assert_msg(strstr(leat_last_error(), "is of length 4 in rows"),
                          "%s", leat_last_error());
            bad++;
        }
    ck_assert_int_eq(bad, 2);
}
END_TEST

START_TEST(what_is_ragged_stays_so)
{
    const leat_field_spec *spec;
    int n;
    reader = open_chain("bucket:tokens,3,batch=2,ragged=tokens,drop_last=1");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_str_eq(spec[1].offsets_of, "tokens");
    ck_assert(spec[2].is_batch);
    ck_assert_int_eq(spec[3].shape[0], 2);
    while (leat_reader_next(reader, &sample) == LEAT_OK)
        ck_assert_int_eq(sample.field[1].shape[0], 3);
}
END_TEST

static const struct refusal {
    const char *text;
    const char *line;
} refused[] = {
    {"bucket", "field is missing"},
    {"bucket:tokens", "bounds is missing"},
    {"bucket:tokens,3", "batch is missing"},
    {"bucket:tokens,(3,2),batch=4", ", which ascend, found '2'"},
    {"bucket:tokens,(3,x),batch=4", "found 'x'"},
    {"bucket:tokens,0,batch=4", "found '0'"},
    {"bucket:tokens,3,batch=0", "expected whole numbers from 1 to 16777216, f"},
    {"bucket:tokens,3,batch=(2,16777217)", "to 16777216, found '16777217'"},
    {"bucket:tokens,3,batch=(1,2,3)", "batch has 3 sizes: expected 1, or 2"},
    {"bucket:nothing,3,batch=4", "\"nothing\" names no field"},
    {"bucket:label,3,batch=4", "field label is a scalar: it has no length"},
};

START_TEST(arguments_that_do_not_fit_are_refused)
{
    leat_pipeline *pipeline = rows_source_chain(&source, refused[_i].text);
    int status = LEAT_EINVAL;
    if (pipeline)
        status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (!status)
        status = leat_reader_next(reader, &sample);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), refused[_i].line) != NULL, "%s",
                  leat_last_error());
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    int64_t before = 0, memory = 0;
    source.is_stream = _i;
    source.count = 200;
    reader = open_chain("bucket:tokens,(1,3),batch=(3,5,4)");
    for (int epoch = 0; epoch < 5; epoch++) {
        while (leat_reader_next(reader, &sample) == LEAT_OK)
            ;
        leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL);
        if (epoch == 2) {
            before = leat__alloc_count();
            memory = reader->ops->memory(reader);
        }
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    ck_assert_int_eq(reader->ops->memory(reader), memory);
    ck_assert_int_gt(memory, 64 * 1024);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    source.bad = 2;
    leat_pipeline *pipeline =
        rows_source_chain(&source, "bucket:tokens,(1,3),batch=2");
    int64_t n = 0;
    for (int status = LEAT_ENOMEM; status == LEAT_ENOMEM; n++) {
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n);
        status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < 5 && (!status || status == LEAT_EDATA); i++)
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
    reader = open_chain("bucket:tokens,3,batch=2");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
}
END_TEST

START_TEST(code_makes_what_text_makes)
{
    leat_pipeline *upstream = rows_source_pipeline(&source), *made;
    leat_group_options options = {.size = sizeof(options), .pad = "-1"};
    ck_assert_int_eq(leat_pipeline_bucket(&made, upstream, "tokens", "2,5",
                                          "3,2,1", 1, &options),
                     LEAT_OK);
    ck_assert_msg(strstr(leat_pipeline_text(made),
                         "bucket:tokens,(2,5),batch=(3,2,1),"
                         "to_bound=1,pad=(-1)"),
                  "%s", leat_pipeline_text(made));
    leat_pipeline_unref(made);
    ck_assert_int_eq(
        leat_pipeline_bucket(&made, upstream, "a,b", "2", "3", 0, NULL), 0);
    leat_pipeline_unref(made);
    ck_assert_int_eq(
        leat_pipeline_bucket(&made, upstream, NULL, "2", "3", 0, NULL),
        LEAT_EINVAL);
    leat_pipeline_unref(upstream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bucket");
    TCase *tcase = tcase_create("buckets");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, buckets_are_those_of_tf_data, 0, 8 * CASES);
    tcase_add_loop_test(tcase, filters_have_bad_records_at_every_distance, 2,
                        14);
    tcase_add_test(tcase, many_buckets_resume_from_the_epochs_begin);
    tcase_add_test(tcase, many_bounds_are_read_in_one_pass);
    tcase_add_test(tcase, a_mark_of_other_data_is_refused);
    tcase_add_test(tcase, samples_beyond_the_last_bound_are_bad_records);
    tcase_add_test(tcase, what_is_ragged_stays_so);
    tcase_add_loop_test(tcase, arguments_that_do_not_fit_are_refused, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tcase, nothing_is_allocated_in_the_steady_state, 0, 2);
    tcase_add_test(tcase, every_failed_allocation_is_an_error);
    tcase_add_test(tcase, a_cancelled_reader_gives_no_batch);
    tcase_add_test(tcase, code_makes_what_text_makes);
    return suite_run(suite);
}
