/* Bad records, broken storage and broken devices under a group. */
#include "support/bad_records.h"
#include "support/group_fixture.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

START_TEST(a_bad_record_costs_the_member_whose_batch_it_is_in)
{
    group_source.count = 100;
    group_source.bad = 21; /* in batch 5 */
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    for (int n = 1; n <= 3; n++) {
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_on_cpu, n);
        for (int k = 0; k < 12; k++) {
            int status = group_fixture_forward(&group, k % n);
            ck_assert_int_eq(status, k == 5 ? LEAT_EDATA : LEAT_OK);
            if (k != 5)
                ck_assert_float_eq(group_fixture_label(&group, k % n, 0),
                                   (float)(4 * k));
        }
        leat_token token;
        leat_token_init(&token);
        ck_assert_int_eq(leat_data_layer_group_save(group.group, &token),
                         LEAT_OK);
        leat_token_finish(&token);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static void break_source_at(int64_t record)
{
    pthread_mutex_lock(&group_source.lock);
    group_source.broken = record;
    pthread_mutex_unlock(&group_source.lock);
}

/* Batches 0 to 4 are good; whoever asks for more hears of the storage. */
static void check_broken(const leat_pipeline *pipeline, int n)
{
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_mixed, n);
    for (int i = 0; i < n; i++) {
        for (int k = i; k < 5; k += n) {
            ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_OK);
            ck_assert_float_eq(group_fixture_label(&group, i, 0),
                               (float)(4 * k));
        }
        for (int tries = 0; tries < 3; tries++) {
            ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_EIO);
            ck_assert_str_eq(leat_last_error(),
                             "source: the storage failed at 22");
        }
    }
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_group_save(group.group, &token), LEAT_OK);
    break_source_at(-1);
    ck_assert_int_eq(leat_data_layer_group_restore(group.group, &token),
                     LEAT_OK);
    for (int k = 5; k < 9; k++) {
        ck_assert_int_eq(group_fixture_forward(&group, (k - 5) % n), LEAT_OK);
        ck_assert_float_eq(group_fixture_label(&group, (k - 5) % n, 0),
                           (float)(4 * k));
    }
    break_source_at(22);
    leat_token_finish(&token);
    group_fixture_close(&group);
}

START_TEST(an_error_comes_to_all_after_what_is_before_it)
{
    group_source.count = 100;
    group_source.broken = 22;
    /* Members are asked one after the other: all of theirs must fit. */
    group_options.prefetch = 6;
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    for (int n = 1; n <= 3; n++)
        for (int way = 0; way < 6; way++) {
            group_options.workers = 1 + way % 3;
            group_options.reader_thread =
                way / 3 ? LEAT_READER_ON : LEAT_READER_OFF;
            check_broken(pipeline, n);
        }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Of batch 5 the second number is bad, and the storage of the third fails. */
static int fail_in_batch_5(void *user, leat_sample *sample)
{
    int64_t value;
    (void)user;
    memcpy(&value, sample->field[0].data, sizeof(value));
    return value == 21   ? leat_error(LEAT_EDATA, "it is bad")
           : value == 22 ? leat_error(LEAT_EIO, "the storage failed at 22")
                         : LEAT_OK;
}

/* Member by member, all that there is for it. */
static void check_end_after_bad(const leat_pipeline *pipeline, int n)
{
    leat_data_layer_group *group;
    ck_assert_int_eq(leat_data_layer_group_create(
                         &group, pipeline, &group_options, group_on_cpu, n),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_setup(group, NULL, 0), LEAT_OK);
    for (int i = n; i-- > 0;) {
        leat_data_layer *member = leat_data_layer_group_member(group, i);
        for (int k = i; k <= 5; k += n)
            ck_assert_int_eq(
                leat_data_layer_forward(member, NULL, 0, LEAT_HOST),
                k == 5 ? LEAT_EDATA : LEAT_OK);
        for (int tries = 0; tries < 2; tries++) {
            ck_assert_int_eq(
                leat_data_layer_forward(member, NULL, 0, LEAT_HOST), LEAT_EIO);
            ck_assert_ptr_nonnull(
                strstr(leat_last_error(), "the storage failed at 22"));
        }
    }
    leat_data_layer_group_destroy(group);
}

START_TEST(so_it_does_after_a_bad_record_of_its_batch)
{
    static const leat_top top = {.size = sizeof(top), .name = "value"};
    leat_pipeline *numbers, *mapped;
    const leat_map_options defaults = LEAT_MAP_OPTIONS_INIT;
    group_options.prefetch = 6;
    group_options.top = &top;
    group_options.ntop = 1;
    ck_assert_int_eq(leat_pipeline_parse(&numbers, "range:100"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_map(&mapped, numbers, fail_in_batch_5, NULL,
                                       1, &defaults),
                     LEAT_OK);
    for (int n = 1; n <= 3; n++)
        for (int workers = 1; workers <= 3; workers++) {
            group_options.workers = workers;
            check_end_after_bad(mapped, n);
        }
    leat_pipeline_unref(mapped);
    leat_pipeline_unref(numbers);
}
END_TEST

START_TEST(a_single_pass_ends_for_all)
{
    group_source.count = 22;
    group_source.single_pass = 1;
    group_options.prefetch = 6;
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    for (int n = 1; n <= 4; n++) {
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_on_cpu, n);
        for (int i = n - 1; i >= 0; i--) {
            for (int k = i; k < 6; k += n) {
                ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_OK);
                ck_assert_int_eq(
                    leat_data_layer_batch(group_fixture_member(&group, i))->n,
                    k < 5 ? 4 : 2);
            }
            for (int tries = 0; tries < 2; tries++)
                ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_END);
        }
        leat_token token;
        leat_token_init(&token);
        ck_assert_int_eq(leat_data_layer_group_save(group.group, &token), 0);
        ck_assert_int_eq(leat_data_layer_group_restore(group.group, &token),
                         LEAT_END);
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_END);
        leat_token_finish(&token);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static void plant(bad_records *plan, bad_records_way way)
{
    plan->count = 29;
    plan->way = way;
    for (int i = 3; i < plan->count; i += 4)
        plan->kind[i] = (bad_records_kind)(1 + i % (BAD_RECORDS_KINDS - 1));
    plan->kind[4] = BAD_RECORDS_UNREADABLE;
    plan->kind[16] = BAD_RECORDS_UNREADABLE;
}

/* Whose run comes when does not show in what stands in for bad records. */
START_TEST(what_stands_in_is_what_one_layer_gives)
{
    bad_records plan = {0};
    plant(&plan, (bad_records_way)(_i % BAD_RECORDS_WAYS));
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    uint32_t digest[GROUP_BATCHES];
    group_options.on_error =
        _i / BAD_RECORDS_WAYS ? LEAT_ON_ERROR_ZERO : LEAT_ON_ERROR_REPLACE;
    group_record(pipeline, digest, GROUP_BATCHES);
    layer_fixture fixture = layer_fixture_open(pipeline, &group_options);
    for (int k = 0; k < GROUP_BATCHES; k++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_stats whole = {.size = sizeof(whole)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &whole), LEAT_OK);
    layer_fixture_close(&fixture);
    ck_assert_int_gt(whole.bad_records, 0);
    for (int n = 1; n <= 3; n++) {
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_mixed, n);
        for (int k = 0; k < GROUP_BATCHES; k++) {
            ck_assert_int_eq(group_fixture_forward(&group, k % n), LEAT_OK);
            ck_assert_uint_eq(group_fixture_digest(&group, k % n), digest[k]);
        }
        int64_t bad = 0;
        for (int i = 0; i < n; i++) {
            leat_stats stats = {.size = sizeof(stats)};
            leat_data_layer_stats(group_fixture_member(&group, i), &stats);
            bad += stats.bad_records;
        }
        ck_assert_int_eq(bad, whole.bad_records);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(one_bad_record_too_many_ends_it_for_all)
{
    group_source.count = 1000;
    group_source.bad = 9; /* in batch 2 */
    group_options.on_error = LEAT_ON_ERROR_ZERO;
    group_options.max_errors = 0;
    group_options.has_max_errors = 1;
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_on_cpu, 2);
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_ELIMIT);
    int status = LEAT_OK;
    for (int t = 0; t < 20 && status == LEAT_OK; t++)
        status = group_fixture_forward(&group, 1);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "data[0]: 1 bad record,"));
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Every call of the two devices in turn: an error for all, and nothing hangs.
 */
START_TEST(a_device_that_fails_ends_it_for_all)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_options.prefetch = 1;
    int failures = 0;
    for (int n = 0, done = 0; !done; n++) {
        group_fixture group = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&group.group, pipeline,
                                                      &group_options,
                                                      group_on_late, 2),
                         LEAT_OK);
        group_fixture_make_tops(&group, group_on_late, 2);
        late_device_fail_at(n);
        int status = leat_data_layer_group_setup(group.group, group.top[0], 2);
        for (int k = 0; k < 12 && status == LEAT_OK; k++)
            status = group_fixture_forward(&group, k % 2);
        int has_failed = late_device_has_failed();
        late_device_fail_at(-1);
        done = !has_failed;
        failures += has_failed;
        ck_assert(status == LEAT_OK || status == LEAT_EDEVICE);
        if (status &&
            leat_data_layer_top_name(group_fixture_member(&group, 0), 0) &&
            group_fixture_forward(&group, 0) == LEAT_EDEVICE)
            for (int i = 0, end = 0; i < 2; i++, end = 0) {
                for (int t = 0; t < 20 && end == LEAT_OK; t++)
                    end = group_fixture_forward(&group, i);
                ck_assert_int_eq(end, LEAT_EDEVICE);
            }
        group_fixture_close(&group);
        group_check_late_is_clean();
    }
    ck_assert_int_gt(failures, 20);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* One copy of one device breaks its stream: the other stops after it. */
START_TEST(a_stream_that_breaks_ends_it_for_all)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    for (int n = 0; n < 8; n++) {
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_on_late, 2);
        late_device_break_at(n);
        int status = LEAT_OK;
        for (int k = 0; k < 60 && status == LEAT_OK; k++)
            status = group_fixture_forward(&group, k % 2);
        ck_assert_int_eq(status, LEAT_EDEVICE);
        for (int i = 0; i < 2; i++) {
            int end = LEAT_OK;
            for (int t = 0; t < 20 && end == LEAT_OK; t++)
                end = group_fixture_forward(&group, i);
            ck_assert_int_eq(end, LEAT_EDEVICE);
        }
        late_device_break_at(-1);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("group_faults");
    tcase_add_checked_fixture(tcase, group_set_up, group_tear_down);
    tcase_set_timeout(tcase, 2 * GROUP_SECONDS);
    tcase_add_test(tcase, a_bad_record_costs_the_member_whose_batch_it_is_in);
    tcase_add_test(tcase, an_error_comes_to_all_after_what_is_before_it);
    tcase_add_test(tcase, so_it_does_after_a_bad_record_of_its_batch);
    tcase_add_test(tcase, a_single_pass_ends_for_all);
    tcase_add_loop_test(tcase, what_stands_in_is_what_one_layer_gives, 0,
                        2 * BAD_RECORDS_WAYS);
    tcase_add_test(tcase, one_bad_record_too_many_ends_it_for_all);
    tcase_add_test(tcase, a_device_that_fails_ends_it_for_all);
    tcase_add_test(tcase, a_stream_that_breaks_ends_it_for_all);
    Suite *suite = suite_create("group_faults");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
