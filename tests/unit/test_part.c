/* The directory in which a database is written: what a run leaves that ends
   anywhere, and what the next one makes of it. */
#include "support/suite.h"
#include "tools/database/part.h"

#include <leat/status.h>

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/leat_part_XXXXXX";
static char path[64];

/* What somebody else does between the last look at the target and the rename;
   and whether the file system knows the flags of renameat2. */
static void (*meanwhile)(void);
static int is_plain;

int renameat2(int from, const char *old, int to, const char *target,
              unsigned flags)
{
    if (meanwhile)
        meanwhile();
    meanwhile = NULL;
    if (is_plain && flags) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from, old, to, target, flags);
}

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/db", directory);
    meanwhile = NULL;
    is_plain = 0;
}

static void tear_down(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* The path with something behind it. */
static const char *beside(const char *suffix)
{
    static char text[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(text[turn], sizeof(text[turn]), "%s%s", path, suffix);
    return text[turn];
}

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");
    ck_assert_msg(out != NULL, "%s", name);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static int has_text(const char *name, const char *text)
{
    char found[64] = "";
    FILE *in = fopen(name, "r");
    if (!in)
        return 0;
    char *line = fgets(found, sizeof(found), in);
    fclose(in);
    return line && !strcmp(found, text);
}

static int is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

static void make_database(const char *at, const char *text)
{
    char file[160];
    ck_assert_int_eq(mkdir(at, 0777), 0);
    snprintf(file, sizeof(file), "%s/data.mdb", at);
    write_file(file, text);
}

static struct part_order order_of(enum part_mode mode)
{
    return (struct part_order){.path = path, .mode = mode, .recipe = "wheat\n"};
}

static struct part *open_part(const struct part_order *order)
{
    struct part *part;
    int status = part_open(&part, order);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return part;
}

static void refuses(const struct part_order *order, const char *text)
{
    struct part *part;
    ck_assert_int_lt(part_open(&part, order), 0);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "%s",
                  leat_last_error());
}

static void fill(struct part *part, const char *text)
{
    char file[160];
    snprintf(file, sizeof(file), "%s/data.mdb", part_path(part));
    write_file(file, text);
}

/* A run in a process of its own, that is killed at this point. */
enum point { FILLED, REMEMBERED, PUBLISHED };

static void die_at(enum part_mode mode, enum point point, const char *text)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct part_order order = order_of(mode);
        struct part *part;
        int status = part_open(&part, &order);
        if (!status) {
            fill(part, text);
            if (point >= REMEMBERED)
                status = part_remember(part, 41);
            if (!status && point >= PUBLISHED)
                status = part_publish(part);
        }
        _exit(status ? 1 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

START_TEST(what_is_published_takes_its_place_and_leaves_nothing)
{
    for (int mode = PART_REFUSE; mode <= PART_APPEND; mode++) {
        struct part_order order = order_of((enum part_mode)mode);
        struct part *part = open_part(&order);
        ck_assert_int_eq(part_state(part), PART_FRESH);
        ck_assert_int_eq(part_has_base(part), mode == PART_APPEND);
        ck_assert_str_eq(part_target(part), path);
        ck_assert_int_gt(part_free_bytes(part), 0);
        fill(part, mode == PART_REFUSE ? "first" : "next");
        ck_assert_int_eq(part_publish(part), LEAT_OK);
        part_close(part, 0);
        ck_assert(has_text(beside("/data.mdb"),
                           mode == PART_REFUSE ? "first" : "next"));
        ck_assert(!is_there(beside(".leat-part")));
        ck_assert(!is_there(beside("/leat-import")));
    }
}
END_TEST

START_TEST(what_is_neither_published_nor_kept_vanishes)
{
    struct part_order order = order_of(PART_REFUSE);
    struct part *part = open_part(&order);
    fill(part, "some");
    part_close(part, 0);
    ck_assert(!is_there(beside(".leat-part")));
    ck_assert(!is_there(path));
}
END_TEST

START_TEST(the_same_order_goes_on_wherever_the_run_before_was_killed)
{
    for (int point = FILLED; point <= REMEMBERED; point++) {
        struct part_order order = order_of(PART_REFUSE);
        die_at(PART_REFUSE, (enum point)point, "half");
        struct part *part = open_part(&order);
        ck_assert_int_eq(part_state(part), PART_STOPPED);
        ck_assert(has_text(beside(".leat-part/data.mdb"), "half"));
        part_close(part, 1);
        ck_assert(is_there(beside(".leat-part/leat-import")));
        order.recipe = "rye\n";
        refuses(&order, "'wheat', now 'rye'");
        order.recipe = NULL;
        refuses(&order, "an unfinished import stands there");
        order.recipe = "rye\n";
        order.restart = 1;
        part = open_part(&order);
        ck_assert_int_eq(part_state(part), PART_FRESH);
        ck_assert(!is_there(beside(".leat-part/data.mdb")));
        part_close(part, 0);
    }
}
END_TEST

START_TEST(what_was_killed_in_its_place_is_complete_and_remembers)
{
    for (int mode = PART_REFUSE; mode <= PART_APPEND; mode++) {
        struct part_order order = order_of((enum part_mode)mode);
        die_at((enum part_mode)mode, PUBLISHED, "whole");
        ck_assert(is_there(beside("/leat-import")));
        struct part *part = open_part(&order);
        ck_assert_int_eq(part_state(part), PART_COMPLETE);
        ck_assert_int_eq(part_remembered(part), 41);
        part_close(part, 0);
        ck_assert(has_text(beside("/data.mdb"), "whole"));
        ck_assert(!is_there(beside("/leat-import")));
        ck_assert(!is_there(beside(".leat-part")));
    }
}
END_TEST

START_TEST(another_order_tidies_up_and_begins)
{
    struct part_order order = order_of(PART_REPLACE);
    die_at(PART_REFUSE, PUBLISHED, "whole");
    order.recipe = "rye\n";
    struct part *part = open_part(&order);
    ck_assert_int_eq(part_state(part), PART_FRESH);
    ck_assert_int_lt(part_remembered(part), 0);
    ck_assert(!is_there(beside("/leat-import")));
    ck_assert(has_text(beside("/data.mdb"), "whole"));
    part_close(part, 0);
}
END_TEST

START_TEST(what_stood_between_two_renames_is_put_back)
{
    struct part_order order = order_of(PART_REFUSE);
    make_database(beside(".leat-old"), "old");
    refuses(&order, "exists already");
    ck_assert(has_text(beside("/data.mdb"), "old"));
    /* With a target, what was replaced goes. */
    make_database(beside(".leat-old"), "older");
    order.mode = PART_REPLACE;
    struct part *part = open_part(&order);
    ck_assert(!is_there(beside(".leat-old")));
    part_close(part, 0);
    ck_assert(has_text(beside("/data.mdb"), "old"));
}
END_TEST

START_TEST(two_runs_at_once_are_one_too_many)
{
    struct part_order order = order_of(PART_REFUSE);
    struct part *part = open_part(&order);
    refuses(&order, "another leat is writing it");
    ck_assert(is_there(part_path(part)));
    part_close(part, 0);
}
END_TEST

START_TEST(what_is_in_the_way_is_left_alone)
{
    struct part_order order = order_of(PART_REFUSE);
    make_database(path, "mine");
    refuses(&order, "--append add to it");
    order.recipe = NULL;
    refuses(&order, "--force would replace it");
    write_file(beside("/letter"), "dear");
    for (int mode = PART_REPLACE; mode <= PART_APPEND; mode++) {
        order = order_of((enum part_mode)mode);
        refuses(&order, "is no database directory");
    }
    ck_assert(has_text(beside("/letter"), "dear"));
    ck_assert_int_eq(rename(path, beside(".leat-part")), 0);
    order = order_of(PART_REFUSE);
    refuses(&order, "files that leat did not write");
    ck_assert(has_text(beside(".leat-part/letter"), "dear"));
    order.path = "";
    refuses(&order, "needs a path");
    order.path = "/nowhere/db";
    refuses(&order, "/nowhere: No such file");
}
END_TEST

START_TEST(a_target_that_came_or_changed_meanwhile_is_not_replaced)
{
    struct part_order order = order_of(PART_REFUSE);
    struct part *part = open_part(&order);
    fill(part, "mine");
    make_database(path, "another's");
    ck_assert_int_eq(part_publish(part), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "meanwhile"));
    part_close(part, 0);
    ck_assert(has_text(beside("/data.mdb"), "another's"));

    order = order_of(PART_APPEND);
    part = open_part(&order);
    ck_assert(part_has_base(part));
    fill(part, "mine");
    write_file(beside("/data.mdb"), "and more of another's");
    ck_assert_int_eq(part_publish(part), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "meanwhile"));
    part_close(part, 0);
    ck_assert(has_text(beside("/data.mdb"), "and more of another's"));
}
END_TEST

static void make_empty_directory(void)
{
    ck_assert_int_eq(mkdir(path, 0777), 0);
}

static void make_their_database(void)
{
    make_database(path, "theirs");
}

static void make_their_file(void)
{
    write_file(path, "theirs");
}

/* The rename itself does not replace: nobody looks between it and this. */
START_TEST(a_target_that_comes_at_the_last_moment_is_not_replaced)
{
    static void (*const comes[])(void) = {make_their_database, make_their_file,
                                          make_empty_directory};
    struct part_order order = order_of(PART_REFUSE);
    for (int i = 0; i < 5; i++) {
        struct part *part = open_part(&order);
        fill(part, "mine");
        is_plain = i >= 3;
        meanwhile = comes[i % 3];
        ck_assert_int_eq(part_publish(part), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                     "made it meanwhile; it was not replaced"));
        ck_assert(meanwhile == NULL);
        ck_assert(has_text(beside(".leat-part/data.mdb"), "mine"));
        if (i % 3 == 0)
            ck_assert(has_text(beside("/data.mdb"), "theirs"));
        else if (i % 3 == 1)
            ck_assert(has_text(path, "theirs"));
        part_close(part, 0);
        ck_assert(!is_there(beside(".leat-part")));
        tear_down();
        set_up();
    }
}
END_TEST

/* What is planted in the directory of a stopped run: nothing is written through
   it, and no open waits for its other end. */
START_TEST(links_and_pipes_in_the_directory_are_not_followed)
{
    static const char *const names[] = {"data.mdb", "lock.mdb", "leat-import",
                                        "leat-import.new"};
    struct part_order order = order_of(PART_REFUSE);
    char name[160], victim[128];
    for (int i = 0; i < 8; i++) {
        die_at(PART_REFUSE, FILLED, "half");
        snprintf(victim, sizeof(victim), "%s/victim", directory);
        write_file(victim, "precious");
        snprintf(name, sizeof(name), "%s.leat-part/%s", path, names[i / 2]);
        unlink(name);
        if (i % 2)
            ck_assert_int_eq(mkfifo(name, 0600), 0);
        else
            ck_assert_int_eq(symlink(victim, name), 0);
        refuses(&order, ".leat-part");
        ck_assert(has_text(victim, "precious"));
        /* Begun anew it is another file; a note nobody can read stays. */
        order.restart = 1;
        if (i / 2 == 2) {
            refuses(&order, ".leat-part");
        } else {
            struct part *part = open_part(&order);
            fill(part, "new");
            ck_assert_int_eq(part_remember(part, 1), LEAT_OK);
            ck_assert_int_eq(part_publish(part), LEAT_OK);
            part_close(part, 0);
            ck_assert(has_text(beside("/data.mdb"), "new"));
        }
        ck_assert(has_text(victim, "precious"));
        order.restart = 0;
        tear_down();
        set_up();
    }
}
END_TEST

START_TEST(linked_directories_are_somebody_elses)
{
    struct part_order order = order_of(PART_REPLACE);
    char theirs[128];
    for (int i = 0; i < 3; i++) {
        snprintf(theirs, sizeof(theirs), "%s/theirs", directory);
        make_database(theirs, "precious");
        if (i == 2)
            make_database(path, "mine");
        const char *link = beside(i ? ".leat-old" : ".leat-part");
        ck_assert_int_eq(symlink("theirs", link), 0);
        refuses(&order, link);
        snprintf(theirs, sizeof(theirs), "%s/theirs/data.mdb", directory);
        ck_assert(has_text(theirs, "precious"));
        ck_assert(is_there(link));
        tear_down();
        set_up();
    }
}
END_TEST

START_TEST(a_link_stays_one_and_what_it_leads_to_is_replaced)
{
    char real[64];
    snprintf(real, sizeof(real), "%s/real", directory);
    make_database(real, "old");
    ck_assert_int_eq(symlink(real, path), 0);
    struct part_order order = order_of(PART_REPLACE);
    struct part *part = open_part(&order);
    ck_assert_str_eq(part_target(part), real);
    fill(part, "new");
    ck_assert_int_eq(part_publish(part), LEAT_OK);
    part_close(part, 0);
    struct stat link;
    ck_assert_int_eq(lstat(path, &link), 0);
    ck_assert(S_ISLNK(link.st_mode));
    ck_assert(has_text(beside("/data.mdb"), "new"));
}
END_TEST

START_TEST(a_note_that_is_none_is_told)
{
    struct part_order order = order_of(PART_REFUSE);
    ck_assert_int_eq(mkdir(beside(".leat-part"), 0777), 0);
    ck_assert_int_eq(mkdir(beside(".leat-part/leat-import"), 0777), 0);
    refuses(&order, "leat-import: cannot be read");
    ck_assert_int_eq(rmdir(beside(".leat-part/leat-import")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", beside(".leat-part/leat-import")),
                     0);
    refuses(&order, ".leat-part");
    part_close(NULL, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("part");
    TCase *tcase = tcase_create("part");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_is_published_takes_its_place_and_leaves_nothing);
    tcase_add_test(tcase, what_is_neither_published_nor_kept_vanishes);
    tcase_add_test(tcase,
                   the_same_order_goes_on_wherever_the_run_before_was_killed);
    tcase_add_test(tcase,
                   what_was_killed_in_its_place_is_complete_and_remembers);
    tcase_add_test(tcase, another_order_tidies_up_and_begins);
    tcase_add_test(tcase, what_stood_between_two_renames_is_put_back);
    tcase_add_test(tcase, two_runs_at_once_are_one_too_many);
    tcase_add_test(tcase, what_is_in_the_way_is_left_alone);
    tcase_add_test(tcase,
                   a_target_that_came_or_changed_meanwhile_is_not_replaced);
    tcase_add_test(tcase,
                   a_target_that_comes_at_the_last_moment_is_not_replaced);
    tcase_add_test(tcase, links_and_pipes_in_the_directory_are_not_followed);
    tcase_add_test(tcase, linked_directories_are_somebody_elses);
    tcase_add_test(tcase, a_link_stays_one_and_what_it_leads_to_is_replaced);
    tcase_add_test(tcase, a_note_that_is_none_is_told);
    return suite_run(suite);
}
