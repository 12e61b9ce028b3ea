/*
 * Layers in a forked child: those of its parent refuse at once and are freed
 * without the parent's threads, files and devices; its own work.
 */
#include "base/log.h"
#include "support/child.h"
#include "support/feed.h"
#include "support/group_stage.h"
#include "support/late_device.h"
#include "support/source.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { FORKS = 200 };

static leat_pipeline *pipeline;
static leat_data_layer_options options;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = 4;
    options.workers = 2;
    pipeline = feed_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static int is_refused(int status)
{
    return status == LEAT_ESTATE &&
           strstr(leat_last_error(), "another process; create it after fork()");
}

/* In the child, of its parent's layer. */
static void check_calls(feed_layer *feed)
{
    leat_data_layer *layer = feed->layer;
    leat_stats stats = {.size = sizeof(stats)};
    leat_token token;
    leat_token_init(&token);
    child_check(is_refused(leat_data_layer_setup(layer, feed->top, 2)));
    child_check(is_refused(feed_forward(feed)));
    child_check(is_refused(
        leat_data_layer_try_forward(layer, feed->top, 2, LEAT_HOST, 0)));
    child_check(is_refused(leat_data_layer_release(layer, NULL, 0)));
    child_check(is_refused(leat_data_layer_save(layer, &token)));
    child_check(is_refused(leat_data_layer_restore(layer, &token)));
    child_check(is_refused(leat_data_layer_stats(layer, &stats)));
    child_check(is_refused(leat_data_layer_top_count(layer)));
    child_check(leat_data_layer_batch(layer) == NULL);
    leat_data_layer_cancel(layer);
    child_check(leat_data_layer_get_options(layer)->batch_size == 4);
    child_check(strcmp(leat_data_layer_top_name(layer, 0), "data") == 0);
    child_check(leat_data_layer_pipeline(layer) != NULL);
}

static void use_and_destroy(void *argument)
{
    feed_layer *feed = argument;
    check_calls(feed);
    feed_close(feed);
}

/* The parent's layer goes on as if nothing had been. */
static void check_unharmed(feed_layer *feed, uint32_t before)
{
    ck_assert_uint_eq(feed_digest(feed), before);
    for (int i = 0; i < 2 * FEED_COUNT; i++)
        ck_assert_int_eq(feed_forward(feed), LEAT_OK);
}

/* A child that does so with a layer whose first batch is in the tops. */
static void check_beside(void (*body)(void *))
{
    feed_layer feed = feed_open(pipeline, &options);
    ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
    uint32_t digest = feed_digest(&feed);
    child_run(body, &feed);
    check_unharmed(&feed, digest);
    feed_close(&feed);
}

START_TEST(a_parents_layer_refuses_and_is_freed)
{
    options.reader_thread = (leat_reader_thread)_i;
    check_beside(use_and_destroy);
}
END_TEST

START_TEST(a_layer_not_yet_set_up_refuses_and_is_freed)
{
    feed_layer feed;
    ck_assert_int_eq(leat_data_layer_create(&feed.layer, pipeline, &options),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&feed.top[i], NULL), LEAT_OK);
    child_run(use_and_destroy, &feed);
    ck_assert_int_eq(leat_data_layer_setup(feed.layer, feed.top, 2), LEAT_OK);
    feed_close(&feed);
}
END_TEST

/* Forks meet threads inside any lock. */
static atomic_int is_over;

static void *forward_until_over(void *argument)
{
    feed_layer *feed = argument;
    int status = LEAT_OK;
    while (!atomic_load(&is_over) && status == LEAT_OK)
        status = feed_forward(feed);
    return status ? feed : NULL;
}

static void destroy_layer(void *argument)
{
    feed_layer *feed = argument;
    child_check(is_refused(feed_forward(feed)));
    leat_data_layer_destroy(feed->layer);
}

START_TEST(forks_at_any_moment_leave_a_layer_that_can_be_freed)
{
    pthread_t thread;
    options.reader_thread = (leat_reader_thread)_i;
    feed_layer feed = feed_open(pipeline, &options);
    atomic_store(&is_over, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, forward_until_over, &feed),
                     0);
    for (int i = 0; i < FORKS; i++)
        child_run_amid_threads(destroy_layer, &feed);
    void *failed;
    atomic_store(&is_over, 1);
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    feed_close(&feed);
}
END_TEST

static void read_and_destroy_tops(void *argument)
{
    feed_layer *feed = argument;
    int first = feed_pixel(0, 0, 0, 0);
    const float *data = leat_blob_cpu_data(feed->top[0]);
    child_check(data && data[0] == (float)first);
    leat_data_layer_destroy(feed->layer);
    child_check(data[0] == (float)first && feed_label(feed, 1) == 1001);
    float *own = leat_blob_mutable_cpu_data(feed->top[0]);
    own[0] = -1;
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(feed->top[i]);
}

START_TEST(what_was_lent_is_read_in_the_child_and_stays_in_the_parent)
{
    options.top_mode = (leat_top_mode)_i;
    check_beside(read_and_destroy_tops);
}
END_TEST

/* The last owners: blobs that outlive their layer. */
static void destroy_tops(void *argument)
{
    feed_layer *feed = argument;
    child_check(feed_label(feed, 0) == 1000);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(feed->top[i]);
}

START_TEST(tops_that_outlive_their_layer_are_freed_in_the_child)
{
    feed_layer feed = feed_open(pipeline, &options);
    ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
    leat_data_layer_destroy(feed.layer);
    uint32_t digest = feed_digest(&feed);
    child_run(destroy_tops, &feed);
    ck_assert_uint_eq(feed_digest(&feed), digest);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(feed.top[i]);
}
END_TEST

/* What a layer of the child's own is to deliver, and did. */
typedef struct comparison {
    feed_layer parents;
    uint32_t digest[2 * FEED_COUNT];
} comparison;

static void check_own_layer(void *argument)
{
    comparison *want = argument;
    feed_layer own = feed_open(pipeline, &options);
    for (int i = 0; i < 2 * FEED_COUNT; i++) {
        child_check(feed_forward(&own) == LEAT_OK);
        child_check(feed_digest(&own) == want->digest[i]);
    }
    leat_data_layer_destroy(want->parents.layer);
    child_check(feed_forward(&own) == LEAT_OK);
    feed_close(&own);
}

START_TEST(a_childs_own_layer_delivers_the_same_bytes)
{
    comparison want;
    options.random_seed = 7;
    want.parents = feed_open(pipeline, &options);
    feed_layer model = feed_open(pipeline, &options);
    for (int i = 0; i < 2 * FEED_COUNT; i++) {
        ck_assert_int_eq(feed_forward(&model), LEAT_OK);
        want.digest[i] = feed_digest(&model);
    }
    feed_close(&model);
    child_run(check_own_layer, &want);
    feed_close(&want.parents);
}
END_TEST

static void check_drawn_seed(void *argument)
{
    const leat_data_layer *parents = argument;
    leat_data_layer *own;
    child_check(leat_data_layer_create(&own, pipeline, &options) == LEAT_OK);
    child_check(leat_data_layer_seed(own) != leat_data_layer_seed(parents));
    leat_data_layer_destroy(own);
}

START_TEST(a_child_draws_a_seed_of_its_own)
{
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_data_layer *layer;
    transform.mirror = 1;
    options.transform = &transform;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    child_run(check_drawn_seed, layer);
    leat_data_layer_destroy(layer);
}
END_TEST

/* A reader whose cancel holds on: the layer's locks are held meanwhile. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int entered; /* protected by lock, as the next */
    int open;
    int closed; /* readers */
} gate;

static gate the_gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0,
                        0, 0};

static void gate_cancel(void *pass)
{
    gate *self = pass;
    pthread_mutex_lock(&self->lock);
    self->entered = 1;
    pthread_cond_broadcast(&self->changed);
    while (!self->open)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

static void gate_close(void *pass)
{
    ((gate *)pass)->closed++;
}

static void gate_let_through(gate *self)
{
    pthread_mutex_lock(&self->lock);
    self->open = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static leat_pipeline *gate_pipeline(gate *self)
{
    static const leat_field_spec fields[] = {{"data", LEAT_FLOAT32, 0, {0}}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 1,
                                      .next = source_one_float,
                                      .reset = NULL,
                                      .cancel = gate_cancel,
                                      .close = gate_close};
    leat_pipeline *made;
    ck_assert_int_eq(leat_pipeline_callback(&made, &callbacks, self), LEAT_OK);
    return made;
}

static void *cancel_layer(void *layer)
{
    leat_data_layer_cancel(layer);
    return NULL;
}

static void cancel_and_destroy(void *layer)
{
    leat_data_layer_cancel(layer);
    leat_data_layer_destroy(layer);
    child_check(the_gate.closed == 0);
}

START_TEST(locks_held_at_the_fork_are_not_waited_for)
{
    leat_pipeline *gated = gate_pipeline(&the_gate);
    leat_data_layer *layer;
    leat_blob *top;
    pthread_t thread;
    ck_assert_int_eq(leat_data_layer_create(&layer, gated, &options), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_layer, layer), 0);
    pthread_mutex_lock(&the_gate.lock);
    while (!the_gate.entered)
        pthread_cond_wait(&the_gate.changed, &the_gate.lock);
    pthread_mutex_unlock(&the_gate.lock);
    child_run(cancel_and_destroy, layer);
    gate_let_through(&the_gate);
    pthread_join(thread, NULL);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(gated);
    ck_assert_int_eq(the_gate.closed, 1);
}
END_TEST

/* In the child the number of the layer's file is another file's. */
typedef struct numbered_file {
    feed_layer feed;
    int fd;
} numbered_file;

static void destroy_beside_file(void *argument)
{
    numbered_file *both = argument;
    child_check(dup2(STDERR_FILENO, both->fd) == both->fd);
    feed_close(&both->feed);
    child_check(fcntl(both->fd, F_GETFD) >= 0);
}

START_TEST(no_file_is_closed_in_the_child)
{
    char path[] = "/tmp/leat-fork-XXXXXX";
    numbered_file both = {.fd = mkstemp(path)};
    ck_assert_int_ge(both.fd, 0);
    close(both.fd); /* the lowest number free: the layer's file gets it */
    options.bad_record_file = path;
    both.feed = feed_open(pipeline, &options);
    ck_assert_int_ge(fcntl(both.fd, F_GETFD), 0);
    child_run(destroy_beside_file, &both);
    feed_close(&both.feed);
    unlink(path);
}
END_TEST

/* The devices' calls so far, as one number. */
static int64_t count_calls(void)
{
    int64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        leat_device *device;
        child_check(leat_device_find(&device, group_on_late[i]) == LEAT_OK);
        late_device_counts counts = late_device_count(device);
        const int64_t *count = (const int64_t *)&counts;
        for (size_t k = 0; k < sizeof(counts) / sizeof(*count); k++)
            sum += count[k];
    }
    return sum;
}

typedef struct group_tops {
    leat_data_layer_group *group;
    leat_blob *top[4][2];
} group_tops;

static void use_and_destroy_group(void *argument)
{
    group_tops *all = argument;
    leat_token token;
    leat_token_init(&token);
    int64_t calls = count_calls();
    child_check(leat_data_layer_group_size(all->group) == 4);
    child_check(is_refused(
        leat_data_layer_group_setup(all->group, &all->top[0][0], 2)));
    child_check(is_refused(leat_data_layer_group_save(all->group, &token)));
    child_check(is_refused(leat_data_layer_group_restore(all->group, &token)));
    for (int i = 0; i < 4; i++) {
        feed_layer member = {leat_data_layer_group_member(all->group, i),
                             {all->top[i][0], all->top[i][1]}};
        child_check(is_refused(feed_forward(&member)));
        child_check(is_refused(leat_data_layer_release(member.layer, NULL, 0)));
        leat_data_layer_destroy(member.layer);
        leat_device *device = leat_blob_device(member.top[0]);
        const void *pixels = leat_blob_cpu_data(member.top[0]);
        if (strcmp(leat_device_name(device), "cpu") == 0)
            child_check(pixels != NULL);
        else
            child_check(!pixels && strstr(leat_last_error(), "after fork()") &&
                        !leat_blob_gpu_data(member.top[0]) &&
                        !leat_blob_mutable_gpu_data(member.top[0]) &&
                        leat_blob_async_gpu_push(member.top[0], 0));
    }
    leat_data_layer_group_cancel(all->group);
    leat_data_layer_group_destroy(all->group);
    for (int i = 0; i < 8; i++)
        leat_blob_destroy(all->top[i / 2][i % 2]);
    child_check(count_calls() == calls);
}

START_TEST(a_parents_group_refuses_and_asks_its_devices_nothing)
{
    group_tops all;
    ck_assert_int_eq(leat_data_layer_group_create(&all.group, pipeline,
                                                  &options, group_mixed, 4),
                     LEAT_OK);
    for (int i = 0; i < 8; i++) {
        leat_device *device;
        ck_assert_int_eq(leat_device_find(&device, group_mixed[i / 2]), 0);
        ck_assert_int_eq(leat_blob_create(&all.top[i / 2][i % 2], device), 0);
    }
    ck_assert_int_eq(leat_data_layer_group_setup(all.group, &all.top[0][0], 2),
                     LEAT_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat_data_layer_forward(leat_data_layer_group_member(all.group, i),
                                    all.top[i], 2, LEAT_HOST),
            LEAT_OK);
    child_run_amid_threads(use_and_destroy_group, &all);
    leat_data_layer_group_destroy(all.group);
    for (int i = 0; i < 8; i++)
        leat_blob_destroy(all.top[i / 2][i % 2]);
}
END_TEST

/* What holds the locks of the log and of the registries as often as not. */
static void take_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

static void log_and_look_up(void)
{
    leat_device *device;
    leat_pipeline *unknown;
    leat__log(LEAT_LOG_INFO, "a line");
    (void)leat_device_find(&device, "cpu");
    (void)leat_pipeline_parse(&unknown, "nothing:x");
}

static void *log_until_over(void *argument)
{
    while (!atomic_load(&is_over))
        log_and_look_up();
    return argument;
}

static void log_in_child(void *argument)
{
    (void)argument;
    log_and_look_up();
    child_check(strstr(leat_last_error(), "there is no reader") != NULL);
}

START_TEST(the_log_and_the_registries_work_in_a_child)
{
    pthread_t thread[2];
    leat_log_set(take_line, NULL, LEAT_LOG_INFO);
    atomic_store(&is_over, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, log_until_over, NULL),
                         0);
    for (int i = 0; i < FORKS; i++)
        child_run_amid_threads(log_in_child, NULL);
    atomic_store(&is_over, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_fork");
    TCase *tcase = tcase_create("layer_fork");
    TCase *groups = tcase_create("groups");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_parents_layer_refuses_and_is_freed, 0, 3);
    tcase_add_test(tcase, a_layer_not_yet_set_up_refuses_and_is_freed);
    tcase_add_loop_test(
        tcase, forks_at_any_moment_leave_a_layer_that_can_be_freed, 0, 3);
    tcase_add_loop_test(
        tcase, what_was_lent_is_read_in_the_child_and_stays_in_the_parent, 0,
        2);
    tcase_add_test(tcase, tops_that_outlive_their_layer_are_freed_in_the_child);
    tcase_add_test(tcase, a_childs_own_layer_delivers_the_same_bytes);
    tcase_add_test(tcase, a_child_draws_a_seed_of_its_own);
    tcase_add_test(tcase, locks_held_at_the_fork_are_not_waited_for);
    tcase_add_test(tcase, no_file_is_closed_in_the_child);
    tcase_add_test(tcase, the_log_and_the_registries_work_in_a_child);
    suite_add_tcase(suite, groups);
    tcase_add_checked_fixture(groups, group_set_up, group_tear_down);
    tcase_add_checked_fixture(groups, set_up, tear_down);
    tcase_add_test(groups,
                   a_parents_group_refuses_and_asks_its_devices_nothing);
    return suite_run(suite);
}
