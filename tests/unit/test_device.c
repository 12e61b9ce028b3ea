/* Finding and adding devices. */
#include "base/error.h"
#include "device/device.h"
#include "support/fork_steps.h"
#include "support/late_device.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static leat_device *device;
static const leat_device_ops *ops;

static void set_up(void)
{
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    ops = device->ops;
}

START_TEST(an_unknown_device_is_refused_and_the_known_ones_named)
{
    const char *const names[] = {"gpu", "", "late2", "lat", "late:0:1", "cpu "};
    leat_device *found = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_int_eq(leat_device_find(&found, names[i]), LEAT_EINVAL);
    ck_assert_int_eq(leat_device_find(&found, "gpu"), LEAT_EINVAL);
    const char *line = leat_last_error();
    ck_assert_ptr_nonnull(
        strstr(line, "there is no device \"gpu\"; there are: "));
    ck_assert_ptr_nonnull(strstr(line, "cpu, "));
    ck_assert_ptr_nonnull(strstr(line, "late"));
    ck_assert_ptr_null(found);
}
END_TEST

START_TEST(a_missing_device_says_that_the_build_lacks_it)
{
    leat_device *found = NULL;
    if (leat_device_find(&found, "cuda:0"))
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "cuda:0"));
    ck_assert_int_eq(leat_device_find(&found, "late:7"), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "there are 2 test devices");
}
END_TEST

START_TEST(an_ordinal_is_a_number)
{
    const char *const names[] = {"late:", "late:x", "late:-1", "late:1x",
                                 "late:99999"};
    leat_device *found = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_int_eq(leat_device_find(&found, names[i]), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "number"));
    }
    ck_assert_int_eq(leat_device_find(&found, "late"), LEAT_OK);
    ck_assert_ptr_eq(found, device);
}
END_TEST

START_TEST(host_memory_has_one_device)
{
    static const char *const names[] = {"cpu:1", "cpu:9999"};
    leat_device *own, *other = NULL;
    ck_assert_int_eq(leat_device_find(&own, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat_device_find(&other, "cpu:0"), LEAT_OK);
    ck_assert_ptr_eq(own, other);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_device_find(&other, names[i]), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), names[i]));
    }
}
END_TEST

START_TEST(a_device_without_its_name_or_with_a_taken_one_is_refused)
{
    static leat_device_ops mine;
    mine = *ops;
    ck_assert_int_eq(leat_device_register(&mine), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "a device \"late\" is registered already");
    mine.name = NULL;
    ck_assert_int_eq(leat_device_register(&mine), LEAT_EINVAL);
    mine = *ops;
    mine.name = "other";
    mine.size = 8;
    ck_assert_int_eq(leat_device_register(&mine), LEAT_EINVAL);
    ck_assert_int_eq(leat_device_register(NULL), LEAT_EINVAL);
}
END_TEST

static void lacks(leat_device_ops mine, const char *entry)
{
    static leat_device_ops refused;
    char line[96];
    refused = mine;
    refused.name = "incomplete";
    snprintf(line, sizeof(line),
             "the device \"incomplete\" lacks \"%s\", which is not optional",
             entry);
    ck_assert_int_eq(leat_device_register(&refused), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), line);
}

#define LACKS(entry)                                                           \
    do {                                                                       \
        mine = *ops;                                                           \
        mine.unified = unified;                                                \
        mine.entry = NULL;                                                     \
        lacks(mine, #entry);                                                   \
    } while (0)

/* One that computes in host memory needs few; none does without them. */
START_TEST(a_table_that_lacks_an_operation_is_refused_by_its_name)
{
    leat_device_ops mine;
    for (int unified = 0; unified < 2; unified++) {
        LACKS(open);
        LACKS(host_alloc);
        LACKS(host_free);
    }
    int unified = 0;
    LACKS(alloc);
    LACKS(free);
    LACKS(copy);
    LACKS(stream_create);
    LACKS(stream_destroy);
    LACKS(stream_synchronize);
    LACKS(event_create);
    LACKS(event_destroy);
    LACKS(event_record);
    LACKS(stream_wait);
    LACKS(event_synchronize);
    LACKS(event_elapsed);
    LACKS(timer_create);
}
END_TEST

START_TEST(a_table_without_its_size_is_refused)
{
    static leat_device_ops mine;
    mine = *ops;
    mine.name = "sizeless";
    mine.size = 0;
    ck_assert_int_eq(leat_device_register(&mine), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"size\""));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"size\" 0"));
}
END_TEST

START_TEST(a_name_that_find_could_not_tell_apart_is_refused)
{
    static leat_device_ops mine;
    const char *const names[] = {"", "a:b", "a name of more than 20 letters"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        mine = *ops;
        mine.name = names[i];
        ck_assert_int_eq(leat_device_register(&mine), LEAT_EINVAL);
    }
}
END_TEST

#if HAS_FORK_STEPS

static leat_device_ops first_ops;

static void register_first(void)
{
    (void)leat_device_register(&first_ops);
}

static void look_for_devices(void)
{
    leat_device *found = NULL;
    if (leat_device_find(&found, "unknown") != LEAT_EINVAL ||
        leat_device_find(&found, "cpu"))
        _exit(1);
}

/* Nothing has found or registered a device in this process before. */
START_TEST(a_child_finds_devices_amid_a_first_registration)
{
    first_ops = leat__cpu_device_ops;
    first_ops.name = "first";
    ck_assert_int_gt(fork_at_each_step(register_first, look_for_devices), 0);
}
END_TEST

#endif

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *tcase = tcase_create("device");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase,
                   an_unknown_device_is_refused_and_the_known_ones_named);
    tcase_add_test(tcase, a_missing_device_says_that_the_build_lacks_it);
    tcase_add_test(tcase, an_ordinal_is_a_number);
    tcase_add_test(tcase, host_memory_has_one_device);
    tcase_add_test(tcase,
                   a_device_without_its_name_or_with_a_taken_one_is_refused);
    tcase_add_test(tcase,
                   a_table_that_lacks_an_operation_is_refused_by_its_name);
    tcase_add_test(tcase, a_table_without_its_size_is_refused);
    tcase_add_test(tcase, a_name_that_find_could_not_tell_apart_is_refused);
#if HAS_FORK_STEPS
    tcase = tcase_create("device_fork");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_child_finds_devices_amid_a_first_registration);
#endif
    return suite_run(suite);
}
