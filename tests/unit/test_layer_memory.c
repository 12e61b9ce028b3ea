/* Allocations of a layer's that fail, from its creation to its batches. */
#include "base/memory.h"
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

static leat_data_layer_options options;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = 3;
}

/* Every allocation of creation, setup and the first forwards fails in turn. */
START_TEST(a_failed_allocation_is_an_error_and_leaks_nothing)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_blob *top[2] = {NULL, NULL};
    int done = 0;
    for (int n = 0; !done; n++) {
        leat_data_layer *layer = NULL;
        ck_assert_int_lt(n, 2000);
        leat__alloc_fail_at(n);
        int status = leat_blob_create(&top[0], NULL);
        if (status == LEAT_OK)
            status = leat_blob_create(&top[1], NULL);
        if (status == LEAT_OK)
            status = leat_data_layer_create(&layer, pipeline, &options);
        if (status == LEAT_OK)
            status = leat_data_layer_setup(layer, top, 2);
        for (int i = 0; i < 3 && status == LEAT_OK; i++)
            status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
        int64_t left = leat__alloc_fail_at(-1);
        done = left >= 0;
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert(status != LEAT_OK || done);
        leat_data_layer_destroy(layer);
        leat_blob_destroy(top[0]);
        leat_blob_destroy(top[1]);
        top[0] = NULL;
        top[1] = NULL;
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Tops of their own memory, and none of it there. */
START_TEST(a_batch_that_finds_no_memory_is_not_lost)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    options.top_mode = LEAT_TOP_COPY;
    int failures = 0;
    for (int n = 0, done = 0; !done; n++) {
        leat_token token;
        leat_token_init(&token);
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        leat_blob *small[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(leat_blob_create(&small[i], NULL), LEAT_OK);
        leat__alloc_fail_at(n);
        int status =
            leat_data_layer_forward(fixture.layer, small, 2, LEAT_HOST);
        done = leat__alloc_fail_at(-1) >= 0;
        ck_assert_int_eq(status, done ? LEAT_OK : LEAT_ENOMEM);
        if (!done) {
            failures++;
            ck_assert_ptr_null(leat_data_layer_batch(fixture.layer));
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ENOMEM);
            ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token),
                             LEAT_OK);
            ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                             LEAT_OK);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                               (float)(1000 + options.batch_size));
        }
        leat_blob_destroy(small[0]);
        leat_blob_destroy(small[1]);
        layer_fixture_close(&fixture);
        leat_token_finish(&token);
    }
    ck_assert_int_ge(failures, 4);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Two forwards of batches of several chunks, with bad records in each. */
static int forward_in_chunks(leat_pipeline *pipeline)
{
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    for (int i = 0; i < 2 && status == LEAT_OK; i++)
        status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
    leat_data_layer_destroy(layer);
    return status;
}

/* The last allocations of a run are those of lists of bad records. */
START_TEST(a_bad_record_that_finds_no_memory_is_an_error)
{
    const bad_records plan = {.count = 12,
                              .way = BAD_RECORDS_IN_ORDER,
                              .kind = {[5] = BAD_RECORDS_UNREADABLE}};
    options.batch_size = 7000;
    options.prefetch = 1;
    options.workers = 4;
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.reader_thread = _i ? LEAT_READER_ON : LEAT_READER_OFF;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    int failures = 0;
    int64_t before = leat__alloc_count();
    ck_assert_int_eq(forward_in_chunks(pipeline), LEAT_OK);
    int64_t all = leat__alloc_count() - before;
    for (int64_t n = all - 60; n < all; n += IS_SANITIZED ? 7 : 1) {
        leat__alloc_fail_at(n);
        int status = forward_in_chunks(pipeline);
        bool has_failed = leat__alloc_fail_at(-1) < 0;
        ck_assert(status == LEAT_ENOMEM || status == LEAT_OK);
        failures += has_failed && status == LEAT_ENOMEM;
    }
    ck_assert_int_gt(failures, 0);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_memory");
    TCase *tcase = tcase_create("layer_memory");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_failed_allocation_is_an_error_and_leaks_nothing);
    tcase_add_test(tcase, a_batch_that_finds_no_memory_is_not_lost);
    tcase_add_loop_test(tcase, a_bad_record_that_finds_no_memory_is_an_error, 0,
                        2);
    return suite_run(suite);
}
