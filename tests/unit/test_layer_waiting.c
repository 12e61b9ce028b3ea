/* Layers whose readers wait: a cancel ends every wait, and destroy needs none.
 */
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static scripted_source source_now;
static leat_data_layer_options options;

static void set_up(void)
{
    const scripted_source fresh = SCRIPTED_SOURCE_INIT;
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    source_now = fresh;
    options = defaults;
    options.batch_size = 3;
}

static void *cancel_later(void *argument)
{
    scripted_source_await_blocked(&source_now);
    leat_data_layer_cancel(argument);
    return NULL;
}

START_TEST(cancel_wakes_a_forward_that_waits)
{
    source_now.blocks = 4;
    leat_pipeline *pipeline = scripted_source_pipeline(&source_now);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, fixture.layer),
                     0);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ECANCELLED);
    pthread_join(thread, NULL);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ECANCELLED);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_layer_whose_reader_blocks_can_be_destroyed)
{
    source_now.blocks = 4;
    leat_pipeline *pipeline = scripted_source_pipeline(&source_now);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    scripted_source_await_blocked(&source_now);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_try_forward(fixture.layer, fixture.top, 2,
                                                 LEAT_HOST, 1),
                     LEAT_AGAIN);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void *setup_then_forward(void *argument)
{
    leat_data_layer *layer = argument;
    leat_blob *top;
    if (leat_blob_create(&top, NULL))
        return NULL;
    int status = leat_data_layer_setup(layer, &top, 1);
    leat_blob_destroy(top);
    return status == LEAT_ECANCELLED ? argument : NULL;
}

/* Nor what workers read where access is random, thread or no thread. */
START_TEST(a_forward_does_not_read_what_may_block_for_ever)
{
    bad_records plan = {.count = 20, .tail = 1 << 19, .may_block = 1};
    options.batch_size = 4;
    options.world_size = 2;
    options.workers = 1;
    options.prefetch = 1;
    options.reader_thread = (leat_reader_thread)_i;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    int before = bad_records_reads_here();
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(bad_records_reads_here(), before);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(cancel_wakes_a_setup_that_waits)
{
    source_now.blocks = 0;
    leat_pipeline *pipeline = scripted_source_pipeline(&source_now);
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    pthread_t thread;
    void *result;
    ck_assert_int_eq(pthread_create(&thread, NULL, setup_then_forward, layer),
                     0);
    scripted_source_await_blocked(&source_now);
    leat_data_layer_cancel(layer);
    pthread_join(thread, &result);
    ck_assert_ptr_nonnull(result);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

static char folder[] = "/tmp/leat-XXXXXX", pipe_path[64], images_path[64],
            labels_path[64];

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, size, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_pipe(void)
{
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0,
                                           0, 0, 1, 0, 0, 0, 1, 7};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 7};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
    snprintf(images_path, sizeof(images_path), "%s/images", folder);
    snprintf(labels_path, sizeof(labels_path), "%s/labels", folder);
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    write_file(images_path, images, sizeof(images));
    write_file(labels_path, labels, sizeof(labels));
}

static void remove_pipe(void)
{
    unlink(pipe_path);
    unlink(images_path);
    unlink(labels_path);
    rmdir(folder);
}

/* A writer of the pipe, once a reader has opened it. */
static int await_reader(void)
{
    int fd;
    while ((fd = open(pipe_path, O_WRONLY | O_NONBLOCK)) < 0) {
        ck_assert_int_eq(errno, ENXIO);
        sched_yield();
    }
    return fd;
}

/* Names, labels, the header that has the shape: what is read before there is a
 * reader. */
START_TEST(cancel_wakes_a_setup_that_opens_what_reads_a_pipe)
{
#define NAMES "text:%1$s | "
#define OF_NAMES "interleave:(fixed:{},fields=(data=uint8@0:1x1x1))"
    static const char *const texts[] = {
        NAMES OF_NAMES,
        NAMES "prefetch:2 | " OF_NAMES,
        NAMES "skip:1 | " OF_NAMES " | cache:1000",
        "idx:%2$s,%1$s",
        "idx:%2$s,%1$s | take:1",
        "idx:%1$s | batch:2",
        "files:%1$s | interleave:(idx:{})",
        "(fixed:%2$s,fields=(data=uint8@0:1x1x1)) (" NAMES OF_NAMES ") | mix",
        "files:%2$s,%1$s | interleave:(idx:{})",
        "files:%2$s,%1$s | interleave:(files:{} | interleave:(idx:{}))",
        "files:%3$s,%1$s | interleave:(idx:%2$s,{})",
    };
    char text[256];
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    pthread_t thread;
    void *result;
    make_pipe();
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        snprintf(text, sizeof(text), texts[i], pipe_path, images_path,
                 labels_path);
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        ck_assert_int_eq(
            pthread_create(&thread, NULL, setup_then_forward, layer), 0);
        int writer = await_reader();
        leat_data_layer_cancel(layer);
        pthread_join(thread, &result);
        ck_assert_msg(result != NULL, "%s: %s", text, leat_last_error());
        close(writer);
        leat_data_layer_destroy(layer);
        leat_pipeline_unref(pipeline);
    }
    remove_pipe();
}
END_TEST

START_TEST(destroy_wakes_a_thread_that_opens_what_reads_a_pipe)
{
    static const char *const texts[] = {
        "files:%2$s,%1$s | interleave:(idx:{}),ahead=0,cycle=1",
        "files:%3$s,%1$s | interleave:(idx:%2$s,{}),ahead=0,cycle=1 | "
        "prefetch:2",
    };
    char text[256];
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    make_pipe();
    options.batch_size = 1;
    options.reader_thread = LEAT_READER_ON;
    snprintf(text, sizeof(text), texts[_i], pipe_path, images_path,
             labels_path);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    int writer = await_reader();
    leat_data_layer_destroy(layer);
    close(writer);
    leat_pipeline_unref(pipeline);
    remove_pipe();
}
END_TEST

/* It has nothing to go on with, so restore does not bring it back either. */
START_TEST(a_layer_cancelled_before_setup_stays_so)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_data_layer *layer;
    leat_blob *top;
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    leat_data_layer_cancel(layer);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1),
                         LEAT_ECANCELLED);
        ck_assert_str_eq(leat_last_error(), "data: the layer was cancelled");
        ck_assert_int_eq(leat_blob_ndim(top), 0);
        ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST),
                         LEAT_ESTATE);
        ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_ESTATE);
    }
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_layer_can_be_destroyed_in_any_state)
{
    leat_data_layer_destroy(NULL);
    leat_pipeline *pipeline = scripted_source_pipeline(&source_now);
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    leat_data_layer_destroy(layer);
    for (int i = 0; i < 40; i++) {
        options.workers = 1 + i % 3;
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        for (int k = 0; k < i % 7; k++)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        if (i % 2)
            leat_data_layer_cancel(fixture.layer);
        layer_fixture_close(&fixture);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_waiting");
    TCase *tcase = tcase_create("layer_waiting");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, cancel_wakes_a_forward_that_waits);
    tcase_add_test(tcase, a_layer_whose_reader_blocks_can_be_destroyed);
    tcase_add_loop_test(tcase, a_forward_does_not_read_what_may_block_for_ever,
                        0, 3);
    tcase_add_test(tcase, cancel_wakes_a_setup_that_waits);
    tcase_add_test(tcase, cancel_wakes_a_setup_that_opens_what_reads_a_pipe);
    tcase_add_loop_test(
        tcase, destroy_wakes_a_thread_that_opens_what_reads_a_pipe, 0, 2);
    tcase_add_test(tcase, a_layer_cancelled_before_setup_stays_so);
    tcase_add_test(tcase, a_layer_can_be_destroyed_in_any_state);
    return suite_run(suite);
}
