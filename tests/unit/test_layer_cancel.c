/*
 * Cancelled from where one does not expect it: a layer from inside its reader's
 * cancel, and threads in leat's calls by pthread_cancel.
 */
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS = 60, ROUNDS = 200 };

__attribute__((weak)) void __tsan_init(void);

/* These are put in front of libc's by the linker. */
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_stat(const char *path, struct stat *about);
int __wrap_stat(const char *path, struct stat *about);

/* A thread that is held before its next lock until it may go on. */
static _Thread_local int is_held;
static sem_t reached_lock, may_lock;

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (is_held) {
        is_held = 0;
        sem_post(&reached_lock);
        sem_wait(&may_lock);
    }
    return __real_pthread_mutex_lock(lock);
}

/* A layer that is cancelled at the last of so many look-ups of files. */
static struct {
    leat_data_layer *layer;
    char folder[32];
    char start[40]; /* of the files' paths */
    int n;
    int last;
} looks;

int __wrap_stat(const char *path, struct stat *about)
{
    if (looks.layer && strstr(path, looks.start) == path &&
        ++looks.n == looks.last)
        leat_data_layer_cancel(looks.layer);
    return __real_stat(path, about);
}

static leat_data_layer_options options;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = 4;
    watchdog_start(SECONDS);
}

static void tear_down(void)
{
    watchdog_stop();
}

/* Whose reader cancels a layer: its own or another one. */
typedef struct canceller {
    leat_data_layer *layer;
    leat_blob *top;
    leat_pipeline *pipeline;
    leat_data_layer *victim; /* NULL: nobody yet */
    bool on_thread;          /* it is cancelled on another thread */
    atomic_int calls;
} canceller;

static void *cancel_layer(void *layer)
{
    leat_data_layer_cancel(layer);
    return NULL;
}

static void canceller_cancel(void *pass)
{
    canceller *self = pass;
    atomic_fetch_add(&self->calls, 1);
    if (!self->victim)
        return;
    pthread_t thread;
    if (!self->on_thread)
        leat_data_layer_cancel(self->victim);
    else if (pthread_create(&thread, NULL, cancel_layer, self->victim) == 0)
        pthread_join(thread, NULL);
}

static void canceller_open(canceller *self)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 1,
                                      .next = scripted_source_one_float,
                                      .cancel = canceller_cancel};
    *self = (canceller){.victim = NULL};
    ck_assert_int_eq(leat_pipeline_callback(&self->pipeline, &callbacks, self),
                     LEAT_OK);
    ck_assert_int_eq(
        leat_data_layer_create(&self->layer, self->pipeline, &options),
        LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&self->top, NULL), LEAT_OK);
}

static void canceller_set_up(canceller *self)
{
    ck_assert_int_eq(leat_data_layer_setup(self->layer, &self->top, 1),
                     LEAT_OK);
}

static int canceller_forward(canceller *self)
{
    return leat_data_layer_forward(self->layer, &self->top, 1, LEAT_HOST);
}

static void canceller_close(canceller *self)
{
    leat_data_layer_destroy(self->layer);
    leat_blob_destroy(self->top);
    leat_pipeline_unref(self->pipeline);
}

START_TEST(a_readers_cancel_may_cancel_its_own_layer)
{
    canceller one;
    leat_token token;
    canceller_open(&one);
    canceller_set_up(&one);
    one.victim = one.layer;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(one.layer, &token), LEAT_OK);
    leat_data_layer_cancel(one.layer);
    leat_data_layer_cancel(one.layer);
    ck_assert_int_eq(atomic_load(&one.calls), 1);
    ck_assert_int_eq(canceller_forward(&one), LEAT_ECANCELLED);
    /* Restore stops the reader first, whose cancel comes again. */
    ck_assert_int_eq(leat_data_layer_restore(one.layer, &token), LEAT_OK);
    ck_assert_int_eq(canceller_forward(&one), LEAT_OK);
    leat_data_layer_cancel(one.layer);
    ck_assert_int_eq(canceller_forward(&one), LEAT_ECANCELLED);
    leat_token_finish(&token);
    canceller_close(&one);
}
END_TEST

/* Another thread cancels the layer as restore stops the reader. */
START_TEST(a_cancel_in_the_first_part_of_a_restore_is_not_lost)
{
    for (int was_cancelled = 0; was_cancelled < 2; was_cancelled++) {
        canceller one;
        leat_token token;
        canceller_open(&one);
        canceller_set_up(&one);
        leat_token_init(&token);
        ck_assert_int_eq(leat_data_layer_save(one.layer, &token), LEAT_OK);
        if (was_cancelled)
            leat_data_layer_cancel(one.layer);
        one.victim = one.layer;
        one.on_thread = true;
        ck_assert_int_eq(leat_data_layer_restore(one.layer, &token),
                         LEAT_ECANCELLED);
        one.victim = NULL;
        ck_assert_int_eq(canceller_forward(&one), LEAT_ECANCELLED);
        ck_assert_int_eq(leat_data_layer_restore(one.layer, &token), LEAT_OK);
        ck_assert_int_eq(canceller_forward(&one), LEAT_OK);
        leat_token_finish(&token);
        canceller_close(&one);
    }
}
END_TEST

START_TEST(a_readers_cancel_may_cancel_its_own_layer_at_destroy)
{
    canceller one;
    canceller_open(&one);
    canceller_set_up(&one);
    one.victim = one.layer;
    canceller_close(&one);
}
END_TEST

START_TEST(a_readers_cancel_may_cancel_another_layer)
{
    canceller one;
    layer_fixture other;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    canceller_open(&one);
    canceller_set_up(&one);
    other = layer_fixture_open(pipeline, &options);
    one.victim = other.layer;
    leat_data_layer_cancel(one.layer);
    ck_assert_int_eq(canceller_forward(&one), LEAT_ECANCELLED);
    ck_assert_int_eq(layer_fixture_forward(&other), LEAT_ECANCELLED);
    canceller_close(&one);
    layer_fixture_close(&other);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(two_layers_may_cancel_each_other_at_once)
{
    for (int round = 0; round < ROUNDS; round++) {
        canceller pair[2];
        pthread_t thread[2];
        for (int i = 0; i < 2; i++) {
            canceller_open(&pair[i]);
            canceller_set_up(&pair[i]);
        }
        for (int i = 0; i < 2; i++)
            pair[i].victim = pair[!i].layer;
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(
                pthread_create(&thread[i], NULL, cancel_layer, pair[i].layer),
                0);
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(canceller_forward(&pair[i]), LEAT_ECANCELLED);
            pair[i].victim = NULL;
        }
        for (int i = 0; i < 2; i++)
            canceller_close(&pair[i]);
    }
}
END_TEST

static void *cancel_layer_late(void *layer)
{
    is_held = 1;
    leat_data_layer_cancel(layer);
    return NULL;
}

/* The restore runs while the cancel is about to take the layer's lock. */
START_TEST(a_cancel_that_a_restore_overtakes_cancels_the_restored_layer)
{
    canceller one;
    leat_token token;
    pthread_t thread;
    canceller_open(&one);
    canceller_set_up(&one);
    one.victim = one.layer;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(one.layer, &token), LEAT_OK);
    ck_assert_int_eq(sem_init(&reached_lock, 0, 0), 0);
    ck_assert_int_eq(sem_init(&may_lock, 0, 0), 0);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, cancel_layer_late, one.layer), 0);
    sem_wait(&reached_lock);
    ck_assert_int_eq(leat_data_layer_restore(one.layer, &token), LEAT_OK);
    ck_assert_int_eq(canceller_forward(&one), LEAT_OK);
    int calls = atomic_load(&one.calls);
    sem_post(&may_lock);
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&one.calls), calls + 1);
    ck_assert_int_eq(canceller_forward(&one), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_data_layer_restore(one.layer, &token), LEAT_OK);
    ck_assert_int_eq(canceller_forward(&one), LEAT_OK);
    sem_destroy(&reached_lock);
    sem_destroy(&may_lock);
    leat_token_finish(&token);
    canceller_close(&one);
}
END_TEST

/* A reader whose seek waits for a cancel, if it is to. */
static struct {
    leat_reader reader;
    int waits;
    atomic_int is_seeking;
    sem_t is_waiting, cancelled;
} blocked;

static int blocked_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    static const leat_field_spec field = {.name = "data",
                                          .dtype = LEAT_FLOAT32};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int blocked_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    (void)reader, (void)n;
    *got = 1;
    return scripted_source_one_float(NULL, out[0]);
}

static int blocked_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    (void)reader, (void)position, (void)mark;
    if (!blocked.waits)
        return LEAT_OK;
    atomic_store(&blocked.is_seeking, 1);
    sem_post(&blocked.is_waiting);
    sem_wait(&blocked.cancelled);
    return leat_error(LEAT_ECANCELLED, "the seek was cancelled");
}

static void blocked_cancel(leat_reader *reader)
{
    (void)reader;
    if (atomic_load(&blocked.is_seeking))
        sem_post(&blocked.cancelled);
}

static void blocked_close(leat_reader *reader)
{
    (void)reader;
}

static int blocked_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "blocked",
                                        .fields = blocked_fields,
                                        .next = blocked_next,
                                        .seek = blocked_seek,
                                        .cancel = blocked_cancel,
                                        .close = blocked_close};
    (void)open;
    blocked.reader = (leat_reader){.ops = &ops};
    *out = &blocked.reader;
    return LEAT_OK;
}

static void *cancel_blocked(void *layer)
{
    sem_wait(&blocked.is_waiting);
    leat_data_layer_cancel(layer);
    return NULL;
}

/* The way to where it goes on may be long, and that reader is not the layer's
 * yet. */
START_TEST(a_restore_that_is_on_its_way_is_cancelled)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "blocked", .open = blocked_open};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_token token;
    pthread_t thread;
    leat_token_init(&token);
    ck_assert_int_eq(sem_init(&blocked.is_waiting, 0, 0), 0);
    ck_assert_int_eq(sem_init(&blocked.cancelled, 0, 0), 0);
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    leat_data_layer_cancel(layer);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_blocked, layer), 0);
    blocked.waits = 1;
    int status = leat_data_layer_restore(layer, &token);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    pthread_join(thread, NULL);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
    leat_token_finish(&token);
}
END_TEST

/* What a callback tries to do to its own layer, and what that gave. */
typedef struct intruder {
    leat_data_layer *layer;
    leat_blob *top;
    pthread_t caller;       /* of forward */
    atomic_int may_intrude; /* in setup itself, or once it is over */
    atomic_int is_done;
    int status[3];
} intruder;

static void intrude(intruder *self)
{
    leat_token token;
    leat_token_init(&token);
    self->status[0] = leat_data_layer_setup(self->layer, &self->top, 1);
    self->status[1] = leat_data_layer_restore(self->layer, &token);
    /* What it touches before it would wait is its caller's. */
    self->status[2] = LEAT_ESTATE;
    if (!__tsan_init)
        self->status[2] =
            leat_data_layer_forward(self->layer, &self->top, 1, LEAT_HOST);
    leat_data_layer_destroy(self->layer);
    atomic_store(&self->is_done, 1);
}

static int intruder_next(void *pass, leat_sample *sample)
{
    intruder *self = pass;
    if (!atomic_load(&self->is_done) && atomic_load(&self->may_intrude))
        intrude(self);
    return scripted_source_one_float(pass, sample);
}

START_TEST(a_callback_that_calls_its_own_layer_is_refused)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 1,
                                      .next = intruder_next};
    intruder one = {.may_intrude = _i % 2};
    leat_pipeline *pipeline;
    leat_blob *top;
    options.reader_thread = _i / 2 ? LEAT_READER_OFF : LEAT_READER_ON;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &one), 0);
    ck_assert_int_eq(leat_data_layer_create(&one.layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&one.top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(one.layer, &top, 1), LEAT_OK);
    atomic_store(&one.may_intrude, 1);
    while (!atomic_load(&one.is_done))
        ck_assert_int_eq(leat_data_layer_forward(one.layer, &top, 1, LEAT_HOST),
                         LEAT_OK);
    leat_data_layer_destroy(one.layer);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(one.status[i], LEAT_ESTATE);
    leat_blob_destroy(one.top);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void check_refused(const intruder *self)
{
    ck_assert_int_eq(atomic_load(&self->is_done), 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(self->status[i], LEAT_ESTATE);
}

/* Takes its time on other threads, so that forward finds no batch and helps. */
static int intruder_map(void *user, leat_sample *sample)
{
    intruder *self = user;
    (void)sample;
    if (!pthread_equal(pthread_self(), self->caller))
        usleep(2000);
    else if (!atomic_load(&self->is_done) && atomic_load(&self->may_intrude))
        intrude(self);
    return LEAT_OK;
}

enum { FORWARDS = 2000 };

START_TEST(a_map_on_the_callers_thread_that_calls_its_own_layer_is_refused)
{
    intruder one = {.caller = pthread_self()};
    leat_pipeline *source, *pipeline;
    options.workers = 1;
    options.prefetch = 2;
    ck_assert_int_eq(
        leat_pipeline_parse(&source, "random:1000,shape=1x4x4,dtype=uint8"),
        LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_map(&pipeline, source, intruder_map, &one, 1, NULL),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&one.layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&one.top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(one.layer, NULL, 0), LEAT_OK);
    atomic_store(&one.may_intrude, 1);
    for (int i = 0; i < FORWARDS && !atomic_load(&one.is_done); i++)
        ck_assert_int_eq(leat_data_layer_forward(one.layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
    check_refused(&one);
    leat_data_layer_destroy(one.layer);
    leat_blob_destroy(one.top);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(source);
}
END_TEST

static void intruder_close(void *pass)
{
    intruder *self = pass;
    if (!atomic_load(&self->is_done) && atomic_load(&self->may_intrude))
        intrude(self);
}

/* In restore, which closes the reader, or in destroy. */
START_TEST(a_close_that_calls_its_own_layer_is_refused)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 1,
                                      .next = scripted_source_one_float,
                                      .close = intruder_close};
    intruder one = {.caller = pthread_self()};
    leat_pipeline *pipeline;
    leat_token token;
    leat_token_init(&token);
    options.reader_thread = _i / 2 ? LEAT_READER_OFF : LEAT_READER_ON;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &one), 0);
    ck_assert_int_eq(leat_data_layer_create(&one.layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&one.top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(one.layer, &one.top, 1), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(one.layer, &one.top, 1, LEAT_HOST),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(one.layer, &token), LEAT_OK);
    atomic_store(&one.may_intrude, 1);
    if (_i % 2) {
        ck_assert_int_eq(leat_data_layer_restore(one.layer, &token), LEAT_OK);
        check_refused(&one);
        ck_assert_int_eq(
            leat_data_layer_forward(one.layer, &one.top, 1, LEAT_HOST),
            LEAT_OK);
    }
    leat_data_layer_destroy(one.layer);
    check_refused(&one);
    leat_blob_destroy(one.top);
    leat_pipeline_unref(pipeline);
    leat_token_finish(&token);
}
END_TEST

/* A call in a thread that is cancelled, and what it returned. */
typedef struct cancelled_call {
    leat_data_layer *layer;
    leat_blob **top;
    int (*call)(struct cancelled_call *self);
    int status;
    int returned;
} cancelled_call;

static int call_forward(cancelled_call *self)
{
    return leat_data_layer_forward(self->layer, self->top, 2, LEAT_HOST);
}

static int call_setup(cancelled_call *self)
{
    return leat_data_layer_setup(self->layer, self->top, 2);
}

static void *call_and_end(void *argument)
{
    cancelled_call *self = argument;
    self->status = self->call(self);
    self->returned = 1;
    for (;;)
        pause();
    return NULL;
}

/* Returns once pthread_cancel has ended the thread; its call came back. */
static void check_ended(pthread_t thread, const cancelled_call *call, int want)
{
    void *result;
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert_int_eq(call->returned, 1);
    ck_assert_int_eq(call->status, want);
}

START_TEST(a_thread_that_is_cancelled_in_a_forward_leaves_no_lock)
{
    scripted_source made = SCRIPTED_SOURCE_INIT;
    made.blocks = 4;
    options.caller_helps =
        (_i % 2) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.reader_thread = (leat_reader_thread)(_i / 2);
    leat_pipeline *pipeline = scripted_source_pipeline(&made);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    scripted_source_await_blocked(&made);
    cancelled_call call = {fixture.layer, fixture.top, call_forward, 0, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    leat_data_layer_cancel(fixture.layer);
    check_ended(thread, &call, LEAT_ECANCELLED);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_thread_that_is_cancelled_in_setup_leaves_no_lock)
{
    scripted_source made = SCRIPTED_SOURCE_INIT;
    made.blocks = 0;
    leat_pipeline *pipeline = scripted_source_pipeline(&made);
    layer_fixture fixture;
    ck_assert_int_eq(leat_data_layer_create(&fixture.layer, pipeline, &options),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture.top[i], NULL), LEAT_OK);
    cancelled_call call = {fixture.layer, fixture.top, call_setup, 0, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    scripted_source_await_blocked(&made);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    leat_data_layer_cancel(fixture.layer);
    check_ended(thread, &call, LEAT_ECANCELLED);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

enum { FILES = 5 };

/* Files of a line, f0 and on, and a list of their paths. */
static void make_files(void)
{
    char name[64];
    strcpy(looks.folder, "/tmp/leat-looks-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(looks.folder));
    snprintf(looks.start, sizeof(looks.start), "%s/f", looks.folder);
    snprintf(name, sizeof(name), "%s/list", looks.folder);
    FILE *list = fopen(name, "w");
    ck_assert_ptr_nonnull(list);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "%s/f%d", looks.folder, i);
        FILE *file = fopen(name, "w");
        ck_assert_ptr_nonnull(file);
        fputs("line\n", file);
        fclose(file);
        fprintf(list, "%s\n", name);
    }
    fclose(list);
}

static void remove_files(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", looks.folder);
    ck_assert_int_eq(system(command), 0);
}

static void check_cancelled_at(const leat_pipeline *pipeline, int look)
{
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    looks.layer = layer;
    looks.n = 0;
    looks.last = look;
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_ECANCELLED);
    ck_assert_msg(strstr(leat_last_error(), "cancelled"), "%s",
                  leat_last_error());
    ck_assert_int_eq(looks.n, look);
    looks.layer = NULL;
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
}

/* `%1$s` is the folder. So many look-ups are before the end of opening, or, of
   files, before the last one: only after that are the tops refused. */
static const struct {
    const char *text;
    int looks;
} looked_up[] = {
    {"text:@%1$s/list,compression=GZIP", 1 + FILES},
    {"text:@%1$s/list", 2 * FILES},
    {"text:%1$s/f*", 2 * FILES},
    {"idx:@%1$s/list,@%1$s/list", FILES},
    {"files:@%1$s/list", FILES - 1},
    {"files:%1$s/list | interleave:(text:@{},compression=GZIP)", 1 + FILES},
};
enum { LOOKED_UP = sizeof(looked_up) / sizeof(looked_up[0]) };

START_TEST(setup_looks_up_no_file_after_a_cancel)
{
    char text[256];
    leat_pipeline *pipeline;
    make_files();
    snprintf(text, sizeof(text), looked_up[_i].text, looks.folder);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    for (int look = 1; look <= looked_up[_i].looks; look++)
        check_cancelled_at(pipeline, look);
    leat_pipeline_unref(pipeline);
    remove_files();
}
END_TEST

/* Memory for samples. While the last of so many pieces is taken, another thread
 * cancels the layer. */
static struct {
    leat_data_layer *layer;
    atomic_int given;
    int last;
} pieces;

static void *take_piece(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *memory = NULL;
    pthread_t thread;
    if (atomic_fetch_add(&pieces.given, 1) + 1 == pieces.last) {
        ck_assert_int_eq(
            pthread_create(&thread, NULL, cancel_layer, pieces.layer), 0);
        pthread_join(thread, NULL);
    }
    ck_assert_int_eq(posix_memalign(&memory, alignment, bytes), 0);
    return memory;
}

static void free_piece(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    free(memory);
}

static int next_in_piece(void *pass, leat_sample *sample)
{
    (void)pass;
    float *value = leat_sample_take(sample, 1000);
    if (!value)
        return LEAT_ENOMEM;
    *value = 1;
    return leat_sample_set(sample, 0, LEAT_FLOAT32, 0, NULL, value);
}

/* The status of a setup that is cancelled at that piece. */
static int cancel_at_piece(const leat_pipeline *pipeline, int piece)
{
    leat_blob *top;
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&pieces.layer, pipeline, &options),
                     LEAT_OK);
    atomic_store(&pieces.given, 0);
    pieces.last = piece;
    int status = leat_data_layer_setup(pieces.layer, &top, 1);
    /* The chunk that is under way becomes whole. */
    if (status)
        ck_assert_int_lt(atomic_load(&pieces.given) - piece,
                         (int)options.batch_size);
    leat_data_layer_destroy(pieces.layer);
    leat_blob_destroy(top);
    return status;
}

/* The buffers of all chunks may be gigabytes of pinned memory. */
START_TEST(setup_makes_no_chunk_after_a_cancel)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 1,
                                      .next = next_in_piece};
    const leat_allocator hooks = {
        .size = sizeof(hooks), .alloc = take_piece, .free = free_piece};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL),
                     LEAT_OK);
    options.host_allocator = &hooks;
    options.workers = 8;
    options.reader_thread = _i ? LEAT_READER_ON : LEAT_READER_OFF;
    int n = 1, status;
    while ((status = cancel_at_piece(pipeline, n)) == LEAT_ECANCELLED)
        n++;
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_gt(n, options.workers);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* A layer's whole life; the first status that is not what it should be. */
static int live(cancelled_call *self)
{
    char path[] = "/tmp/leat-cancel-XXXXXX";
    scripted_source made = SCRIPTED_SOURCE_INIT;
    leat_pipeline *pipeline = NULL;
    leat_stats stats = {.size = sizeof(stats)};
    leat_token token;
    leat_blob *top[2] = {NULL, NULL};
    int file = mkstemp(path);
    made.bad = 9;
    options.bad_record_file = path;
    leat_token_init(&token);
    pthread_cancel(pthread_self());
    int status = scripted_source_try_pipeline(&pipeline, &made);
    if (status == LEAT_OK)
        status = leat_data_layer_create(&self->layer, pipeline, &options);
    for (int i = 0; i < 2 && status == LEAT_OK; i++)
        status = leat_blob_create(&top[i], NULL);
    if (status == LEAT_OK && leat_data_layer_top_count(self->layer) != 2)
        status = LEAT_ESTATE;
    if (status == LEAT_OK)
        status = leat_data_layer_setup(self->layer, top, 2);
    for (int i = 0; i < 20 && status == LEAT_OK; i++) {
        status = leat_data_layer_forward(self->layer, top, 2, LEAT_HOST);
        if (status == LEAT_EDATA)
            status = LEAT_OK;
    }
    if (status == LEAT_OK)
        status = leat_data_layer_stats(self->layer, &stats);
    if (status == LEAT_OK && stats.bad_records == 0)
        status = LEAT_ESTATE;
    if (status == LEAT_OK)
        status = leat_data_layer_save(self->layer, &token);
    if (status == LEAT_OK)
        status = leat_data_layer_restore(self->layer, &token);
    leat_data_layer_cancel(self->layer);
    leat_data_layer_destroy(self->layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    unlink(path);
    close(file);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    return status;
}

START_TEST(no_call_of_a_layer_is_a_cancellation_point)
{
    cancelled_call call = {NULL, NULL, live, 0, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    check_ended(thread, &call, LEAT_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cancel");
    TCase *tcase = tcase_create("layer_cancel");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_readers_cancel_may_cancel_its_own_layer);
    tcase_add_test(tcase, a_cancel_in_the_first_part_of_a_restore_is_not_lost);
    tcase_add_test(tcase, a_readers_cancel_may_cancel_its_own_layer_at_destroy);
    tcase_add_test(tcase, a_readers_cancel_may_cancel_another_layer);
    tcase_add_test(tcase, two_layers_may_cancel_each_other_at_once);
    tcase_add_test(
        tcase, a_cancel_that_a_restore_overtakes_cancels_the_restored_layer);
    tcase_add_test(tcase, a_restore_that_is_on_its_way_is_cancelled);
    tcase_add_loop_test(tcase, a_callback_that_calls_its_own_layer_is_refused,
                        0, 4);
    tcase_add_test(
        tcase, a_map_on_the_callers_thread_that_calls_its_own_layer_is_refused);
    tcase_add_loop_test(tcase, a_close_that_calls_its_own_layer_is_refused, 0,
                        4);
    tcase_add_loop_test(
        tcase, a_thread_that_is_cancelled_in_a_forward_leaves_no_lock, 0, 4);
    tcase_add_test(tcase, a_thread_that_is_cancelled_in_setup_leaves_no_lock);
    tcase_add_loop_test(tcase, setup_looks_up_no_file_after_a_cancel, 0,
                        LOOKED_UP);
    tcase_add_loop_test(tcase, setup_makes_no_chunk_after_a_cancel, 0, 2);
    tcase_add_test(tcase, no_call_of_a_layer_is_a_cancellation_point);
    return suite_run(suite);
}
