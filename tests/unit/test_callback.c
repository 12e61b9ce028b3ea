/* What callbacks may do, and what becomes of what they may not. */
#include "base/memory.h"
#include "base/thread.h"
#include "support/layer_fixture.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pass that does as it is told, and waits for cancel where it is told to. */
typedef struct script {
    int status; /* of the next call of next, or of open, or of reset */
    int open_status;
    int reset_status;
    int blocks;
    int is_silent;  /* reports its status without a line */
    int64_t number; /* above 0: the record that it names; counted on */
    int fields;
    leat_field field;
    int opened;
    int closed;
    int resets;
    int calls;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting;   /* protected by lock */
    int cancelled; /* protected by lock */
} script;

static script user;
static float value = 7;
static leat_callbacks callbacks;
static leat_pipeline *pipeline;
static leat_sample sample;

static int script_open(void *given, void **pass)
{
    script *self = given;
    if (self->open_status)
        return leat_error(self->open_status, "it will not open");
    self->opened++;
    *pass = self;
    return LEAT_OK;
}

static int script_next(void *pass, leat_sample *out)
{
    script *self = pass;
    self->calls++;
    pthread_mutex_lock(&self->lock);
    self->waiting = self->blocks;
    pthread_cond_broadcast(&self->changed);
    while (self->blocks && !self->cancelled)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    if (self->number > 0)
        out->from.record = self->number++;
    if (self->status && self->is_silent)
        return self->status;
    if (self->status)
        return leat_error(self->status, "status %d", self->status);
    out->nfields = self->fields;
    out->field[0] = self->field;
    return LEAT_OK;
}

static int script_reset(void *pass)
{
    script *self = pass;
    self->resets++;
    return self->reset_status;
}

static void script_cancel(void *pass)
{
    script *self = pass;
    pthread_mutex_lock(&self->lock);
    self->cancelled = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void script_close(void *pass)
{
    ((script *)pass)->closed++;
}

static void set_up(void)
{
    static const leat_field_spec fields[] = {
        {.name = "x", .dtype = LEAT_FLOAT32}};
    memset(&user, 0, sizeof(user));
    pthread_mutex_init(&user.lock, NULL);
    pthread_cond_init(&user.changed, NULL);
    user.fields = 1;
    user.field = (leat_field){
        .dtype = LEAT_FLOAT32, .data = &value, .bytes = sizeof(value)};
    callbacks = (leat_callbacks){.size = sizeof(callbacks),
                                 .name = "script",
                                 .fields = fields,
                                 .nfields = 1,
                                 .open = script_open,
                                 .next = script_next,
                                 .reset = script_reset,
                                 .cancel = script_cancel,
                                 .close = script_close};
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

static leat_reader *begin(void)
{
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &user),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    return reader;
}

static void end(leat_reader *reader)
{
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

START_TEST(a_sample_says_where_it_came_from)
{
    leat_reader *reader = begin();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_str_eq(sample.from.source, "script");
        ck_assert_int_eq(sample.from.record, i);
        ck_assert_ptr_null(sample.from.key);
        ck_assert_int_eq(sample.stable, 0);
        ck_assert_mem_eq(sample.field[0].data, &value, sizeof(value));
    }
    end(reader);
    ck_assert_int_eq(user.opened, 1);
    ck_assert_int_eq(user.closed, 1);
}
END_TEST

START_TEST(only_one_view_is_asked_for_at_a_time)
{
    leat_reader *reader = begin();
    leat_sample second;
    leat_sample *const both[] = {&sample, &second};
    int got;
    leat_sample_init(&second);
    ck_assert_int_eq(leat_reader_next_batch(reader, both, 2, &got), LEAT_OK);
    ck_assert_int_eq(got, 1);
    ck_assert_int_eq(user.calls, 1);
    leat_sample_finish(&second);
    end(reader);
}
END_TEST

/* Numbers from 0 on, all in the same variable. */
static int count_up(void *given, leat_sample *out)
{
    static float number;
    int *calls = given;
    number = (float)(*calls)++;
    out->nfields = 1;
    out->field[0] = (leat_field){LEAT_FLOAT32, 0, &number, sizeof(number), {0}};
    return LEAT_OK;
}

START_TEST(samples_keep_what_the_next_call_overwrites)
{
    const leat_field_spec number = {.name = "number", .dtype = LEAT_FLOAT32};
    const leat_callbacks counter = {.size = sizeof(counter),
                                    .fields = &number,
                                    .nfields = 1,
                                    .next = count_up};
    enum { BATCH = 5 };
    int calls = 0;
    leat_pipeline *numbers;
    leat_data_layer *layer;
    leat_blob *top;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = BATCH;
    ck_assert_int_eq(leat_pipeline_callback(&numbers, &counter, &calls),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, numbers, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    for (int batch = 0; batch < 3; batch++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST),
                         LEAT_OK);
        const float *found = leat_blob_cpu_data(top);
        for (int i = 0; i < BATCH; i++)
            ck_assert_float_eq(found[i], (float)(batch * BATCH + i));
    }
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(numbers);
}
END_TEST

typedef struct change {
    int calls;
    leat_field field;
} change;

/* Two numbers; from the second sample on, another field in place of one. */
static int numbers_then_other(void *given, leat_sample *out)
{
    static const float number = 1;
    change *self = given;
    out->nfields = 2;
    for (int i = 0; i < 2; i++)
        out->field[i] = (leat_field){
            .dtype = LEAT_FLOAT32, .data = &number, .bytes = sizeof(number)};
    if (self->calls++)
        out->field[1] = self->field;
    return LEAT_OK;
}

static void assert_bad_record(leat_field field, const char *says)
{
    const leat_field_spec fields[] = {{.name = "a", .dtype = LEAT_FLOAT32},
                                      {.name = "b", .dtype = LEAT_FLOAT32}};
    const leat_callbacks mixed = {.size = sizeof(mixed),
                                  .fields = fields,
                                  .nfields = 2,
                                  .next = numbers_then_other};
    change change = {.field = field};
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 2;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &mixed, &change),
                     LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}

START_TEST(another_field_where_a_number_was_is_a_bad_record)
{
    static const float two[] = {1, 2};
    assert_bad_record(
        (leat_field){.dtype = LEAT_BYTES, .data = two, .bytes = 4},
        "field b: expected float32 scalar, found bytes");
    assert_bad_record((leat_field){LEAT_FLOAT32, 1, two, 8, {2}},
                      "field b: expected float32 scalar, found float32 2");
}
END_TEST

START_TEST(the_end_is_not_asked_for_again)
{
    leat_reader *reader = begin();
    user.status = LEAT_END;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(user.calls, 1);
    user.status = LEAT_OK;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.from.record, 0);
    end(reader);
}
END_TEST

START_TEST(a_bad_record_is_counted_and_stepped_over)
{
    leat_reader *reader = begin();
    user.status = LEAT_EDATA;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
    ck_assert_int_eq(sample.from.record, 0);
    user.status = LEAT_OK;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.from.record, 1);
    end(reader);
}
END_TEST

START_TEST(any_other_error_is_sticky_until_reset)
{
    leat_reader *reader = begin();
    user.status = LEAT_EIO;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    user.status = LEAT_OK;
    leat_error(LEAT_EINVAL, "something else");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "status -3");
    ck_assert_int_eq(user.calls, 1);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    end(reader);
}
END_TEST

START_TEST(a_status_that_means_nothing_is_an_error)
{
    leat_reader *reader = begin();
    const int odd[] = {LEAT_AGAIN, -11, -77, 42};
    for (int i = 0; i < 4; i++) {
        user.status = odd[i];
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EINVAL);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    ck_assert_str_eq(leat_last_error(),
                     "script: the callback next returned 42, expected LEAT_OK, "
                     "LEAT_END or an error of leat/status.h");
    user.reset_status = LEAT_END;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_EINVAL);
    user.reset_status = -77;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "script: the callback reset returned -77, expected "
                     "LEAT_OK or an error of leat/status.h");
    leat_reader *none = NULL;
    for (int i = 0; i < 2; i++) {
        user.open_status = i ? -77 : LEAT_END;
        ck_assert_int_eq(leat_pipeline_open(pipeline, &none), LEAT_EINVAL);
        ck_assert_ptr_null(none);
    }
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "the callback open returned -77"));
    end(reader);
}
END_TEST

START_TEST(a_line_made_for_a_bad_record_has_the_callbacks_number)
{
    leat_reader *reader = begin();
    user.is_silent = 1;
    user.status = LEAT_EDATA;
    user.number = 1006;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
    ck_assert_int_eq(sample.from.record, 1006);
    ck_assert_str_eq(
        leat_last_error(),
        "script: record 1006 is bad; the callback next gave no reason");
    end(reader);
}
END_TEST

START_TEST(an_error_without_a_line_gets_one)
{
    leat_reader *reader = begin();
    user.is_silent = 1;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    user.status = LEAT_EDATA;
    for (int i = 1; i < 3; i++) {
        char line[128];
        snprintf(line, sizeof(line),
                 "script: record %d is bad; the callback next gave no reason",
                 i);
        (void)leat_error(LEAT_EIO, "an older line");
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
        ck_assert_str_eq(leat_last_error(), line);
    }
    user.status = LEAT_EIO;
    (void)leat_error(LEAT_EDATA, "an older line");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(),
                     "script: the callback next gave no reason: the operating "
                     "system reported an error");
    user.reset_status = LEAT_EUNSUPPORTED;
    (void)leat_error(LEAT_EDATA, "an older line");
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_EUNSUPPORTED);
    ck_assert_str_eq(
        leat_last_error(),
        "script: the callback reset gave no reason: not supported");
    end(reader);
}
END_TEST

START_TEST(a_sample_that_is_not_as_announced_is_an_error)
{
    const leat_field good = user.field;
    leat_field wrong[] = {good, good, good, good, good, good, good};
    enum { WRONG = sizeof(wrong) / sizeof(wrong[0]) };
    wrong[0].bytes = 3;
    wrong[1].ndim = 9;
    wrong[2].ndim = -1;
    wrong[3].data = NULL;
    wrong[4].dtype = (leat_dtype)77;
    wrong[5].ndim = 2;
    wrong[5].shape[0] = INT64_MAX;
    wrong[5].shape[1] = 8;
    /* No elements, but bytes. */
    wrong[6].ndim = 1;
    wrong[6].shape[0] = 0;
    wrong[6].data = NULL;
    for (int i = 0; i < WRONG; i++) {
        leat_reader *reader = begin();
        user.field = wrong[i];
        ck_assert_msg(leat_reader_next(reader, &sample) == LEAT_EINVAL, "%d",
                      i);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "script: sample 0"));
        end(reader);
    }
    /* Bytes are as many as they are, be it none. */
    leat_reader *empty = begin();
    user.field = (leat_field){.dtype = LEAT_BYTES};
    ck_assert_int_eq(leat_reader_next(empty, &sample), LEAT_OK);
    end(empty);
    user.field = good;
    for (int fields = 0; fields < 10; fields++) {
        leat_reader *reader = begin();
        user.fields = fields;
        ck_assert_int_eq(leat_reader_next(reader, &sample),
                         fields == 1 ? LEAT_OK : LEAT_EINVAL);
        end(reader);
    }
}
END_TEST

START_TEST(without_reset_there_is_one_epoch)
{
    callbacks.reset = NULL;
    leat_reader *reader = begin();
    const leat_position first = {0, 0}, later = {0, 1}, second = {1, 0};
    /* Until it is read it is at its beginning. */
    ck_assert_int_eq(leat_reader_seek(reader, second, NULL), LEAT_EUNSUPPORTED);
    ck_assert_int_eq(leat_reader_seek(reader, later, NULL), LEAT_EUNSUPPORTED);
    ck_assert_int_eq(leat_reader_seek(reader, first, NULL), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, first, NULL), LEAT_EUNSUPPORTED);
    end(reader);
}
END_TEST

START_TEST(without_open_one_reader_at_a_time)
{
    callbacks.open = NULL;
    callbacks.close = NULL;
    leat_reader *reader = begin();
    leat_reader *second = NULL;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &second), LEAT_ESTATE);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_reader_close(reader);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &second), LEAT_OK);
    end(second);
}
END_TEST

/* The parent's reader is open, and may be read and closed there alone. */
START_TEST(a_forked_child_has_no_reader_of_its_parents)
{
    callbacks.open = NULL;
    callbacks.close = NULL;
    leat_reader *reader = begin();
    leat_reader *own = NULL, *second = NULL;
    pid_t child = fork();
    if (child == 0) {
        bool is_right = leat_pipeline_open(pipeline, &own) == LEAT_OK &&
                        leat_reader_next(own, &sample) == LEAT_OK &&
                        leat_pipeline_open(pipeline, &second) == LEAT_ESTATE;
        leat_reader_close(reader);
        is_right =
            is_right && leat_pipeline_open(pipeline, &second) == LEAT_ESTATE;
        leat_reader_close(own);
        is_right = is_right && leat_pipeline_open(pipeline, &own) == LEAT_OK;
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &second), LEAT_ESTATE);
    end(reader);
}
END_TEST

START_TEST(a_pass_that_did_not_open_is_not_closed)
{
    leat_reader *none = NULL;
    user.open_status = LEAT_EIO;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &user),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &none), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "it will not open");
    ck_assert_int_eq(user.closed, 0);
    leat_pipeline_unref(pipeline);
}
END_TEST

typedef struct blocked {
    leat_reader *reader;
    leat_sample sample;
    int status;
} blocked;

static void *read_one(void *argument)
{
    blocked *self = argument;
    self->status = leat_reader_next(self->reader, &self->sample);
    return NULL;
}

START_TEST(cancel_wakes_a_callback_whatever_it_then_returns)
{
    const int statuses[] = {LEAT_ECANCELLED, LEAT_END, LEAT_EIO, LEAT_EDATA};
    for (int i = 0; i < 4; i++) {
        set_up();
        user.blocks = 1;
        user.status = statuses[i];
        blocked self = {.reader = begin()};
        leat__thread thread = {.running = 0};
        leat_sample_init(&self.sample);
        ck_assert_int_eq(leat__thread_start(&thread, "next", read_one, &self),
                         LEAT_OK);
        pthread_mutex_lock(&user.lock);
        while (!user.waiting)
            pthread_cond_wait(&user.changed, &user.lock);
        pthread_mutex_unlock(&user.lock);
        leat_reader_cancel(self.reader);
        leat__thread_join(&thread);
        ck_assert_int_eq(self.status, LEAT_ECANCELLED);
        ck_assert_int_eq(leat_reader_next(self.reader, &sample),
                         LEAT_ECANCELLED);
        ck_assert_int_eq(user.calls, 1);
        end(self.reader);
    }
}
END_TEST

START_TEST(callbacks_without_their_parts_are_refused)
{
    leat_pipeline *none = NULL;
    leat_callbacks wrong[6] = {callbacks, callbacks, callbacks,
                               callbacks, callbacks, callbacks};
    wrong[0].size = 8;
    wrong[1].next = NULL;
    wrong[2].fields = NULL;
    wrong[3].nfields = 0;
    wrong[4].nfields = LEAT_MAX_FIELDS + 1;
    wrong[5].nfields = -1;
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(leat_pipeline_callback(&none, &wrong[i], &user),
                         LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_callback(&none, NULL, &user), LEAT_EINVAL);
    ck_assert_ptr_null(none);
}
END_TEST

/* Behind another reader's fields: memory first, then the callback. */
static leat_reader *begin_joined(leat_pipeline *first)
{
    leat_reader *reader;
    leat_reader *mine = begin();
    leat_reader_close(mine);
    leat_pipeline *const both[] = {first, pipeline};
    leat_pipeline *joined = stream_decorators_over(STREAM_ZIP, both, 2);
    leat_pipeline_unref(first);
    ck_assert_int_eq(leat_pipeline_open(joined, &reader), LEAT_OK);
    leat_pipeline_unref(joined);
    return reader;
}

START_TEST(fields_are_appended_to_those_of_another_reader)
{
    leat_reader *reader = begin_joined(layer_fixture_pipeline());
    const leat_field_spec *spec;
    int n;
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 3);
    for (int i = 0; i < 5; i++) {
        value = (float)(10 * i);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 3);
        ck_assert_int_eq(*(const int32_t *)sample.field[1].data, 1000 + i);
        /* A copy: the callback may overwrite its own. */
        value = -1;
        ck_assert_float_eq(*(const float *)sample.field[2].data,
                           (float)(10 * i));
        ck_assert_int_eq(sample.stable, 0);
        ck_assert_int_eq(sample.from.record, i);
    }
    end(reader);
}
END_TEST

START_TEST(a_bad_record_after_another_reader_is_named)
{
    leat_reader *reader = begin_joined(layer_fixture_pipeline());
    for (int i = 0; i < 4; i++) {
        user.status = i == 2 ? LEAT_EDATA : LEAT_OK;
        ck_assert_int_eq(leat_reader_next(reader, &sample), user.status);
        ck_assert_int_eq(sample.from.record, i);
    }
    /* Both went on after it. */
    ck_assert_int_eq(*(const int32_t *)sample.field[1].data, 1003);
    user.status = LEAT_EIO;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    user.status = LEAT_END;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    end(reader);
}
END_TEST

START_TEST(more_fields_than_a_sample_has_are_refused)
{
    static const int32_t numbers[4];
    leat_memory_field fields[LEAT_MAX_FIELDS];
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        fields[i] = (leat_memory_field){"n", LEAT_INT32, 0, {0}, numbers};
    for (int n = LEAT_MAX_FIELDS - 1; n <= LEAT_MAX_FIELDS; n++) {
        leat_pipeline *first;
        ck_assert_int_eq(leat_pipeline_memory(&first, fields, n, 4), LEAT_OK);
        leat_reader *reader = begin_joined(first);
        int status = leat_reader_next(reader, &sample);
        if (n < LEAT_MAX_FIELDS) {
            ck_assert_int_eq(status, LEAT_OK);
            ck_assert_int_eq(sample.nfields, LEAT_MAX_FIELDS);
        } else {
            ck_assert_int_eq(status, LEAT_EINVAL);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "32 fields"));
        }
        end(reader);
    }
}
END_TEST

START_TEST(joining_takes_no_memory_once_it_runs)
{
    leat_reader *reader = begin_joined(layer_fixture_pipeline());
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat__alloc_count(), before);
    end(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("callback");
    TCase *tcase = tcase_create("callback");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_sample_says_where_it_came_from);
    tcase_add_test(tcase, only_one_view_is_asked_for_at_a_time);
    tcase_add_test(tcase, samples_keep_what_the_next_call_overwrites);
    tcase_add_test(tcase, another_field_where_a_number_was_is_a_bad_record);
    tcase_add_test(tcase, the_end_is_not_asked_for_again);
    tcase_add_test(tcase, a_bad_record_is_counted_and_stepped_over);
    tcase_add_test(tcase, any_other_error_is_sticky_until_reset);
    tcase_add_test(tcase, a_status_that_means_nothing_is_an_error);
    tcase_add_test(tcase, an_error_without_a_line_gets_one);
    tcase_add_test(tcase,
                   a_line_made_for_a_bad_record_has_the_callbacks_number);
    tcase_add_test(tcase, a_sample_that_is_not_as_announced_is_an_error);
    tcase_add_test(tcase, without_reset_there_is_one_epoch);
    tcase_add_test(tcase, without_open_one_reader_at_a_time);
    tcase_add_test(tcase, a_forked_child_has_no_reader_of_its_parents);
    tcase_add_test(tcase, a_pass_that_did_not_open_is_not_closed);
    tcase_add_test(tcase, cancel_wakes_a_callback_whatever_it_then_returns);
    tcase_add_test(tcase, callbacks_without_their_parts_are_refused);
    tcase_add_test(tcase, fields_are_appended_to_those_of_another_reader);
    tcase_add_test(tcase, a_bad_record_after_another_reader_is_named);
    tcase_add_test(tcase, more_fields_than_a_sample_has_are_refused);
    tcase_add_test(tcase, joining_takes_no_memory_once_it_runs);
    return suite_run(suite);
}
