#include "base/cgroup.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char base[64];

static void begin(void)
{
    strcpy(base, "/tmp/leat-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", base);
    ck_assert_int_eq(system(command), 0);
}

/* Makes the file and the directories that it is in. */
static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", base, name);
    for (char *at = path + strlen(base) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0755);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static int cores(const char *groups)
{
    char list[128];
    put("groups", groups);
    snprintf(list, sizeof(list), "%s/groups", base);
    return leat__cgroup_cores(list, base);
}

START_TEST(without_a_quota_there_is_none)
{
    ck_assert_int_eq(leat__cgroup_cores("/nowhere", base), 0);
    ck_assert_int_eq(cores(""), 0);
    ck_assert_int_eq(cores("0::/\n"), 0);
    put("cpu.max", "max 100000\n");
    ck_assert_int_eq(cores("0::/\n"), 0);
}
END_TEST

START_TEST(a_quota_is_rounded_up_to_cores)
{
    put("cpu.max", "100000 100000\n");
    ck_assert_int_eq(cores("0::/\n"), 1);
    put("cpu.max", "150000 100000\n");
    ck_assert_int_eq(cores("0::/\n"), 2);
    put("cpu.max", "1000 100000\n");
    ck_assert_int_eq(cores("0::/\n"), 1);
    put("cpu.max", "9223372036854775807 1\n");
    ck_assert_int_eq(cores("0::/\n"), 4096);
}
END_TEST

START_TEST(the_smallest_quota_on_the_way_to_the_root_counts)
{
    put("a/cpu.max", "200000 100000\n");
    put("a/b/cpu.max", "max 100000\n");
    put("a/b/c/cpu.max", "600000 100000\n");
    ck_assert_int_eq(cores("0::/a/b/c\n"), 2);
    put("a/b/c/cpu.max", "100000 100000\n");
    ck_assert_int_eq(cores("0::/a/b/c\n"), 1);
    ck_assert_int_eq(cores("0::/a/b\n"), 2);
}
END_TEST

START_TEST(a_path_of_the_host_leads_to_the_containers_root)
{
    put("cpu.max", "300000 100000\n");
    ck_assert_int_eq(cores("0::/kubepods/pod1/container\n"), 3);
}
END_TEST

START_TEST(version_1_is_read_too)
{
    const char *groups = "3:cpuset:/\n2:cpu,cpuacct:/job\n1:memory:/job\n";
    put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    ck_assert_int_eq(cores(groups), 0);
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
    ck_assert_int_eq(cores(groups), 4);
}
END_TEST

START_TEST(lines_of_other_kinds_are_passed_by)
{
    put("cpu.max", "what 1\n");
    ck_assert_int_eq(cores("no colons\n0:one\n7:cpusets:/x\n0::/\n"), 0);
    put("cpu.max", "1\n");
    ck_assert_int_eq(cores("0::/\n"), 0);
    put("cpu.max", "100000 0\n");
    ck_assert_int_eq(cores("0::/\n"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cgroup");
    TCase *tcase = tcase_create("cgroup");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, without_a_quota_there_is_none);
    tcase_add_test(tcase, a_quota_is_rounded_up_to_cores);
    tcase_add_test(tcase, the_smallest_quota_on_the_way_to_the_root_counts);
    tcase_add_test(tcase, a_path_of_the_host_leads_to_the_containers_root);
    tcase_add_test(tcase, version_1_is_read_too);
    tcase_add_test(tcase, lines_of_other_kinds_are_passed_by);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
