/* What one layer delivers: shapes, values, types, modes, statistics. */
#include "layer/batch.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    options.batch_size = 4;
    options.random_seed = 7;
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

START_TEST(setup_tells_the_shapes_before_the_first_forward)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    const int64_t data[] = {4, 2, 5, 6};
    ck_assert_int_eq(leat_blob_ndim(fixture.top[0]), 4);
    ck_assert_mem_eq(leat_blob_shape(fixture.top[0]), data, sizeof(data));
    ck_assert_int_eq(leat_blob_ndim(fixture.top[1]), 1);
    ck_assert_int_eq(leat_blob_dim(fixture.top[1], 0), 4);
    ck_assert_str_eq(leat_data_layer_top_name(fixture.layer, 0), "data");
    ck_assert_str_eq(leat_data_layer_top_name(fixture.layer, 1), "label");
    ck_assert_ptr_null(leat_data_layer_top_name(fixture.layer, 2));
    ck_assert_ptr_null(leat_data_layer_batch(fixture.layer));
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(the_number_of_tops_is_known_before_setup)
{
    static const char *const names[] = {"pixels", NULL};
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_top_count(layer), 2);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 1), "label");
    leat_data_layer_destroy(layer);
    options.tops = names;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_top_count(layer), 1);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 0), "pixels");
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(lent_tops_have_the_addresses_of_their_slot)
{
    const void *address[4] = {NULL};
    leat_data_layer *layer;
    options.prefetch = 3;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_slots(layer), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "before setup"));
    leat_data_layer_destroy(layer);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_slots(fixture.layer), 4);
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const void *data = leat_blob_cpu_data(fixture.top[0]);
        int slot = leat_data_layer_batch(fixture.layer)->slot;
        ck_assert_int_ge(slot, 0);
        ck_assert_int_lt(slot, 4);
        for (int k = 0; k < 4; k++)
            ck_assert_int_eq(address[k] == data, k == slot && address[k]);
        address[slot] = data;
    }
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(tops_of_what_cannot_be_opened_are_not_counted)
{
    leat_data_layer *layer;
    leat_pipeline *missing;
    ck_assert_int_eq(leat_pipeline_parse(&missing, "lmdb:/no/such/database"),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, missing, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_top_count(layer), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "/no/such/database"));
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(missing);
}
END_TEST

START_TEST(batches_run_on_across_the_end_of_the_data)
{
    transform.scale = 3;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int p = 0; p < 100;) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const float *data = leat_blob_cpu_data(fixture.top[0]);
        for (int k = 0; k < 4; k++, p++) {
            int i = p % LAYER_FIXTURE_COUNT;
            ck_assert_float_eq(layer_fixture_label(&fixture, k),
                               (float)(1000 + i));
            const leat_provenance *from =
                &leat_data_layer_batch(fixture.layer)->from[k];
            ck_assert_int_eq(from->record, i);
            ck_assert_int_eq(from->epoch, p / LAYER_FIXTURE_COUNT);
            ck_assert_int_eq(from->position, i);
            for (int j = 0; j < LAYER_FIXTURE_PIXELS; j++)
                ck_assert_float_eq(data[k * LAYER_FIXTURE_PIXELS + j],
                                   3.0f * (float)((31 * i + j) % 256));
        }
    }
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(the_tops_can_be_interleaved_and_of_bytes)
{
    options.layout = LEAT_NHWC;
    options.top_type = LEAT_UINT8;
    options.label_type = LEAT_INT64;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    const int64_t shape[] = {4, 5, 6, 2};
    ck_assert_mem_eq(leat_blob_shape(fixture.top[0]), shape, sizeof(shape));
    const unsigned char *data = leat_blob_cpu_data(fixture.top[0]);
    for (int i = 0; i < 4; i++)
        for (int h = 0; h < 5; h++)
            for (int w = 0; w < 6; w++)
                for (int c = 0; c < 2; c++)
                    ck_assert_int_eq(*data++, layer_fixture_pixel(i, c, h, w));
    ck_assert_int_eq(leat_blob_dtype(fixture.top[1]), LEAT_INT64);
    ck_assert_int_eq(((const int64_t *)leat_blob_cpu_data(fixture.top[1]))[3],
                     1003);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(one_top_leaves_the_labels_out)
{
    static const char *const names[] = {"pixels", "classes", NULL};
    leat_data_layer *layer;
    leat_blob *top;
    options.tops = names;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_top_count(layer), 2);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 0), "pixels");
    ck_assert_ptr_null(leat_data_layer_top_name(layer, 1));
    ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST), 0);
    ck_assert_int_eq(leat_blob_count(top), 4 * LAYER_FIXTURE_PIXELS);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
}
END_TEST

START_TEST(a_lent_top_outlives_its_layer)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    uint32_t digest = layer_fixture_digest(&fixture);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    ck_assert_uint_eq(layer_fixture_digest(&fixture), digest);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(copied_tops_keep_their_addresses)
{
    options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    layer_fixture lent;
    options.top_mode = LEAT_TOP_LEND;
    lent = layer_fixture_open(pipeline, &options);
    const void *address = NULL;
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_int_eq(layer_fixture_forward(&lent), LEAT_OK);
        ck_assert_uint_eq(layer_fixture_digest(&fixture),
                          layer_fixture_digest(&lent));
        const void *now = leat_blob_cpu_data(fixture.top[0]);
        ck_assert(i == 0 || now == address);
        address = now;
    }
    layer_fixture_close(&fixture);
    layer_fixture_close(&lent);
}
END_TEST

START_TEST(a_released_batch_is_gone_and_the_next_one_follows)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    ck_assert_ptr_null(leat_data_layer_batch(fixture.layer));
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1004);
    layer_fixture_close(&fixture);
}
END_TEST

static void check_recalled(leat_blob *top)
{
    ck_assert_ptr_null(leat_blob_cpu_data(top));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "given back"));
    ck_assert_ptr_null(leat_blob_mutable_cpu_data(top));
    ck_assert_ptr_null(leat_blob_gpu_data(top));
    ck_assert_ptr_null(leat_blob_mutable_gpu_data(top));
    ck_assert_int_eq(leat_blob_async_gpu_push(top, LEAT_HOST), LEAT_ESTATE);
}

START_TEST(a_top_gives_out_no_pointer_to_a_batch_that_went_back)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    for (int i = 0; i < 2; i++)
        check_recalled(fixture.top[i]);
    /* The next batch may be lent to other tops, and then it is theirs. */
    layer_fixture other = fixture;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&other.top[i], NULL), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1004);
    ck_assert_int_eq(layer_fixture_forward(&other), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&other, 0), 1008);
    check_recalled(fixture.top[0]);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    check_recalled(other.top[1]);
    leat_token_finish(&token);
    /* Its shape stays, and memory of its own makes it whole again. */
    ck_assert_int_eq(leat_blob_dim(other.top[0], 0), 4);
    ck_assert_int_eq(leat_blob_reshape(other.top[0], LEAT_FLOAT32, 4,
                                       leat_blob_shape(other.top[0])),
                     LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(other.top[0]));
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(other.top[i]);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(the_tops_may_be_others_at_every_forward)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 10; i++) {
        leat_blob_destroy(fixture.top[0]);
        ck_assert_int_eq(leat_blob_create(&fixture.top[0], NULL), LEAT_OK);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const float *data = leat_blob_cpu_data(fixture.top[0]);
        ck_assert_float_eq(data[0],
                           (float)layer_fixture_pixel(4 * i % 13, 0, 0, 0));
    }
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(try_forward_delivers_the_same_batches)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int batch = 0; batch < 20;) {
        int status = leat_data_layer_try_forward(fixture.layer, fixture.top, 2,
                                                 LEAT_HOST, batch % 2);
        if (status == LEAT_AGAIN)
            continue;
        ck_assert_int_eq(status, LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                           (float)(1000 + 4 * batch++ % 13));
    }
    layer_fixture_close(&fixture);
}
END_TEST

/* Its workers rest while it works itself, but not when it only looks. */
START_TEST(on_the_only_core_a_caller_who_looks_gets_batches)
{
    const struct timespec pause = {0, 1000000};
    layer_fixture_use_one_core(1);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.cores, 1);
    ck_assert_int_gt(stats.helped_chunks, 0);
    for (int got = 0; got < 20;) {
        int status = leat_data_layer_try_forward(fixture.layer, fixture.top, 2,
                                                 LEAT_HOST, 0);
        ck_assert(status == LEAT_OK || status == LEAT_AGAIN);
        got += status == LEAT_OK;
        nanosleep(&pause, NULL);
    }
    layer_fixture_close(&fixture);
    layer_fixture_use_one_core(0);
}
END_TEST

/* Workers rest there, and the caller alone cannot make what is not yet read. */
START_TEST(on_the_only_core_who_waits_for_the_reader_wakes_workers)
{
    layer_fixture_use_one_core(1);
    options.reader_thread = LEAT_READER_ON;
    options.prefetch = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 3000; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                           (float)(1000 + 4 * i % LAYER_FIXTURE_COUNT));
    }
    layer_fixture_close(&fixture);
    layer_fixture_use_one_core(0);
}
END_TEST

START_TEST(two_layers_share_a_pipeline)
{
    layer_fixture one = layer_fixture_open(pipeline, &options);
    layer_fixture two = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&one), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&one), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&two), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&one, 0), 1004);
    ck_assert_float_eq(layer_fixture_label(&two, 0), 1000);
    layer_fixture_close(&one);
    layer_fixture_close(&two);
}
END_TEST

START_TEST(memory_is_announced_and_limited)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    /* Five slots of 4 x 60 floats and 4 labels, each top padded to 256. */
    ck_assert_int_eq(stats.memory.host, 5 * (1024 + 256));
    ck_assert_int_eq(stats.memory.device, 0);
    ck_assert_int_eq(stats.device_node, -1);
    ck_assert_int_eq(stats.peak.host, 5 * (1024 + 256));
    layer_fixture_close(&fixture);
    options.max_memory = 3 * (1280 + leat__batch_overhead(4));
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.memory.host, 3 * 1280);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.batches, 10);
    ck_assert_int_eq(stats.samples, 40);
    layer_fixture_close(&fixture);
}
END_TEST

/* Lets most of the slots fill, then asks for more than there are. */
static void fill_and_drain(layer_fixture *fixture, leat_stats *stats)
{
    int64_t made;
    do {
        ck_assert_int_eq(leat_data_layer_stats(fixture->layer, stats), LEAT_OK);
        made = stats->stage[1].items / options.batch_size;
    } while (made < stats->batches + (stats->batches_in_use - 1) / 2);
    for (int64_t i = 0; i < stats->batches_in_use + 1; i++)
        ck_assert_int_eq(layer_fixture_forward(fixture), LEAT_OK);
}

START_TEST(an_automatic_prefetch_grows_to_its_limit_and_settles)
{
    options.prefetch = LEAT_PREFETCH_AUTO;
    options.max_memory = 7 * (1280 + leat__batch_overhead(4));
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.batches_in_use, 3);
    ck_assert_int_eq(stats.memory.host, 7 * 1280);
    ck_assert_int_eq(stats.peak.host, 3 * 1280);
    for (int i = 0; i < 100000 && stats.batches_in_use < 7; i++)
        fill_and_drain(&fixture, &stats);
    ck_assert_int_eq(stats.batches_in_use, 7);
    for (int i = 0; i < 100; i++)
        fill_and_drain(&fixture, &stats);
    ck_assert_int_eq(stats.batches_in_use, 7);
    ck_assert_int_eq(stats.memory.host, 7 * 1280);
    ck_assert_int_eq(stats.peak.host, 7 * 1280);
    ck_assert_float_eq(
        layer_fixture_label(&fixture, 0),
        (float)(1000 + leat_data_layer_batch(fixture.layer)->number * 4 %
                           LAYER_FIXTURE_COUNT));
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_limit_below_two_batches_is_refused)
{
    options.max_memory = 2 * (1280 + leat__batch_overhead(4)) - 1;
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    leat_data_layer_destroy(layer);
    options.max_memory = 2 * (1024 + leat__batch_overhead(4)) - 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_ELIMIT);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    transform.crop_size = 3;
    transform.mirror = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    extern int64_t leat__alloc_count(void);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat__alloc_count(), before);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(fields_of_numbers_become_tops_of_their_shape)
{
    static const float features[] = {1, 2, 3, 4, 5, 6};
    static const double weights[] = {10, 20, 30, 40, 50, 60};
    const leat_memory_field fields[] = {
        {"features", LEAT_FLOAT32, 1, {3}, features},
        {"weights", LEAT_FLOAT64, 2, {1, 3}, weights},
    };
    leat_pipeline *numbers;
    ck_assert_int_eq(leat_pipeline_memory(&numbers, fields, 2, 2), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(numbers, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_blob_ndim(fixture.top[0]), 2);
    ck_assert_int_eq(leat_blob_ndim(fixture.top[1]), 3);
    ck_assert_float_eq(((const float *)leat_blob_cpu_data(fixture.top[0]))[9],
                       4);
    ck_assert_float_eq(layer_fixture_label(&fixture, 4), 50);
    ck_assert_str_eq(leat_data_layer_top_name(fixture.layer, 1), "weights");
    layer_fixture_close(&fixture);
    leat_pipeline_unref(numbers);
}
END_TEST

START_TEST(tops_of_any_size_are_aligned_and_apart)
{
    unsigned char pixels[258];
    const int32_t label = 0x01020304;
    memset(pixels, 0xab, sizeof(pixels));
    options.top_type = LEAT_UINT8;
    options.batch_size = 1;
    for (int64_t size = 254; size <= 258; size++) {
        const leat_memory_field fields[] = {
            {"data", LEAT_UINT8, 1, {size}, pixels},
            {"label", LEAT_INT32, 0, {0}, &label},
        };
        leat_pipeline *bytes;
        ck_assert_int_eq(leat_pipeline_memory(&bytes, fields, 2, 1), LEAT_OK);
        layer_fixture fixture = layer_fixture_open(bytes, &options);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const unsigned char *data = leat_blob_cpu_data(fixture.top[0]);
        const void *labels = leat_blob_cpu_data(fixture.top[1]);
        ck_assert_uint_eq((uintptr_t)data % 256, 0);
        ck_assert_uint_eq((uintptr_t)labels % 256, 0);
        ck_assert_mem_eq(data, pixels, (size_t)size);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0), (float)label);
        layer_fixture_close(&fixture);
        leat_pipeline_unref(bytes);
    }
}
END_TEST

START_TEST(a_seed_of_zero_is_a_seed)
{
    transform.mirror = 1;
    options.random_seed = 0;
    options.has_random_seed = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_uint_eq(leat_data_layer_seed(fixture.layer), 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(each_stage_says_what_it_did)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.nstages, 3);
    ck_assert_str_eq(stats.stage[0].name, "reader");
    ck_assert_str_eq(stats.stage[1].name, "transform");
    ck_assert_str_eq(stats.stage[2].name, "forward");
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(stats.stage[i].items, 40);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ge(stats.stage[i].bytes, 40 * LAYER_FIXTURE_PIXELS);
        ck_assert_double_gt(stats.stage[i].busy, 0);
    }
    ck_assert_double_eq(stats.stage[2].blocked_empty, stats.waited);
    ck_assert_double_gt(stats.elapsed, 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(stats_without_a_size_are_refused)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = 0, .batches = 7};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, NULL), LEAT_EINVAL);
    ck_assert_int_eq(stats.batches, 7);
    stats.size = offsetof(leat_stats, batches);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.batches, 7);
    layer_fixture_close(&fixture);
}
END_TEST

/* A top has the batch as one dimension more. */
START_TEST(a_field_of_all_dimensions_is_refused)
{
    static const float one = 1;
    const leat_memory_field field = {
        "deep", LEAT_FLOAT32, LEAT_MAX_DIMS, {1, 1, 1, 1, 1, 1, 1, 1}, &one};
    leat_pipeline *deep;
    leat_data_layer *layer;
    leat_blob *top;
    leat_device *device;
    ck_assert_int_eq(leat_device_find(&device, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_memory(&deep, &field, 1, 1), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, deep, &options), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, device), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_EINVAL);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(deep);
}
END_TEST

/* Shared pages of this process, as the system counts them. */
static int64_t shared_pages(void)
{
    long long total;
    long long resident;
    long long shared;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lld %lld %lld", &total, &resident, &shared),
                     3);
    fclose(file);
    return shared;
}

START_TEST(mapped_memory_is_what_the_system_counts)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    int64_t page = sysconf(_SC_PAGESIZE);
    int64_t before = shared_pages();
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_ge(stats.memory.mapped, before * page);
    ck_assert_int_le(stats.memory.mapped, shared_pages() * page);
    ck_assert_int_eq(stats.peak.mapped, stats.memory.mapped);
    layer_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_layer");
    TCase *tcase = tcase_create("data_layer");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, setup_tells_the_shapes_before_the_first_forward);
    tcase_add_test(tcase, the_number_of_tops_is_known_before_setup);
    tcase_add_test(tcase, lent_tops_have_the_addresses_of_their_slot);
    tcase_add_test(tcase, tops_of_what_cannot_be_opened_are_not_counted);
    tcase_add_test(tcase, batches_run_on_across_the_end_of_the_data);
    tcase_add_test(tcase, the_tops_can_be_interleaved_and_of_bytes);
    tcase_add_test(tcase, one_top_leaves_the_labels_out);
    tcase_add_test(tcase, a_lent_top_outlives_its_layer);
    tcase_add_test(tcase, copied_tops_keep_their_addresses);
    tcase_add_test(tcase, a_released_batch_is_gone_and_the_next_one_follows);
    tcase_add_test(tcase, a_top_gives_out_no_pointer_to_a_batch_that_went_back);
    tcase_add_test(tcase, the_tops_may_be_others_at_every_forward);
    tcase_add_test(tcase, try_forward_delivers_the_same_batches);
    tcase_add_test(tcase, on_the_only_core_a_caller_who_looks_gets_batches);
    tcase_add_test(tcase,
                   on_the_only_core_who_waits_for_the_reader_wakes_workers);
    tcase_add_test(tcase, two_layers_share_a_pipeline);
    tcase_add_test(tcase, memory_is_announced_and_limited);
    tcase_add_test(tcase, an_automatic_prefetch_grows_to_its_limit_and_settles);
    tcase_add_test(tcase, a_limit_below_two_batches_is_refused);
    tcase_add_test(tcase, nothing_is_allocated_in_the_steady_state);
    tcase_add_test(tcase, fields_of_numbers_become_tops_of_their_shape);
    tcase_add_test(tcase, tops_of_any_size_are_aligned_and_apart);
    tcase_add_test(tcase, a_seed_of_zero_is_a_seed);
    tcase_add_test(tcase, each_stage_says_what_it_did);
    tcase_add_test(tcase, stats_without_a_size_are_refused);
    tcase_add_test(tcase, a_field_of_all_dimensions_is_refused);
    tcase_add_test(tcase, mapped_memory_is_what_the_system_counts);
    return suite_run(suite);
}
