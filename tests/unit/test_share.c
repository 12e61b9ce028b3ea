/* One reader for several callers, and workspaces. */
#include "base/memory.h"
#include "pipeline/opening.h"
#include "support/sanitizer.h"
#include "support/scripted_source.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HANG = 60, THREADS = 6, MANY = 3000 };

/* A sanitizer's threads take long. */
enum { LEAVINGS = IS_SANITIZED ? 100 : 500 };

static void set_up(void)
{
    watchdog_start(HANG);
}

static void tear_down(void)
{
    watchdog_stop();
}

static leat_pipeline *parse(const char *text)
{
    leat_pipeline *pipeline;
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    return pipeline;
}

static leat_reader *open_pipeline(const leat_pipeline *pipeline)
{
    leat_reader *reader;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(!status, "%s", leat_last_error());
    return reader;
}

static leat_reader *open_text(const char *text)
{
    leat_pipeline *pipeline = parse(text);
    leat_reader *reader = open_pipeline(pipeline);
    leat_pipeline_unref(pipeline);
    return reader;
}

/* The status of opening a text that does not open. */
static int refuse(const char *text)
{
    leat_reader *reader;
    leat_pipeline *pipeline = parse(text);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    return status;
}

/* The record of the next sample, or minus the status in place of one. */
static int64_t next_record(leat_reader *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status = leat_reader_next(reader, &sample);
    int64_t record = status ? -1000 - status : sample.from.record;
    leat_sample_finish(&sample);
    return record;
}

#define STATUS(status) (-1000 - (status))

START_TEST(readers_of_one_pipeline_share_it)
{
    leat_pipeline *pipeline = parse("range:6 | share");
    leat_reader *a = open_pipeline(pipeline), *b = open_pipeline(pipeline);
    ck_assert_int_eq(next_record(a), 0);
    ck_assert_int_eq(next_record(b), 1);
    ck_assert_int_eq(next_record(b), 2);
    ck_assert_int_eq(next_record(a), 3);
    leat_reader_close(a);
    a = open_pipeline(pipeline);
    ck_assert_int_eq(next_record(a), 4);
    leat_reader_close(a);
    leat_reader_close(b);
    /* The last one has closed it: it begins anew. */
    a = open_pipeline(pipeline);
    ck_assert_int_eq(next_record(a), 0);
    leat_reader_close(a);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(other_pipelines_without_a_name_do_not)
{
    leat_reader *a = open_text("range:6 | share");
    leat_reader *b = open_text("range:6 | share");
    ck_assert_int_eq(next_record(a), 0);
    ck_assert_int_eq(next_record(b), 0);
    leat_reader_close(a);
    leat_reader_close(b);
}
END_TEST

START_TEST(names_are_shared_by_all_texts)
{
    ck_assert_int_eq(refuse("share:train"), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "share: no reader \"train\" is open");
    leat_reader *a = open_text("range:6 | share:train");
    leat_reader *b = open_text("range:6|share:train | take:4");
    leat_reader *c = open_text("share:train");
    leat_reader *other = open_text("range:6 | share:test");
    ck_assert_int_eq(next_record(a), 0);
    ck_assert_int_eq(next_record(b), 1);
    ck_assert_int_eq(next_record(c), 2);
    ck_assert_int_eq(next_record(other), 0);
    ck_assert_int_eq(refuse("range:7 | share:train"), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "is a reader of range:6"));
    leat_reader_close(a);
    ck_assert_int_eq(next_record(c), 3);
    leat_reader_close(b);
    leat_reader_close(c);
    leat_reader_close(other);
    ck_assert_int_eq(refuse("share:train"), LEAT_EINVAL);
    /* Free for another. */
    a = open_text("range:7 | share:train");
    leat_reader_close(a);
    ck_assert_int_eq(refuse("share"), LEAT_EINVAL);
}
END_TEST

START_TEST(a_workspace_has_names_of_its_own)
{
    leat_workspace *workspace;
    leat_pipeline *source = parse("range:6"), *named, *found, *of_process;
    ck_assert_int_eq(leat_workspace_create(&workspace), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&named, source, "a,b", workspace),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&found, NULL, "a,b", workspace),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&of_process, source, "a,b", NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&source, NULL, NULL, workspace),
                     LEAT_EINVAL);
    leat_workspace_unref(workspace);
    leat_pipeline_unref(source);
    leat_reader *a = open_pipeline(named), *b = open_pipeline(found);
    leat_reader *c = open_pipeline(of_process);
    ck_assert_int_eq(next_record(a), 0);
    ck_assert_int_eq(next_record(b), 1);
    ck_assert_int_eq(next_record(c), 0);
    leat_pipeline_unref(named);
    leat_pipeline_unref(found);
    leat_pipeline_unref(of_process);
    leat_reader_close(a);
    ck_assert_int_eq(next_record(b), 2);
    leat_reader_close(b);
    leat_reader_close(c);
}
END_TEST

START_TEST(a_pass_ends_for_all_and_the_next_begins_once)
{
    leat_pipeline *pipeline = parse("range:5 | share");
    leat_reader *a = open_pipeline(pipeline), *b = open_pipeline(pipeline);
    leat_reader *late = open_pipeline(pipeline);
    for (int64_t i = 0; i < 5; i++)
        ck_assert_int_eq(next_record(i % 2 ? b : a), i);
    ck_assert_int_eq(next_record(a), STATUS(LEAT_END));
    ck_assert_int_eq(next_record(a), STATUS(LEAT_END));
    ck_assert_int_eq(leat_reader_seek(a, (leat_position){1, 0}, NULL), LEAT_OK);
    ck_assert_int_eq(next_record(a), 0);
    /* b has not seen the end yet. */
    ck_assert_int_eq(next_record(b), STATUS(LEAT_END));
    ck_assert_int_eq(leat_reader_seek(b, (leat_position){1, 0}, NULL), LEAT_OK);
    ck_assert_int_eq(next_record(b), 1);
    for (int64_t i = 2; i < 5; i++)
        ck_assert_int_eq(next_record(a), i);
    /* No reader has an epoch without a sample. */
    ck_assert_int_eq(next_record(late), 0);
    ck_assert_int_eq(next_record(b), STATUS(LEAT_END));
    ck_assert_int_eq(leat_reader_seek(late, (leat_position){1, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(next_record(late), 0);
    ck_assert_int_eq(leat_reader_seek(late, (leat_position){1, 2}, NULL),
                     LEAT_EUNSUPPORTED);
    leat_reader_close(a);
    leat_reader_close(b);
    leat_reader_close(late);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(an_empty_reader_ends)
{
    leat_reader *reader = open_text("range:0 | share");
    ck_assert_int_eq(next_record(reader), STATUS(LEAT_END));
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(next_record(reader), STATUS(LEAT_END));
    leat_reader_close(reader);
}
END_TEST

static int seek(leat_reader *reader, int64_t epoch)
{
    return leat_reader_seek(reader, (leat_position){epoch, 0}, NULL);
}

static void open_two(scripted_source *source, leat_reader **a, leat_reader **b)
{
    leat_pipeline *upstream = scripted_source_pipeline(source), *pipeline;
    ck_assert_int_eq(leat_pipeline_share(&pipeline, upstream, NULL, NULL),
                     LEAT_OK);
    *a = open_pipeline(pipeline);
    *b = open_pipeline(pipeline);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}

/* Whichever reader meets it, amid a pass or before its first sample. */
START_TEST(a_seek_after_an_error_goes_on)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.count = 4;
    leat_reader *a, *b;
    open_two(&source, &a, &b);
    for (int64_t i = 0; i < 4; i++)
        ck_assert_int_eq(next_record(a), i);
    ck_assert_int_eq(next_record(a), STATUS(LEAT_END));
    source.broken = 0;
    ck_assert_int_eq(seek(a, 1), LEAT_OK);
    ck_assert_int_eq(next_record(a), STATUS(LEAT_EIO));
    ck_assert_int_eq(next_record(b), STATUS(LEAT_EIO));
    ck_assert_int_eq(seek(b, 0), LEAT_OK);
    ck_assert_int_eq(next_record(b), STATUS(LEAT_EIO));
    source.broken = 2;
    ck_assert_int_eq(seek(a, 1), LEAT_OK);
    ck_assert_int_eq(next_record(a), 0);
    ck_assert_int_eq(next_record(a), 1);
    ck_assert_int_eq(next_record(a), STATUS(LEAT_EIO));
    source.broken = -1;
    ck_assert_int_eq(seek(b, 0), LEAT_OK);
    ck_assert_int_eq(next_record(b), 0);
    ck_assert_int_eq(seek(a, 2), LEAT_OK);
    ck_assert_int_eq(next_record(a), 1);
    leat_reader_close(a);
    leat_reader_close(b);
}
END_TEST

/* Of the seek that begins the next pass; `b` has no sample of this one. */
START_TEST(a_pass_that_could_not_begin_is_begun_by_the_next_seek)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.count = 2;
    source.bad_resets = 1;
    leat_reader *a, *b;
    open_two(&source, &a, &b);
    ck_assert_int_eq(next_record(a), 0);
    ck_assert_int_eq(seek(a, 1), LEAT_EIO);
    ck_assert_int_eq(next_record(b), STATUS(LEAT_EIO));
    ck_assert_int_eq(seek(b, 0), LEAT_OK);
    ck_assert_int_eq(next_record(b), 0);
    ck_assert_int_eq(seek(a, 1), LEAT_OK);
    ck_assert_int_eq(next_record(a), 1);
    leat_reader_close(a);
    leat_reader_close(b);
}
END_TEST

/* ---- Threads ------------------------------------------------------------ */

typedef struct caller {
    pthread_t id;
    leat_reader *reader;
    atomic_int *seen;
    const float *expected; /* of each record, or NULL */
    int status;
} caller;

static void *read_all(void *argument)
{
    caller *self = argument;
    leat_sample samples[4];
    leat_sample *out[4];
    int got;
    for (int i = 0; i < 4; i++)
        leat_sample_init(out[i] = &samples[i]);
    do {
        self->status = leat_reader_next_batch(self->reader, out, 4, &got);
        for (int i = 0; i < got; i++) {
            int64_t record = out[i]->from.record;
            float value = 0;
            if (self->expected)
                memcpy(&value, out[i]->field[0].data, sizeof(value));
            if (self->expected && value != self->expected[record])
                abort();
            atomic_fetch_add(&self->seen[record], 1);
        }
    } while (!self->status);
    for (int i = 0; i < 4; i++)
        leat_sample_finish(out[i]);
    return NULL;
}

/* Reads a pass with several threads: each record comes once. */
static void read_together(const char *text, const float expected[])
{
    static atomic_int seen[MANY];
    caller callers[THREADS];
    leat_pipeline *pipeline = parse(text);
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < THREADS; i++)
        callers[i] = (caller){.reader = open_pipeline(pipeline),
                              .seen = seen,
                              .expected = expected};
    /* Each has a sample, so that none begins a second pass. */
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(next_record(callers[i].reader), i);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&callers[i].id, NULL, read_all, &callers[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].id, NULL);
        ck_assert_int_eq(callers[i].status, LEAT_END);
        leat_reader_close(callers[i].reader);
    }
    for (int i = THREADS; i < MANY; i++)
        ck_assert_int_eq(atomic_load(&seen[i]), 1);
    leat_pipeline_unref(pipeline);
}

START_TEST(threads_get_each_sample_once)
{
    read_together("range:3000 | share", NULL);
}
END_TEST

/* Deferred by the source, by a map before share, and by one after it. */
START_TEST(deferred_samples_are_completed_by_whoever_got_them)
{
    static float expected[MANY];
    leat_sample sample;
    leat_reader *reader = open_text("random:3000,seed=5");
    leat_sample_init(&sample);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        memcpy(&expected[i], sample.field[0].data, sizeof(expected[i]));
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    read_together("random:3000,seed=5 | share", expected);
    read_together("random:3000,seed=5 | cast:data=float64 | cast:data=float32"
                  " | share",
                  expected);
    read_together("random:3000,seed=5 | cast:data=float64 | share"
                  " | cast:data=float32",
                  expected);
}
END_TEST

/* ---- Callbacks and queues ----------------------------------------------- */

typedef struct numbers {
    int next, end, closed;
} numbers;

static int next_number(void *pass, leat_sample *out)
{
    numbers *self = pass;
    if (self->next == self->end)
        return LEAT_END;
    int32_t *number = leat_sample_take(out, sizeof(*number));
    if (!number)
        return LEAT_ENOMEM;
    *number = self->next++;
    if (*number % 10 == 3)
        return leat_error(LEAT_EDATA, "number %d is bad", *number);
    return leat_sample_set(out, 0, LEAT_INT32, 0, NULL, number);
}

static void close_numbers(void *pass)
{
    ((numbers *)pass)->closed++;
}

static leat_pipeline *over_callback(numbers *from)
{
    static const leat_field_spec field = {.name = "number",
                                          .dtype = LEAT_INT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = next_number,
                                      .close = close_numbers};
    leat_pipeline *upstream, *pipeline;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, from),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&pipeline, upstream, "calls", NULL),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

/* A callback that opens once only, with bad records. */
START_TEST(a_callback_is_opened_and_closed_once)
{
    numbers from = {0, 20, 0}, other = {0, 20, 0};
    leat_pipeline *pipeline = over_callback(&from);
    leat_pipeline *another = over_callback(&other);
    leat_reader *a = open_pipeline(pipeline), *b = open_pipeline(pipeline);
    leat_reader *none;
    /* Its text is the same, but not its functions. */
    ck_assert_int_eq(leat_pipeline_open(another, &none), LEAT_EINVAL);
    int bad = 0;
    for (int i = 0; i < 20; i++) {
        int64_t record = next_record(i % 3 ? a : b);
        bad += record == STATUS(LEAT_EDATA);
        ck_assert(record == i || (record == STATUS(LEAT_EDATA) && i % 10 == 3));
    }
    ck_assert_int_eq(bad, 2);
    ck_assert_int_eq(next_record(a), STATUS(LEAT_END));
    ck_assert_int_eq(next_record(b), STATUS(LEAT_END));
    /* A single pass. */
    ck_assert_int_eq(leat_reader_seek(a, (leat_position){1, 0}, NULL),
                     LEAT_EUNSUPPORTED);
    leat_reader_close(a);
    ck_assert_int_eq(from.closed, 0);
    leat_reader_close(b);
    ck_assert_int_eq(from.closed, 1);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(another);
}
END_TEST

static void *read_one(void *argument)
{
    caller *self = argument;
    leat_sample sample;
    leat_sample_init(&sample);
    self->status = leat_reader_next(self->reader, &sample);
    leat_sample_finish(&sample);
    return NULL;
}

static void send_number(leat_push *push, int32_t number)
{
    leat_sample sample;
    leat_sample_init(&sample);
    leat_sample_set(&sample, 0, LEAT_INT32, 0, NULL, &number);
    ck_assert_int_eq(leat_push_send(push, &sample), LEAT_OK);
    leat_sample_finish(&sample);
}

static leat_pipeline *over_queue(leat_push **push)
{
    static const leat_field_spec field = {.name = "number",
                                          .dtype = LEAT_INT32};
    leat_pipeline *upstream, *pipeline;
    ck_assert_int_eq(leat_push_create(push, NULL, &field, 1, 2), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_push(&upstream, *push), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&pipeline, upstream, NULL, NULL),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

START_TEST(cancel_wakes_one_caller_and_leaves_the_others)
{
    leat_push *push;
    leat_pipeline *pipeline = over_queue(&push);
    caller reads = {.reader = open_pipeline(pipeline)};
    caller waits = {.reader = open_pipeline(pipeline)};
    /* Whichever of the two is behind the other: it never called. */
    leat_reader_cancel(waits.reader);
    pthread_create(&reads.id, NULL, read_one, &reads);
    pthread_create(&waits.id, NULL, read_one, &waits);
    pthread_join(waits.id, NULL);
    ck_assert_int_eq(waits.status, LEAT_ECANCELLED);
    send_number(push, 1);
    pthread_join(reads.id, NULL);
    ck_assert_int_eq(reads.status, LEAT_OK);
    leat_reader_close(waits.reader);
    /* The one that reads is woken, too. */
    pthread_create(&reads.id, NULL, read_one, &reads);
    sched_yield();
    leat_reader_cancel(reads.reader);
    pthread_join(reads.id, NULL);
    ck_assert_int_eq(reads.status, LEAT_ECANCELLED);
    leat_reader_close(reads.reader);
    leat_pipeline_unref(pipeline);
    leat_push_unref(push);
}
END_TEST

/* Returns when a reader has taken the bytes, and waits for more. */
static void send_and_await(int pipe, const char *bytes)
{
    int left;
    ck_assert_int_eq(write(pipe, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
    do {
        sched_yield();
        ck_assert_int_eq(ioctl(pipe, FIONREAD, &left), 0);
    } while (left > 0);
}

START_TEST(cancel_wakes_a_caller_that_waits_at_a_pipe)
{
    static const char *const texts[] = {
        "text:%s | cache:1k | share",
        "files:%s | interleave:(text:{}) | share"};
    char directory[] = "/tmp/leat-test-XXXXXX", path[64], text[96];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/pipe", directory);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int pipe = open(path, O_RDWR);
    ck_assert_int_ge(pipe, 0);
    snprintf(text, sizeof(text), texts[_i], path);
    caller reads = {.reader = open_text(text)};
    pthread_create(&reads.id, NULL, read_one, &reads);
    send_and_await(pipe, "no end of a line");
    leat_reader_cancel(reads.reader);
    pthread_join(reads.id, NULL);
    ck_assert_int_eq(reads.status, LEAT_ECANCELLED);
    leat_reader_close(reads.reader);
    close(pipe);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* Many callers wait on an empty queue, and are cancelled at any moment. */
START_TEST(all_callers_of_an_empty_queue_are_woken)
{
    for (int round = 0; round < 50; round++) {
        leat_push *push;
        leat_pipeline *pipeline = over_queue(&push);
        caller callers[THREADS];
        for (int i = 0; i < THREADS; i++) {
            callers[i] = (caller){.reader = open_pipeline(pipeline)};
            pthread_create(&callers[i].id, NULL, read_one, &callers[i]);
        }
        for (int i = 0; i < THREADS; i++)
            leat_reader_cancel(callers[i].reader);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(callers[i].id, NULL);
            ck_assert_int_eq(callers[i].status, LEAT_ECANCELLED);
            leat_reader_close(callers[i].reader);
        }
        leat_pipeline_unref(pipeline);
        leat_push_unref(push);
    }
}
END_TEST

/* ---- Layers ------------------------------------------------------------- */

static leat_data_layer *set_up_layer(const char *text)
{
    leat_pipeline *pipeline = parse(text);
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_top top = {.size = sizeof(top), .name = "value"};
    leat_data_layer *layer;
    options.batch_size = 5;
    options.workers = 2;
    options.prefetch = 2;
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_pipeline_unref(pipeline);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    return layer;
}

START_TEST(two_layers_share_one_by_name)
{
    static int seen[MANY];
    leat_data_layer *layer[2];
    leat_token token;
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < 2; i++)
        layer[i] = set_up_layer("range:3000 | share:numbers");
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(layer[0], &token), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "share: which caller"));
    for (int i = 0; i < 200; i++) {
        leat_data_layer *one = layer[i % 3 > 0];
        ck_assert_int_eq(leat_data_layer_forward(one, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const int64_t *values = leat_blob_cpu_data(leat_data_layer_top(one, 0));
        for (int k = 0; k < 5; k++)
            ck_assert_int_eq(seen[values[k]]++, 0);
    }
    /* One goes, the other stays. */
    leat_data_layer_destroy(layer[0]);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(leat_data_layer_forward(layer[1], NULL, 0, LEAT_HOST),
                         LEAT_OK);
    leat_data_layer_destroy(layer[1]);
    leat_token_finish(&token);
}
END_TEST

typedef struct layer_caller {
    leat_data_layer *layer;
    pthread_t id;
    int status;
} layer_caller;

static void *set_up_one(void *argument)
{
    layer_caller *caller = argument;
    caller->status = leat_data_layer_setup(caller->layer, NULL, 0);
    return NULL;
}

static void begin_setup(layer_caller *caller, const leat_pipeline *pipeline)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 1;
    ck_assert_int_eq(leat_data_layer_create(&caller->layer, pipeline, &options),
                     LEAT_OK);
    pthread_create(&caller->id, NULL, set_up_one, caller);
}

/* The one that opens the shared reader waits for a name; the other for it. */
START_TEST(cancel_wakes_a_setup_that_waits_for_anothers)
{
    char directory[] = "/tmp/leat-test-XXXXXX", path[64], text[128];
    layer_caller caller[2];
    int writer;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/pipe", directory);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(text, sizeof(text), "text:%s | interleave:(text:{}) | share:waits",
             path);
    leat_pipeline *pipeline = parse(text);
    begin_setup(&caller[0], pipeline);
    while ((writer = open(path, O_WRONLY | O_NONBLOCK)) < 0)
        sched_yield();
    begin_setup(&caller[1], pipeline);
    for (int i = 1; i >= 0; i--) {
        leat_data_layer_cancel(caller[i].layer);
        pthread_join(caller[i].id, NULL);
        ck_assert_int_eq(caller[i].status, LEAT_ECANCELLED);
        leat_data_layer_destroy(caller[i].layer);
    }
    leat_pipeline_unref(pipeline);
    close(writer);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* The cancel of its setup reaches what the first caller opens. */
START_TEST(others_open_what_a_cancelled_opening_has_opened)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    atomic_bool cancelled = true;
    leat__opening opening = {.lock = &lock, .cancelled = &cancelled};
    leat_pipeline *pipeline = parse("range:6 | prefetch:2 | share");
    leat_reader *first = NULL;
    leat__opening *outer = leat__opening_begin(&opening);
    int status = leat_pipeline_open(pipeline, &first);
    leat__opening_end(outer);
    leat_reader *other = open_pipeline(pipeline);
    ck_assert_int_eq(next_record(other), 0);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    leat_reader_close(other);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* A reader that computes without end, and is found by a name. */
static const char without_end[] =
    "range:1000000000000 | where:value=0..9 | share:x";

static const char none_found[] =
    "range:1000000000000 | where:value=-1 | share:y";

static void *read_to_a_status(void *argument)
{
    leat_sample sample;
    int status = LEAT_OK;
    leat_sample_init(&sample);
    while (!status)
        status = leat_reader_next(argument, &sample);
    leat_sample_finish(&sample);
    return (void *)(intptr_t)status;
}

/* By the last cancel, or by the close of the only one that is not cancelled.
 * Who opens it then has another reader. */
START_TEST(a_reader_that_nobody_needs_ends)
{
    pthread_t thread;
    void *status;
    leat_reader *reads = open_text(without_end);
    leat_reader *other = open_text(without_end);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_to_a_status, reads), 0);
    usleep(50000); /* after the ten samples, or before */
    leat_reader_cancel(reads);
    leat_reader_cancel(reads); /* which counts once */
    if (_i == 0)
        leat_reader_close(other);
    else
        leat_reader_cancel(other);
    pthread_join(thread, &status);
    ck_assert_int_eq((int)(intptr_t)status, LEAT_ECANCELLED);
    leat_reader *next = open_text(without_end);
    ck_assert_int_eq(next_record(next), 0);
    leat_reader_close(reads);
    ck_assert_int_eq(next_record(next), 1);
    if (_i == 1)
        leat_reader_close(other);
    leat_reader *more = open_text(without_end);
    ck_assert_int_eq(next_record(more), 2);
    leat_reader_close(more);
    leat_reader_close(next);
}
END_TEST

static atomic_int ready;

/* Both at once. */
static void *cancel_at_once(void *reader)
{
    atomic_fetch_sub(&ready, 1);
    while (atomic_load(&ready) > 0)
        continue;
    leat_reader_cancel(reader);
    return NULL;
}

static void *close_at_once(void *reader)
{
    atomic_fetch_sub(&ready, 1);
    while (atomic_load(&ready) > 0)
        continue;
    leat_reader_close(reader);
    return NULL;
}

/* Of three callers one reads, and is cancelled before two close at once; of two
 * one is cancelled as the other closes. */
START_TEST(a_reader_ends_whoever_leaves_at_once)
{
    for (int i = 0; i < LEAVINGS; i++) {
        pthread_t reads, leaves[2];
        void *status;
        leat_reader *first = open_text(none_found);
        leat_reader *second = open_text(none_found);
        leat_reader *third = _i == 0 ? open_text(none_found) : first;
        pthread_create(&reads, NULL, read_to_a_status, first);
        if (_i == 0)
            leat_reader_cancel(first);
        atomic_store(&ready, 2);
        pthread_create(&leaves[0], NULL, close_at_once, second);
        pthread_create(&leaves[1], NULL,
                       _i == 0 ? close_at_once : cancel_at_once, third);
        pthread_join(reads, &status);
        ck_assert_int_eq((int)(intptr_t)status, LEAT_ECANCELLED);
        pthread_join(leaves[0], NULL);
        pthread_join(leaves[1], NULL);
        leat_reader_close(first);
    }
}
END_TEST

START_TEST(a_reader_that_others_need_goes_on)
{
    leat_reader *first = open_text("range:9 | share:x");
    leat_reader *second = open_text("range:9 | share:x");
    leat_reader_cancel(first);
    ck_assert_int_eq(next_record(second), 0);
    leat_reader_close(first);
    ck_assert_int_eq(next_record(second), 1);
    leat_reader_close(second);
}
END_TEST

START_TEST(ranks_and_allocators_are_refused)
{
    leat_reader *reader;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    const leat_allocator allocator = {.size = sizeof(allocator)};
    leat_pipeline *pipeline = parse("range:5 | share");
    options.world_size = 2;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_EINVAL);
    options.world_size = 1;
    options.allocator = &allocator;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "allocator"));
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(refuse("lmdb:/nowhere | share:x"), LEAT_EIO);
    ck_assert_int_eq(refuse("share:x"), LEAT_EINVAL);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    leat_sample sample;
    leat_sample_init(&sample);
    for (int64_t n = 0;; n++) {
        leat_pipeline *source = parse("range:5"), *pipeline = NULL;
        leat_workspace *workspace = NULL;
        leat_reader *a = NULL, *b = NULL;
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n);
        int status = leat_workspace_create(&workspace);
        if (!status)
            status = leat_pipeline_share(&pipeline, source, "name", workspace);
        if (!status)
            status = leat_pipeline_open(pipeline, &a);
        if (!status)
            status = leat_pipeline_open(pipeline, &b);
        if (!status)
            status = leat_reader_next(b, &sample);
        int64_t left = leat__alloc_fail_at(-1);
        ck_assert_msg(!status || status == LEAT_ENOMEM, "%s",
                      leat_last_error());
        leat_reader_close(a);
        leat_reader_close(b);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(source);
        leat_workspace_unref(workspace);
        if (left >= 0)
            break;
    }
    leat_sample_finish(&sample);
}
END_TEST

/* Callers that open, read, restart and close, all at once. */
static atomic_int stop;

static void *come_and_go(void *pipeline)
{
    leat_sample sample;
    leat_sample_init(&sample);
    while (!atomic_load(&stop)) {
        leat_reader *reader = open_pipeline(pipeline);
        for (int i = 0; i < 30; i++)
            if (leat_reader_next(reader, &sample) == LEAT_END)
                ck_assert_int_eq(
                    leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                    LEAT_OK);
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
    return NULL;
}

START_TEST(callers_come_and_go)
{
    pthread_t threads[THREADS];
    leat_pipeline *pipeline = parse("random:20,seed=1 | share:busy");
    atomic_store(&stop, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, come_and_go, pipeline);
    for (int i = 0; i < 100; i++) {
        leat_reader *reader = open_text("random:20,seed=1 | share:busy");
        ck_assert_int_ge(next_record(reader), 0);
        leat_reader_cancel(reader);
        leat_reader_close(reader);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("share");
    TCase *tcase = tcase_create("share");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * HANG);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, readers_of_one_pipeline_share_it);
    tcase_add_test(tcase, other_pipelines_without_a_name_do_not);
    tcase_add_test(tcase, names_are_shared_by_all_texts);
    tcase_add_test(tcase, a_workspace_has_names_of_its_own);
    tcase_add_test(tcase, a_pass_ends_for_all_and_the_next_begins_once);
    tcase_add_test(tcase, an_empty_reader_ends);
    tcase_add_test(tcase, a_seek_after_an_error_goes_on);
    tcase_add_test(tcase,
                   a_pass_that_could_not_begin_is_begun_by_the_next_seek);
    tcase_add_test(tcase, threads_get_each_sample_once);
    tcase_add_test(tcase, deferred_samples_are_completed_by_whoever_got_them);
    tcase_add_test(tcase, a_callback_is_opened_and_closed_once);
    tcase_add_test(tcase, cancel_wakes_one_caller_and_leaves_the_others);
    tcase_add_loop_test(tcase, cancel_wakes_a_caller_that_waits_at_a_pipe, 0,
                        2);
    tcase_add_test(tcase, all_callers_of_an_empty_queue_are_woken);
    tcase_add_test(tcase, two_layers_share_one_by_name);
    tcase_add_test(tcase, cancel_wakes_a_setup_that_waits_for_anothers);
    tcase_add_test(tcase, others_open_what_a_cancelled_opening_has_opened);
    tcase_add_loop_test(tcase, a_reader_that_nobody_needs_ends, 0, 2);
    tcase_add_loop_test(tcase, a_reader_ends_whoever_leaves_at_once, 0, 2);
    tcase_add_test(tcase, a_reader_that_others_need_goes_on);
    tcase_add_test(tcase, ranks_and_allocators_are_refused);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, callers_come_and_go);
    return suite_run(suite);
}
