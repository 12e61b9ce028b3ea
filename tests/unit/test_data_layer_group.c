/*
 * Several layers fed by one reader: together they deliver what one layer does,
 * whoever is slow or stops. Errors and resumes have tests of their own.
 */
#include "base/memory.h"
#include "layer/batch.h"
#include "support/group_fixture.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <leat/ext/device.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const *const places[] = {group_on_cpu, group_on_late,
                                            group_mixed};
enum { PLACES = 3 };

static void check_union(const leat_pipeline *pipeline, int n,
                        const char *const devices[], const uint32_t digest[])
{
    group_fixture group =
        group_fixture_open(pipeline, &group_options, devices, n);
    ck_assert_int_eq(leat_data_layer_group_size(group.group), n);
    for (int k = 0; k < GROUP_BATCHES; k++) {
        ck_assert_int_eq(group_fixture_forward(&group, k % n), LEAT_OK);
        ck_assert_uint_eq(group_fixture_digest(&group, k % n), digest[k]);
        const leat_batch *batch =
            leat_data_layer_batch(group_fixture_member(&group, k % n));
        ck_assert_int_eq(batch->number, k);
        ck_assert_int_eq(batch->from[0].position, 4 * k *
                                                      group_options.world_size %
                                                      LAYER_FIXTURE_COUNT);
    }
    group_fixture_close(&group);
}

static void check_all_ways(const leat_pipeline *pipeline)
{
    uint32_t digest[GROUP_BATCHES];
    group_record(pipeline, digest, GROUP_BATCHES);
    for (int n = 1; n <= 3; n++)
        for (int place = 0; place < PLACES; place++)
            for (int way = 0; way < 8; way++) {
                group_options.workers = 1 + way % 2 * 2;
                group_options.caller_helps = (way / 2 % 2)
                                                 ? LEAT_CALLER_HELPS_AUTO
                                                 : LEAT_CALLER_HELPS_OFF;
                group_options.reader_thread =
                    way / 4 ? LEAT_READER_ON : LEAT_READER_OFF;
                group_options.prefetch = 1 + way % 3;
                check_union(pipeline, n, places[place], digest);
            }
}

START_TEST(members_together_deliver_what_one_layer_does)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_transform_at_random();
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_they_do_with_caffes_generator)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_transform_at_random();
    group_options.rng = LEAT_RNG_CAFFE;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_they_do_in_copied_tops)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_options.top_mode = LEAT_TOP_COPY;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Rank 0, whose first record stands at the beginning of its step. */
START_TEST(so_does_the_group_of_a_rank_among_several)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_transform_at_random();
    group_options.world_size = 3;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Samples of one float from a callback, in order and from a thread. */
START_TEST(so_they_do_over_a_reader_in_order)
{
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    group_source.count = LAYER_FIXTURE_COUNT;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_they_do_over_a_chain_of_random_access)
{
    leat_pipeline *pipeline = group_shuffled_pipeline();
    group_transform_at_random();
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Threads of the callers' own, who wait for each other after each step. */

typedef struct part {
    group_fixture *group;
    int member;
    const uint32_t *digest;
    pthread_barrier_t *step;
    int steps;
} part;

static void *take_part(void *argument)
{
    part *self = argument;
    int n = self->group->n;
    for (int t = 0; t < self->steps; t++) {
        int k = t * n + self->member;
        ck_assert_int_eq(group_fixture_forward(self->group, self->member),
                         LEAT_OK);
        ck_assert_uint_eq(group_fixture_digest(self->group, self->member),
                          self->digest[k % LAYER_FIXTURE_COUNT]);
        if (self->step)
            pthread_barrier_wait(self->step);
    }
    return NULL;
}

static void run_in_threads(group_fixture *group, const uint32_t digest[],
                           int steps, int in_step)
{
    pthread_t thread[GROUP_FIXTURE_MAX];
    part parts[GROUP_FIXTURE_MAX];
    pthread_barrier_t step;
    pthread_barrier_init(&step, NULL, (unsigned)group->n);
    for (int i = 0; i < group->n; i++) {
        parts[i] = (part){group, i, digest, in_step ? &step : NULL, steps};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, take_part, &parts[i]),
                         0);
    }
    for (int i = 0; i < group->n; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&step);
}

/*
 * As little as there may be of everything, so that a wake-up that is lost has
 * nobody to make up for it: the callers wait for each other, and with help they
 * take what the worker was woken for. 13 batches of 4 are 4 epochs of 13.
 */
START_TEST(callers_in_threads_of_their_own_never_miss_each_other)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    uint32_t digest[LAYER_FIXTURE_COUNT];
    group_record(pipeline, digest, LAYER_FIXTURE_COUNT);
    group_options.workers = 1;
    for (int way = 0; way < 24; way++) {
        group_options.caller_helps =
            (way % 2) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
        group_options.reader_thread =
            way / 2 % 2 ? LEAT_READER_ON : LEAT_READER_OFF;
        group_options.prefetch = 1 + way / 4 % 2;
        int n = 2 + way / 8;
        const char *const *devices = way % 3 ? group_on_cpu : group_on_late;
        group_fixture group =
            group_fixture_open(pipeline, &group_options, devices, n);
        run_in_threads(&group, digest, 400, way % 5 != 0);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(the_source_is_read_once_for_all)
{
    group_source.count = 60;
    group_source.single_pass = 1;
    group_options.batch_size = 4;
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    for (int n = 1; n <= 3; n++) {
        group_source.opened = 0;
        group_source.given = 0;
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_on_cpu, n);
        for (int k = 0; k < 15; k++) {
            ck_assert_int_eq(group_fixture_forward(&group, k % n), LEAT_OK);
            ck_assert_float_eq(group_fixture_label(&group, k % n, 0),
                               (float)(4 * k));
        }
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(group_fixture_forward(&group, (i + 15) % n),
                             LEAT_END);
        group_fixture_close(&group);
        ck_assert_int_eq(group_source.opened, 1);
        ck_assert_int_eq(group_source.given, 60);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Beside others' streams, which may wait for what it enqueues after forward. */
START_TEST(a_caller_works_only_where_no_stream_is_waited_for)
{
    static const struct {
        const char *const *place;
        int n;
        bool helps;
    } cases[] = {{group_on_cpu, 2, true},
                 {group_on_late, 1, true},
                 {group_on_late, 2, false},
                 {group_mixed, 2, false}};
    leat_stats stats = {.size = sizeof(stats)};
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_options.caller_helps = LEAT_CALLER_HELPS_AUTO;
    group_options.workers = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t helped = 0;
        int most = cases[i].helps ? 100000 : 200;
        group_fixture group = group_fixture_open(pipeline, &group_options,
                                                 cases[i].place, cases[i].n);
        for (int k = 0; k < most && helped == 0; k++) {
            ck_assert_int_eq(group_fixture_forward(&group, k % cases[i].n),
                             LEAT_OK);
            leat_data_layer_stats(group_fixture_member(&group, k % cases[i].n),
                                  &stats);
            helped += stats.helped_chunks;
        }
        ck_assert_msg((helped > 0) == cases[i].helps, "case %zu", i);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Takes `batches` in sequence from a group of `n`, and says where it stands. */
START_TEST(one_that_takes_nothing_holds_up_the_others_and_lets_them_go_on)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    for (int way = 0; way < 8; way++) {
        group_options.caller_helps =
            (way % 2) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
        group_options.prefetch = 1 + way / 2 % 2;
        group_fixture group =
            group_fixture_open(pipeline, &group_options,
                               way / 4 ? group_on_late : group_on_cpu, 2);
        /* Its own batches, and those between what fits into the other. */
        int slots = group_options.prefetch + 1;
        for (int t = 0; t <= slots; t++) {
            ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
            ck_assert_float_eq(group_fixture_label(&group, 0, 0),
                               (float)(1000 + 8 * t % LAYER_FIXTURE_COUNT));
        }
        for (int tries = 0; tries < 3; tries++)
            ck_assert_int_eq(
                leat_data_layer_try_forward(group_fixture_member(&group, 0),
                                            group.top[0], 2, LEAT_HOST, tries),
                LEAT_AGAIN);
        for (int t = 0; t < 10; t++) {
            ck_assert_int_eq(group_fixture_forward(&group, 1), LEAT_OK);
            ck_assert_float_eq(
                group_fixture_label(&group, 1, 0),
                (float)(1000 + (8 * t + 4) % LAYER_FIXTURE_COUNT));
            int next = slots + 1 + t;
            if (t == 0)
                continue;
            ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
            ck_assert_float_eq(
                group_fixture_label(&group, 0, 0),
                (float)(1000 + 8 * (next - 1) % LAYER_FIXTURE_COUNT));
        }
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The log's line of member 0, at which member 1 takes a batch. */
static char heard[512];
static group_fixture *awaited;

static void hear(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    if (!strstr(line, "waiting for data"))
        return;
    snprintf(heard, sizeof(heard), "%s", line);
    ck_assert_int_eq(group_fixture_forward(awaited, 1), LEAT_OK);
    ck_assert_int_eq(group_fixture_forward(awaited, 1), LEAT_OK);
}

START_TEST(the_log_names_the_member_that_is_waited_for)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_on_late, 2);
    awaited = &group;
    for (int t = 0; t <= group_options.prefetch + 1; t++)
        ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    ck_assert_str_eq(heard, "data[0]: waiting for data for 1.0 s: data[1] on "
                            "late:1 is behind: all its batches are made, and "
                            "it takes none");
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_group_can_be_destroyed_in_any_state)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_data_layer_group_destroy(NULL);
    for (int way = 0; way < 48; way++) {
        const char *const *devices = places[way % PLACES];
        group_fixture group = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&group.group, pipeline,
                                                      &group_options, devices,
                                                      3),
                         LEAT_OK);
        group_fixture_make_tops(&group, devices, 3);
        if (way % 8)
            ck_assert_int_eq(
                leat_data_layer_group_setup(group.group, group.top[0], 2), 0);
        /* Some members have taken batches, some hold one. */
        for (int i = 0; i < 3 && way % 8 > 1; i++)
            for (int t = 0; t < (way + i) % 3; t++)
                ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_OK);
        /* Members first, in any order and any number. */
        for (int i = 0; i < way / 8 % 4; i++)
            leat_data_layer_destroy(
                group_fixture_member(&group, (way + i) % 3));
        if (way % 5 == 0)
            leat_data_layer_group_cancel(group.group);
        if (way % 2)
            group_fixture_close(&group);
        else {
            group_fixture_free_tops(&group);
            leat_data_layer_group_destroy(group.group);
        }
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_member_that_is_destroyed_cancels_the_others)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_on_cpu, 2);
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    leat_data_layer_destroy(group_fixture_member(&group, 1));
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_ECANCELLED);
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(what_was_lent_stays_readable)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_mixed, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_OK);
    leat_data_layer_group_destroy(group.group);
    for (int i = 0; i < 2; i++)
        ck_assert_float_eq(group_fixture_label(&group, i, 0),
                           (float)(1000 + 4 * i));
    group_fixture_free_tops(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_group_cancelled_before_setup_stays_so)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    for (int way = 0; way < 4; way++) {
        group_fixture group = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&group.group, pipeline,
                                                      &group_options,
                                                      places[way % PLACES], 3),
                         LEAT_OK);
        group_fixture_make_tops(&group, places[way % PLACES], 3);
        if (way == 3)
            leat_data_layer_group_cancel(group.group);
        else
            leat_data_layer_cancel(group_fixture_member(&group, way));
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(
                leat_data_layer_group_setup(group.group, group.top[0], 2),
                LEAT_ECANCELLED);
            ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_ESTATE);
        }
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static void *forward_until_cancelled(void *argument)
{
    part *self = argument;
    int status = LEAT_OK;
    while (status == LEAT_OK)
        status = group_fixture_forward(self->group, self->member);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    return NULL;
}

START_TEST(cancel_wakes_every_member)
{
    group_source.blocks = 9;
    group_source.count = 100;
    leat_pipeline *pipeline = scripted_source_pipeline(&group_source);
    for (int way = 0; way < 6; way++) {
        pthread_t thread[3];
        part parts[3];
        group_source.blocked = 0;
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_mixed, 3);
        for (int i = 0; i < 3; i++) {
            parts[i] = (part){.group = &group, .member = i};
            ck_assert_int_eq(pthread_create(&thread[i], NULL,
                                            forward_until_cancelled, &parts[i]),
                             0);
        }
        scripted_source_await_blocked(&group_source);
        if (way % 2)
            leat_data_layer_group_cancel(group.group);
        else
            leat_data_layer_cancel(group_fixture_member(&group, way / 2));
        for (int i = 0; i < 3; i++)
            pthread_join(thread[i], NULL);
        group_fixture_close(&group);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Every allocation of creation, setup and the first forwards fails in turn. */
START_TEST(a_failed_allocation_is_an_error_and_leaks_nothing)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    for (int place = 0; place < 2; place++) {
        group_options.on_error =
            place ? LEAT_ON_ERROR_REPLACE : LEAT_ON_ERROR_FAIL;
        int done = 0;
        for (int n = 0; !done; n++) {
            group_fixture group = {.n = 0};
            group_fixture_make_tops(&group, places[place], 3);
            ck_assert_int_lt(n, 4000);
            leat__alloc_fail_at(n);
            int status = leat_data_layer_group_create(
                &group.group, pipeline, &group_options, places[place], 3);
            if (status == LEAT_OK)
                status =
                    leat_data_layer_group_setup(group.group, group.top[0], 2);
            for (int k = 0; k < 6 && status == LEAT_OK; k++)
                status = group_fixture_forward(&group, k % 3);
            done = leat__alloc_fail_at(-1) >= 0;
            ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
            ck_assert(status != LEAT_OK || done);
            group_fixture_close(&group);
        }
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(each_member_has_numbers_of_its_own)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_options.name = "train";
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_mixed, 3);
    for (int k = 0; k < 7; k++)
        ck_assert_int_eq(group_fixture_forward(&group, k % 3), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        leat_data_layer *member = group_fixture_member(&group, i);
        const leat_data_layer_options *own =
            leat_data_layer_get_options(member);
        leat_stats stats = {.size = sizeof(stats)};
        ck_assert_int_eq(leat_data_layer_stats(member, &stats), LEAT_OK);
        ck_assert_int_eq(stats.batches, i == 0 ? 3 : 2);
        ck_assert_int_eq(stats.samples, 4 * stats.batches);
        ck_assert_int_eq(stats.batches_in_use, group_options.prefetch + 1);
        ck_assert_int_eq(stats.nstages, i == 1 ? 3 : 4);
        ck_assert_int_eq(stats.memory.host > 0, i == 1);
        ck_assert_int_eq(stats.memory.pinned > 0, i != 1);
        /* The reader's and the workers' are all members'. */
        ck_assert_int_ge(stats.stage[0].items, 28);
        ck_assert_str_eq(own->device, group_mixed[i]);
        ck_assert_int_eq(own->name[6], '0' + i);
        ck_assert_int_eq(leat_data_layer_seed(member), 99);
        ck_assert_ptr_eq(leat_data_layer_pipeline(member), pipeline);
        ck_assert_int_eq(leat_data_layer_top_count(member), 2);
        ck_assert_str_eq(leat_data_layer_top_name(member, 1), "label");
    }
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(max_memory_is_for_all_together)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    int64_t sum[2] = {0};
    for (int round = 0; round < 2; round++) {
        group_options.prefetch = 8;
        if (round)
            group_options.max_memory =
                (size_t)sum[0] * 2 / 3 + 18 * leat__batch_overhead(4);
        group_fixture group =
            group_fixture_open(pipeline, &group_options, group_on_late, 3);
        for (int i = 0; i < 3; i++) {
            leat_stats stats = {.size = sizeof(stats)};
            leat_data_layer_stats(group_fixture_member(&group, i), &stats);
            ck_assert_int_eq(stats.batches_in_use, round ? 6 : 9);
            sum[round] += stats.memory.pinned + stats.memory.device;
        }
        group_fixture_close(&group);
    }
    ck_assert_int_le(sum[1], sum[0] * 2 / 3);
    const size_t too_small[] = {3 * 4096, 2};
    for (int i = 0; i < 2; i++) {
        group_options.max_memory = too_small[i];
        leat_data_layer_group *group;
        struct group_fixture small = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&group, pipeline,
                                                      &group_options,
                                                      group_on_late, 3),
                         LEAT_OK);
        group_fixture_make_tops(&small, group_on_late, 3);
        ck_assert_int_eq(leat_data_layer_group_setup(group, small.top[0], 2),
                         LEAT_ELIMIT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "for each device"));
        leat_data_layer_group_destroy(group);
        group_fixture_free_tops(&small);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static void check_refused(int status, int wanted, const char *words)
{
    ck_assert_int_eq(status, wanted);
    ck_assert_msg(strstr(leat_last_error(), words) != NULL, "%s",
                  leat_last_error());
}

START_TEST(what_makes_no_group_is_refused)
{
    static const char *const unknown[] = {"cpu", "gpu"};
    static const char *const none[] = {"cpu", NULL};
    leat_data_layer_group *group = NULL;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    check_refused(leat_data_layer_group_create(&group, NULL, &group_options,
                                               group_on_cpu, 2),
                  LEAT_EINVAL, "needs a pipeline");
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &group_options, NULL, 2),
        LEAT_EINVAL, "devices");
    check_refused(leat_data_layer_group_create(&group, pipeline, &group_options,
                                               group_on_cpu, 0),
                  LEAT_EINVAL, "1 to 64 members, not 0");
    check_refused(leat_data_layer_group_create(&group, pipeline, &group_options,
                                               group_on_cpu,
                                               LEAT_GROUP_MAX + 1),
                  LEAT_EINVAL, "not 65");
    check_refused(leat_data_layer_group_create(&group, pipeline, &group_options,
                                               unknown, 2),
                  LEAT_EINVAL, "there is no device \"gpu\"");
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &group_options, none, 2),
        LEAT_EINVAL, "device 1 has no name");
    group_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    check_refused(leat_data_layer_group_create(&group, pipeline, &group_options,
                                               group_mixed, 3),
                  LEAT_EINVAL, "all or none");
    group_options.batch_size = 0;
    check_refused(leat_data_layer_group_create(&group, pipeline, &group_options,
                                               group_on_cpu, 2),
                  LEAT_EINVAL, "batch_size");
    ck_assert_ptr_null(group);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(what_concerns_all_is_refused_to_a_member)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_token token;
    leat_token_init(&token);
    group_fixture group = {0};
    ck_assert_int_eq(leat_data_layer_group_create(&group.group, pipeline,
                                                  &group_options, group_on_cpu,
                                                  2),
                     0);
    group_fixture_make_tops(&group, group_on_cpu, 2);
    leat_data_layer *member = group_fixture_member(&group, 1);
    ck_assert_ptr_null(leat_data_layer_group_member(group.group, 2));
    ck_assert_ptr_null(leat_data_layer_group_member(group.group, -1));
    check_refused(leat_data_layer_setup(member, group.top[1], 2), LEAT_ESTATE,
                  "data[1] is of a group of 2: expected "
                  "leat_data_layer_group_setup");
    check_refused(group_fixture_forward(&group, 1), LEAT_ESTATE,
                  "before setup");
    check_refused(leat_data_layer_group_save(group.group, &token), LEAT_ESTATE,
                  "before setup");
    check_refused(leat_data_layer_group_restore(group.group, &token),
                  LEAT_ESTATE, "before setup");
    /* A blob of two members, and one on another device. */
    leat_blob *twice[] = {group.top[0][0], group.top[0][1], group.top[1][0],
                          group.top[0][1]};
    check_refused(leat_data_layer_group_setup(group.group, twice, 2),
                  LEAT_EINVAL, "data[1]: top 1 is top 1 of member 0 too");
    leat_device *late;
    ck_assert_int_eq(leat_device_find(&late, "late:0"), LEAT_OK);
    leat_blob *elsewhere;
    ck_assert_int_eq(leat_blob_create(&elsewhere, late), LEAT_OK);
    leat_blob *strange[] = {group.top[0][0], group.top[0][1], elsewhere,
                            group.top[1][1]};
    check_refused(leat_data_layer_group_setup(group.group, strange, 2),
                  LEAT_EINVAL, "data[1]: top 0 is on late:0, the layer on cpu");
    leat_blob_destroy(elsewhere);
    ck_assert_int_eq(leat_data_layer_group_setup(group.group, group.top[0], 2),
                     0);
    check_refused(leat_data_layer_group_setup(group.group, group.top[0], 2),
                  LEAT_ESTATE, "before");
    check_refused(leat_data_layer_save(member, &token), LEAT_ESTATE,
                  "leat_data_layer_group_save");
    check_refused(leat_data_layer_restore(member, &token), LEAT_ESTATE,
                  "leat_data_layer_group_restore");
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("data_layer_group");
    tcase_add_checked_fixture(tcase, group_set_up, group_tear_down);
    tcase_set_timeout(tcase, 2 * GROUP_SECONDS);
    tcase_add_test(tcase, members_together_deliver_what_one_layer_does);
    tcase_add_test(tcase, so_they_do_with_caffes_generator);
    tcase_add_test(tcase, so_they_do_in_copied_tops);
    tcase_add_test(tcase, so_does_the_group_of_a_rank_among_several);
    tcase_add_test(tcase, so_they_do_over_a_reader_in_order);
    tcase_add_test(tcase, so_they_do_over_a_chain_of_random_access);
    tcase_add_test(tcase,
                   callers_in_threads_of_their_own_never_miss_each_other);
    tcase_add_test(tcase, the_source_is_read_once_for_all);
    tcase_add_test(tcase, a_caller_works_only_where_no_stream_is_waited_for);
    tcase_add_test(
        tcase, one_that_takes_nothing_holds_up_the_others_and_lets_them_go_on);
    tcase_add_test(tcase, the_log_names_the_member_that_is_waited_for);
    tcase_add_test(tcase, a_group_can_be_destroyed_in_any_state);
    tcase_add_test(tcase, a_member_that_is_destroyed_cancels_the_others);
    tcase_add_test(tcase, what_was_lent_stays_readable);
    tcase_add_test(tcase, a_group_cancelled_before_setup_stays_so);
    tcase_add_test(tcase, cancel_wakes_every_member);
    tcase_add_test(tcase, a_failed_allocation_is_an_error_and_leaks_nothing);
    tcase_add_test(tcase, each_member_has_numbers_of_its_own);
    tcase_add_test(tcase, max_memory_is_for_all_together);
    tcase_add_test(tcase, what_makes_no_group_is_refused);
    tcase_add_test(tcase, what_concerns_all_is_refused_to_a_member);
    Suite *suite = suite_create("data_layer_group");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
