/* What a device is told of a batch that it transforms. */
#include "layer/kernel.h"
#include "support/recording_device.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

enum { STREAM = 9 };

static recording_device device;
static leat__kernel kernel;
static leat__transform_job plan;
static const float means[2 * 3 * 4] = {1, 2, 3, 4, [23] = 24};

static void set_up(void)
{
    recording_device_init(&device);
    memset(&kernel, 0, sizeof(kernel));
    plan = (leat__transform_job){
        .top_type = LEAT_FLOAT16, .layout = LEAT_NHWC, .scale = 0.5};
}

static void tear_down(void)
{
    leat__kernel_finish(&kernel);
}

static int begin(void)
{
    return leat__kernel_init(&kernel, &device.base, &plan, 2, STREAM);
}

#define assert_calls(expected)                                                 \
    ck_assert_str_eq(recording_device_look(&device), expected)

START_TEST(without_a_mean_nothing_is_uploaded)
{
    ck_assert_int_eq(begin(), LEAT_OK);
    assert_calls("");
    ck_assert_ptr_null(kernel.model.mean);
    ck_assert_ptr_null(kernel.model.mean_value);
    leat__kernel_finish(&kernel);
    assert_calls("");
}
END_TEST

START_TEST(a_mean_image_is_uploaded_whole)
{
    plan.mean = means;
    plan.mean_height = 3;
    plan.mean_width = 4;
    ck_assert_int_eq(begin(), LEAT_OK);
    assert_calls("alloc 96; copy 96 to the device on 9; sync stream 9; ");
    ck_assert_mem_eq(kernel.model.mean, means, sizeof(means));
    ck_assert_ptr_null(kernel.model.mean_value);
    ck_assert_int_eq(kernel.model.mean_height, 3);
    ck_assert_int_eq(kernel.model.mean_width, 4);
    leat__kernel_finish(&kernel);
    assert_calls("free 96; ");
    leat__kernel_finish(&kernel);
    assert_calls("");
}
END_TEST

START_TEST(mean_values_are_uploaded)
{
    plan.mean_value = means;
    plan.mean_values = 2;
    ck_assert_int_eq(begin(), LEAT_OK);
    assert_calls("alloc 8; copy 8 to the device on 9; sync stream 9; ");
    ck_assert_mem_eq(kernel.model.mean_value, means, 8);
    ck_assert_ptr_null(kernel.model.mean);
    ck_assert_int_eq(kernel.model.mean_values, 2);
}
END_TEST

/* A copy that failed may have begun. */
START_TEST(a_call_that_fails_is_told_and_the_stream_awaited)
{
    static const struct {
        const char *calls;
        const char *line;
    } cases[] = {
        {"alloc 8; ", "alloc failed"},
        {"alloc 8; copy 8 to the device on 9; sync stream 9; free 8; ",
         "copy failed"},
        {"alloc 8; copy 8 to the device on 9; sync stream 9; free 8; ",
         "stream_synchronize failed"},
    };
    plan.mean_value = means;
    plan.mean_values = 2;
    for (int n = 0; n < 3; n++) {
        device.fail_at = n;
        ck_assert_int_eq(begin(), LEAT_EDEVICE);
        ck_assert_str_eq(leat_last_error(), cases[n].line);
        leat__kernel_finish(&kernel);
        assert_calls(cases[n].calls);
    }
}
END_TEST

START_TEST(a_device_without_a_transform_is_refused)
{
    device.ops.transform = NULL;
    ck_assert_int_eq(begin(), LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(),
                     "recording has no transform of its own: transform_on must "
                     "be CPU");
}
END_TEST

START_TEST(a_batch_is_described_by_its_shape_and_its_slot)
{
    static leat__batch batch;
    unsigned char pixels[512], top[512];
    leat__slab slot = {.memory = pixels}, top_slot = {.memory = top};
    plan.mean_value = means;
    plan.mean_values = 1;
    ck_assert_int_eq(begin(), LEAT_OK);
    recording_device_look(&device);
    batch.slab = &slot;
    batch.offset = 64;
    batch.top_slab = &top_slot;
    batch.top_offset = 32;
    batch.n = 5;
    batch.shape = (leat__batch_shape){.ntop = 1,
                                      .top = {{.offset = 16}},
                                      .image = {2, 3, 4},
                                      .is_cropped = 1,
                                      .pixel_layout = LEAT_NHWC,
                                      .choices = 256};
    ck_assert_int_eq(leat__kernel_enqueue(&kernel, &batch, STREAM), LEAT_OK);
    assert_calls("transform 5 on 9; ");
    const leat_device_transform *what = &device.what;
    ck_assert_ptr_eq(what->pixels, pixels + 64 + 16);
    ck_assert_ptr_eq((const void *)what->choices, pixels + 64 + 256);
    ck_assert_ptr_eq(what->top, top + 32);
    ck_assert_ptr_eq(what->mean_value, kernel.means);
    ck_assert_int_eq(what->mean_values, 1);
    ck_assert_float_eq(what->scale, 0.5f);
    ck_assert_int_eq(what->top_type, LEAT_FLOAT16);
    ck_assert_int_eq(what->pixel_layout, LEAT_NHWC);
    ck_assert_int_eq(what->layout, LEAT_NHWC);
    ck_assert_int_eq(what->images, 5);
    ck_assert_int_eq(what->channels, 2);
    ck_assert_int_eq(what->height, 3);
    ck_assert_int_eq(what->width, 4);
    device.fail_at = 0;
    ck_assert_int_eq(leat__kernel_enqueue(&kernel, &batch, STREAM),
                     LEAT_EDEVICE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel");
    TCase *tcase = tcase_create("kernel");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, without_a_mean_nothing_is_uploaded);
    tcase_add_test(tcase, a_mean_image_is_uploaded_whole);
    tcase_add_test(tcase, mean_values_are_uploaded);
    tcase_add_test(tcase, a_call_that_fails_is_told_and_the_stream_awaited);
    tcase_add_test(tcase, a_device_without_a_transform_is_refused);
    tcase_add_test(tcase, a_batch_is_described_by_its_shape_and_its_slot);
    return suite_run(suite);
}
