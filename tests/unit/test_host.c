#include "support/suite.h"
#include "support/system_root.h"
#include "tools/bench/host.h"

#include "base/memory.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>

#define NODES "/sys/devices/system/node"

START_TEST(nodes_with_memory_are_a_list_of_ranges)
{
    static const struct {
        const char *text;
        int n;
        int last;
    } cases[] = {{"0\n", 1, 0},  {"0-3\n", 4, 3},        {"0,2-3,17\n", 4, 17},
                 {"\n", 0, 0},   {"3-1\n", 0, 0},        {"x\n", 0, 0},
                 {"-2\n", 0, 0}, {"0-99999999\n", 8, 7}, {"1,x,2\n", 1, 1}};
    int node[8];
    ck_assert_int_eq(host_nodes(system_root(), node, 8), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        system_root_write(NODES "/has_memory", cases[i].text);
        ck_assert_int_eq(host_nodes(system_root(), node, 8), cases[i].n);
        if (cases[i].n)
            ck_assert_int_eq(node[cases[i].n - 1], cases[i].last);
    }
}
END_TEST

START_TEST(a_thread_runs_on_those_processors_of_a_node_that_it_may_use)
{
    cpu_set_t before, now;
    char list[32];
    int first = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET((size_t)first, &before))
        first++;
    snprintf(list, sizeof(list), "%d,1000\n", first);
    system_root_write(NODES "/node0/cpulist", list);
    system_root_write(NODES "/node1/cpulist", "1001-1002\n");
    system_root_write(NODES "/node2/cpulist", "0-1000\n");
    /* A node without any, an unknown one, and none at all change nothing. */
    ck_assert_int_eq(host_run_on(system_root(), 1), 0);
    ck_assert_int_eq(host_run_on(system_root(), 3), 0);
    ck_assert_int_eq(host_run_on(system_root(), -1), 0);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert(CPU_EQUAL(&before, &now));
    ck_assert_int_eq(host_run_on(system_root(), 0), 1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert_int_eq(CPU_COUNT(&now), 1);
    ck_assert(CPU_ISSET((size_t)first, &now));
    /* Another node afterwards: out of all that there were at first. */
    ck_assert_int_eq(host_run_on(system_root(), 2), CPU_COUNT(&before));
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert(CPU_EQUAL(&before, &now));
}
END_TEST

START_TEST(memory_is_what_the_system_and_all_groups_leave)
{
    ck_assert(host_available(system_root()) == INT64_MAX);
    system_root_write("/proc/meminfo",
                      "MemTotal: 2048 kB\nMemAvailable:  1000 kB\n");
    ck_assert_int_eq(host_available(system_root()), 1000 * 1024);
    system_root_write("/proc/self/cgroup", "0::/a/b\n");
    ck_assert_int_eq(host_available(system_root()), 1000 * 1024);
    system_root_write("/sys/fs/cgroup/a/b/memory.max", "max\n");
    system_root_write("/sys/fs/cgroup/a/b/memory.current", "5000\n");
    ck_assert_int_eq(host_available(system_root()), 1000 * 1024);
    system_root_write("/sys/fs/cgroup/a/memory.max", "90000\n");
    system_root_write("/sys/fs/cgroup/a/memory.current", "20000\n");
    ck_assert_int_eq(host_available(system_root()), 70000);
    system_root_write("/sys/fs/cgroup/memory.max", "1000\n");
    system_root_write("/sys/fs/cgroup/memory.current", "2000\n");
    ck_assert_int_eq(host_available(system_root()), 0);
}
END_TEST

START_TEST(pages_are_placed_on_nodes_that_there_are)
{
    void *memory = leat__alloc_pages(4096);
    ck_assert(host_place(memory, 4096, -1));
    ck_assert(!host_place(memory, 4096, 1 << 20));
    *(char *)memory = 1;
    leat__free_pages(memory, 4096);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host");
    TCase *tcase = tcase_create("host");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, system_root_set_up, system_root_tear_down);
    tcase_add_test(tcase, nodes_with_memory_are_a_list_of_ranges);
    tcase_add_test(tcase,
                   a_thread_runs_on_those_processors_of_a_node_that_it_may_use);
    tcase_add_test(tcase, memory_is_what_the_system_and_all_groups_leave);
    tcase_add_test(tcase, pages_are_placed_on_nodes_that_there_are);
    return suite_run(suite);
}
