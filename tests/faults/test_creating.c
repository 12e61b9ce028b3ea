/*
 * What layers are made of is made while a mutex, a condition or memory fails:
 * each failure is an error, and nothing that is made goes without what failed.
 */
#include "base/memory.h"
#include "base/queue.h"
#include "faults/faults.h"
#include "layer/on_error/carry_chain.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

/* The thread sanitizer takes conditions from libc itself. */
__attribute__((weak)) void __tsan_init(void);

enum { CALLS_MAX = 500 };

static int make_queue(void)
{
    leat__queue *queue = NULL;
    int status = leat__queue_create(&queue, 3);
    ck_assert_int_eq(status == LEAT_OK, queue != NULL);
    leat__queue_destroy(queue);
    return status;
}

static int make_carry_chain(void)
{
    leat__carry_chain *chain = NULL;
    int status = leat__carry_chain_create(&chain, 2, NULL, LEAT__CARRY_NONE);
    ck_assert_int_eq(status == LEAT_OK, chain != NULL);
    leat__carry_chain_destroy(chain);
    return status;
}

static leat_pipeline *pipeline;
static layer_fixture fixture;
static leat_on_error on_error;
static leat_reader_thread reader_thread;

static void set_up(void)
{
    pipeline = layer_fixture_pipeline();
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture.top[i], NULL), LEAT_OK);
}

static void tear_down(void)
{
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}

/* Up to its first batch. */
static int make_layer(void)
{
    leat_data_layer_options options;
    leat_transform_options transform;
    layer_fixture_options(&options, &transform);
    options.batch_size = 2;
    options.random_seed = 1;
    options.workers = 1;
    options.on_error = on_error;
    options.reader_thread = reader_thread;
    int status = leat_data_layer_create(&fixture.layer, pipeline, &options);
    if (status == LEAT_OK)
        status = leat_data_layer_setup(fixture.layer, fixture.top, 2);
    if (status == LEAT_OK)
        status = layer_fixture_forward(&fixture);
    if (status == LEAT_OK)
        ck_assert_float_eq(layer_fixture_label(&fixture, 1), 1001);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    return status;
}

static const struct {
    const char *name;
    int (*make)(void);
    leat_on_error on_error;
    leat_reader_thread reader_thread;
} things[] = {
    {"queue", make_queue, LEAT_ON_ERROR_FAIL, LEAT_READER_AUTO},
    {"carry chain", make_carry_chain, LEAT_ON_ERROR_FAIL, LEAT_READER_AUTO},
    {"layer", make_layer, LEAT_ON_ERROR_FAIL, LEAT_READER_OFF},
    {"layer with a thread", make_layer, LEAT_ON_ERROR_FAIL, LEAT_READER_ON},
    {"layer that skips", make_layer, LEAT_ON_ERROR_REPLACE, LEAT_READER_OFF},
};
enum { THINGS = sizeof(things) / sizeof(things[0]), KINDS = 3 };

static void prepare(int i)
{
    on_error = things[i].on_error;
    reader_thread = things[i].reader_thread;
    ck_assert_msg(things[i].make() == LEAT_OK, "%s", leat_last_error());
}

/* No lock, condition or thread is dispensable. */
START_TEST(a_call_that_fails_is_an_error)
{
    static const fault_call calls[KINDS] = {FAULT_MUTEX, FAULT_CONDITION,
                                            FAULT_THREAD};
    const fault_call call = calls[_i % KINDS];
    int failed = 0, is_reached = 1;
    if (call == FAULT_CONDITION && __tsan_init)
        return;
    prepare(_i / KINDS);
    for (int n = 0; is_reached; n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        fault_arm(call, n, fault_error(call), 0);
        int status = things[_i / KINDS].make();
        is_reached = fault_disarm();
        ck_assert_msg((status != LEAT_OK) == is_reached, "%s, %s %d: %d %s",
                      things[_i / KINDS].name, fault_name(call), n, status,
                      leat_last_error());
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM ||
                  status == LEAT_EIO);
        failed += is_reached;
    }
    if (call != FAULT_THREAD)
        ck_assert_int_gt(failed, 0);
}
END_TEST

START_TEST(memory_that_is_short_is_an_error_of_memory)
{
    prepare(_i);
    int status = LEAT_ENOMEM, is_over = 0;
    for (int n = 0; !is_over; n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        leat__alloc_fail_at(n);
        status = things[_i].make();
        is_over = leat__alloc_fail_at(-1) >= 0;
        /* A worker that is ahead may have met it. */
        ck_assert_msg(status == LEAT_OK || (!is_over && status == LEAT_ENOMEM),
                      "%s, %d: %d %s", things[_i].name, n, status,
                      leat_last_error());
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("creating");
    TCase *tcase = tcase_create("creating");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_call_that_fails_is_an_error, 0,
                        THINGS * KINDS);
    tcase_add_loop_test(tcase, memory_that_is_short_is_an_error_of_memory, 0,
                        THINGS);
    return suite_run(suite);
}
