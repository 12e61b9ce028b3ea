/*
 * Stop storms: layers of random configurations over readers that fail, block
 * or run dry are stopped at random moments. LEAT_STORM=N makes N of each.
 */
#include "base/random.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

static int storm_size(void)
{
    const char *text = getenv("LEAT_STORM");
    return text ? atoi(text) : 150;
}

/* A layer ends within milliseconds. */
enum { SECONDS = 60 };

/* One random number of case `number` in [0, n). */
static int pick(int number, int what, int n)
{
    uint32_t words[4];
    leat__random_words(4711, number, what, 0, words);
    return (int)leat__random_below(words[0], (uint32_t)n);
}

static leat_data_layer_options random_options(int number)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 1 + pick(number, 1, 6);
    options.prefetch = 1 + pick(number, 2, 4);
    options.workers = 1 + pick(number, 3, 4);
    options.caller_helps =
        (pick(number, 4, 2)) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.reader_thread = (leat_reader_thread)pick(number, 5, 3);
    options.top_mode = (leat_top_mode)pick(number, 6, 2);
    return options;
}

static scripted_source random_source(int number)
{
    scripted_source made = SCRIPTED_SOURCE_INIT;
    made.count = 1 + pick(number, 10, 20);
    made.single_pass = pick(number, 11, 2);
    int place = 1 + pick(number, 12, 20);
    switch (pick(number, 13, 5)) {
    case 0:
        made.bad = place;
        break;
    case 1:
        made.broken = place;
        break;
    case 2:
        made.blocks = place;
        break;
    case 3:
        made.larger = place;
        break;
    default:
        break;
    }
    return made;
}

/* Some forwards, none of which may wait for what never comes. */
static void run(layer_fixture *fixture, int number)
{
    int n = pick(number, 20, 12);
    for (int i = 0; i < n; i++) {
        int status =
            leat_data_layer_try_forward(fixture->layer, fixture->top, 2,
                                        LEAT_HOST, pick(number, 30 + i, 2));
        ck_assert(status == LEAT_OK || status == LEAT_AGAIN ||
                  status == LEAT_END || status == LEAT_EDATA ||
                  status == LEAT_EIO || status == LEAT_ECANCELLED);
        if (status == LEAT_OK && pick(number, 60 + i, 3) == 0)
            ck_assert_int_eq(leat_data_layer_release(fixture->layer, NULL, 0),
                             LEAT_OK);
    }
}

static void *cancel(void *argument)
{
    leat_data_layer_cancel(argument);
    return NULL;
}

START_TEST(layers_stop_at_any_moment)
{
    for (int number = 0; number < storm_size(); number++) {
        watchdog_start(SECONDS);
        scripted_source made = random_source(number);
        leat_pipeline *pipeline = scripted_source_pipeline(&made);
        leat_data_layer_options options = random_options(number);
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        run(&fixture, number);
        layer_fixture_close(&fixture);
        leat_pipeline_unref(pipeline);
        watchdog_stop();
    }
}
END_TEST

START_TEST(layers_are_cancelled_while_they_run)
{
    for (int number = 0; number < storm_size(); number++) {
        watchdog_start(SECONDS);
        scripted_source made = random_source(number + 1000000);
        leat_pipeline *pipeline = scripted_source_pipeline(&made);
        leat_data_layer_options options = random_options(number);
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel, fixture.layer),
                         0);
        run(&fixture, number);
        pthread_join(thread, NULL);
        layer_fixture_close(&fixture);
        leat_pipeline_unref(pipeline);
        watchdog_stop();
    }
}
END_TEST

START_TEST(many_layers_live_on_one_pipeline)
{
    enum { LAYERS = 50 };
    leat_pipeline *pipeline = layer_fixture_pipeline();
    static layer_fixture fixture[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        leat_data_layer_options options = random_options(i);
        fixture[i] = layer_fixture_open(pipeline, &options);
    }
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < LAYERS; i++)
            ck_assert_int_eq(layer_fixture_forward(&fixture[i]), LEAT_OK);
    for (int i = 0; i < LAYERS; i++) {
        int64_t size =
            leat_data_layer_get_options(fixture[i].layer)->batch_size;
        ck_assert_float_eq(layer_fixture_label(&fixture[i], 0),
                           (float)(1000 + 4 * size % LAYER_FIXTURE_COUNT));
        layer_fixture_close(&fixture[i]);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_stops");
    TCase *tcase = tcase_create("layer_stops");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, layers_stop_at_any_moment);
    tcase_add_test(tcase, layers_are_cancelled_while_they_run);
    tcase_add_test(tcase, many_layers_live_on_one_pipeline);
    return suite_run(suite);
}
