#include "support/group_fixture.h"

#include "support/index_decorators.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/watchdog.h"

#include <check.h>
#include <zlib.h>

leat_data_layer_options group_options;
leat_transform_options group_transform;
scripted_source group_source;

const char *const group_on_cpu[4] = {"cpu", "cpu", "cpu", "cpu"};
const char *const group_on_late[4] = {"late:0", "late:1", "late:0", "late:1"};
const char *const group_mixed[4] = {"late:1", "cpu", "late:0", "cpu"};

void group_set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    const scripted_source fresh = SCRIPTED_SOURCE_INIT;
    group_options = defaults;
    group_transform = none;
    group_source = fresh;
    group_options.batch_size = 4;
    group_options.world_size = 1;
    group_options.random_seed = 99;
    group_options.prefetch = 2;
    late_device_register();
    index_decorators_register();
    watchdog_start(GROUP_SECONDS);
}

void group_check_late_is_clean(void)
{
    for (int i = 0; i < 2; i++) {
        leat_device *device;
        ck_assert_int_eq(leat_device_find(&device, group_on_late[i]), LEAT_OK);
        late_device_counts counts = late_device_count(device);
        ck_assert_int_eq(counts.live_bytes, 0);
        ck_assert_int_eq(counts.live_host_bytes, 0);
        ck_assert_int_eq(counts.events, 0);
        ck_assert_int_eq(counts.streams, 0);
        ck_assert_int_eq(counts.destroyed_busy, 0);
    }
}

void group_tear_down(void)
{
    group_check_late_is_clean();
    watchdog_stop();
}

void group_record(const leat_pipeline *pipeline, uint32_t digest[], int n)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &group_options);
    for (int k = 0; k < n; k++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        digest[k] = layer_fixture_digest(&fixture);
    }
    layer_fixture_close(&fixture);
}

void group_transform_at_random(void)
{
    group_transform.crop_size = 3;
    group_transform.mirror = 1;
    group_options.transform = &group_transform;
}

leat_pipeline *group_shuffled_pipeline(void)
{
    leat_pipeline *upstream = layer_fixture_pipeline();
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, index_decorators_shuffle(),
                                          "seed=5", NULL, NULL, &upstream, 1),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

void group_fixture_make_tops(group_fixture *self, const char *const devices[],
                             int n)
{
    for (int i = 0; i < n; i++) {
        leat_device *device;
        ck_assert_int_eq(leat_device_find(&device, devices[i]), LEAT_OK);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(leat_blob_create(&self->top[i][k], device), 0);
    }
    self->n = n;
}

group_fixture group_fixture_open(const leat_pipeline *pipeline,
                                 const leat_data_layer_options *options,
                                 const char *const devices[], int n)
{
    group_fixture self = {.n = 0};
    int status = leat_data_layer_group_create(&self.group, pipeline, options,
                                              devices, n);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    group_fixture_make_tops(&self, devices, n);
    status = leat_data_layer_group_setup(self.group, self.top[0], 2);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return self;
}

void group_fixture_free_tops(group_fixture *self)
{
    for (int i = 0; i < self->n; i++)
        for (int k = 0; k < 2; k++)
            leat_blob_destroy(self->top[i][k]);
}

void group_fixture_close(group_fixture *self)
{
    leat_data_layer_group_destroy(self->group);
    group_fixture_free_tops(self);
}

leat_data_layer *group_fixture_member(const group_fixture *self, int i)
{
    return leat_data_layer_group_member(self->group, i);
}

int group_fixture_forward(group_fixture *self, int i)
{
    return leat_data_layer_forward(group_fixture_member(self, i), self->top[i],
                                   2, LEAT_HOST);
}

float group_fixture_label(group_fixture *self, int i, int k)
{
    return ((const float *)leat_blob_cpu_data(self->top[i][1]))[k];
}

uint32_t group_fixture_digest(group_fixture *self, int i)
{
    uLong sum = 0;
    for (int k = 0; k < 2; k++)
        sum = crc32_z(sum, leat_blob_cpu_data(self->top[i][k]),
                      leat_blob_bytes(self->top[i][k]));
    return (uint32_t)sum;
}
