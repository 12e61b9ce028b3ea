/*
 * Layers in a forked child: those of its parent refuse at once and are freed
 * without the parent's threads, files and devices; its own work.
 */
#include "base/log.h"
#include "support/child.h"
#include "support/group_fixture.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
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
    pipeline = layer_fixture_pipeline();
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
static void check_calls(layer_fixture *fixture)
{
    leat_data_layer *layer = fixture->layer;
    leat_stats stats = {.size = sizeof(stats)};
    leat_token token;
    leat_token_init(&token);
    child_check(is_refused(leat_data_layer_setup(layer, fixture->top, 2)));
    child_check(is_refused(layer_fixture_forward(fixture)));
    child_check(is_refused(
        leat_data_layer_try_forward(layer, fixture->top, 2, LEAT_HOST, 0)));
    child_check(is_refused(leat_data_layer_release(layer, NULL, 0)));
    child_check(is_refused(leat_data_layer_save(layer, &token)));
    child_check(is_refused(leat_data_layer_restore(layer, &token)));
    child_check(is_refused(leat_data_layer_stats(layer, &stats)));
    child_check(is_refused(leat_data_layer_top_count(layer)));
    child_check(is_refused(leat_data_layer_slots(layer)));
    child_check(leat_data_layer_batch(layer) == NULL);
    leat_data_layer_cancel(layer);
    child_check(leat_data_layer_get_options(layer)->batch_size == 4);
    child_check(strcmp(leat_data_layer_top_name(layer, 0), "data") == 0);
    child_check(leat_data_layer_pipeline(layer) != NULL);
}

static void use_and_destroy(void *argument)
{
    layer_fixture *fixture = argument;
    check_calls(fixture);
    layer_fixture_close(fixture);
}

/* The parent's layer goes on as if nothing had been. */
static void check_unharmed(layer_fixture *fixture, uint32_t before)
{
    ck_assert_uint_eq(layer_fixture_digest(fixture), before);
    for (int i = 0; i < 2 * LAYER_FIXTURE_COUNT; i++)
        ck_assert_int_eq(layer_fixture_forward(fixture), LEAT_OK);
}

/* A child that does so with a layer whose first batch is in the tops. */
static void check_beside(void (*body)(void *))
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    uint32_t digest = layer_fixture_digest(&fixture);
    child_run(body, &fixture);
    check_unharmed(&fixture, digest);
    layer_fixture_close(&fixture);
}

START_TEST(a_parents_layer_refuses_and_is_freed)
{
    options.reader_thread = (leat_reader_thread)_i;
    check_beside(use_and_destroy);
}
END_TEST

START_TEST(a_layer_not_yet_set_up_refuses_and_is_freed)
{
    layer_fixture fixture;
    ck_assert_int_eq(leat_data_layer_create(&fixture.layer, pipeline, &options),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture.top[i], NULL), LEAT_OK);
    child_run(use_and_destroy, &fixture);
    ck_assert_int_eq(leat_data_layer_setup(fixture.layer, fixture.top, 2),
                     LEAT_OK);
    layer_fixture_close(&fixture);
}
END_TEST

/* Forks meet threads inside any lock. */
static atomic_int is_over;

static void *forward_until_over(void *argument)
{
    layer_fixture *fixture = argument;
    int status = LEAT_OK;
    while (!atomic_load(&is_over) && status == LEAT_OK)
        status = layer_fixture_forward(fixture);
    return status ? fixture : NULL;
}

static void destroy_layer(void *argument)
{
    layer_fixture *fixture = argument;
    child_check(is_refused(layer_fixture_forward(fixture)));
    leat_data_layer_destroy(fixture->layer);
}

START_TEST(forks_at_any_moment_leave_a_layer_that_can_be_freed)
{
    pthread_t thread;
    options.reader_thread = (leat_reader_thread)_i;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    atomic_store(&is_over, 0);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, forward_until_over, &fixture), 0);
    for (int i = 0; i < FORKS; i++)
        child_run_amid_threads(destroy_layer, &fixture);
    void *failed;
    atomic_store(&is_over, 1);
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    layer_fixture_close(&fixture);
}
END_TEST

static void read_and_destroy_tops(void *argument)
{
    layer_fixture *fixture = argument;
    int first = layer_fixture_pixel(0, 0, 0, 0);
    const float *data = leat_blob_cpu_data(fixture->top[0]);
    child_check(data && data[0] == (float)first);
    leat_data_layer_destroy(fixture->layer);
    child_check(data[0] == (float)first &&
                layer_fixture_label(fixture, 1) == 1001);
    float *own = leat_blob_mutable_cpu_data(fixture->top[0]);
    own[0] = -1;
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(fixture->top[i]);
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
    layer_fixture *fixture = argument;
    child_check(layer_fixture_label(fixture, 0) == 1000);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(fixture->top[i]);
}

START_TEST(tops_that_outlive_their_layer_are_freed_in_the_child)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_data_layer_destroy(fixture.layer);
    uint32_t digest = layer_fixture_digest(&fixture);
    child_run(destroy_tops, &fixture);
    ck_assert_uint_eq(layer_fixture_digest(&fixture), digest);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(fixture.top[i]);
}
END_TEST

/* What a layer of the child's own is to deliver, and did. */
typedef struct comparison {
    layer_fixture parents;
    uint32_t digest[2 * LAYER_FIXTURE_COUNT];
} comparison;

static void check_own_layer(void *argument)
{
    comparison *want = argument;
    layer_fixture own = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 2 * LAYER_FIXTURE_COUNT; i++) {
        child_check(layer_fixture_forward(&own) == LEAT_OK);
        child_check(layer_fixture_digest(&own) == want->digest[i]);
    }
    leat_data_layer_destroy(want->parents.layer);
    child_check(layer_fixture_forward(&own) == LEAT_OK);
    layer_fixture_close(&own);
}

START_TEST(a_childs_own_layer_delivers_the_same_bytes)
{
    comparison want;
    options.random_seed = 7;
    want.parents = layer_fixture_open(pipeline, &options);
    layer_fixture model = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 2 * LAYER_FIXTURE_COUNT; i++) {
        ck_assert_int_eq(layer_fixture_forward(&model), LEAT_OK);
        want.digest[i] = layer_fixture_digest(&model);
    }
    layer_fixture_close(&model);
    child_run(check_own_layer, &want);
    layer_fixture_close(&want.parents);
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
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 1,
                                      .next = scripted_source_one_float,
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
    layer_fixture fixture;
    int fd;
} numbered_file;

static void destroy_beside_file(void *argument)
{
    numbered_file *both = argument;
    child_check(dup2(STDERR_FILENO, both->fd) == both->fd);
    layer_fixture_close(&both->fixture);
    child_check(fcntl(both->fd, F_GETFD) >= 0);
}

/* The descriptor of that file. */
static int find_descriptor(const char *path)
{
    struct stat wanted, found;
    ck_assert_int_eq(stat(path, &wanted), 0);
    for (int fd = 3; fd < 256; fd++)
        if (!fstat(fd, &found) && found.st_dev == wanted.st_dev &&
            found.st_ino == wanted.st_ino)
            return fd;
    ck_abort_msg("%s is not open", path);
    return -1;
}

START_TEST(no_file_is_closed_in_the_child)
{
    char path[] = "/tmp/leat-fork-XXXXXX";
    int made = mkstemp(path);
    numbered_file both;
    ck_assert_int_ge(made, 0);
    close(made);
    options.bad_record_file = path;
    both.fixture = layer_fixture_open(pipeline, &options);
    both.fd = find_descriptor(path);
    child_run(destroy_beside_file, &both);
    layer_fixture_close(&both.fixture);
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
        layer_fixture member = {leat_data_layer_group_member(all->group, i),
                                {all->top[i][0], all->top[i][1]}};
        child_check(is_refused(layer_fixture_forward(&member)));
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
