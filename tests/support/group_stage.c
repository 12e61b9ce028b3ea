#include "support/group_stage.h"

#include "support/feed.h"
#include "support/index_decorators.h"
#include "support/late_device.h"
#include "support/watchdog.h"

#include <check.h>

leat_data_layer_options group_options;
leat_transform_options group_transform;
source group_source;

const char *const group_on_cpu[4] = {"cpu", "cpu", "cpu", "cpu"};
const char *const group_on_late[4] = {"late:0", "late:1", "late:0", "late:1"};
const char *const group_mixed[4] = {"late:1", "cpu", "late:0", "cpu"};

void group_set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    const source fresh = SOURCE_INIT;
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
    feed_layer feed = feed_open(pipeline, &group_options);
    for (int k = 0; k < n; k++) {
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
        digest[k] = feed_digest(&feed);
    }
    feed_close(&feed);
}

void group_transform_at_random(void)
{
    group_transform.crop_size = 3;
    group_transform.mirror = 1;
    group_options.transform = &group_transform;
}

leat_pipeline *group_shuffled_pipeline(void)
{
    leat_pipeline *upstream = feed_pipeline();
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, index_decorators_shuffle(),
                                          "seed=5", NULL, NULL, &upstream, 1),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}
