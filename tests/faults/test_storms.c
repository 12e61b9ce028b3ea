/*
 * Stop storms: several layers at a time, each with a consumer of its own that
 * is slow, stops at a random moment and destroys it, while another thread
 * cancels some of them. Readers fail, end, block for ever or share a database.
 * LEAT_STORM=N makes N layers of each.
 */
#include "base/random.h"
#include "support/layer_fixture.h"
#include "support/life_cycles.h"
#include "support/scripted_source.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A group of layers ends within milliseconds. */
enum { GROUP = 4, SECONDS = 60 };

static int storm_size(void)
{
    const char *text = getenv("LEAT_STORM");
    return text ? atoi(text) : 200;
}

/* One random number of case `number` in [0, n). */
static int pick(int number, int what, int n)
{
    uint32_t words[4];
    leat__random_words(815, number, what, 0, words);
    return (int)leat__random_below(words[0], (uint32_t)n);
}

static void rest(int microseconds)
{
    const struct timespec time = {0, microseconds * 1000L};
    nanosleep(&time, NULL);
}

static leat_data_layer_options random_options(int number)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 1 + pick(number, 1, 6);
    options.prefetch = 1 + pick(number, 2, 4);
    if (pick(number, 3, 4) == 0)
        options.prefetch = LEAT_PREFETCH_AUTO;
    options.workers = 1 + pick(number, 4, 4);
    options.caller_helps =
        (pick(number, 5, 2)) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.reader_thread = (leat_reader_thread)pick(number, 6, 3);
    options.top_mode = (leat_top_mode)pick(number, 7, 2);
    options.random_seed = number;
    options.has_random_seed = 1;
    if (pick(number, 8, 4) == 0)
        options.device = "late:0";
    return options;
}

static void make_source(scripted_source *out, int number)
{
    const scripted_source fresh = SCRIPTED_SOURCE_INIT;
    *out = fresh;
    out->count = 1 + pick(number, 10, 20);
    out->single_pass = pick(number, 11, 2);
    int place = 1 + pick(number, 12, 20);
    int64_t *const faults[] = {&out->bad, &out->broken, &out->blocks,
                               &out->larger};
    int which = pick(number, 13, 5);
    if (which < 4)
        *faults[which] = place;
}

/* Over memory; making another would write its samples anew. */
static leat_pipeline *shared;

/* Databases are shared by all layers over them, a source is the layer's own. */
static leat_pipeline *random_pipeline(scripted_source *own, int number)
{
    static const char *const texts[] = {
        "lmdb:%s/raw", "lmdb:%s/raw | test_shuffle:seed=3", "lmdb:%s/jpeg",
        "lmdb:%s/raw,drop_behind=1,keep_behind=-1"};
    char text[1024];
    leat_pipeline *pipeline;
    int which = pick(number, 14, 8);
    make_source(own, number);
    if (which == 4)
        leat_pipeline_ref(shared);
    if (which >= 4)
        return which == 4 ? shared : scripted_source_pipeline(own);
    snprintf(text, sizeof(text), texts[which], life_cycles_directory());
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    return pipeline;
}

/* One layer and whoever takes its batches. */
typedef struct consumer {
    int number;
    int waits; /* for ever, where nobody but cancel may wake it */
    scripted_source own;
    leat_pipeline *pipeline;
    leat_data_layer_options options;
    layer_fixture fixture;
    pthread_t thread;
    atomic_int is_over; /* nobody may cancel any more */
} consumer;

static int is_expected(int status)
{
    return status == LEAT_OK || status == LEAT_AGAIN || status == LEAT_END ||
           status == LEAT_EDATA || status == LEAT_EIO ||
           status == LEAT_ECANCELLED;
}

static void resume(consumer *self)
{
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(self->fixture.layer, &token),
                     LEAT_OK);
    int status = leat_data_layer_restore(self->fixture.layer, &token);
    ck_assert_msg(is_expected(status), "%s", leat_last_error());
    leat_token_finish(&token);
}

static void take_batches(consumer *self)
{
    int number = self->number;
    int n = pick(number, 20, 12);
    for (int i = 0; i < n; i++) {
        int timeout = pick(number, 30 + i, 2);
        int status = self->waits
                         ? layer_fixture_forward(&self->fixture)
                         : leat_data_layer_try_forward(self->fixture.layer,
                                                       self->fixture.top, 2,
                                                       LEAT_HOST, timeout);
        ck_assert_msg(is_expected(status), "%s", leat_last_error());
        if (status == LEAT_ECANCELLED && self->waits)
            break;
        if (pick(number, 60 + i, 3) == 0)
            rest(pick(number, 90 + i, 300));
        if (status == LEAT_OK && pick(number, 120 + i, 4) == 0)
            ck_assert_int_eq(
                leat_data_layer_release(self->fixture.layer, NULL, 0), LEAT_OK);
        /* Restore waits as setup does, and clears a cancel that was to wake
           the one after it. */
        if (!self->waits && self->own.blocks < 0 &&
            pick(number, 150 + i, 16) == 0)
            resume(self);
    }
}

static void *consume(void *argument)
{
    consumer *self = argument;
    take_batches(self);
    if (!atomic_load(&self->is_over))
        rest(pick(self->number, 180, 200));
    return NULL;
}

static void open_consumer(consumer *self, int number)
{
    self->number = number;
    atomic_init(&self->is_over, 0);
    self->pipeline = random_pipeline(&self->own, number);
    self->options = random_options(number);
    self->fixture = layer_fixture_open(self->pipeline, &self->options);
}

static void close_consumer(consumer *self)
{
    layer_fixture_close(&self->fixture);
    leat_pipeline_unref(self->pipeline);
}

static void *live(void *argument)
{
    consumer *self = argument;
    open_consumer(self, self->number);
    take_batches(self);
    close_consumer(self);
    return NULL;
}

START_TEST(consumers_open_use_and_destroy_their_layers_at_once)
{
    static consumer group[GROUP];
    for (int number = 0; number < storm_size(); number += GROUP) {
        watchdog_start(SECONDS);
        for (int i = 0; i < GROUP; i++) {
            group[i].number = number + i;
            group[i].waits = 0;
            ck_assert_int_eq(
                pthread_create(&group[i].thread, NULL, live, &group[i]), 0);
        }
        for (int i = 0; i < GROUP; i++)
            pthread_join(group[i].thread, NULL);
        watchdog_stop();
    }
}
END_TEST

/* Where a forward waits for ever, it is cancel that it waits for. */
START_TEST(waiting_consumers_are_cancelled_in_any_order_and_destroyed)
{
    static consumer group[GROUP];
    for (int number = 0; number < storm_size(); number += GROUP) {
        watchdog_start(SECONDS);
        for (int i = 0; i < GROUP; i++) {
            open_consumer(&group[i], 1000000 + number + i);
            group[i].waits = 1;
            ck_assert_int_eq(
                pthread_create(&group[i].thread, NULL, consume, &group[i]), 0);
        }
        int first = pick(number, 200, GROUP);
        for (int i = 0; i < GROUP; i++) {
            rest(pick(number, 210 + i, 500));
            consumer *one = &group[(first + i) % GROUP];
            leat_data_layer_cancel(one->fixture.layer);
            atomic_store(&one->is_over, 1);
        }
        for (int i = 0; i < GROUP; i++) {
            pthread_join(group[i].thread, NULL);
            close_consumer(&group[i]);
        }
        watchdog_stop();
    }
}
END_TEST

static void begin(void)
{
    life_cycles_begin();
    shared = layer_fixture_pipeline();
}

static void end(void)
{
    leat_pipeline_unref(shared);
    life_cycles_end();
}

int main(void)
{
    Suite *suite = suite_create("storms");
    TCase *tcase = tcase_create("storms");
    tcase_add_checked_fixture(tcase, begin, end);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, consumers_open_use_and_destroy_their_layers_at_once);
    tcase_add_test(tcase,
                   waiting_consumers_are_cancelled_in_any_order_and_destroyed);
    return suite_run(suite);
}
