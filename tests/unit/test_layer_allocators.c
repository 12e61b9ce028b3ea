/* A caller's own memory: what is taken from it, and that all of it goes back.
 */
#include "support/bad_records.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Counts what is out, and fails or misaligns one request. */
typedef struct pool {
    atomic_int given;
    atomic_int out; /* pieces not yet back */
    atomic_llong bytes;
    atomic_int pages; /* requests aligned to pages */
    int fails_at;
    int misaligns;
    leat_device *device; /* whose pinned memory it gives; NULL: malloc's */
} pool;

/* Before each piece stands what it was asked for with. */
typedef struct piece {
    void *memory;
    size_t bytes;
    size_t alignment;
} piece;

static char *take_room(const pool *self, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (self->device)
        ck_assert_int_eq(
            self->device->ops->host_alloc(self->device, bytes, &memory),
            LEAT_OK);
    else
        ck_assert_int_eq(posix_memalign(&memory, alignment, bytes), 0);
    return memory;
}

static void *pool_alloc(void *user, size_t bytes, size_t alignment)
{
    pool *self = user;
    pthread_testcancel(); /* as hooks that write a line, or close a file, do */
    if (atomic_fetch_add(&self->given, 1) == self->fails_at)
        return NULL;
    ck_assert_uint_gt(bytes, 0);
    ck_assert_uint_eq(alignment & (alignment - 1), 0);
    size_t room = alignment < sizeof(piece) ? sizeof(piece) : alignment;
    char *memory = take_room(self, room + bytes, alignment);
    memset(memory, 0x5a, room + bytes);
    char *given = memory + room - (self->misaligns ? 8 : 0);
    piece head = {memory, bytes, alignment};
    memcpy(given - sizeof(piece), &head, sizeof(head));
    atomic_fetch_add(&self->out, 1);
    atomic_fetch_add(&self->bytes, (long long)bytes);
    atomic_fetch_add(&self->pages, alignment == 4096);
    return given;
}

static void pool_free(void *user, void *memory, size_t bytes, size_t alignment)
{
    pool *self = user;
    piece head;
    pthread_testcancel();
    memcpy(&head, (char *)memory - sizeof(piece), sizeof(head));
    ck_assert_uint_eq(head.bytes, bytes);
    ck_assert_uint_eq(head.alignment, alignment);
    atomic_fetch_sub(&self->out, 1);
    atomic_fetch_sub(&self->bytes, (long long)bytes);
    if (self->device)
        self->device->ops->host_free(self->device, head.memory,
                                     alignment + bytes);
    else
        free(head.memory);
}

static pool host;
static pool pinned;
static leat_allocator host_hooks;
static leat_allocator pinned_hooks;
static leat_data_layer_options options;
static bad_records plan;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const bad_records none = {.count = 20};
    const leat_allocator hooks = {sizeof(hooks), pool_alloc, pool_free, NULL};
    memset(&host, 0, sizeof(host));
    memset(&pinned, 0, sizeof(pinned));
    host.fails_at = -1;
    pinned.fails_at = -1;
    host_hooks = hooks;
    host_hooks.user = &host;
    pinned_hooks = hooks;
    pinned_hooks.user = &pinned;
    plan = none;
    options = defaults;
    options.batch_size = 4;
    options.workers = 2;
    options.host_allocator = &host_hooks;
    options.pinned_allocator = &pinned_hooks;
}

static int open_layer(layer_fixture *fixture)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    leat_device *device = NULL;
    memset(fixture, 0, sizeof(*fixture));
    int status = leat_data_layer_create(&fixture->layer, pipeline, &options);
    leat_pipeline_unref(pipeline);
    if (options.device)
        ck_assert_int_eq(leat_device_find(&device, options.device), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture->top[i], device), LEAT_OK);
    return status ? status
                  : leat_data_layer_setup(fixture->layer, fixture->top, 2);
}

static void digests(uint32_t out[10])
{
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        out[i] = layer_fixture_digest(&fixture);
    }
    layer_fixture_close(&fixture);
}

START_TEST(batches_and_boxes_come_from_the_host_allocator)
{
    uint32_t with[10];
    uint32_t without[10];
    plan.way = BAD_RECORDS_IN_ORDER;
    plan.kind[7] = BAD_RECORDS_UNREADABLE;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    digests(with);
    ck_assert_int_eq(atomic_load(&host.pages), 1);
    ck_assert_int_gt(atomic_load(&host.given), 2);
    ck_assert_int_eq(atomic_load(&host.out), 0);
    ck_assert_int_eq(atomic_load(&host.bytes), 0);
    ck_assert_int_eq(atomic_load(&pinned.given), 0);
    options.host_allocator = NULL;
    digests(without);
    ck_assert_mem_eq(with, without, sizeof(with));
}
END_TEST

START_TEST(views_take_no_boxes)
{
    uint32_t with[10];
    digests(with);
    ck_assert_int_eq(atomic_load(&host.given), 1);
    ck_assert_int_eq(atomic_load(&host.out), 0);
}
END_TEST

START_TEST(what_is_given_is_what_the_statistics_say)
{
    layer_fixture fixture;
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(atomic_load(&host.bytes), stats.memory.host);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_lent_slab_goes_back_with_the_last_blob)
{
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    uint32_t digest = layer_fixture_digest(&fixture);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    ck_assert_int_eq(atomic_load(&host.out), 1);
    ck_assert_uint_eq(layer_fixture_digest(&fixture), digest);
    leat_blob_destroy(fixture.top[0]);
    fixture.top[0] = NULL;
    ck_assert_int_eq(atomic_load(&host.out), 1);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(atomic_load(&host.out), 0);
}
END_TEST

/* Tops of the layer's own do not keep the one before. */
START_TEST(a_restored_layer_has_one_slab)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    leat_data_layer *layer;
    leat_token token;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    int slabs = atomic_load(&host.pages);
    int before = atomic_load(&host.out);
    leat_blob *top = leat_data_layer_top(layer, 0);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(top));
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    ck_assert_int_eq(atomic_load(&host.pages), 2 * slabs);
    ck_assert_int_eq(atomic_load(&host.out), before);
    ck_assert_ptr_null(leat_blob_cpu_data(top));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "was given back"));
    ck_assert_int_eq(leat_blob_dim(top, 0), 4);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(top));
    leat_token_finish(&token);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(atomic_load(&host.out), 0);
}
END_TEST

START_TEST(a_batch_that_grows_grows_there)
{
    options.batch_size = 1;
    options.top_type = LEAT_FLOAT64;
    plan.kind[0] = BAD_RECORDS_SMALL;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_gt(atomic_load(&host.given), 1);
    ck_assert_int_eq(atomic_load(&host.given), atomic_load(&host.pages));
    layer_fixture_close(&fixture);
    ck_assert_int_eq(atomic_load(&host.out), 0);
}
END_TEST

static void fail_each(pool *failing)
{
    for (int n = 0, done = 0; !done; n++) {
        layer_fixture fixture;
        ck_assert_int_lt(n, 1000);
        atomic_store(&failing->given, 0);
        failing->fails_at = n;
        int status = open_layer(&fixture);
        for (int i = 0; i < 8 && status == LEAT_OK; i++)
            status = layer_fixture_forward(&fixture);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        layer_fixture_close(&fixture);
        ck_assert_int_eq(atomic_load(&failing->out), 0);
        done = atomic_load(&failing->given) <= n;
        ck_assert_int_eq(done, n > 0 && status == LEAT_OK && done);
    }
}

START_TEST(a_hook_that_gives_nothing_is_an_error_of_memory)
{
    plan.way = BAD_RECORDS_IN_ORDER;
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    fail_each(&host);
}
END_TEST

START_TEST(so_is_one_that_does_not_align)
{
    layer_fixture fixture;
    host.misaligns = 1;
    ck_assert_int_eq(open_layer(&fixture), LEAT_ENOMEM);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "not aligned to 4096"));
    ck_assert_int_gt(atomic_load(&host.given), 0);
    ck_assert_int_eq(atomic_load(&host.out), 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_device_of_its_own_memory_takes_pinned_memory_from_its_hook)
{
    late_device_register();
    options.device = "late:0";
    ck_assert_int_eq(leat_device_find(&pinned.device, "late:0"), LEAT_OK);
    plan.way = BAD_RECORDS_IN_ORDER;
    uint32_t with[10];
    uint32_t without[10];
    digests(with);
    ck_assert_int_eq(atomic_load(&pinned.given), 1);
    ck_assert_int_eq(atomic_load(&host.pages), 0);
    ck_assert_int_gt(atomic_load(&host.given), 0);
    ck_assert_int_eq(atomic_load(&pinned.out) + atomic_load(&host.out), 0);
    options.pinned_allocator = NULL;
    digests(without);
    ck_assert_mem_eq(with, without, sizeof(with));
    options.pinned_allocator = &pinned_hooks;
    fail_each(&pinned);
}
END_TEST

START_TEST(hooks_that_lack_something_are_refused)
{
    layer_fixture fixture;
    host_hooks.free = NULL;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "host_allocator"));
    layer_fixture_close(&fixture);
    host_hooks.free = pool_free;
    pinned_hooks.size = 0;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "pinned_allocator"));
    layer_fixture_close(&fixture);
}
END_TEST

/* A thread that is to be cancelled, and what it does with a layer's tops. */
typedef struct last_call {
    layer_fixture *fixture;
    int which;
    int is_back;
} last_call;

static void *call_and_end(void *argument)
{
    /* Static: ASan takes a cancelled thread's arrays for its own stack's. */
    static const int64_t shape[] = {4, 8};
    last_call *call = argument;
    layer_fixture *fixture = call->fixture;
    pthread_cancel(pthread_self());
    for (int i = 0; i < 2; i++) {
        if (call->which == 1) {
            leat_blob_destroy(fixture->top[i]);
            fixture->top[i] = NULL;
        } else if (call->which == 2) {
            (void)leat_blob_reshape(fixture->top[i], LEAT_FLOAT32, 2, shape);
        }
    }
    if (call->which == 0)
        (void)layer_fixture_forward(fixture);
    call->is_back = 1;
    pthread_testcancel();
    return NULL;
}

/* What has the last share of memory that the layer, or a restore, let go. */
START_TEST(a_thread_is_not_cancelled_in_a_hook)
{
    layer_fixture fixture;
    leat_token token;
    pthread_t thread;
    void *result;
    leat_token_init(&token);
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    if (_i == 0) {
        ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
        ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                         LEAT_OK);
    } else {
        leat_data_layer_destroy(fixture.layer);
        fixture.layer = NULL;
    }
    last_call call = {&fixture, _i, 0};
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert_int_eq(call.is_back, 1);
    if (_i == 0)
        ck_assert_int_eq(leat_data_layer_batch(fixture.layer)->number, 1);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
    ck_assert_int_eq(atomic_load(&host.out), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_allocators");
    TCase *tcase = tcase_create("layer_allocators");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, batches_and_boxes_come_from_the_host_allocator);
    tcase_add_test(tcase, views_take_no_boxes);
    tcase_add_test(tcase, what_is_given_is_what_the_statistics_say);
    tcase_add_test(tcase, a_lent_slab_goes_back_with_the_last_blob);
    tcase_add_test(tcase, a_restored_layer_has_one_slab);
    tcase_add_test(tcase, a_batch_that_grows_grows_there);
    tcase_add_test(tcase, a_hook_that_gives_nothing_is_an_error_of_memory);
    tcase_add_test(tcase, so_is_one_that_does_not_align);
    tcase_add_test(
        tcase, a_device_of_its_own_memory_takes_pinned_memory_from_its_hook);
    tcase_add_test(tcase, hooks_that_lack_something_are_refused);
    tcase_add_loop_test(tcase, a_thread_is_not_cancelled_in_a_hook, 0, 3);
    return suite_run(suite);
}
