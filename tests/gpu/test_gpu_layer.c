/*
 * What a layer on a GPU delivers, as the caller's streams find it, beside the
 * CPU's: lent and copied, transformed here and there, late and on several
 * streams, in groups and beside another layer. Over the devices named on the
 * command line.
 */
#include "gpu_layer.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

#define STEPS 40
#define WAYS 4 /* LEND and COPY, transformed on the CPU and on the device */
#define LATE 0.002
#define SECONDS 60

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    pipeline = gpu_pipeline();
    gpu_options(&options, &transform);
    watchdog_start(SECONDS);
}

static void tear_down(void)
{
    watchdog_stop();
    leat_pipeline_unref(pipeline);
}

static void choose_way(int i)
{
    options.top_mode = i % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options.transform_on =
        i / 2 ? LEAT_TRANSFORM_ON_DEVICE : LEAT_TRANSFORM_ON_CPU;
}

static void check_all(const gpu_layer *feed, int every, int first)
{
    leat_data_layer *twin = gpu_twin(pipeline, &options);
    ck_assert_int_eq(gpu_count_wrong(feed, twin, feed->steps, every, first), 0);
    leat_data_layer_destroy(twin);
}

/* A step on stream s, of which the streams used in turn are `streams`. */
static void step_on(gpu_layer *feed, int step, int streams)
{
    int s = step % streams;
    gpu_layer_forward(feed, s);
    for (int top = 0; top < 2; top++)
        gpu_layer_fetch(feed, step, top, s);
    /* Tops of one memory are read before they are written again. */
    if (options.top_mode == LEAT_TOP_COPY && streams > 1)
        gpu_layer_order(feed, s, (step + 1) % streams);
}

static void run_on(int streams, double late)
{
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    feed.late = late;
    for (int i = 0; i < STEPS; i++)
        step_on(&feed, i, streams);
    gpu_layer_wait(&feed);
    check_all(&feed, 1, 0);
    gpu_layer_close(&feed, 1);
}

START_TEST(a_stream_sees_the_batches_of_the_cpu)
{
    choose_way(_i);
    run_on(1, 0);
}
END_TEST

START_TEST(a_stream_that_is_late_sees_its_batches)
{
    choose_way(_i);
    run_on(1, LATE);
}
END_TEST

START_TEST(streams_in_turn_see_their_batches)
{
    choose_way(_i);
    run_on(GPU_STREAMS, LATE);
}
END_TEST

START_TEST(the_host_sees_the_batches_of_the_cpu)
{
    choose_way(_i);
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    unsigned char *seen = feed.seen;
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(
            leat_data_layer_forward(feed.layer, NULL, 0, LEAT_HOST), LEAT_OK);
        for (int top = 0; top < 2; top++) {
            const void *data =
                leat_blob_cpu_data(leat_data_layer_top(feed.layer, top));
            ck_assert_ptr_nonnull(data);
            memcpy(seen, data, feed.bytes[top]);
            seen += feed.bytes[top];
        }
    }
    check_all(&feed, 1, 0);
    gpu_layer_close(&feed, 1);
}
END_TEST

/* Each top is read by a stream of its own, which the layer is told of. */
START_TEST(a_batch_is_given_back_after_all_streams_that_read_it)
{
    choose_way(_i);
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    feed.late = LATE;
    for (int i = 0; i < STEPS; i++) {
        gpu_layer_forward(&feed, 0);
        for (int top = 0; top < 2; top++) {
            gpu_layer_order(&feed, 0, top + 1);
            gpu_layer_fetch(&feed, i, top, top + 1);
        }
        if (options.top_mode == LEAT_TOP_LEND) {
            ck_assert_int_eq(
                leat_data_layer_release(feed.layer, feed.stream + 1, 2),
                LEAT_OK);
            continue;
        }
        for (int top = 0; top < 2; top++)
            gpu_layer_order(&feed, top + 1, 0);
    }
    gpu_layer_wait(&feed);
    check_all(&feed, 1, 0);
    gpu_layer_close(&feed, 1);
}
END_TEST

static void *run_member(void *argument)
{
    gpu_layer *feed = argument;
    for (int i = 0; i < feed->steps; i++)
        step_on(feed, i, 1);
    gpu_layer_wait(feed);
    return NULL;
}

/* On two devices, or twice on the one that there is. */
START_TEST(members_of_a_group_see_their_batches)
{
    const char *const devices[] = {gpu_device(0), gpu_device(1)};
    leat_data_layer_group *group;
    gpu_layer feed[2];
    pthread_t thread[2];
    choose_way(_i);
    ck_assert_int_eq(
        leat_data_layer_group_create(&group, pipeline, &options, devices, 2),
        LEAT_OK);
    int status = leat_data_layer_group_setup(group, NULL, 0);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    for (int i = 0; i < 2; i++) {
        feed[i] = gpu_layer_of(leat_data_layer_group_member(group, i),
                               devices[i], STEPS);
        feed[i].late = i * LATE;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_member, &feed[i]),
                         0);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        check_all(&feed[i], 2, i);
    /* Before the streams that the members' batches are lent to. */
    leat_data_layer_group_destroy(group);
    for (int i = 0; i < 2; i++)
        gpu_layer_close(&feed[i], 0);
}
END_TEST

START_TEST(train_and_test_layers_do_not_disturb_each_other)
{
    choose_way(_i);
    gpu_layer train = gpu_layer_open(pipeline, &options, gpu_device(0), STEPS);
    leat_data_layer_options train_options = options;
    options.phase = LEAT_TEST;
    options.batch_size = 2 * GPU_BATCH;
    gpu_layer test =
        gpu_layer_open(pipeline, &options, gpu_device(0), STEPS / 4);
    train.late = LATE;
    for (int i = 0; i < STEPS; i++) {
        step_on(&train, i, 1);
        if (i % 4 == 3)
            step_on(&test, i / 4, 1);
    }
    gpu_layer_wait(&test);
    check_all(&test, 1, 0);
    gpu_layer_wait(&train);
    options = train_options;
    check_all(&train, 1, 0);
    gpu_layer_close(&train, 1);
    gpu_layer_close(&test, 1);
}
END_TEST

int main(int argc, char **argv)
{
    int absent = gpu_take_devices(argc, argv);
    if (absent)
        return absent;
    Suite *suite = suite_create("gpu_layer");
    TCase *tcase = tcase_create("gpu_layer");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_stream_sees_the_batches_of_the_cpu, 0, WAYS);
    tcase_add_loop_test(tcase, a_stream_that_is_late_sees_its_batches, 0, WAYS);
    tcase_add_loop_test(tcase, streams_in_turn_see_their_batches, 0, WAYS);
    tcase_add_loop_test(tcase, the_host_sees_the_batches_of_the_cpu, 0, WAYS);
    tcase_add_loop_test(
        tcase, a_batch_is_given_back_after_all_streams_that_read_it, 0, WAYS);
    tcase_add_loop_test(tcase, members_of_a_group_see_their_batches, 0, WAYS);
    tcase_add_loop_test(tcase, train_and_test_layers_do_not_disturb_each_other,
                        0, WAYS);
    return suite_run(suite);
}
