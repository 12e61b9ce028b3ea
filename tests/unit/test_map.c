/* Samples changed by a function of the caller's. */
#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "support/map_fixture.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { COUNT = 40 };

static int32_t numbers[COUNT];
static int32_t others[COUNT];

static leat_pipeline *memory(void)
{
    static const leat_memory_field fields[] = {
        {"x", LEAT_INT32, 0, {0}, numbers}, {"y", LEAT_INT32, 0, {0}, others}};
    leat_pipeline *made = NULL;
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        others[i] = -i;
    }
    ck_assert_int_eq(leat_pipeline_memory(&made, fields, 2, COUNT), LEAT_OK);
    return made;
}

/* The same samples, as a stream. */
static int give(void *pass, leat_sample *sample)
{
    int *next = pass;
    if (*next == COUNT)
        return LEAT_END;
    sample->stable = 1;
    int status =
        leat_sample_set(sample, 0, LEAT_INT32, 0, NULL, &numbers[*next]);
    return status ? status
                  : leat_sample_set(sample, 1, LEAT_INT32, 0, NULL,
                                    &others[(*next)++]);
}

static int rewind_stream(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

static int next_of_stream;

static leat_pipeline *stream(void)
{
    static const leat_field_spec spec[] = {{.name = "x", .dtype = LEAT_INT32},
                                           {.name = "y", .dtype = LEAT_INT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = spec,
                                      .nfields = 2,
                                      .next = give,
                                      .reset = rewind_stream};
    leat_pipeline *made = NULL;
    leat_pipeline_unref(memory());
    next_of_stream = 0;
    ck_assert_int_eq(leat_pipeline_callback(&made, &callbacks, &next_of_stream),
                     LEAT_OK);
    return made;
}

/* Takes the upstream pipeline. */
static leat_pipeline *mapped(leat_pipeline *upstream,
                             leat_map_function *function, void *user,
                             const leat_map_options *options)
{
    leat_pipeline *made = NULL;
    int status = leat_pipeline_map(&made, upstream, function, user, 7, options);
    ck_assert_msg(!status, "%s", leat_last_error());
    leat_pipeline_unref(upstream);
    return made;
}

static leat_reader *opened(leat_pipeline *pipeline)
{
    leat_reader *reader = NULL;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(!status, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static int32_t number_of(const leat_sample *sample, int field)
{
    int32_t number;
    memcpy(&number, sample->field[field].data, sizeof(number));
    return number;
}

/* x, y becomes y and three numbers from 2 x on. */
static const leat_field_spec tripled[] = {
    {.name = "y", .dtype = LEAT_INT32},
    {.name = "three", .dtype = LEAT_INT32, .ndim = 1, .shape = {3}},
};

static int triple(void *user, leat_sample *sample)
{
    const int64_t shape[] = {3};
    int32_t x = number_of(sample, 0);
    (void)user;
    int32_t *three = leat_sample_take(sample, 3 * sizeof(*three));
    if (!three)
        return LEAT_ENOMEM;
    for (int i = 0; i < 3; i++)
        three[i] = 2 * x + i;
    sample->field[0] = sample->field[1];
    return leat_sample_set(sample, 1, LEAT_INT32, 1, shape, three);
}

static const leat_map_options triples = {
    .size = sizeof(leat_map_options), .fields = tripled, .nfields = 2};

static void check_tripled(const leat_sample *sample, int i)
{
    ck_assert_int_eq(sample->nfields, 2);
    ck_assert_int_eq(sample->from.record, i);
    ck_assert_int_eq(number_of(sample, 0), -i);
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq(map_fixture_number(sample, 1, k), 2 * i + k);
    ck_assert_int_eq(sample->stable, 0);
}

START_TEST(fields_and_shapes_change_and_random_access_is_kept)
{
    const leat_field_spec *spec;
    leat_sample sample;
    int64_t count;
    int n;
    leat_reader *reader = opened(mapped(memory(), triple, NULL, &triples));
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(spec[1].name, "three");
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        check_tripled(&sample, i);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    int64_t before = leat__alloc_count();
    for (int i = COUNT - 1; i >= 0; i--) {
        ck_assert_int_eq(map_fixture_read(reader, i, &sample), LEAT_OK);
        check_tripled(&sample, i);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_stream_is_mapped_in_order_and_resumes)
{
    leat_sample sample;
    leat_token mark;
    leat_reader *reader = opened(mapped(stream(), triple, NULL, &triples));
    leat_sample_init(&sample);
    leat_token_init(&mark);
    ck_assert_int_eq(leat_reader_is_random_access(reader), 0);
    for (int k = 0; k < COUNT; k += 3) {
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
        for (int i = 0; i < k; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, k}, &mark),
                         LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_double_eq(map_fixture_number(&sample, 1, 0), 2 * k);
    }
    leat_token_finish(&mark);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(over_a_stream_of_known_length_it_has_a_count)
{
    leat_shuffle_options shuffle = LEAT_SHUFFLE_OPTIONS_INIT;
    leat_map_options ends = triples;
    leat_pipeline *base = memory(), *shuffled = NULL;
    int64_t count = -1;
    shuffle.buffer = 3;
    ends.may_end = 1;
    ck_assert_int_eq(leat_pipeline_shuffle(&shuffled, base, &shuffle), LEAT_OK);
    leat_pipeline_unref(base);
    leat_pipeline_ref(shuffled);
    leat_reader *reader = opened(mapped(shuffled, triple, NULL, &triples));
    ck_assert_int_eq(leat_reader_is_random_access(reader), 0);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, COUNT);
    leat_reader_close(reader);
    reader = opened(mapped(shuffled, triple, NULL, &ends));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_EUNSUPPORTED);
    leat_reader_close(reader);
    reader = opened(mapped(stream(), triple, NULL, &triples));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_EUNSUPPORTED);
    leat_reader_close(reader);
}
END_TEST

/* What goes wrong with sample 5. */
typedef struct fault {
    int status;
    const char *line;  /* that the function sets; NULL: none */
    int expected;      /* status of the reader */
    const char *part;  /* of its line */
    int nfields, ndim; /* of a sample that differs; else 0 */
    leat_dtype dtype;
} fault;

static int fail_at_five(void *user, leat_sample *sample)
{
    const fault *fault = user;
    if (number_of(sample, 0) != 5)
        return triple(NULL, sample);
    if (fault->nfields) {
        int status = triple(NULL, sample);
        sample->nfields = fault->nfields;
        sample->field[1].ndim = fault->ndim;
        sample->field[1].dtype = fault->dtype;
        return status;
    }
    return fault->line ? leat_error(fault->status, "%s", fault->line)
                       : fault->status;
}

static const fault faults[] = {
    {LEAT_EDATA, "x is 5", LEAT_EDATA, "map: memory: record 5: x is 5", 0, 0,
     0},
    {LEAT_EDATA, NULL, LEAT_EDATA, "the function gave no reason", 0, 0, 0},
    {LEAT_EIO, "no disk", LEAT_EIO, "no disk", 0, 0, 0},
    {LEAT_EIO, NULL, LEAT_EIO, "map: the function gave no reason", 0, 0, 0},
    {LEAT_END, NULL, LEAT_ESTATE, "expected the option may_end", 0, 0, 0},
    {77, NULL, LEAT_ESTATE, "the function returned 77", 0, 0, 0},
    {-7777, NULL, LEAT_ESTATE, "the function returned -7777", 0, 0, 0},
    {0, NULL, LEAT_EDATA, "it has 1 fields, but 2 were declared", 1, 1,
     LEAT_INT32},
    {0, NULL, LEAT_EDATA,
     "field \"three\" is int32 scalar, but int32 3 was declared", 2, 0,
     LEAT_INT32},
    {0, NULL, LEAT_EDATA, "field \"three\" is uint8 3, but int32", 2, 1,
     LEAT_UINT8},
    {0, NULL, LEAT_EDATA, "field \"three\" has fewer bytes", 2, 1, LEAT_INT64},
    {0, NULL, LEAT_EDATA, "field \"three\" has fewer bytes", 2, 9, LEAT_INT32},
    {0, NULL, LEAT_EDATA, "field \"three\" has fewer bytes", 2, 1,
     (leat_dtype)99},
};
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

static void check_fault(const fault *fault, leat_pipeline *base, int in_order)
{
    leat_map_options options = triples;
    leat_sample sample;
    options.in_order = in_order;
    leat_reader *reader =
        opened(mapped(base, fail_at_five, (void *)(uintptr_t)fault, &options));
    leat_sample_init(&sample);
    for (int i = 0; i < 8; i++) {
        int status = leat_reader_next(reader, &sample);
        if (i < 5 || (i > 5 && fault->expected == LEAT_EDATA)) {
            ck_assert_int_eq(status, LEAT_OK);
            ck_assert_double_eq(map_fixture_number(&sample, 1, 0), 2 * i);
            continue;
        }
        ck_assert_msg(status == fault->expected, "%d: %s", status,
                      leat_last_error());
        if (i == 5)
            ck_assert_msg(strstr(leat_last_error(), fault->part), "%s",
                          leat_last_error());
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}

START_TEST(each_failure_is_an_error_with_a_line)
{
    for (int in_order = 0; in_order < 2; in_order++) {
        check_fault(&faults[_i], memory(), in_order);
        fault named = faults[_i];
        if (strstr(named.part, "memory"))
            named.part = "record 5: x is 5";
        check_fault(&named, stream(), in_order);
    }
}
END_TEST

/* Ends each epoch before the sample of 12. */
static int end_at_twelve(void *user, leat_sample *sample)
{
    (void)user;
    return number_of(sample, 0) >= 12 ? LEAT_END : triple(NULL, sample);
}

static void check_ending(leat_pipeline *base)
{
    leat_map_options options = triples;
    leat_sample sample;
    leat_token mark;
    int64_t count;
    options.may_end = 1;
    leat_reader *reader = opened(mapped(base, end_at_twelve, NULL, &options));
    leat_sample_init(&sample);
    leat_token_init(&mark);
    ck_assert_int_eq(leat_reader_is_random_access(reader), 0);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_EUNSUPPORTED);
    for (int64_t epoch = 0; epoch < 2; epoch++)
        for (int k = 0; k <= 13; k++) {
            const leat_position begin = {epoch, 0};
            ck_assert_int_eq(leat_reader_seek(reader, begin, NULL), LEAT_OK);
            for (int i = 0; i < k; i++)
                ck_assert_int_eq(leat_reader_next(reader, &sample),
                                 i < 12 ? LEAT_OK : LEAT_END);
            mark.size = mark.cursor = 0;
            ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
            const leat_position there = {epoch, k < 12 ? k : 12};
            ck_assert_int_eq(leat_reader_seek(reader, there, NULL),
                             k ? LEAT_EUNSUPPORTED : LEAT_OK);
            ck_assert_int_eq(leat_reader_seek(reader, there, &mark), LEAT_OK);
            for (int i = k; i < 12; i++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                check_tripled(&sample, i);
            }
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        }
    int64_t skipped;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){3, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 20, &skipped), LEAT_END);
    ck_assert_int_eq(skipped, 12);
    leat_token_finish(&mark);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}

START_TEST(a_map_may_end_the_sequence_and_resumes_by_marks)
{
    check_ending(memory());
    check_ending(stream());
}
END_TEST

static int end_at_five(void *user, leat_sample *sample)
{
    (void)user;
    return number_of(sample, 0) == 5 ? LEAT_END : LEAT_OK;
}

/* The sample at which it ends is begun, and the next pass goes on into it. */
START_TEST(nothing_of_the_sample_that_ends_a_pass_is_left)
{
    const leat_map_options ends = {.size = sizeof(ends), .may_end = 1};
    leat_pipeline *pass =
        mapped(_i ? stream() : memory(), end_at_five, NULL, &ends);
    leat_pipeline *repeated = NULL;
    leat_sample sample;
    ck_assert_int_eq(leat_pipeline_repeat(&repeated, pass, 3), LEAT_OK);
    leat_pipeline_unref(pass);
    leat_reader *reader = opened(repeated);
    leat_sample_init(&sample);
    for (int i = 0; i < 15; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 2);
        ck_assert_int_eq(number_of(&sample, 0), i % 5);
        ck_assert_int_eq(number_of(&sample, 1), -(i % 5));
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

/* Whether calls overlapped, or came out of order. */
static atomic_int calls, misordered;

static int watch_order(void *user, leat_sample *sample)
{
    int32_t x = number_of(sample, 0);
    (void)user;
    if (atomic_fetch_add(&calls, 1) % COUNT != x)
        atomic_fetch_add(&misordered, 1);
    return LEAT_OK;
}

static void forward_some(leat_pipeline *ints, int workers, int forwards)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_cast(&pipeline, ints, "x", LEAT_FLOAT32),
                     LEAT_OK);
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_blob *top[2];
    options.batch_size = 10;
    options.workers = workers;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], NULL), LEAT_OK);
    int status = leat_data_layer_setup(layer, top, 2);
    ck_assert_msg(!status, "%s", leat_last_error());
    for (int k = 0; k < forwards; k++) {
        status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
        ck_assert_msg(!status, "%s", leat_last_error());
        const float *x = leat_blob_cpu_data(top[0]);
        for (int i = 0; i < 10; i++)
            ck_assert_double_eq((double)x[i], (10 * k + i) % COUNT);
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(top[i]);
}

START_TEST(in_order_one_call_runs_at_a_time)
{
    const leat_map_options options = {.size = sizeof(options), .in_order = 1};
    atomic_store(&calls, 0);
    atomic_store(&misordered, 0);
    leat_pipeline *made = mapped(memory(), watch_order, NULL, &options);
    forward_some(made, 3, 20);
    ck_assert_int_eq(atomic_load(&misordered), 0);
    leat_pipeline_unref(made);
}
END_TEST

/* Threads that were inside at once: each waits for another. Setup reads the
 * first sample alone. */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside, met, cancelled, is_released;
} meeting;

static int meet(void *user, leat_sample *sample)
{
    meeting *meeting = user;
    if (number_of(sample, 0) == 0)
        return LEAT_OK;
    pthread_mutex_lock(&meeting->lock);
    meeting->met |= ++meeting->inside > 1;
    pthread_cond_broadcast(&meeting->changed);
    while (!meeting->met && !meeting->cancelled)
        pthread_cond_wait(&meeting->changed, &meeting->lock);
    meeting->inside--;
    pthread_mutex_unlock(&meeting->lock);
    return LEAT_OK;
}

static void wake(void *user)
{
    meeting *meeting = user;
    pthread_mutex_lock(&meeting->lock);
    meeting->cancelled = 1;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}

static void note_release(void *user)
{
    ((meeting *)user)->is_released = 1;
}

START_TEST(what_cannot_be_made_releases_the_user)
{
    leat_pipeline *base = memory(), *made = NULL;
    meeting place = {.is_released = 0}, other = {.is_released = 0};
    const leat_map_options options = {.size = sizeof(options),
                                      .release = note_release};
    const leat_filter_options filter = {.size = sizeof(filter),
                                        .release = note_release};
    ck_assert_int_eq(leat_pipeline_map(&made, base, NULL, &place, 1, &options),
                     LEAT_EINVAL);
    ck_assert_int_eq(place.is_released, 1);
    ck_assert_int_eq(
        leat_pipeline_filter(&made, base, NULL, &other, 1, &filter),
        LEAT_EINVAL);
    ck_assert_int_eq(other.is_released, 1);
    leat_pipeline_unref(base);
}
END_TEST

START_TEST(a_layers_workers_call_it_in_parallel)
{
    meeting place = {.lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};
    const leat_map_options options = {
        .size = sizeof(options), .cancel = wake, .release = note_release};
    leat_pipeline *made = mapped(memory(), meet, &place, &options);
    forward_some(made, 2, 8);
    ck_assert_int_eq(place.met, 1);
    leat_pipeline_unref(made);
    ck_assert_int_eq(place.is_released, 1);
}
END_TEST

static void *cancel_once_inside(void *argument)
{
    leat_reader *reader = ((void **)argument)[0];
    meeting *meeting = ((void **)argument)[1];
    pthread_mutex_lock(&meeting->lock);
    while (!meeting->inside)
        pthread_cond_wait(&meeting->changed, &meeting->lock);
    pthread_mutex_unlock(&meeting->lock);
    leat_reader_cancel(reader);
    return NULL;
}

START_TEST(cancel_wakes_a_call_that_blocks)
{
    meeting place = {.lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};
    leat_map_options options = {
        .size = sizeof(options), .cancel = wake, .may_block = 1};
    leat__thread thread = {0};
    leat_sample sample;
    options.in_order = _i;
    leat_reader *reader = opened(mapped(memory(), meet, &place, &options));
    void *both[] = {reader, &place};
    ck_assert_int_eq(
        leat__thread_start(&thread, "canceller", cancel_once_inside, both),
        LEAT_OK);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int status = leat_reader_next(reader, &sample);
    leat__thread_join(&thread);
    ck_assert(status == LEAT_ECANCELLED || status == LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_may_block(reader), 1);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

/* Adds a field of the sample's position. */
static const leat_field_spec placed[] = {
    {.name = "x", .dtype = LEAT_INT32},
    {.name = "y", .dtype = LEAT_INT32},
    {.name = "at", .dtype = LEAT_INT64, .ndim = 1, .shape = {2}}};

static int note_place(void *user, leat_sample *sample)
{
    const int64_t shape[] = {2};
    (void)user;
    int64_t *at = leat_sample_take(sample, 2 * sizeof(*at));
    if (!at)
        return LEAT_ENOMEM;
    at[0] = sample->at.epoch;
    at[1] = sample->at.index;
    return leat_sample_set(sample, 2, LEAT_INT64, 1, shape, at);
}

static int note_place_after(void *user, leat_sample *sample)
{
    const int64_t inner = (int64_t)map_fixture_number(sample, 2, 1);
    int status = note_place(user, sample);
    if (status)
        return status;
    sample->field[1] = sample->field[2];
    int64_t *at = leat_sample_take(sample, sizeof(*at));
    if (!at)
        return LEAT_ENOMEM;
    *at = inner;
    return leat_sample_set(sample, 2, LEAT_INT64, 0, NULL, at);
}

static const leat_field_spec placed_twice[] = {
    {.name = "x", .dtype = LEAT_INT32},
    {.name = "outer", .dtype = LEAT_INT64, .ndim = 1, .shape = {2}},
    {.name = "inner", .dtype = LEAT_INT64}};

static const leat_map_options with_place = {.size = sizeof(leat_map_options),
                                            .fields = placed,
                                            .nfields = 3,
                                            .uses_position = 1};
static const leat_map_options with_places = {.size = sizeof(leat_map_options),
                                             .fields = placed_twice,
                                             .nfields = 3,
                                             .uses_position = 1};

START_TEST(positions_are_those_of_the_maps_own_sequence)
{
    leat_sample sample;
    leat_sample_init(&sample);
    for (int way = 0; way < 2; way++) {
        leat_reader *reader = opened(
            mapped(way ? stream() : memory(), note_place, NULL, &with_place));
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            ck_assert_int_eq(
                leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                LEAT_OK);
            for (int i = 0; i < COUNT; i++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                ck_assert_double_eq(map_fixture_number(&sample, 2, 0),
                                    (double)epoch);
                ck_assert_double_eq(map_fixture_number(&sample, 2, 1), i);
            }
        }
        const leat_position at = {9, 4};
        leat_sample *out[] = {&sample};
        int got;
        if (way == 0) {
            ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                             LEAT_OK);
            ck_assert_double_eq(map_fixture_number(&sample, 2, 0), 9);
            ck_assert_double_eq(map_fixture_number(&sample, 2, 1), 4);
        }
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
}
END_TEST

/* Between the maps a filter drops samples, and passes deferred ones on. */
START_TEST(two_maps_of_other_positions_each_have_their_own)
{
    leat_sample buffers[5];
    leat_sample *out[5];
    leat_token mark;
    leat_token_init(&mark);
    for (int i = 0; i < 5; i++)
        leat_sample_init(out[i] = &buffers[i]);
    leat_pipeline *inner = mapped(memory(), note_place, NULL, &with_place);
    leat_pipeline *between = stream_decorators_take(STREAM_FILTER, inner);
    leat_pipeline *outer =
        mapped(between, note_place_after, NULL, &with_places);
    leat_reader *reader = opened(outer);
    int status = LEAT_OK, got = 0;
    int64_t index = 0;
    while (!status) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        for (int again = 0; again < 2; again++) {
            status = leat_reader_next_batch(reader, out, 1 + index % 5, &got);
            ck_assert(status == LEAT_OK || status == LEAT_END);
            for (int i = 0; i < got; i++) {
                ck_assert_double_eq(map_fixture_number(out[i], 1, 1),
                                    (double)(index + i));
                ck_assert_double_eq(
                    map_fixture_number(out[i], 2, 0),
                    (double)stream_decorators_filtered(index + i));
            }
            if (!again)
                ck_assert_int_eq(
                    leat_reader_seek(reader, (leat_position){0, index}, &mark),
                    LEAT_OK);
        }
        index += got;
    }
    ck_assert_int_eq(index, stream_decorators_left(COUNT));
    for (int i = 0; i < 5; i++)
        leat_sample_finish(out[i]);
    leat_token_finish(&mark);
    leat_reader_close(reader);
}
END_TEST

/* Takes much memory, so that the buffer of the joined sample moves. */
static int grow(void *user, leat_sample *sample)
{
    const int64_t shape[] = {100000};
    (void)user;
    if (sample->nfields != 2)
        return leat_error(LEAT_EDATA, "it sees %d fields", sample->nfields);
    memset(leat_sample_take(sample, 100000), 3, 100000);
    unsigned char *large = leat_sample_take(sample, 100000);
    memset(large, 9, 100000);
    return leat_sample_set(sample, 1, LEAT_UINT8, 1, shape, large);
}

static const leat_field_spec grown[] = {
    {.name = "x", .dtype = LEAT_INT32},
    {.name = "large", .dtype = LEAT_UINT8, .ndim = 1, .shape = {100000}}};

START_TEST(under_a_join_it_sees_its_own_fields_alone)
{
    const leat_map_options large = {
        .size = sizeof(large), .fields = grown, .nfields = 2};
    leat_sample sample;
    leat_pipeline *left = mapped(memory(), triple, NULL, &triples);
    leat_pipeline *right = mapped(memory(), grow, NULL, &large);
    leat_pipeline *upstream[] = {left, right};
    leat_reader *reader =
        opened(stream_decorators_over(STREAM_ZIP, upstream, 2));
    leat_pipeline_unref(left);
    leat_pipeline_unref(right);
    leat_sample_init(&sample);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 4);
        for (int k = 0; k < 3; k++)
            ck_assert_double_eq(map_fixture_number(&sample, 1, k), 2 * i + k);
        ck_assert_int_eq(number_of(&sample, 2), i);
        ck_assert_double_eq(map_fixture_number(&sample, 3, 99999), 9);
        if (i % 5 == 0)
            leat_sample_finish(&sample);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(the_id_tells_functions_apart_in_tokens)
{
    leat_pipeline *base = memory(), *a, *b, *c;
    ck_assert_int_eq(leat_pipeline_map(&a, base, triple, NULL, 1, &triples),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_map(&b, base, triple, NULL, 2, &triples),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_map(&c, base, triple, NULL, 1, &triples),
                     LEAT_OK);
    ck_assert_uint_ne(leat__pipeline_hash(a), leat__pipeline_hash(b));
    ck_assert_uint_eq(leat__pipeline_hash(a), leat__pipeline_hash(c));
    leat_pipeline_unref(a);
    leat_pipeline_unref(b);
    leat_pipeline_unref(c);
    leat_pipeline_unref(base);
}
END_TEST

START_TEST(options_are_checked)
{
    leat_pipeline *base = memory(), *made;
    leat_map_options options;
    memset(&options, 0, sizeof(options));
    ck_assert_int_eq(leat_pipeline_map(&made, base, triple, NULL, 1, &options),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_map_options_init(&options), LEAT_EINVAL);
    options.size = sizeof(options);
    ck_assert_int_eq(leat_map_options_init(&options), LEAT_OK);
    options.fields = tripled;
    ck_assert_int_eq(leat_pipeline_map(&made, base, triple, NULL, 1, &options),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_map(&made, base, NULL, NULL, 1, NULL),
                     LEAT_EINVAL);
    leat_pipeline_unref(base);
}
END_TEST

static int read_with_fault(leat_pipeline *pipeline, int64_t n)
{
    leat_reader *reader = NULL;
    leat_sample sample;
    leat_sample_init(&sample);
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    int status = leat_pipeline_open(pipeline, &reader);
    for (int i = 0; i < 3 && !status; i++)
        status = leat_reader_next(reader, &sample);
    leat__alloc_fail_at(-1);
    ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

START_TEST(every_failing_allocation_is_an_error)
{
    leat_pipeline *base = memory(), *made = NULL;
    int status = LEAT_ENOMEM;
    for (int64_t n = 0; status; n++) {
        leat__alloc_fail_at(n);
        status = leat_pipeline_map(&made, base, triple, NULL, 1, &triples);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    for (int64_t n = 0; read_with_fault(made, n);)
        n++;
    leat_pipeline_unref(made);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("map");
    TCase *tcase = tcase_create("map");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, fields_and_shapes_change_and_random_access_is_kept);
    tcase_add_test(tcase, a_stream_is_mapped_in_order_and_resumes);
    tcase_add_test(tcase, over_a_stream_of_known_length_it_has_a_count);
    tcase_add_loop_test(tcase, each_failure_is_an_error_with_a_line, 0, FAULTS);
    tcase_add_test(tcase, a_map_may_end_the_sequence_and_resumes_by_marks);
    tcase_add_loop_test(tcase, nothing_of_the_sample_that_ends_a_pass_is_left,
                        0, 2);
    tcase_add_test(tcase, in_order_one_call_runs_at_a_time);
    tcase_add_test(tcase, a_layers_workers_call_it_in_parallel);
    tcase_add_loop_test(tcase, cancel_wakes_a_call_that_blocks, 0, 2);
    tcase_add_test(tcase, positions_are_those_of_the_maps_own_sequence);
    tcase_add_test(tcase, two_maps_of_other_positions_each_have_their_own);
    tcase_add_test(tcase, under_a_join_it_sees_its_own_fields_alone);
    tcase_add_test(tcase, the_id_tells_functions_apart_in_tokens);
    tcase_add_test(tcase, options_are_checked);
    tcase_add_test(tcase, every_failing_allocation_is_an_error);
    tcase_add_test(tcase, what_cannot_be_made_releases_the_user);
    return suite_run(suite);
}
