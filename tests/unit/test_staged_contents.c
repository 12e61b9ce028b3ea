/* Files that NFS or FUSE keep for those who have them open, in the directories
   of an import. */
#include "support/suite.h"
#include "tools/database/staging.h"

#include <leat/status.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/leat_contents_XXXXXX";
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
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* The path with a suffix. */
static const char *beside(const char *suffix)
{
    static char text[4][160];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(text[turn], sizeof(text[turn]), "%s%s", path, suffix);
    return text[turn];
}

static void put(const char *suffix, const char *text)
{
    FILE *out = fopen(beside(suffix), "w");
    ck_assert_msg(out != NULL, "%s", suffix);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static bool has(const char *suffix, const char *text)
{
    char found[64] = "";
    FILE *in = fopen(beside(suffix), "r");
    if (!in)
        return false;
    char *line = fgets(found, sizeof(found), in);
    fclose(in);
    return line && !strcmp(found, text);
}

static bool is_there(const char *suffix)
{
    return access(beside(suffix), F_OK) == 0;
}

static void make(const char *suffix)
{
    ck_assert_int_eq(mkdir(beside(suffix), 0777), 0);
}

static const struct staging_options *options_of(bool replace, bool restart)
{
    static struct staging_options options;
    options = (struct staging_options){.target = path,
                                       .replace = replace,
                                       .restart = restart,
                                       .arguments = "wheat\n"};
    return &options;
}

static struct staging begin(const struct staging_options *options,
                            enum staging_state state)
{
    struct staging staging;
    ck_assert_msg(staging_check(options) == LEAT_OK, "%s", leat_last_error());
    ck_assert_msg(staging_open(&staging, options) == LEAT_OK, "%s",
                  leat_last_error());
    ck_assert_int_eq(staging.state, state);
    return staging;
}

static void publish(struct staging *staging, const char *text)
{
    put(".leat-part/database/data.mdb", text);
    ck_assert_msg(staging_publish(staging, 0) == LEAT_OK, "%s",
                  leat_last_error());
    staging_close(staging, false);
    ck_assert(has("/data.mdb", text));
}

START_TEST(a_database_whose_replaced_files_are_open_is_replaced_again)
{
    make("");
    put("/data.mdb", "old");
    put("/.nfs000000000000000100000001", "older");
    put("/.fuse_hidden0000000100000001", "oldest");
    struct staging staging = begin(options_of(true, false), STAGING_FRESH);
    publish(&staging, "new");
    ck_assert(has("/.nfs000000000000000100000001", "older"));
    ck_assert(has("/.fuse_hidden0000000100000001", "oldest"));
    ck_assert(!is_there(".leat-part"));
}
END_TEST

/* So it does where the directory becomes the target, and where it does not. */
START_TEST(a_database_is_made_beside_what_is_open_of_a_staged_one)
{
    for (int replace = 0; replace < 2; replace++) {
        make(".leat-part");
        make(".leat-part/database");
        put(".leat-part/.nfs000000000000000200000002", "journal");
        put(".leat-part/database/.nfs000000000000000100000001", "open");
        put(".leat-part/database/lock.mdb", "left");
        struct staging staging =
            begin(options_of(replace, false), STAGING_FRESH);
        ck_assert(!is_there(".leat-part/database/lock.mdb"));
        publish(&staging, replace ? "new" : "first");
        ck_assert(has(".leat-part/.nfs000000000000000200000002", "journal"));
        ck_assert(has(replace
                          ? ".leat-part/database/.nfs000000000000000100000001"
                          : "/.nfs000000000000000100000001",
                      "open"));
        ck_assert(!is_there(".leat-part/journal"));
        /* It goes once they have gone. */
        unlink(beside(".leat-part/.nfs000000000000000200000002"));
        unlink(beside(".leat-part/database/.nfs000000000000000100000001"));
        staging = begin(options_of(true, false), STAGING_FRESH);
        publish(&staging, "next");
        ck_assert(!is_there(".leat-part"));
    }
}
END_TEST

START_TEST(an_unfinished_database_that_is_open_is_resumed_or_made_anew)
{
    struct staging staging = begin(options_of(false, false), STAGING_FRESH);
    put(".leat-part/database/data.mdb", "half");
    staging_close(&staging, true);
    put(".leat-part/database/.fuse_hidden0000000100000001", "open");
    staging = begin(options_of(false, false), STAGING_RESUMED);
    ck_assert(has(".leat-part/database/data.mdb", "half"));
    staging_close(&staging, true);
    staging = begin(options_of(false, true), STAGING_FRESH);
    ck_assert(!is_there(".leat-part/database/data.mdb"));
    put(".leat-part/database/data.mdb", "half");
    staging_close(&staging, false);
    ck_assert(!is_there(".leat-part/database/data.mdb"));
    ck_assert(!is_there(".leat-part/journal"));
    ck_assert(has(".leat-part/database/.fuse_hidden0000000100000001", "open"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("staged_contents");
    TCase *tcase = tcase_create("staged_contents");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   a_database_whose_replaced_files_are_open_is_replaced_again);
    tcase_add_test(tcase,
                   a_database_is_made_beside_what_is_open_of_a_staged_one);
    tcase_add_test(tcase,
                   an_unfinished_database_that_is_open_is_resumed_or_made_anew);
    return suite_run(suite);
}
