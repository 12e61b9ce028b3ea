/*
 * Another process makes the target of a database at the very moment when it is
 * published: both databases are kept.
 */
#include "faults/faults.h"
#include "support/suite.h"
#include "tools/database/staging.h"

#include <leat/status.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char directory[] = "/tmp/leat_publishing_XXXXXX";
static char path[64];

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/db", directory);
}

static void tear_down(void)
{
    char command[96];
    fault_disarm();
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void write_data(const char *at, const char *text)
{
    char file[128];
    snprintf(file, sizeof(file), "%s/data.mdb", at);
    FILE *out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static void check_data(const char *at, const char *text)
{
    char file[128], found[16] = "";
    snprintf(file, sizeof(file), "%s/data.mdb", at);
    FILE *in = fopen(file, "r");
    ck_assert_msg(in != NULL, "%s is gone", file);
    ck_assert_ptr_nonnull(fgets(found, sizeof(found), in));
    ck_assert_int_eq(fclose(in), 0);
    ck_assert_str_eq(found, text);
}

static void overtake(void)
{
    fault_disarm();
    ck_assert_int_eq(mkdir(path, 0777), 0);
    write_data(path, "theirs");
}

START_TEST(a_database_made_meanwhile_is_kept)
{
    const struct staging_options options = {.target = path, .replace = _i};
    struct staging staging;
    ck_assert_int_eq(staging_open(&staging, &options), LEAT_OK);
    write_data(staging.database, "ours");
    fault_act(overtake);
    fault_arm(FAULT_NAME, 0, FAULT_ACT, 0);
    int status = staging_publish(&staging, 0);
    check_data(path, "theirs");
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
    check_data(staging.database, "ours");
    staging_close(&staging, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publishing");
    TCase *tcase = tcase_create("publishing");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_database_made_meanwhile_is_kept, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
