#include "support/suite.h"
#include "support/system_root.h"
#include "tools/bench/pci.h"

#include <check.h>
#include <stdio.h>

#define BUS_ID "0000:65:00.0"

START_TEST(a_device_is_as_the_system_says)
{
    const char *sys = "/sys/bus/pci/devices/" BUS_ID;
    char path[128];
    const char *const attributes[][2] = {
        {"current_link_speed", "16.0 GT/s PCIe\n"},
        {"current_link_width", "8\n"},
        {"max_link_speed", "32.0 GT/s PCIe\n"},
        {"max_link_width", "16\n"},
    };
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s", sys, attributes[i][0]);
        system_root_write(path, attributes[i][1]);
    }
    system_root_write("/sys/module/nvidia/version", "550.54.15\n");
    system_root_write("/proc/driver/nvidia/gpus/" BUS_ID "/information",
                      "Model: \t\t NVIDIA H200\nIRQ:   \t\t 90\n");
    struct pci_device device;
    pci_read(&device, system_root(), BUS_ID);
    ck_assert_str_eq(device.model, "NVIDIA H200");
    ck_assert_str_eq(device.driver, "550.54.15");
    ck_assert_str_eq(device.link_speed, "16.0 GT/s PCIe");
    ck_assert_int_eq(device.link_width, 8);
    ck_assert_str_eq(device.most_speed, "32.0 GT/s PCIe");
    ck_assert_int_eq(device.most_width, 16);
}
END_TEST

START_TEST(what_the_system_does_not_say_is_unknown)
{
    struct pci_device device;
    system_root_write("/sys/bus/pci/devices/" BUS_ID "/current_link_width",
                      "63\n");
    system_root_write("/sys/bus/pci/devices/" BUS_ID "/max_link_width",
                      "lanes\n");
    system_root_write("/proc/driver/nvidia/gpus/" BUS_ID "/information",
                      "IRQ: 1\n");
    pci_read(&device, system_root(), BUS_ID);
    ck_assert_str_eq(device.model, "unknown");
    ck_assert_str_eq(device.driver, "unknown");
    ck_assert_str_eq(device.link_speed, "unknown");
    ck_assert_int_eq(device.link_width, 0);
    ck_assert_str_eq(device.most_speed, "unknown");
    ck_assert_int_eq(device.most_width, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pci");
    TCase *tcase = tcase_create("pci");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, system_root_set_up, system_root_tear_down);
    tcase_add_test(tcase, a_device_is_as_the_system_says);
    tcase_add_test(tcase, what_the_system_does_not_say_is_unknown);
    return suite_run(suite);
}
