/* prefetch: what happens while its threads are inside. */
#include "base/memory.h"
#include "pipeline/reader_chain.h"
#include "support/empty_reader.h"
#include "support/prefetch_fixture.h"
#include "support/sanitizer.h"
#include "support/stream_decorators.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 10 };

static leat_sample sample;

static void begin(void)
{
    watchdog_start(60);
    leat_sample_init(&sample);
}

static void end(void)
{
    leat_sample_finish(&sample);
    watchdog_stop();
}

static int count_threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *one; (one = readdir(tasks));)
        n += one->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* A thread that was joined is listed until the kernel has done with it. */
static void await_threads(int n)
{
    while (count_threads() != n)
        usleep(1000);
}

START_TEST(the_first_next_starts_the_threads)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    const leat_field_spec *spec;
    int64_t skipped;
    int n, before = count_threads();
    leat_reader *reader = prefetch_open_source(&source, 4, 3);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 2, &skipped), LEAT_OK);
    ck_assert_int_eq(count_threads(), before);
    prefetch_expect(reader, &sample, 2);
    ck_assert_int_eq(count_threads(), before + 3);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    prefetch_expect_rest(reader, &sample, 3, COUNT);
    leat_reader_close(reader);
    await_threads(before);
}
END_TEST

static void *cancel_it(void *reader)
{
    leat_reader_cancel(reader);
    return NULL;
}

/* What the caller does while a thread waits inside the callback for ever. */
typedef enum blocked_call { NEXT, SEEK, SAVE, SKIP, CLOSE } blocked_call;

START_TEST(cancel_and_close_end_every_wait)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    pthread_t canceller;
    int64_t skipped;
    leat_token token;
    int status = LEAT_ECANCELLED;
    source.blocks = 3;
    leat_token_init(&token);
    leat_reader *reader = prefetch_open_source(&source, 6, 2);
    for (int i = 0; i < 3; i++)
        prefetch_expect(reader, &sample, i);
    scripted_source_await_blocked(&source);
    if (_i != CLOSE)
        ck_assert_int_eq(pthread_create(&canceller, NULL, cancel_it, reader),
                         0);
    if (_i == NEXT)
        status = leat_reader_next(reader, &sample);
    if (_i == SEEK)
        status = prefetch_seek(reader, 0, 0);
    if (_i == SAVE)
        status = leat_reader_save(reader, &token);
    if (_i == SKIP)
        status = leat_reader_skip(reader, 100, &skipped);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    if (_i != CLOSE) {
        pthread_join(canceller, NULL);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
        ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_ECANCELLED);
    }
    leat_reader_close(reader);
    leat_token_finish(&token);
}
END_TEST

START_TEST(seek_waits_for_threads_inside_and_drops_what_was_read)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    for (int i = 0; i < 300; i++) {
        source.opened = 0;
        leat_reader *reader =
            prefetch_open_source(&source, 1 + i % 7, 1 + i % 4);
        for (int k = 0; k < 6; k++) {
            for (int j = 0; j < (i + k) % 5; j++)
                prefetch_expect(reader, &sample, j);
            ck_assert_int_eq(prefetch_seek(reader, (i * k) % 3, 0), LEAT_OK);
        }
        prefetch_expect_rest(reader, &sample, 0, COUNT);
        leat_reader_close(reader);
    }
}
END_TEST

static leat_pipeline *filtered(scripted_source *source)
{
    return stream_decorators_take(STREAM_FILTER,
                                  scripted_source_pipeline(source));
}

START_TEST(a_mark_does_not_wait_for_the_next_sample)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_token mark;
    source.blocks = 5;
    leat_token_init(&mark);
    leat_reader *reader = prefetch_open_over(filtered(&source), 6, 2, false);
    prefetch_expect(reader, &sample, 0);
    prefetch_expect(reader, &sample, 2);
    prefetch_expect(reader, &sample, 3);
    scripted_source_await_blocked(&source);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    leat_reader_close(reader);

    /* The mark of prefetch is its upstream reader's. */
    scripted_source other = SCRIPTED_SOURCE_INIT;
    leat_pipeline *pipeline = filtered(&other);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 3}, &mark),
                     LEAT_OK);
    ck_assert_uint_eq(mark.cursor, mark.size);
    prefetch_expect(reader, &sample, 5);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_token_finish(&mark);
}
END_TEST

/* Neither without memory nor after a seek that failed: an empty one leads
   nowhere. */
START_TEST(a_mark_that_could_not_be_made_is_an_error)
{
    int failed = 0;
    leat_token mark;
    leat_token_init(&mark);
    for (int64_t n = 0; n < 60; n++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        leat_reader *reader =
            prefetch_open_over(filtered(&source), 3, 1, false);
        leat__alloc_fail_at(n);
        int status = LEAT_OK;
        while (!status)
            status = leat_reader_next(reader, &sample);
        leat__alloc_fail_at(-1);
        mark.size = mark.cursor = 0;
        int marked = leat_reader_mark(reader, &mark);
        ck_assert(marked ? marked == LEAT_ENOMEM : mark.size > 0);
        failed += marked == LEAT_ENOMEM;
        leat_reader_close(reader);
    }
    ck_assert_int_gt(failed, 0);
    leat_token_finish(&mark);
}
END_TEST

/* It is no epoch's: the threads have begun no other one. */
START_TEST(a_mark_beyond_the_end_leads_to_an_end_that_a_seek_leaves)
{
    scripted_source longer = SCRIPTED_SOURCE_INIT;
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_token mark;
    leat_token_init(&mark);
    longer.count = 2 * (int64_t)COUNT;
    leat_reader *reader = prefetch_open_over(filtered(&longer), 3, 1, false);
    for (int i = 0; i < COUNT; i++)
        prefetch_expect(reader, &sample, (int)stream_decorators_filtered(i));
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    leat_reader_close(reader);
    reader = prefetch_open_over(filtered(&source), 3, 1, false);
    prefetch_expect(reader, &sample, 0);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, COUNT}, &mark),
                     LEAT_END);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_OK);
    for (int i = 0; stream_decorators_filtered(i) < COUNT; i++)
        prefetch_expect(reader, &sample, (int)stream_decorators_filtered(i));
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
    leat_token_finish(&mark);
}
END_TEST

/* The threads begin the next epoch ahead; in vain, and so does a seek. */
START_TEST(a_seek_is_tried_again_where_the_next_epoch_could_not_begin)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.bad_resets = 2;
    leat_reader *reader = prefetch_open_source(&source, 4, 2);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "cannot begin again"));
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    }
    ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_OK);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    ck_assert_int_eq(prefetch_seek(reader, 2, 0), LEAT_OK);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    leat_reader_close(reader);
}
END_TEST

/* A reader whose samples have too many fields from `GOOD` on. */
enum { GOOD = 2000, TOO_MANY = LEAT_MAX_FIELDS + 1 };

static int64_t next_number;

static int many_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec spec = {.name = "value", .dtype = LEAT_INT64};
    (void)reader;
    *out = &spec;
    *n = 1;
    return LEAT_OK;
}

static int many_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    (void)reader;
    for (; *got < n; ++*got) {
        out[*got]->deferred = 1;
        out[*got]->locator.record = next_number++;
    }
    return LEAT_OK;
}

static int many_materialize(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    static const int64_t value = 7;
    (void)reader;
    for (; *got < n; ++*got) {
        int status = leat_sample_set(out[*got], 0, LEAT_INT64, 0, NULL, &value);
        out[*got]->from.record = out[*got]->locator.record;
        if (out[*got]->from.record >= GOOD)
            out[*got]->nfields = TOO_MANY;
        if (status)
            return status;
    }
    return LEAT_OK;
}

static int many_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "many",
                                        .fields = many_fields,
                                        .next = many_next,
                                        .seek = empty_reader_seek,
                                        .cancel = empty_reader_cancel,
                                        .close = empty_reader_cancel,
                                        .materialize = many_materialize};
    static leat_reader reader;
    (void)open;
    reader = (leat_reader){.ops = &ops};
    next_number = 0;
    *out = &reader;
    return LEAT_OK;
}

static atomic_int mapped_bad;

static int note_bad(void *user, leat_sample *mapped)
{
    (void)user;
    if (mapped->from.record >= GOOD)
        atomic_fetch_add(&mapped_bad, 1);
    return LEAT_OK;
}

START_TEST(nothing_is_done_to_samples_after_an_error_of_the_reader)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "many", .open = many_open};
    leat_pipeline *source, *map;
    atomic_store(&mapped_bad, 0);
    ck_assert_int_eq(
        leat_pipeline_create(&source, &type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_map(&map, source, note_bad, NULL, 1, NULL),
                     LEAT_OK);
    leat_pipeline_unref(source);
    leat_reader *reader = prefetch_open_over(map, 256, 1, false);
    int status;
    do
        status = leat_reader_next(reader, &sample);
    while (!status);
    ck_assert_int_eq(status, LEAT_ESTATE);
    leat_reader_close(reader);
    ck_assert_int_eq(atomic_load(&mapped_bad), 0);
}
END_TEST

/* A map whose work on a sample ends once another thread works on one too. */
typedef struct pair_map {
    leat_reader reader;
    leat_reader *upstream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside, met, waits;
} pair_map;

static int pair_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    return leat_reader_fields(((pair_map *)reader)->upstream, out, n);
}

static int pair_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    return leat_reader_pull(((pair_map *)reader)->upstream, out, n, got);
}

static int pair_seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    return leat_reader_seek(((pair_map *)reader)->upstream, at, mark);
}

static void pair_cancel(leat_reader *reader)
{
    leat_reader_cancel(((pair_map *)reader)->upstream);
}

static void pair_close(leat_reader *reader)
{
    leat_reader_close(((pair_map *)reader)->upstream);
}

static int pair_materialize(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    pair_map *self = (pair_map *)reader;
    (void)out;
    pthread_mutex_lock(&self->lock);
    self->met |= ++self->inside > 1;
    pthread_cond_broadcast(&self->changed);
    while (!self->met)
        pthread_cond_wait(&self->changed, &self->lock);
    self->inside--;
    pthread_mutex_unlock(&self->lock);
    *got = n;
    return LEAT_OK;
}

static const leat_reader_ops pair_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "pair",
    .fields = pair_fields,
    .next = pair_next,
    .seek = pair_seek,
    .cancel = pair_cancel,
    .close = pair_close,
    .materialize = pair_materialize,
};

static pair_map the_pair = {.reader = {.ops = &pair_ops},
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};

static int pair_open(const leat_open *open, leat_reader **out)
{
    the_pair.upstream = open->upstream[0];
    the_pair.inside = the_pair.met = 0;
    *out = &the_pair.reader;
    return LEAT_OK;
}

static const leat_reader_type pair_type = {.size = sizeof(leat_reader_type),
                                           .name = "pair",
                                           .min_upstream = 1,
                                           .max_upstream = 1,
                                           .open = pair_open};

START_TEST(threads_work_at_the_same_time)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_pipeline *upstream = scripted_source_pipeline(&source);
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &pair_type, NULL, NULL,
                                          NULL, &upstream, 1),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    leat_reader *reader = prefetch_open_over(pipeline, 4, 2, false);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    leat_reader_close(reader);
    ck_assert_int_eq(the_pair.met, 1);
}
END_TEST

START_TEST(waits_are_blocked_time_not_busy)
{
    static long pause = 2000000;
    leat_reader *reader =
        prefetch_open_over(scripted_source_slow_pipeline(&pause), 2, 1, false);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    const leat_reader_figures *own = reader->state->figures;
    ck_assert_int_gt(atomic_load(&own->blocked), 10 * 1000000);
    ck_assert_int_lt(atomic_load(&own->busy), atomic_load(&own->blocked));
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_forked_child_is_refused_and_can_close)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_reader *reader = prefetch_open_source(&source, 4, 2);
    prefetch_expect(reader, &sample, 0);
    fflush(NULL);
    /* A child of clang's address sanitizer hangs if it is forked while another
       thread allocates: there the threads have come to rest. */
    if (IS_SANITIZED) {
        prefetch_await_given(&source, 4);
        usleep(50000);
    }
    /* The child calls the source's cancel, which takes this lock: no thread
       that the child lacks is to hold it. */
    pthread_mutex_lock(&source.lock);
    pid_t child = fork();
    pthread_mutex_unlock(&source.lock);
    if (child == 0) {
        int status = leat_reader_next(reader, &sample);
        leat_reader_cancel(reader);
        leat_reader_close(reader);
        _exit(status == LEAT_ESTATE ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    prefetch_expect_rest(reader, &sample, 1, COUNT);
    leat_reader_close(reader);
}
END_TEST

static leat_data_layer *the_layer;
static atomic_int refused;

/* A callback on a thread of prefetch, which the layer's setup has started. */
static int restoring_next(void *pass, leat_sample *out)
{
    static const float value = 1;
    (void)pass;
    leat_token token;
    leat_token_init(&token);
    if (leat_data_layer_restore(the_layer, &token) == LEAT_ESTATE &&
        strstr(leat_last_error(), "inside a callback"))
        atomic_fetch_add(&refused, 1);
    leat_token_finish(&token);
    return leat_sample_set(out, 0, LEAT_FLOAT32, 0, NULL, &value);
}

START_TEST(its_threads_are_the_layers)
{
    const leat_field_spec field = {.name = "data", .dtype = LEAT_FLOAT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = restoring_next};
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_pipeline *upstream, *pipeline;
    options.batch_size = 4;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&the_layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_msg(!leat_data_layer_setup(the_layer, NULL, 0), "%s",
                  leat_last_error());
    for (int i = 0; i < 200; i++) {
        leat_blob *top[] = {leat_data_layer_top(the_layer, 0)};
        ck_assert_int_eq(leat_data_layer_forward(the_layer, top, 1, LEAT_HOST),
                         LEAT_OK);
    }
    ck_assert_int_ge(atomic_load(&refused), 800);
    leat_data_layer_destroy(the_layer);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

/* The threads make more room once they know how large samples are, and try
 * again where there was no memory. */
START_TEST(a_skip_may_come_while_the_room_grows)
{
    for (int n = 0; n < 100; n++) {
        leat_pipeline *pipeline;
        leat_reader *reader;
        int64_t skipped = 3;
        int status = LEAT_OK;
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, "range:99 | prefetch"),
                         LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        leat__alloc_fail_at(n);
        for (int i = 0; i < 80 && !status; i += 4) {
            status = leat_reader_next(reader, &sample);
            if (!status)
                ck_assert_int_eq(*(const int64_t *)sample.field[0].data, i);
            if (i < 8)
                usleep(500); /* in which they do */
            if (!status)
                status = leat_reader_skip(reader, 3, &skipped);
            ck_assert(status == LEAT_ENOMEM || skipped == 3);
        }
        leat__alloc_fail_at(-1);
        ck_assert(!status || status == LEAT_ENOMEM);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prefetch_threads");
    TCase *tcase = tcase_create("prefetch_threads");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_first_next_starts_the_threads);
    tcase_add_loop_test(tcase, cancel_and_close_end_every_wait, NEXT,
                        CLOSE + 1);
    tcase_add_test(tcase,
                   seek_waits_for_threads_inside_and_drops_what_was_read);
    tcase_add_test(tcase, a_mark_does_not_wait_for_the_next_sample);
    tcase_add_test(tcase, a_mark_that_could_not_be_made_is_an_error);
    tcase_add_test(tcase,
                   a_mark_beyond_the_end_leads_to_an_end_that_a_seek_leaves);
    tcase_add_test(tcase,
                   a_seek_is_tried_again_where_the_next_epoch_could_not_begin);
    tcase_add_test(tcase,
                   nothing_is_done_to_samples_after_an_error_of_the_reader);
    tcase_add_test(tcase, threads_work_at_the_same_time);
    tcase_add_test(tcase, waits_are_blocked_time_not_busy);
    tcase_add_test(tcase, its_threads_are_the_layers);
    tcase_add_test(tcase, a_skip_may_come_while_the_room_grows);
    tcase_add_test(tcase, a_forked_child_is_refused_and_can_close);
    return suite_run(suite);
}
