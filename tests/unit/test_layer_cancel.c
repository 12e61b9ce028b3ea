/* Threads in a layer's calls are ended by pthread_cancel. */
#include "support/feed.h"
#include "support/source.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS = 60 };

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
    source made = SOURCE_INIT;
    made.blocks = 4;
    options.help = _i % 2;
    options.reader_thread = (leat_reader_thread)(_i / 2);
    leat_pipeline *pipeline = source_pipeline(&made);
    feed_layer feed = feed_open(pipeline, &options);
    ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
    source_await_blocked(&made);
    cancelled_call call = {feed.layer, feed.top, call_forward, 0, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    leat_data_layer_cancel(feed.layer);
    check_ended(thread, &call, LEAT_ECANCELLED);
    feed_close(&feed);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_thread_that_is_cancelled_in_setup_leaves_no_lock)
{
    source made = SOURCE_INIT;
    made.blocks = 0;
    leat_pipeline *pipeline = source_pipeline(&made);
    feed_layer feed;
    ck_assert_int_eq(leat_data_layer_create(&feed.layer, pipeline, &options),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&feed.top[i], NULL), LEAT_OK);
    cancelled_call call = {feed.layer, feed.top, call_setup, 0, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    source_await_blocked(&made);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    leat_data_layer_cancel(feed.layer);
    check_ended(thread, &call, LEAT_ECANCELLED);
    feed_close(&feed);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* A layer's whole life; the first status that is not what it should be. */
static int live(cancelled_call *self)
{
    char path[] = "/tmp/leat-cancel-XXXXXX";
    source made = SOURCE_INIT;
    leat_pipeline *pipeline = NULL;
    leat_stats stats = {.size = sizeof(stats)};
    leat_token token;
    leat_blob *top[2] = {NULL, NULL};
    int file = mkstemp(path);
    made.bad = 9;
    options.bad_record_file = path;
    leat_token_init(&token);
    pthread_cancel(pthread_self());
    int status = source_try_pipeline(&pipeline, &made);
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
    tcase_add_loop_test(
        tcase, a_thread_that_is_cancelled_in_a_forward_leaves_no_lock, 0, 4);
    tcase_add_test(tcase, a_thread_that_is_cancelled_in_setup_leaves_no_lock);
    tcase_add_test(tcase, no_call_of_a_layer_is_a_cancellation_point);
    return suite_run(suite);
}
