/* merge: samples of several readers in the order of their arrival. */
#include "support/layer_fixture.h"
#include "support/sequence_check.h"
#include "support/suite.h"

#include <leat.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EACH = 1000, INPUTS = 3 };

/* Each input's samples come in its own order, all of them once. */
static void check_all(const sequence *all, const int count[INPUTS], int bad)
{
    int64_t next[INPUTS] = {0};
    int nbad = 0;
    for (int t = 0; t < all->n; t++) {
        int64_t number = all->item[t].number[0];
        if (number < 0) {
            nbad++;
            continue;
        }
        int i = (int)(number / EACH);
        if (number % EACH != next[i])
            next[i]++; /* the bad one before it */
        ck_assert_int_eq(number % EACH, next[i]);
        next[i]++;
    }
    int sum = 0;
    for (int i = 0; i < INPUTS; i++)
        sum += count[i];
    ck_assert_int_eq(all->n, sum);
    ck_assert_int_eq(nbad, bad);
}

START_TEST(all_samples_come_in_every_epoch)
{
    static const char *const forms[] = {"index", "stream", "deferred"};
    const int count[] = {400, 200, 50};
    sequence *all = malloc(sizeof(*all));
    char text[400];
    for (int form = 0; form < 3; form++)
        for (int buffer = 1; buffer < 40; buffer *= 6) {
            snprintf(text, sizeof(text),
                     "(counted:400,form=%s,bad=3) (counted:200,first=1000) "
                     "(counted:50,first=2000,form=%s,size=40) | "
                     "merge:buffer=%d",
                     forms[form], forms[form], buffer);
            leat_reader *reader = counted_source_reader(text);
            for (int64_t epoch = 0; epoch < 4; epoch++) {
                /* In the middle of an epoch, too. */
                sequence_read(all, reader, 5, 100);
                ck_assert_int_eq(
                    leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                    LEAT_OK);
                sequence_read(all, reader, 1 + (int)epoch * 11, SEQUENCE_MOST);
                ck_assert_int_eq(all->status, LEAT_END);
                check_all(all, count, 40);
                for (int t = 0; t < all->n; t++)
                    ck_assert(all->item[t].number[0] < 0 ||
                              all->item[t].epoch == epoch);
            }
            leat_reader_close(reader);
        }
    free(all);
}
END_TEST

START_TEST(an_input_that_waits_holds_up_no_other)
{
    leat_reader *reader = counted_source_reader(
        "(counted:30,waits=2) (counted:300,first=1000) | merge:buffer=4");
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 302; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader); /* while its thread waits */
    ck_assert_int_eq(counted_source_open(), 0);
}
END_TEST

static void *read_on(void *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status;
    while (!(status = leat_reader_next(reader, &sample)))
        continue;
    leat_sample_finish(&sample);
    return (void *)(intptr_t)status;
}

START_TEST(cancel_wakes_next_and_all_threads)
{
    for (int i = 0; i < 20; i++) {
        void *status;
        pthread_t thread;
        leat_reader *reader = counted_source_reader(
            "(counted:30,waits=2) (counted:30,waits=0) (counted:9) | merge");
        ck_assert_int_eq(pthread_create(&thread, NULL, read_on, reader), 0);
        leat_reader_cancel(reader);
        ck_assert_int_eq(pthread_join(thread, &status), 0);
        ck_assert_int_eq((int)(intptr_t)status, LEAT_ECANCELLED);
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(closing_before_during_and_after_reading)
{
    const char *text = "(counted:300) (counted:300) | merge:buffer=2";
    for (int n = 0; n <= 700; n += 1 + n) {
        sequence *some = malloc(sizeof(*some));
        leat_reader *reader = counted_source_reader(text);
        sequence_read(some, reader, 3, n);
        leat_reader_close(reader);
        ck_assert_int_eq(counted_source_open(), 0);
        free(some);
    }
}
END_TEST

START_TEST(an_error_of_one_input_arrives_with_its_line)
{
    leat_reader *reader = counted_source_reader(
        "(counted:30,fails=20,name=left) (counted:5) | merge");
    sequence *all = malloc(sizeof(*all));
    sequence_read(all, reader, 4, SEQUENCE_MOST);
    ck_assert_int_eq(all->status, LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "left: record 20 cannot be read");
    ck_assert_int_ge(all->n, 20);
    free(all);
    leat_reader_close(reader);
}
END_TEST

START_TEST(ranks_and_saving_are_refused)
{
    leat_pipeline *pipeline =
        counted_source_parse("(counted:9) (counted:9) | merge");
    leat_open_options options = {.size = sizeof(options), .world_size = 2};
    leat_reader *reader;
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "with 2 ranks"));
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_ESTATE);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 3}, NULL),
                     LEAT_EUNSUPPORTED);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_token_finish(&token);
    counted_source_refused("(counted:5) (counted:5,field=y) | merge",
                           LEAT_EINVAL, "merge: input 2");
}
END_TEST

START_TEST(a_layer_reads_it_and_refuses_to_be_saved)
{
    leat_data_layer_options options;
    leat_transform_options transform;
    leat_pipeline *input[2], *merged;
    leat_token token;
    leat_token_init(&token);
    layer_fixture_options(&options, &transform);
    options.batch_size = 2;
    options.workers = 2;
    input[0] = input[1] = layer_fixture_pipeline();
    ck_assert_int_eq(leat_pipeline_merge(&merged, input, 2, 3), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(merged, &options);
    float sum = 0;
    for (int i = 0; i < 4 * LAYER_FIXTURE_COUNT / 2; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        sum += layer_fixture_label(&fixture, 0) +
               layer_fixture_label(&fixture, 1) - 2000;
    }
    ck_assert_float_eq(sum, 4 * 78); /* 0 to 12, in 2 epochs of 2 inputs */
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token),
                     LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "the order of arrival cannot be saved"));
    layer_fixture_close(&fixture);
    leat_pipeline_unref(merged);
    leat_pipeline_unref(input[0]);
    leat_token_finish(&token);
}
END_TEST

/* Of 100 samples its threads would soon hold all. */
START_TEST(it_holds_no_more_than_a_quarter_of_max_memory_has_room_for)
{
    enum { SIZE = 1 << 20, MOST = 10 * SIZE, ITEMS = 2 * 50 * 4096 };
    const leat_open_options open = {.size = sizeof(open),
                                    .max_memory = 4 * MOST};
    leat_reader_stats stats[LEAT_MAX_READER_STATS];
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(
                         &pipeline, "(random:100,shape=1048576,dtype=uint8) "
                                    "(random:100,shape=1048576,dtype=uint8) | "
                                    "merge:buffer=50"),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &open, &reader),
                     LEAT_OK);
    for (int t = 0; t < 20; t++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        for (int wait = 0; wait < 5; wait++) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            int n = leat_reader_chain_stats(reader, stats);
            int64_t held = 0;
            for (int i = 0; i < n; i++)
                held += stats[i].memory;
            ck_assert_int_le(held, MOST + ITEMS);
        }
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(it_survives_failing_allocations_and_settles)
{
    sequence_survives_any("(counted:40,form=stream) (counted:30,first=1000,"
                          "form=deferred) | merge:buffer=3");
    sequence_settles("(counted:40) (counted:30) | merge:buffer=3");
    sequence_same_pipeline(
        "(counted:40) (counted:30) | merge:buffer=3",
        counted_source_parse("(counted:40) (counted:30) | merge:buffer=9"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge");
    TCase *tcase = tcase_create("merge");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, all_samples_come_in_every_epoch);
    tcase_add_test(tcase, an_input_that_waits_holds_up_no_other);
    tcase_add_test(tcase, cancel_wakes_next_and_all_threads);
    tcase_add_test(tcase, closing_before_during_and_after_reading);
    tcase_add_test(tcase, an_error_of_one_input_arrives_with_its_line);
    tcase_add_test(tcase, ranks_and_saving_are_refused);
    tcase_add_test(tcase, a_layer_reads_it_and_refuses_to_be_saved);
    tcase_add_test(tcase,
                   it_holds_no_more_than_a_quarter_of_max_memory_has_room_for);
    tcase_add_test(tcase, it_survives_failing_allocations_and_settles);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
