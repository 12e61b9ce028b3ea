/*
 * Several layers fed by one reader: together they deliver what one layer does,
 * whoever is slow, fails, stops or is resumed.
 */
#include "base/memory.h"
#include "support/feed.h"
#include "support/index_decorators.h"
#include "support/late_device.h"
#include "support/planted.h"
#include "support/source.h"
#include "support/troop.h"
#include "support/watchdog.h"

#include <check.h>
#include <leat/ext/device.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 18
#define SECONDS 100

static leat_data_layer_options options;
static leat_transform_options transform;
static source source_now;

static const char *const on_cpu[] = {"cpu", "cpu", "cpu", "cpu"};
static const char *const on_late[] = {"late:0", "late:1", "late:0", "late:1"};
static const char *const mixed[] = {"late:1", "cpu", "late:0", "cpu"};
static const char *const *const places[] = {on_cpu, on_late, mixed};
enum { PLACES = 3 };

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    const source fresh = SOURCE_INIT;
    options = defaults;
    transform = none;
    source_now = fresh;
    options.batch_size = 4;
    options.random_seed = 99;
    options.prefetch = 2;
    late_device_register();
    index_decorators_register();
    watchdog_start(SECONDS);
}

static void check_late_is_clean(void)
{
    for (int i = 0; i < 2; i++) {
        leat_device *device;
        ck_assert_int_eq(leat_device_find(&device, on_late[i]), LEAT_OK);
        late_device_counts counts = late_device_count(device);
        ck_assert_int_eq(counts.live_bytes, 0);
        ck_assert_int_eq(counts.live_host_bytes, 0);
        ck_assert_int_eq(counts.events, 0);
        ck_assert_int_eq(counts.streams, 0);
        ck_assert_int_eq(counts.destroyed_busy, 0);
    }
}

static void tear_down(void)
{
    check_late_is_clean();
    watchdog_stop();
}

/* What one layer on the CPU delivers. */
static void record(const leat_pipeline *pipeline, uint32_t digest[], int n)
{
    feed_layer feed = feed_open(pipeline, &options);
    for (int k = 0; k < n; k++) {
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
        digest[k] = feed_digest(&feed);
    }
    feed_close(&feed);
}

static void check_union(const leat_pipeline *pipeline, int n,
                        const char *const devices[], const uint32_t digest[])
{
    troop troop = troop_open(pipeline, &options, devices, n);
    ck_assert_int_eq(leat_data_layer_group_size(troop.group), n);
    for (int k = 0; k < BATCHES; k++) {
        ck_assert_int_eq(troop_forward(&troop, k % n), LEAT_OK);
        ck_assert_uint_eq(troop_digest(&troop, k % n), digest[k]);
        const leat_batch *batch =
            leat_data_layer_batch(troop_member(&troop, k % n));
        ck_assert_int_eq(batch->number, k);
        ck_assert_int_eq(batch->from[0].position,
                         4 * k * options.world_size % FEED_COUNT);
    }
    troop_close(&troop);
}

static void check_all_ways(const leat_pipeline *pipeline)
{
    uint32_t digest[BATCHES];
    record(pipeline, digest, BATCHES);
    for (int n = 1; n <= 3; n++)
        for (int place = 0; place < PLACES; place++)
            for (int way = 0; way < 8; way++) {
                options.workers = 1 + way % 2 * 2;
                options.help = way / 2 % 2;
                options.reader_thread =
                    way / 4 ? LEAT_READER_ON : LEAT_READER_OFF;
                options.prefetch = 1 + way % 3;
                check_union(pipeline, n, places[place], digest);
            }
}

static void transform_at_random(void)
{
    transform.crop_size = 3;
    transform.mirror = 1;
    options.transform = &transform;
}

START_TEST(members_together_deliver_what_one_layer_does)
{
    leat_pipeline *pipeline = feed_pipeline();
    transform_at_random();
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_they_do_with_caffes_generator)
{
    leat_pipeline *pipeline = feed_pipeline();
    transform_at_random();
    options.rng = LEAT_RNG_CAFFE;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_they_do_in_copied_tops)
{
    leat_pipeline *pipeline = feed_pipeline();
    options.top_mode = LEAT_TOP_COPY;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Rank 0, whose first record stands at the beginning of its step. */
START_TEST(so_does_the_group_of_a_rank_among_several)
{
    leat_pipeline *pipeline = feed_pipeline();
    transform_at_random();
    options.world_size = 3;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Samples of one float from a callback, in order and behind a thread. */
START_TEST(so_they_do_over_a_reader_in_order)
{
    leat_pipeline *pipeline = source_pipeline(&source_now);
    source_now.count = FEED_COUNT;
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

static leat_pipeline *shuffled_pipeline(void)
{
    leat_pipeline *upstream = feed_pipeline();
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, index_decorators_shuffle(),
                                          "seed=5", NULL, NULL, &upstream, 1),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

START_TEST(so_they_do_over_a_chain_of_random_access)
{
    leat_pipeline *pipeline = shuffled_pipeline();
    transform_at_random();
    check_all_ways(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Threads of the callers' own, who wait for each other after each step. */

typedef struct part {
    troop *troop;
    int member;
    const uint32_t *digest;
    pthread_barrier_t *step;
    int steps;
} part;

static void *take_part(void *argument)
{
    part *self = argument;
    int n = self->troop->n;
    for (int t = 0; t < self->steps; t++) {
        int k = t * n + self->member;
        ck_assert_int_eq(troop_forward(self->troop, self->member), LEAT_OK);
        ck_assert_uint_eq(troop_digest(self->troop, self->member),
                          self->digest[k % FEED_COUNT]);
        if (self->step)
            pthread_barrier_wait(self->step);
    }
    return NULL;
}

static void run_in_threads(troop *troop, const uint32_t digest[], int steps,
                           int in_step)
{
    pthread_t thread[TROOP_MAX];
    part parts[TROOP_MAX];
    pthread_barrier_t step;
    pthread_barrier_init(&step, NULL, (unsigned)troop->n);
    for (int i = 0; i < troop->n; i++) {
        parts[i] = (part){troop, i, digest, in_step ? &step : NULL, steps};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, take_part, &parts[i]),
                         0);
    }
    for (int i = 0; i < troop->n; i++)
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
    leat_pipeline *pipeline = feed_pipeline();
    uint32_t digest[FEED_COUNT];
    record(pipeline, digest, FEED_COUNT);
    options.workers = 1;
    for (int way = 0; way < 24; way++) {
        options.help = way % 2;
        options.reader_thread = way / 2 % 2 ? LEAT_READER_ON : LEAT_READER_OFF;
        options.prefetch = 1 + way / 4 % 2;
        int n = 2 + way / 8;
        const char *const *devices = way % 3 ? on_cpu : on_late;
        troop troop = troop_open(pipeline, &options, devices, n);
        run_in_threads(&troop, digest, 400, way % 5 != 0);
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(the_source_is_read_once_for_all)
{
    source_now.count = 60;
    source_now.single_pass = 1;
    options.batch_size = 4;
    leat_pipeline *pipeline = source_pipeline(&source_now);
    for (int n = 1; n <= 3; n++) {
        source_now.opened = 0;
        source_now.given = 0;
        troop troop = troop_open(pipeline, &options, on_cpu, n);
        for (int k = 0; k < 15; k++) {
            ck_assert_int_eq(troop_forward(&troop, k % n), LEAT_OK);
            ck_assert_float_eq(troop_label(&troop, k % n, 0), (float)(4 * k));
        }
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(troop_forward(&troop, (i + 15) % n), LEAT_END);
        troop_close(&troop);
        ck_assert_int_eq(source_now.opened, 1);
        ck_assert_int_eq(source_now.given, 60);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Takes `batches` in sequence from a group of `n`, and says where it stands. */
static void save_after(const leat_pipeline *pipeline, int n, int batches,
                       leat_token *token)
{
    troop troop = troop_open(pipeline, &options, mixed, n);
    for (int k = 0; k < batches; k++)
        ck_assert_int_eq(troop_forward(&troop, k % n), LEAT_OK);
    leat_token_init(token);
    ck_assert_int_eq(leat_data_layer_group_save(troop.group, token), LEAT_OK);
    troop_close(&troop);
}

static void check_resumed(const leat_pipeline *pipeline, int n, int begin,
                          const uint32_t digest[], leat_token *token)
{
    troop troop = troop_open(pipeline, &options, on_late, n);
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    int status = leat_data_layer_group_restore(troop.group, token);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    for (int k = begin; k < BATCHES; k++) {
        int i = (k - begin) % n;
        ck_assert_int_eq(troop_forward(&troop, i), LEAT_OK);
        ck_assert_uint_eq(troop_digest(&troop, i), digest[k]);
        ck_assert_int_eq(leat_data_layer_batch(troop_member(&troop, i))->number,
                         k);
    }
    troop_close(&troop);
}

static void check_resumed_alone(const leat_pipeline *pipeline, int begin,
                                const uint32_t digest[], leat_token *token)
{
    feed_layer feed = feed_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_restore(feed.layer, token), LEAT_OK);
    for (int k = begin; k < BATCHES; k++) {
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
        ck_assert_uint_eq(feed_digest(&feed), digest[k]);
    }
    feed_close(&feed);
}

static void check_all_resumes(const leat_pipeline *pipeline)
{
    uint32_t digest[BATCHES];
    record(pipeline, digest, BATCHES);
    for (int n = 1; n <= 3; n++)
        for (int begin = 0; begin < 8; begin++) {
            leat_token token;
            save_after(pipeline, n, begin, &token);
            for (int other = 1; other <= 3; other++)
                check_resumed(pipeline, other, begin, digest, &token);
            check_resumed_alone(pipeline, begin, digest, &token);
            leat_token_finish(&token);
        }
}

START_TEST(another_number_of_devices_goes_on_where_a_group_stopped)
{
    leat_pipeline *pipeline = feed_pipeline();
    transform_at_random();
    options.rng = _i ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    options.world_size = _i < 2 ? 1 : 2;
    check_all_resumes(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_it_does_over_a_chain_of_random_access)
{
    leat_pipeline *pipeline = shuffled_pipeline();
    transform_at_random();
    check_all_resumes(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_group_goes_on_where_a_layer_stopped)
{
    leat_pipeline *pipeline = feed_pipeline();
    uint32_t digest[BATCHES];
    leat_token token;
    leat_token_init(&token);
    record(pipeline, digest, BATCHES);
    feed_layer feed = feed_open(pipeline, &options);
    for (int k = 0; k < 5; k++)
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(feed.layer, &token), LEAT_OK);
    feed_close(&feed);
    check_resumed(pipeline, 2, 5, digest, &token);
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(members_that_stand_apart_cannot_be_saved)
{
    leat_pipeline *pipeline = feed_pipeline();
    troop troop = troop_open(pipeline, &options, on_cpu, 3);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    ck_assert_int_eq(troop_forward(&troop, 2), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_save(troop.group, &token),
                     LEAT_ESTATE);
    ck_assert_str_eq(leat_last_error(),
                     "data: save while members stand apart: data[1] is "
                     "behind, with 0 batches of 2");
    ck_assert_uint_eq(token.size, 0);
    ck_assert_int_eq(troop_forward(&troop, 1), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_save(troop.group, &token), LEAT_OK);
    leat_token_finish(&token);
    troop_close(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(one_that_takes_nothing_holds_up_the_others_and_lets_them_go_on)
{
    leat_pipeline *pipeline = feed_pipeline();
    for (int way = 0; way < 8; way++) {
        options.help = way % 2;
        options.prefetch = 1 + way / 2 % 2;
        troop troop =
            troop_open(pipeline, &options, way / 4 ? on_late : on_cpu, 2);
        /* Its own batches, and those between what fits into the other. */
        int slots = options.prefetch + 1;
        for (int t = 0; t <= slots; t++) {
            ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
            ck_assert_float_eq(troop_label(&troop, 0, 0),
                               (float)(1000 + 8 * t % FEED_COUNT));
        }
        for (int tries = 0; tries < 3; tries++)
            ck_assert_int_eq(
                leat_data_layer_try_forward(troop_member(&troop, 0),
                                            troop.top[0], 2, LEAT_HOST, tries),
                LEAT_AGAIN);
        for (int t = 0; t < 10; t++) {
            ck_assert_int_eq(troop_forward(&troop, 1), LEAT_OK);
            ck_assert_float_eq(troop_label(&troop, 1, 0),
                               (float)(1000 + (8 * t + 4) % FEED_COUNT));
            int next = slots + 1 + t;
            if (t == 0)
                continue;
            ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
            ck_assert_float_eq(troop_label(&troop, 0, 0),
                               (float)(1000 + 8 * (next - 1) % FEED_COUNT));
        }
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The log's line of member 0, at which member 1 takes a batch. */
static char heard[512];
static troop *awaited;

static void hear(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    if (!strstr(line, "waiting for data"))
        return;
    snprintf(heard, sizeof(heard), "%s", line);
    ck_assert_int_eq(troop_forward(awaited, 1), LEAT_OK);
    ck_assert_int_eq(troop_forward(awaited, 1), LEAT_OK);
}

START_TEST(the_log_names_the_member_that_is_waited_for)
{
    leat_pipeline *pipeline = feed_pipeline();
    troop troop = troop_open(pipeline, &options, on_late, 2);
    awaited = &troop;
    for (int t = 0; t <= options.prefetch + 1; t++)
        ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    ck_assert_str_eq(heard, "data[0]: waiting for data for 1.0 s: data[1] on "
                            "late:1 is behind: all its batches are made, and "
                            "it takes none");
    troop_close(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_bad_record_costs_the_member_whose_batch_it_is_in)
{
    source_now.count = 100;
    source_now.bad = 21; /* in batch 5 */
    leat_pipeline *pipeline = source_pipeline(&source_now);
    for (int n = 1; n <= 3; n++) {
        troop troop = troop_open(pipeline, &options, on_cpu, n);
        for (int k = 0; k < 12; k++) {
            int status = troop_forward(&troop, k % n);
            ck_assert_int_eq(status, k == 5 ? LEAT_EDATA : LEAT_OK);
            if (k != 5)
                ck_assert_float_eq(troop_label(&troop, k % n, 0),
                                   (float)(4 * k));
        }
        leat_token token;
        leat_token_init(&token);
        ck_assert_int_eq(leat_data_layer_group_save(troop.group, &token),
                         LEAT_OK);
        leat_token_finish(&token);
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static void break_source_at(int64_t record)
{
    pthread_mutex_lock(&source_now.lock);
    source_now.broken = record;
    pthread_mutex_unlock(&source_now.lock);
}

/* Batches 0 to 4 are good; whoever asks for more hears of the storage. */
static void check_broken(const leat_pipeline *pipeline, int n)
{
    troop troop = troop_open(pipeline, &options, mixed, n);
    for (int i = 0; i < n; i++) {
        for (int k = i; k < 5; k += n) {
            ck_assert_int_eq(troop_forward(&troop, i), LEAT_OK);
            ck_assert_float_eq(troop_label(&troop, i, 0), (float)(4 * k));
        }
        for (int tries = 0; tries < 3; tries++) {
            ck_assert_int_eq(troop_forward(&troop, i), LEAT_EIO);
            ck_assert_str_eq(leat_last_error(),
                             "source: the storage failed at 22");
        }
    }
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_group_save(troop.group, &token), LEAT_OK);
    break_source_at(-1);
    ck_assert_int_eq(leat_data_layer_group_restore(troop.group, &token),
                     LEAT_OK);
    for (int k = 5; k < 9; k++) {
        ck_assert_int_eq(troop_forward(&troop, (k - 5) % n), LEAT_OK);
        ck_assert_float_eq(troop_label(&troop, (k - 5) % n, 0), (float)(4 * k));
    }
    break_source_at(22);
    leat_token_finish(&token);
    troop_close(&troop);
}

START_TEST(an_error_comes_to_all_behind_what_is_before_it)
{
    source_now.count = 100;
    source_now.broken = 22;
    /* Members are asked one after the other: all of theirs must fit. */
    options.prefetch = 6;
    leat_pipeline *pipeline = source_pipeline(&source_now);
    for (int n = 1; n <= 3; n++)
        for (int way = 0; way < 6; way++) {
            options.workers = 1 + way % 3;
            options.reader_thread = way / 3 ? LEAT_READER_ON : LEAT_READER_OFF;
            check_broken(pipeline, n);
        }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_single_pass_ends_for_all)
{
    source_now.count = 22;
    source_now.single_pass = 1;
    options.prefetch = 6;
    leat_pipeline *pipeline = source_pipeline(&source_now);
    for (int n = 1; n <= 4; n++) {
        troop troop = troop_open(pipeline, &options, on_cpu, n);
        for (int i = n - 1; i >= 0; i--) {
            for (int k = i; k < 6; k += n) {
                ck_assert_int_eq(troop_forward(&troop, i), LEAT_OK);
                ck_assert_int_eq(
                    leat_data_layer_batch(troop_member(&troop, i))->n,
                    k < 5 ? 4 : 2);
            }
            for (int tries = 0; tries < 2; tries++)
                ck_assert_int_eq(troop_forward(&troop, i), LEAT_END);
        }
        leat_token token;
        leat_token_init(&token);
        ck_assert_int_eq(leat_data_layer_group_save(troop.group, &token), 0);
        ck_assert_int_eq(leat_data_layer_group_restore(troop.group, &token),
                         LEAT_END);
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(troop_forward(&troop, i), LEAT_END);
        leat_token_finish(&token);
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static void plant(planted *plan, planted_way way)
{
    plan->count = 29;
    plan->way = way;
    for (int i = 3; i < plan->count; i += 4)
        plan->kind[i] = (planted_kind)(1 + i % (PLANTED_KINDS - 1));
    plan->kind[4] = PLANTED_UNREADABLE;
    plan->kind[16] = PLANTED_UNREADABLE;
}

/* Whose run comes when does not show in what stands in for bad records. */
START_TEST(what_stands_in_is_what_one_layer_gives)
{
    planted plan = {0};
    plant(&plan, (planted_way)(_i % PLANTED_WAYS));
    leat_pipeline *pipeline = planted_pipeline(&plan);
    uint32_t digest[BATCHES];
    options.on_error =
        _i / PLANTED_WAYS ? LEAT_ON_ERROR_ZERO : LEAT_ON_ERROR_SKIP;
    record(pipeline, digest, BATCHES);
    feed_layer feed = feed_open(pipeline, &options);
    for (int k = 0; k < BATCHES; k++)
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
    leat_stats whole = {.size = sizeof(whole)};
    ck_assert_int_eq(leat_data_layer_stats(feed.layer, &whole), LEAT_OK);
    feed_close(&feed);
    ck_assert_int_gt(whole.bad_records, 0);
    for (int n = 1; n <= 3; n++) {
        troop troop = troop_open(pipeline, &options, mixed, n);
        for (int k = 0; k < BATCHES; k++) {
            ck_assert_int_eq(troop_forward(&troop, k % n), LEAT_OK);
            ck_assert_uint_eq(troop_digest(&troop, k % n), digest[k]);
        }
        int64_t bad = 0;
        for (int i = 0; i < n; i++) {
            leat_stats stats = {.size = sizeof(stats)};
            leat_data_layer_stats(troop_member(&troop, i), &stats);
            bad += stats.bad_records;
        }
        ck_assert_int_eq(bad, whole.bad_records);
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(one_bad_record_too_many_ends_it_for_all)
{
    source_now.count = 1000;
    source_now.bad = 9; /* in batch 2 */
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.max_errors = 0;
    leat_pipeline *pipeline = source_pipeline(&source_now);
    troop troop = troop_open(pipeline, &options, on_cpu, 2);
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_ELIMIT);
    int status = LEAT_OK;
    for (int t = 0; t < 20 && status == LEAT_OK; t++)
        status = troop_forward(&troop, 1);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "data[0]: 1 bad records"));
    troop_close(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Every call of the two devices in turn: an error for all, and nothing hangs.
 */
START_TEST(a_device_that_fails_ends_it_for_all)
{
    leat_pipeline *pipeline = feed_pipeline();
    options.prefetch = 1;
    int failures = 0;
    for (int n = 0, done = 0; !done; n++) {
        troop troop = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&troop.group, pipeline,
                                                      &options, on_late, 2),
                         LEAT_OK);
        troop_make_tops(&troop, on_late, 2);
        late_device_fail_at(n);
        int status = leat_data_layer_group_setup(troop.group, troop.top[0], 2);
        for (int k = 0; k < 12 && status == LEAT_OK; k++)
            status = troop_forward(&troop, k % 2);
        int has_failed = late_device_has_failed();
        late_device_fail_at(-1);
        done = !has_failed;
        failures += has_failed;
        ck_assert(status == LEAT_OK || status == LEAT_EDEVICE);
        if (status && leat_data_layer_top_name(troop_member(&troop, 0), 0) &&
            troop_forward(&troop, 0) == LEAT_EDEVICE)
            for (int i = 0, end = 0; i < 2; i++, end = 0) {
                for (int t = 0; t < 20 && end == LEAT_OK; t++)
                    end = troop_forward(&troop, i);
                ck_assert_int_eq(end, LEAT_EDEVICE);
            }
        troop_close(&troop);
        check_late_is_clean();
    }
    ck_assert_int_gt(failures, 20);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* One copy of one device breaks its stream: the other stops behind it. */
START_TEST(a_stream_that_breaks_ends_it_for_all)
{
    leat_pipeline *pipeline = feed_pipeline();
    for (int n = 0; n < 8; n++) {
        troop troop = troop_open(pipeline, &options, on_late, 2);
        late_device_break_at(n);
        int status = LEAT_OK;
        for (int k = 0; k < 60 && status == LEAT_OK; k++)
            status = troop_forward(&troop, k % 2);
        ck_assert_int_eq(status, LEAT_EDEVICE);
        for (int i = 0; i < 2; i++) {
            int end = LEAT_OK;
            for (int t = 0; t < 20 && end == LEAT_OK; t++)
                end = troop_forward(&troop, i);
            ck_assert_int_eq(end, LEAT_EDEVICE);
        }
        late_device_break_at(-1);
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_group_can_be_destroyed_in_any_state)
{
    leat_pipeline *pipeline = feed_pipeline();
    leat_data_layer_group_destroy(NULL);
    for (int way = 0; way < 48; way++) {
        const char *const *devices = places[way % PLACES];
        troop troop = {.n = 0};
        ck_assert_int_eq(leat_data_layer_group_create(&troop.group, pipeline,
                                                      &options, devices, 3),
                         LEAT_OK);
        troop_make_tops(&troop, devices, 3);
        if (way % 8)
            ck_assert_int_eq(
                leat_data_layer_group_setup(troop.group, troop.top[0], 2), 0);
        /* Some members have taken batches, some hold one. */
        for (int i = 0; i < 3 && way % 8 > 1; i++)
            for (int t = 0; t < (way + i) % 3; t++)
                ck_assert_int_eq(troop_forward(&troop, i), LEAT_OK);
        /* Members first, in any order and any number. */
        for (int i = 0; i < way / 8 % 4; i++)
            leat_data_layer_destroy(troop_member(&troop, (way + i) % 3));
        if (way % 5 == 0)
            leat_data_layer_group_cancel(troop.group);
        if (way % 2)
            troop_close(&troop);
        else {
            troop_free_tops(&troop);
            leat_data_layer_group_destroy(troop.group);
        }
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_member_that_is_destroyed_cancels_the_others)
{
    leat_pipeline *pipeline = feed_pipeline();
    troop troop = troop_open(pipeline, &options, on_cpu, 2);
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    leat_data_layer_destroy(troop_member(&troop, 1));
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_ECANCELLED);
    troop_close(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(what_was_lent_stays_readable)
{
    leat_pipeline *pipeline = feed_pipeline();
    troop troop = troop_open(pipeline, &options, mixed, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(troop_forward(&troop, i), LEAT_OK);
    leat_data_layer_group_destroy(troop.group);
    for (int i = 0; i < 2; i++)
        ck_assert_float_eq(troop_label(&troop, i, 0), (float)(1000 + 4 * i));
    troop_free_tops(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void *forward_until_cancelled(void *argument)
{
    part *self = argument;
    int status = LEAT_OK;
    while (status == LEAT_OK)
        status = troop_forward(self->troop, self->member);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    return NULL;
}

START_TEST(cancel_wakes_every_member)
{
    source_now.blocks = 9;
    source_now.count = 100;
    leat_pipeline *pipeline = source_pipeline(&source_now);
    for (int way = 0; way < 6; way++) {
        pthread_t thread[3];
        part parts[3];
        source_now.blocked = 0;
        troop troop = troop_open(pipeline, &options, mixed, 3);
        for (int i = 0; i < 3; i++) {
            parts[i] = (part){.troop = &troop, .member = i};
            ck_assert_int_eq(pthread_create(&thread[i], NULL,
                                            forward_until_cancelled, &parts[i]),
                             0);
        }
        source_await_blocked(&source_now);
        if (way % 2)
            leat_data_layer_group_cancel(troop.group);
        else
            leat_data_layer_cancel(troop_member(&troop, way / 2));
        for (int i = 0; i < 3; i++)
            pthread_join(thread[i], NULL);
        troop_close(&troop);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Every allocation of creation, setup and the first forwards fails in turn. */
START_TEST(a_failed_allocation_is_an_error_and_leaks_nothing)
{
    leat_pipeline *pipeline = feed_pipeline();
    for (int place = 0; place < 2; place++) {
        options.on_error = place ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_FAIL;
        int done = 0;
        for (int n = 0; !done; n++) {
            troop troop = {.n = 0};
            troop_make_tops(&troop, places[place], 3);
            ck_assert_int_lt(n, 4000);
            leat__alloc_fail_at(n);
            int status = leat_data_layer_group_create(
                &troop.group, pipeline, &options, places[place], 3);
            if (status == LEAT_OK)
                status =
                    leat_data_layer_group_setup(troop.group, troop.top[0], 2);
            for (int k = 0; k < 6 && status == LEAT_OK; k++)
                status = troop_forward(&troop, k % 3);
            done = leat__alloc_fail_at(-1) >= 0;
            ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
            ck_assert(status != LEAT_OK || done);
            troop_close(&troop);
        }
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(each_member_has_numbers_of_its_own)
{
    leat_pipeline *pipeline = feed_pipeline();
    options.name = "train";
    troop troop = troop_open(pipeline, &options, mixed, 3);
    for (int k = 0; k < 7; k++)
        ck_assert_int_eq(troop_forward(&troop, k % 3), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        leat_data_layer *member = troop_member(&troop, i);
        const leat_data_layer_options *own =
            leat_data_layer_get_options(member);
        leat_stats stats = {.size = sizeof(stats)};
        ck_assert_int_eq(leat_data_layer_stats(member, &stats), LEAT_OK);
        ck_assert_int_eq(stats.batches, i == 0 ? 3 : 2);
        ck_assert_int_eq(stats.samples, 4 * stats.batches);
        ck_assert_int_eq(stats.slots, options.prefetch + 1);
        ck_assert_int_eq(stats.nstages, i == 1 ? 3 : 4);
        ck_assert_int_eq(stats.memory.host > 0, i == 1);
        ck_assert_int_eq(stats.memory.pinned > 0, i != 1);
        /* The reader's and the workers' are all members'. */
        ck_assert_int_ge(stats.stage[0].items, 28);
        ck_assert_str_eq(own->device, mixed[i]);
        ck_assert_int_eq(own->name[6], '0' + i);
        ck_assert_int_eq(leat_data_layer_seed(member), 99);
        ck_assert_ptr_eq(leat_data_layer_pipeline(member), pipeline);
        ck_assert_int_eq(leat_data_layer_top_count(member), 2);
        ck_assert_str_eq(leat_data_layer_top_name(member, 1), "label");
    }
    troop_close(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(max_memory_is_for_all_together)
{
    leat_pipeline *pipeline = feed_pipeline();
    int64_t sum[2] = {0};
    for (int round = 0; round < 2; round++) {
        options.prefetch = 8;
        options.max_memory = round ? (size_t)sum[0] * 2 / 3 : 0;
        troop troop = troop_open(pipeline, &options, on_late, 3);
        for (int i = 0; i < 3; i++) {
            leat_stats stats = {.size = sizeof(stats)};
            leat_data_layer_stats(troop_member(&troop, i), &stats);
            ck_assert_int_eq(stats.slots, round ? 6 : 9);
            sum[round] += stats.memory.pinned + stats.memory.device;
        }
        troop_close(&troop);
    }
    ck_assert_int_le(sum[1], sum[0] * 2 / 3);
    options.max_memory = 3 * 4096;
    leat_data_layer_group *group;
    struct troop small = {.n = 0};
    ck_assert_int_eq(
        leat_data_layer_group_create(&group, pipeline, &options, on_late, 3),
        LEAT_OK);
    troop_make_tops(&small, on_late, 3);
    ck_assert_int_eq(leat_data_layer_group_setup(group, small.top[0], 2),
                     LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "for each device"));
    leat_data_layer_group_destroy(group);
    troop_free_tops(&small);
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
    leat_pipeline *pipeline = feed_pipeline();
    check_refused(
        leat_data_layer_group_create(&group, NULL, &options, on_cpu, 2),
        LEAT_EINVAL, "needs a pipeline");
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &options, NULL, 2),
        LEAT_EINVAL, "devices");
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &options, on_cpu, 0),
        LEAT_EINVAL, "1 to 64 members, not 0");
    check_refused(leat_data_layer_group_create(&group, pipeline, &options,
                                               on_cpu, LEAT_GROUP_MAX + 1),
                  LEAT_EINVAL, "not 65");
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &options, unknown, 2),
        LEAT_EINVAL, "there is no device \"gpu\"");
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &options, none, 2),
        LEAT_EINVAL, "device 1 has no name");
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &options, mixed, 3),
        LEAT_EINVAL, "all or none");
    options.batch_size = 0;
    check_refused(
        leat_data_layer_group_create(&group, pipeline, &options, on_cpu, 2),
        LEAT_EINVAL, "batch_size");
    ck_assert_ptr_null(group);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(what_concerns_all_is_refused_to_a_member)
{
    leat_pipeline *pipeline = feed_pipeline();
    leat_token token;
    leat_token_init(&token);
    leat_data_layer_group *group;
    ck_assert_int_eq(
        leat_data_layer_group_create(&group, pipeline, &options, on_cpu, 2), 0);
    troop troop = {.group = group};
    troop_make_tops(&troop, on_cpu, 2);
    leat_data_layer *member = troop_member(&troop, 1);
    ck_assert_ptr_null(leat_data_layer_group_member(group, 2));
    ck_assert_ptr_null(leat_data_layer_group_member(group, -1));
    check_refused(leat_data_layer_setup(member, troop.top[1], 2), LEAT_ESTATE,
                  "data[1] is of a group of 2: expected "
                  "leat_data_layer_group_setup");
    check_refused(troop_forward(&troop, 1), LEAT_ESTATE, "before setup");
    check_refused(leat_data_layer_group_save(group, &token), LEAT_ESTATE,
                  "before setup");
    check_refused(leat_data_layer_group_restore(group, &token), LEAT_ESTATE,
                  "before setup");
    /* A blob of two members, and one on another device. */
    leat_blob *twice[] = {troop.top[0][0], troop.top[0][1], troop.top[1][0],
                          troop.top[0][1]};
    check_refused(leat_data_layer_group_setup(group, twice, 2), LEAT_EINVAL,
                  "data[1]: top 1 is top 1 of member 0 too");
    leat_device *late;
    ck_assert_int_eq(leat_device_find(&late, "late:0"), LEAT_OK);
    leat_blob *elsewhere;
    ck_assert_int_eq(leat_blob_create(&elsewhere, late), LEAT_OK);
    leat_blob *strange[] = {troop.top[0][0], troop.top[0][1], elsewhere,
                            troop.top[1][1]};
    check_refused(leat_data_layer_group_setup(group, strange, 2), LEAT_EINVAL,
                  "data[1]: top 0 is on late:0, the layer on cpu");
    leat_blob_destroy(elsewhere);
    ck_assert_int_eq(leat_data_layer_group_setup(group, troop.top[0], 2), 0);
    check_refused(leat_data_layer_group_setup(group, troop.top[0], 2),
                  LEAT_ESTATE, "before");
    check_refused(leat_data_layer_save(member, &token), LEAT_ESTATE,
                  "leat_data_layer_group_save");
    check_refused(leat_data_layer_restore(member, &token), LEAT_ESTATE,
                  "leat_data_layer_group_restore");
    ck_assert_int_eq(troop_forward(&troop, 0), LEAT_OK);
    troop_close(&troop);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("data_layer_group");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, members_together_deliver_what_one_layer_does);
    tcase_add_test(tcase, so_they_do_with_caffes_generator);
    tcase_add_test(tcase, so_they_do_in_copied_tops);
    tcase_add_test(tcase, so_does_the_group_of_a_rank_among_several);
    tcase_add_test(tcase, so_they_do_over_a_reader_in_order);
    tcase_add_test(tcase, so_they_do_over_a_chain_of_random_access);
    tcase_add_test(tcase,
                   callers_in_threads_of_their_own_never_miss_each_other);
    tcase_add_test(tcase, the_source_is_read_once_for_all);
    tcase_add_loop_test(
        tcase, another_number_of_devices_goes_on_where_a_group_stopped, 0, 3);
    tcase_add_test(tcase, so_it_does_over_a_chain_of_random_access);
    tcase_add_test(tcase, a_group_goes_on_where_a_layer_stopped);
    tcase_add_test(tcase, members_that_stand_apart_cannot_be_saved);
    tcase_add_test(
        tcase, one_that_takes_nothing_holds_up_the_others_and_lets_them_go_on);
    tcase_add_test(tcase, the_log_names_the_member_that_is_waited_for);
    tcase_add_test(tcase, a_bad_record_costs_the_member_whose_batch_it_is_in);
    tcase_add_test(tcase, an_error_comes_to_all_behind_what_is_before_it);
    tcase_add_test(tcase, a_single_pass_ends_for_all);
    tcase_add_loop_test(tcase, what_stands_in_is_what_one_layer_gives, 0,
                        2 * PLANTED_WAYS);
    tcase_add_test(tcase, one_bad_record_too_many_ends_it_for_all);
    tcase_add_test(tcase, a_device_that_fails_ends_it_for_all);
    tcase_add_test(tcase, a_stream_that_breaks_ends_it_for_all);
    tcase_add_test(tcase, a_group_can_be_destroyed_in_any_state);
    tcase_add_test(tcase, a_member_that_is_destroyed_cancels_the_others);
    tcase_add_test(tcase, what_was_lent_stays_readable);
    tcase_add_test(tcase, cancel_wakes_every_member);
    tcase_add_test(tcase, a_failed_allocation_is_an_error_and_leaks_nothing);
    tcase_add_test(tcase, each_member_has_numbers_of_its_own);
    tcase_add_test(tcase, max_memory_is_for_all_together);
    tcase_add_test(tcase, what_makes_no_group_is_refused);
    tcase_add_test(tcase, what_concerns_all_is_refused_to_a_member);
    Suite *suite = suite_create("data_layer_group");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
