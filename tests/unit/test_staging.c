/* The staging directory: what a run leaves that is killed anywhere, and what
   the next one makes of it. */
#include "support/nobody.h"
#include "support/suite.h"
#include "tools/database/staging.h"

#include <leat/status.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/leat_staging_XXXXXX";
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

/* What is looked at when the data file, and then the lock file, gives way; and
   the error of the first, 0: none. */
static void (*giving_way)(void);
static int data_error;

int renameat(int from, const char *old, int to, const char *target)
{
    bool is_data = !strcmp(target, "data.mdb");
    if (giving_way && is_data)
        giving_way();
    if (data_error && is_data) {
        errno = data_error;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from, old, to, target, 0);
}

/* How often a reader of what is staged makes its lock file right before a file
   is made there, or the directory is removed. */
static int readers;

static void let_read(int at, int is_now)
{
    if (!is_now || readers <= 0)
        return;
    readers--;
    int fd = (int)syscall(SYS_openat, at, "database/lock.mdb",
                          O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

int openat(int at, const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    let_read(at, flags & O_EXCL && !strncmp(name, "database/", 9));
    return (int)syscall(SYS_openat, at, name, flags, mode);
}

int unlinkat(int at, const char *name, int flags)
{
    if (giving_way && !strcmp(name, "lock.mdb"))
        giving_way();
    let_read(at, flags & AT_REMOVEDIR && !strcmp(name, "database") &&
                     faccessat(at, name, F_OK, 0) == 0);
    return (int)syscall(SYS_unlinkat, at, name, flags);
}

/* What another mount of the file system adds to its device's number. */
static dev_t remounted;

int fstatat(int at, const char *name, struct stat *out, int flags)
{
    int status = (int)syscall(SYS_newfstatat, at, name, out, flags);
    if (!status)
        out->st_dev += remounted;
    return status;
}

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/db", directory);
    meanwhile = NULL;
    giving_way = NULL;
    data_error = 0;
    is_plain = 0;
    readers = 0;
    remounted = 0;
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

static struct staging_options options_of(int replace)
{
    return (struct staging_options){
        .target = path, .replace = replace, .arguments = "wheat\n"};
}

static struct staging open_staging(const struct staging_options *options)
{
    struct staging staging;
    int status = staging_check(options);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    status = staging_open(&staging, options);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return staging;
}

static void refuses(const struct staging_options *options, const char *text)
{
    struct staging staging;
    ck_assert_int_lt(staging_open(&staging, options), 0);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "%s",
                  leat_last_error());
}

static void fill(const struct staging *staging, const char *text)
{
    char file[160];
    snprintf(file, sizeof(file), "%s/data.mdb", staging->database);
    write_file(file, text);
}

/* A run in a process of its own, that is killed after this. */
enum point { FILLED, OVERTAKEN, PUBLISHED };

static void make_their_database(void)
{
    make_database(path, "theirs");
}

static void die_of(const struct staging_options *options, enum point point,
                   const char *text)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct staging staging;
        int status = staging_open(&staging, options);
        if (!status) {
            fill(&staging, text);
            meanwhile = point == OVERTAKEN ? make_their_database : NULL;
            if (point != FILLED)
                status = staging_publish(&staging, 41);
        }
        _exit(status == (point == OVERTAKEN ? LEAT_EINVAL : 0) ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void die_after(int replace, enum point point, const char *text)
{
    struct staging_options options = options_of(replace);
    die_of(&options, point, text);
}

START_TEST(publishing_leaves_the_database_and_nothing_else)
{
    for (int i = 0; i < 4; i++) {
        /* Anew; over it, and where renameat2 knows no flags; no journal. */
        struct staging_options options = options_of(i > 0);
        is_plain = i == 2;
        if (i == 3)
            options.arguments = NULL;
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_FRESH);
        ck_assert_str_eq(staging.target, path);
        fill(&staging, i ? "next" : "first");
        ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
        staging_close(&staging, 0);
        ck_assert(has_text(beside("/data.mdb"), i ? "next" : "first"));
        ck_assert(!is_there(beside(".leat-part")));
        ck_assert(!is_there(beside("/journal")));
    }
}
END_TEST

START_TEST(an_unpublished_database_is_removed_unless_kept)
{
    struct staging_options options = options_of(0);
    struct staging staging = open_staging(&options);
    fill(&staging, "some");
    staging_close(&staging, 0);
    ck_assert(!is_there(beside(".leat-part")));
    ck_assert(!is_there(path));
}
END_TEST

START_TEST(the_same_arguments_resume_after_a_kill_at_any_point)
{
    for (int point = FILLED; point <= OVERTAKEN; point++) {
        struct staging_options options = options_of(0);
        die_after(0, (enum point)point, "half");
        if (point == OVERTAKEN) {
            refuses(&options, "exists already");
            ck_assert_int_eq(rename(path, beside(".theirs")), 0);
        }
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_RESUMED);
        ck_assert(has_text(beside(".leat-part/database/data.mdb"), "half"));
        staging_close(&staging, 1);
        ck_assert(is_there(beside(".leat-part/journal")));
        options.arguments = "rye\n";
        refuses(&options, "'wheat', now 'rye'");
        options.arguments = NULL;
        refuses(&options, "holds an unfinished import");
        ck_assert(has_text(beside(".leat-part/database/data.mdb"), "half"));
        options.arguments = "rye\n";
        options.restart = 1;
        staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_FRESH);
        ck_assert(!is_there(beside(".leat-part/database/data.mdb")));
        staging_close(&staging, 0);
    }
}
END_TEST

START_TEST(a_run_killed_after_publishing_is_complete_with_its_result)
{
    for (int replace = 0; replace < 2; replace++) {
        struct staging_options options = options_of(replace);
        die_after(replace, PUBLISHED, "whole");
        ck_assert(has_text(beside("/data.mdb"), "whole"));
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_COMPLETE);
        ck_assert_int_eq(staging.result, 41);
        staging_close(&staging, 0);
        ck_assert(has_text(beside("/data.mdb"), "whole"));
        ck_assert(!is_there(beside(".leat-part")));
    }
}
END_TEST

/* Killed right after it replaced what it had read: the line of all data is
   another one now, but not that of the other inputs. */
START_TEST(a_run_in_place_is_complete_unless_its_other_inputs_changed)
{
    static const char before[] = "wheat\nother data of rye\ndata of old\n";
    static const char same[] = "wheat\nother data of rye\ndata of new\n";
    static const char other[] = "wheat\nother data of oats\ndata of new\n";
    static const char another[] = "barley\nother data of rye\ndata of new\n";
    struct staging_options options = options_of(1);
    options.in_place = true;
    options.arguments = before;
    die_of(&options, PUBLISHED, "whole");
    options.arguments = other;
    refuses(&options, "of other inputs than now");
    ck_assert(has_text(beside("/data.mdb"), "whole"));
    options.arguments = same;
    struct staging staging = open_staging(&options);
    ck_assert_int_eq(staging.state, STAGING_COMPLETE);
    staging_close(&staging, 0);
    ck_assert(!is_there(beside(".leat-part")));
    for (int i = 0; i < 2; i++) {
        options.restart = false;
        options.arguments = before;
        die_of(&options, PUBLISHED, "whole");
        options.restart = i == 0;
        options.arguments = i ? another : other;
        staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_FRESH);
        staging_close(&staging, 0);
    }
}
END_TEST

/* Killed likewise, and the machine was started anew, or the journal is an older
   build's, which has the device's number. */
START_TEST(a_run_in_place_is_complete_on_another_mount)
{
    char command[160];
    snprintf(command, sizeof(command), "sed -i 's/ inode / 2049 /' %s",
             beside(".leat-part/journal"));
    for (int i = 0; i < 2; i++) {
        struct staging_options options = options_of(1);
        options.in_place = true;
        options.arguments = "wheat\nother data of rye\ndata of old\n";
        die_of(&options, PUBLISHED, "whole");
        if (i)
            ck_assert_int_eq(system(command), 0);
        remounted = 1;
        options.arguments = "wheat\nother data of rye\ndata of new\n";
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_COMPLETE);
        ck_assert_int_eq(staging.result, 41);
        staging_close(&staging, 0);
        remounted = 0;
    }
}
END_TEST

/* Killed right after it was published, with its target moved away or replaced
   since: it is made again. */
START_TEST(a_published_database_is_not_resumed)
{
    struct staging_options options = options_of(1);
    char moved[16];
    for (int i = 0; i < 3; i++) {
        die_after(1, PUBLISHED, "whole");
        snprintf(moved, sizeof(moved), ".moved%d", i);
        if (i)
            ck_assert_int_eq(rename(path, beside(moved)), 0);
        if (i == 2)
            make_database(path, "another");
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(staging.state, i ? STAGING_FRESH : STAGING_COMPLETE);
        staging_close(&staging, 0);
        ck_assert(!is_there(beside(".leat-part")));
    }
}
END_TEST

/* Killed right after it was published, and the target's file is another one
   since, which an inode's number does not show: it is not taken for its own. */
START_TEST(a_changed_file_of_the_same_inode_is_not_complete)
{
    struct staging_options options = options_of(0);
    for (int i = 0; i < 2; i++) {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {5, 0}};
        die_after(0, PUBLISHED, "whole");
        if (i)
            write_file(beside("/data.mdb"), "theirs");
        else
            ck_assert_int_eq(utimensat(AT_FDCWD, beside("/data.mdb"), times, 0),
                             0);
        refuses(&options, "exists already; --force");
        ck_assert(has_text(beside("/data.mdb"), i ? "theirs" : "whole"));
        ck_assert(!is_there(beside(".leat-part")));
        tear_down();
        set_up();
    }
}
END_TEST

START_TEST(a_complete_run_is_made_again_where_it_is_to_be_restarted)
{
    struct staging_options options = options_of(0);
    options.restart = 1;
    die_after(0, PUBLISHED, "whole");
    refuses(&options, "exists already; --force");
    ck_assert(!is_there(beside(".leat-part")));
    options.replace = 1;
    die_after(1, PUBLISHED, "whole");
    struct staging staging = open_staging(&options);
    ck_assert_int_eq(staging.state, STAGING_FRESH);
    staging_close(&staging, 0);
    ck_assert(has_text(beside("/data.mdb"), "whole"));
}
END_TEST

/* Its lock file goes with the database that is replaced, and the directory
   stays: there is no moment without a target. */
START_TEST(a_database_is_replaced_in_its_directory)
{
    struct staging_options options = options_of(1);
    struct stat before, after;
    make_database(path, "old");
    write_file(beside("/lock.mdb"), "old");
    ck_assert_int_eq(stat(path, &before), 0);
    struct staging staging = open_staging(&options);
    fill(&staging, "new");
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
    staging_close(&staging, 0);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(after.st_ino, before.st_ino);
    ck_assert(has_text(beside("/data.mdb"), "new"));
    ck_assert(!is_there(beside("/lock.mdb")));
    ck_assert(!is_there(beside(".leat-part")));
}
END_TEST

static int looks;

/* A process that opens the database now waits for the first byte of an empty
   lock file, as LMDB does. */
static void check_held(void)
{
    struct flock first = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    struct stat found;
    int fd = open(beside("/lock.mdb"), O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_OFD_GETLK, &first), 0);
    ck_assert_int_eq(first.l_type, F_WRLCK);
    ck_assert_int_eq(fstat(fd, &found), 0);
    ck_assert_int_eq(found.st_size, 0);
    close(fd);
    looks++;
}

/* Without a lock file, with one, and with one that a reader has locked. */
START_TEST(openers_wait_while_a_database_is_replaced)
{
    struct staging_options options = options_of(1);
    struct flock first = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    make_database(path, "old");
    for (int i = 0; i < 6; i++) {
        is_plain = i >= 3;
        if (i % 3)
            write_file(beside("/lock.mdb"), "old");
        int reader = i % 3 == 2 ? open(beside("/lock.mdb"), O_RDWR) : -1;
        if (reader >= 0)
            ck_assert_int_eq(fcntl(reader, F_OFD_SETLK, &first), 0);
        struct staging staging = open_staging(&options);
        fill(&staging, "new");
        looks = 0;
        giving_way = check_held;
        ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
        giving_way = NULL;
        ck_assert_int_eq(looks, 2);
        staging_close(&staging, 0);
        ck_assert(has_text(beside("/data.mdb"), "new"));
        ck_assert(!is_there(beside("/lock.mdb")));
        ck_assert(!is_there(beside(".leat-part")));
        if (reader >= 0)
            close(reader);
    }
}
END_TEST

/* What is made, resumed, made anew, and made first. */
START_TEST(readers_of_what_is_staged_keep_nothing_from_being_replaced)
{
    for (int i = 0; i < 4; i++) {
        struct staging_options options = options_of(1);
        options.restart = i == 2;
        if (i < 3)
            make_database(path, "old");
        if (i == 1 || i == 2)
            die_after(1, FILLED, "half");
        readers = 3;
        struct staging staging = open_staging(&options);
        fill(&staging, "new");
        readers = 3;
        ck_assert_msg(staging_publish(&staging, 0) == LEAT_OK, "%s",
                      leat_last_error());
        readers = 3;
        staging_close(&staging, 0);
        ck_assert_int_eq(readers, i < 3 ? 0 : 3);
        ck_assert(has_text(beside("/data.mdb"), "new"));
        ck_assert(!is_there(beside(".leat-part")));
        tear_down();
        set_up();
    }
}
END_TEST

/* Before the work. */
START_TEST(a_data_file_that_is_none_is_refused)
{
    struct staging_options options = options_of(1);
    struct staging staging;
    make_database(path, "old");
    ck_assert_int_eq(unlink(beside("/data.mdb")), 0);
    ck_assert_int_eq(_i ? mkfifo(beside("/data.mdb"), 0666)
                        : mkdir(beside("/data.mdb"), 0777),
                     0);
    ck_assert_int_eq(staging_check(&options), LEAT_EINVAL);
    ck_assert_int_eq(staging_open(&staging, &options), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), beside("/data.mdb: ")));
    ck_assert(!is_there(beside(".leat-part")) && is_there(beside("/data.mdb")));
    ck_assert_int_eq(remove(beside("/data.mdb")), 0);
}
END_TEST

START_TEST(a_database_whose_directory_cannot_be_written_to_is_refused)
{
    struct staging_options options = options_of(1);
    struct staging staging;
    make_database(path, "old");
    ck_assert_int_eq(chmod(path, 0555), 0);
    ck_assert_int_eq(chmod(directory, 0777), 0);
    nobody_enter();
    int status = staging_open(&staging, &options);
    nobody_leave();
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "cannot replace its"));
    ck_assert(!is_there(beside(".leat-part")));
    ck_assert(has_text(beside("/data.mdb"), "old"));
    ck_assert_int_eq(chmod(path, 0755), 0);
}
END_TEST

START_TEST(what_cannot_give_way_stays_with_its_database)
{
    struct staging_options options = options_of(1);
    make_database(path, "old");
    struct staging staging;
    ck_assert_int_eq(mkdir(beside("/lock.mdb"), 0777), 0);
    ck_assert_int_eq(staging_open(&staging, &options), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), beside("/lock.mdb: ")));
    ck_assert(!is_there(beside(".leat-part")));
    ck_assert_int_eq(rmdir(beside("/lock.mdb")), 0);
    staging = open_staging(&options);
    fill(&staging, "new");
    ck_assert_int_eq(mkdir(beside("/lock.mdb"), 0777), 0);
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), beside("/lock.mdb: ")));
    ck_assert(has_text(beside("/data.mdb"), "old"));
    ck_assert_int_eq(rmdir(beside("/lock.mdb")), 0);
    write_file(beside("/lock.mdb"), "old");
    data_error = EIO;
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_EIO);
    ck_assert(has_text(beside("/data.mdb"), "old"));
    ck_assert(has_text(beside("/lock.mdb"), "old"));
    data_error = 0;
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
    ck_assert(has_text(beside("/data.mdb"), "new"));
    staging_close(&staging, 0);
    ck_assert(!is_there(beside(".leat-part")));
}
END_TEST

/* Which its file has already as the last rename fails. */
START_TEST(a_run_resumes_whatever_the_permissions_of_what_it_replaces)
{
    static const mode_t modes[] = {0444, 0400, 0200, 0644};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct staging_options options = options_of(1);
        struct stat found;
        make_database(path, "old");
        ck_assert_int_eq(chmod(beside("/data.mdb"), modes[i]), 0);
        struct staging staging = open_staging(&options);
        fill(&staging, "new");
        data_error = EIO;
        ck_assert_int_eq(staging_publish(&staging, 0), LEAT_EIO);
        staging_close(&staging, 1);
        data_error = 0;
        staging = open_staging(&options);
        ck_assert_int_eq(staging.state, STAGING_RESUMED);
        ck_assert_int_eq(stat(beside(".leat-part/database/data.mdb"), &found),
                         0);
        ck_assert_uint_eq(found.st_mode & 0600, 0600);
        ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
        staging_close(&staging, 0);
        ck_assert_int_eq(stat(beside("/data.mdb"), &found), 0);
        ck_assert_uint_eq(found.st_mode & 07777, modes[i]);
        ck_assert_int_eq(unlink(beside("/data.mdb")), 0);
        ck_assert_int_eq(rmdir(path), 0);
    }
}
END_TEST

START_TEST(what_replaces_a_private_database_is_private_while_it_is_made)
{
    static const struct {
        mode_t of_target, of_data, of_others;
    } cases[] = {{0755, 0600, 0},   {0755, 0640, 0},    {0755, 0604, 0},
                 {0700, 0644, 0},   {0750, 0644, 0},    {0711, 0644, 0},
                 {0744, 0644, 0},   {0755, 0644, 055},  {0777, 0444, 075},
                 {0775, 0644, 075}, {02770, 0600, 0},   {02770, 0640, 0},
                 {03770, 0660, 0},  {02770, 0664, 070}, {02775, 0660, 070}};
    mode_t mask = umask(002);
    make_database(path, "old");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct staging_options options = options_of(1);
        struct stat found;
        ck_assert_int_eq(chmod(path, cases[i].of_target), 0);
        ck_assert_int_eq(chmod(beside("/data.mdb"), cases[i].of_data), 0);
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(stat(beside(".leat-part"), &found), 0);
        ck_assert_uint_eq(found.st_mode & 077, cases[i].of_others);
        ck_assert_int_eq(stat(beside(".leat-part/database"), &found), 0);
        ck_assert_uint_eq(found.st_mode & 077 & ~cases[i].of_target, 0);
        staging_close(&staging, 0);
    }
    umask(mask);
}
END_TEST

/* Where all may read it, too: its part is of its group, or no group writes to
   that. */
START_TEST(a_part_may_be_written_to_by_no_other_group)
{
    static const struct {
        gid_t group;
        mode_t of_target, of_part;
    } cases[] = {{77, 0775, 0775}, {4321, 0775, 0755}, {4321, 0777, 0775},
                 {77, 0755, 0755}, {4321, 0755, 0755}, {55, 0775, 0775}};
    gid_t groups[] = {77};
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    ck_assert_int_eq(chmod(directory, 0777), 0);
    ck_assert_int_eq(setgroups(1, groups), 0);
    mode_t mask = umask(002);
    make_database(path, "old");
    ck_assert_int_eq(chmod(beside("/data.mdb"), 0664), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct staging_options options = options_of(1);
        struct stat found[2];
        ck_assert_int_eq(chown(path, 6789, cases[i].group), 0);
        ck_assert_int_eq(chmod(path, cases[i].of_target), 0);
        ck_assert_int_eq(setegid(55), 0);
        ck_assert_int_eq(seteuid(6789), 0);
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(stat(beside(".leat-part"), &found[0]), 0);
        ck_assert_int_eq(stat(beside(".leat-part/database"), &found[1]), 0);
        staging_close(&staging, 0);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(setegid(0), 0);
        for (int j = 0; j < 2; j++) {
            ck_assert_uint_eq(found[j].st_mode & 07777, cases[i].of_part);
            if (cases[i].of_target == 0775 && cases[i].of_part == 0775)
                ck_assert_uint_eq(found[j].st_gid, cases[i].group);
        }
    }
    umask(mask);
}
END_TEST

/* A link to the data, which may be on another disk, says nothing. */
START_TEST(what_replaces_a_link_has_the_permissions_of_its_file)
{
    struct staging_options options = options_of(1);
    struct stat found;
    mode_t mask = umask(022);
    make_database(path, "old");
    ck_assert_int_eq(chmod(beside("/data.mdb"), 0600), 0);
    ck_assert_int_eq(rename(beside("/data.mdb"), beside(".data")), 0);
    ck_assert_int_eq(symlink(beside(".data"), beside("/data.mdb")), 0);
    struct staging staging = open_staging(&options);
    ck_assert_int_eq(stat(beside(".leat-part"), &found), 0);
    ck_assert_uint_eq(found.st_mode & 077, 0);
    fill(&staging, "new");
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
    staging_close(&staging, 0);
    ck_assert_int_eq(lstat(beside("/data.mdb"), &found), 0);
    ck_assert_uint_eq(found.st_mode, S_IFREG | 0600);
    ck_assert(has_text(beside(".data"), "old"));
    umask(mask);
}
END_TEST

/* A write of the journal that a kill or a full disk cut short. */
START_TEST(a_journal_cut_short_loses_nothing)
{
    static const char text[] =
        "leat import 2\nwheat\ncomplete: 41 inode 9999\n";
    struct staging_options options = options_of(0);
    for (size_t length = 0; length < sizeof(text); length++) {
        char found[sizeof(text)];
        snprintf(found, length + 1, "%s", text);
        die_after(0, FILLED, "half");
        write_file(beside(".leat-part/journal"), found);
        if (length && length < strlen("leat import 2\nwheat\n")) {
            refuses(&options, "unfinished import of other");
            options.restart = 1;
        }
        struct staging staging = open_staging(&options);
        ck_assert_int_eq(staging.state,
                         length < strlen("leat import 2\nwheat\n")
                             ? STAGING_FRESH
                             : STAGING_RESUMED);
        staging_close(&staging, 0);
        options.restart = 0;
    }
}
END_TEST

START_TEST(other_arguments_tidy_up_and_start_over)
{
    struct staging_options options = options_of(1);
    die_after(0, PUBLISHED, "whole");
    options.arguments = "rye\n";
    options.replace = 0;
    refuses(&options, "exists already");
    ck_assert(!is_there(beside(".leat-part")));
    die_after(1, PUBLISHED, "whole");
    options.replace = 1;
    struct staging staging = open_staging(&options);
    ck_assert_int_eq(staging.state, STAGING_FRESH);
    ck_assert_int_lt(staging.result, 0);
    ck_assert(has_text(beside("/data.mdb"), "whole"));
    staging_close(&staging, 0);
}
END_TEST

START_TEST(a_second_run_is_refused)
{
    struct staging_options options = options_of(0);
    struct staging staging = open_staging(&options);
    refuses(&options, "another leat is writing it");
    options.restart = 1;
    refuses(&options, "another leat is writing it");
    ck_assert(is_there(staging.database));
    staging_close(&staging, 0);
}
END_TEST

START_TEST(other_files_are_left_alone)
{
    struct staging_options options = options_of(0);
    make_database(path, "mine");
    refuses(&options, "--force would replace it");
    ck_assert(!is_there(beside(".leat-part")));
    write_file(beside("/letter"), "dear");
    options.replace = 1;
    refuses(&options, "is no database directory");
    ck_assert(has_text(beside("/letter"), "dear"));
    ck_assert_int_eq(mkdir(beside(".leat-part"), 0777), 0);
    ck_assert_int_eq(rename(path, beside(".leat-part/database")), 0);
    options.restart = 1;
    refuses(&options, "files that leat did not write");
    ck_assert(has_text(beside(".leat-part/database/letter"), "dear"));
    ck_assert_int_eq(
        rename(beside(".leat-part/database"), beside(".leat-part/mine")), 0);
    refuses(&options, "files that leat did not write");
    ck_assert(has_text(beside(".leat-part/mine/letter"), "dear"));
    options.target = "";
    refuses(&options, "needs a path");
    options.target = "/nowhere/db";
    refuses(&options, "in /nowhere: No such file");
}
END_TEST

START_TEST(a_target_that_came_meanwhile_is_not_replaced)
{
    struct staging_options options = options_of(0);
    struct staging staging = open_staging(&options);
    fill(&staging, "mine");
    make_database(path, "another's");
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "meanwhile"));
    staging_close(&staging, 0);
    ck_assert(has_text(beside("/data.mdb"), "another's"));
}
END_TEST

static void make_empty_directory(void)
{
    ck_assert_int_eq(mkdir(path, 0777), 0);
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
    struct staging_options options = options_of(0);
    for (int i = 0; i < 5; i++) {
        struct staging staging = open_staging(&options);
        fill(&staging, "mine");
        is_plain = i >= 3;
        meanwhile = comes[i % 3];
        options.arguments = NULL;
        ck_assert_int_eq(staging_publish(&staging, 0), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                     "made it meanwhile; it was not replaced"));
        ck_assert(meanwhile == NULL);
        ck_assert(has_text(beside(".leat-part/database/data.mdb"), "mine"));
        if (i % 3 == 0)
            ck_assert(has_text(beside("/data.mdb"), "theirs"));
        else if (i % 3 == 1)
            ck_assert(has_text(path, "theirs"));
        staging_close(&staging, 0);
        ck_assert(!is_there(beside(".leat-part")));
        tear_down();
        set_up();
    }
}
END_TEST

/* The directory `one`, in which `path` is, gives its name to `other`: that is
   another one then, or one that a link leads to. */
static char one[40], other[40];

static void replace_directory(void)
{
    char was[48];
    snprintf(was, sizeof(was), "%s.was", one);
    ck_assert_int_eq(rename(one, was), 0);
    ck_assert_int_eq(rename(other, one), 0);
}

static void make_directories(int is_linked)
{
    char real[48];
    snprintf(one, sizeof(one), "%s/current", directory);
    snprintf(other, sizeof(other), "%s/next", directory);
    snprintf(path, sizeof(path), "%s/db", one);
    snprintf(real, sizeof(real), "%s/%s", directory,
             is_linked ? "v1" : "current");
    ck_assert_int_eq(mkdir(real, 0777), 0);
    if (is_linked)
        ck_assert_int_eq(symlink("v1", one), 0);
    snprintf(real, sizeof(real), "%s/%s", directory, is_linked ? "v2" : "next");
    ck_assert_int_eq(mkdir(real, 0777), 0);
    if (is_linked)
        ck_assert_int_eq(symlink("v2", other), 0);
}

/* With one there to be replaced or not; the new one is kept or not. */
START_TEST(a_target_whose_directory_became_another_is_not_made)
{
    const int replaces = _i & 1, is_linked = _i >> 1 & 1, keep = _i >> 2;
    struct staging_options options = options_of(replaces);
    char text[96], first[64];
    make_directories(is_linked);
    snprintf(first, sizeof(first), "%s/%s/db", directory,
             is_linked ? "v1" : "current.was");
    if (replaces)
        make_database(path, "first");
    struct staging staging = open_staging(&options);
    fill(&staging, "new");
    replace_directory();
    if (replaces)
        make_database(path, "second");
    ck_assert_int_eq(mkdir(beside(".leat-part"), 0777), 0);
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_ESTATE);
    snprintf(text, sizeof(text), "not that of %s.leat-part", first);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), text));
    staging_close(&staging, keep);
    ck_assert_int_eq(is_there(path), replaces);
    ck_assert(!replaces || has_text(beside("/data.mdb"), "second"));
    ck_assert_int_eq(rmdir(beside(".leat-part")), 0);
    snprintf(path, sizeof(path), "%s", first);
    ck_assert_int_eq(is_there(path), replaces);
    ck_assert(!replaces || has_text(beside("/data.mdb"), "first"));
    ck_assert_int_eq(is_there(beside(".leat-part")), keep);
    staging = open_staging(&options);
    ck_assert_int_eq(staging.state, keep ? STAGING_RESUMED : STAGING_FRESH);
    staging_close(&staging, 0);
}
END_TEST

/* What is made lies beside its staging directory. */
START_TEST(a_directory_that_becomes_another_at_the_last_moment_gets_nothing)
{
    struct staging_options options = options_of(0);
    make_directories(_i);
    struct staging staging = open_staging(&options);
    fill(&staging, "new");
    meanwhile = replace_directory;
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
    staging_close(&staging, 0);
    ck_assert(!is_there(path));
    snprintf(path, sizeof(path), "%s/%s/db", directory,
             _i ? "v1" : "current.was");
    ck_assert(has_text(beside("/data.mdb"), "new"));
    ck_assert(!is_there(beside(".leat-part")));
}
END_TEST

/* What is planted in the directory of a stopped run: nothing is written through
   it, and no open waits for its other end. */
START_TEST(links_and_pipes_in_the_directory_are_not_followed)
{
    static const char *const names[] = {
        "journal", "database", "database/data.mdb", "database/lock.mdb"};
    struct staging_options options = options_of(0);
    char name[160], victim[128];
    for (int i = 0; i < 8; i++) {
        const char *plant = names[i / 2];
        die_after(0, FILLED, "half");
        snprintf(victim, sizeof(victim), "%s/victim", directory);
        write_file(victim, "precious");
        snprintf(name, sizeof(name), "%s.leat-part/%s", path, plant);
        if (!strcmp(plant, "database"))
            ck_assert_int_eq(rename(name, beside(".aside")), 0);
        unlink(name);
        if (i % 2)
            ck_assert_int_eq(mkfifo(name, 0600), 0);
        else
            ck_assert_int_eq(symlink(victim, name), 0);
        struct staging staging;
        for (int restart = 0; restart < 2; restart++) {
            options.restart = restart;
            if (staging_open(&staging, &options) == LEAT_OK)
                staging_close(&staging, 1);
            else
                ck_assert_ptr_nonnull(
                    strstr(leat_last_error(),
                           i == 0   ? "journal: cannot be read: Too"
                           : i == 1 ? "journal: cannot be read: no file"
                                    : ".leat-part"));
            ck_assert(has_text(victim, "precious"));
        }
        int is_refused = i / 2 <= 1;
        ck_assert_int_eq(staging_open(&staging, &options) != 0, is_refused);
        if (!is_refused) {
            fill(&staging, "new");
            ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
            staging_close(&staging, 0);
            ck_assert(has_text(beside("/data.mdb"), "new"));
        }
        ck_assert(has_text(victim, "precious"));
        tear_down();
        set_up();
    }
}
END_TEST

/* Of which nobody reads the other end, or somebody does. */
START_TEST(a_pipe_that_came_in_the_place_of_the_journal_is_an_error)
{
    struct staging_options options = options_of(0);
    struct staging staging = open_staging(&options);
    const char *journal = beside(".leat-part/journal");
    fill(&staging, "mine");
    ck_assert_int_eq(unlink(journal), 0);
    ck_assert_int_eq(mkfifo(journal, 0600), 0);
    int fd = _i ? open(journal, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    ck_assert_int_eq(fd >= 0, _i);
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "db.leat-part: "));
    staging_close(&staging, 0);
    ck_assert(!is_there(path));
    if (fd >= 0)
        close(fd);
}
END_TEST

START_TEST(linked_directories_are_refused)
{
    struct staging_options options = options_of(1);
    char theirs[128];
    for (int i = 0; i < 2; i++) {
        snprintf(theirs, sizeof(theirs), "%s/theirs", directory);
        make_database(theirs, "precious");
        if (i)
            ck_assert_int_eq(mkdir(beside(".leat-part"), 0777), 0);
        const char *link = beside(i ? ".leat-part/database" : ".leat-part");
        ck_assert_int_eq(symlink(theirs, link), 0);
        refuses(&options, ".leat-part");
        snprintf(theirs, sizeof(theirs), "%s/theirs/data.mdb", directory);
        ck_assert(has_text(theirs, "precious"));
        ck_assert(is_there(link));
        tear_down();
        set_up();
    }
}
END_TEST

START_TEST(a_link_stays_and_its_target_is_replaced)
{
    char real[64];
    snprintf(real, sizeof(real), "%s/real", directory);
    make_database(real, "old");
    ck_assert_int_eq(symlink(real, path), 0);
    struct staging_options options = options_of(1);
    struct staging staging = open_staging(&options);
    ck_assert_str_eq(staging.target, real);
    fill(&staging, "new");
    ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
    staging_close(&staging, 0);
    struct stat link;
    ck_assert_int_eq(lstat(path, &link), 0);
    ck_assert(S_ISLNK(link.st_mode));
    ck_assert(has_text(beside("/data.mdb"), "new"));
}
END_TEST

/* Whose path in /proc is that of another one. */
START_TEST(what_replaces_a_removed_directory_replaces_no_other)
{
    char opened[32];
    ck_assert_int_eq(mkdir(path, 0777), 0);
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(rmdir(path), 0);
    make_database(beside(" (deleted)"), "other");
    snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
    struct staging_options options = options_of(1);
    options.target = opened;
    refuses(&options, opened);
    ck_assert(!is_there(beside(" (deleted).leat-part")));
    ck_assert(has_text(beside(" (deleted)/data.mdb"), "other"));
    close(fd);
}
END_TEST

START_TEST(why_a_long_path_cannot_be_made_is_told)
{
    char long_path[5000];
    struct staging staging;
    for (size_t i = 0; i < sizeof(long_path) - 1; i++)
        long_path[i] = i % 100 ? 'd' : '/';
    long_path[sizeof(long_path) - 1] = 0;
    struct staging_options options = options_of(0);
    options.target = long_path;
    ck_assert_int_eq(staging_open(&staging, &options), LEAT_EIO);
    ck_assert_msg(strstr(leat_last_error(), ": File name too long") != NULL,
                  "%s", leat_last_error());
}
END_TEST

/* A slash does not follow the link; "." and ".." are the directory's name. */
START_TEST(a_target_has_the_name_that_another_can_be_beside)
{
    char real[64], was[256];
    struct staging_options options = options_of(1);
    snprintf(real, sizeof(real), "%s/real", directory);
    make_database(real, "old");
    ck_assert_int_eq(mkdir(beside(".in"), 0777), 0);
    ck_assert_int_eq(symlink(real, path), 0);
    ck_assert_ptr_nonnull(getcwd(was, sizeof(was)));
    ck_assert_int_eq(chdir(real), 0);
    const char *const targets[] = {beside("/"), ".", "./", beside("//")};
    for (int i = 0; i < 4; i++) {
        options.target = targets[i];
        struct staging staging = open_staging(&options);
        ck_assert_str_eq(staging.target, real);
        fill(&staging, "new");
        ck_assert_int_eq(staging_publish(&staging, 0), LEAT_OK);
        staging_close(&staging, 0);
        ck_assert(has_text(beside("/data.mdb"), "new"));
    }
    ck_assert_int_eq(chdir(beside(".in")), 0);
    options.target = "..";
    refuses(&options, directory);
    ck_assert_int_eq(chdir(was), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("staging");
    TCase *tcase = tcase_create("staging");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, publishing_leaves_the_database_and_nothing_else);
    tcase_add_test(tcase, an_unpublished_database_is_removed_unless_kept);
    tcase_add_test(tcase, the_same_arguments_resume_after_a_kill_at_any_point);
    tcase_add_test(tcase,
                   a_run_killed_after_publishing_is_complete_with_its_result);
    tcase_add_test(tcase,
                   a_run_in_place_is_complete_unless_its_other_inputs_changed);
    tcase_add_test(tcase, a_run_in_place_is_complete_on_another_mount);
    tcase_add_test(tcase, a_published_database_is_not_resumed);
    tcase_add_test(tcase, a_changed_file_of_the_same_inode_is_not_complete);
    tcase_add_test(tcase,
                   a_complete_run_is_made_again_where_it_is_to_be_restarted);
    tcase_add_test(tcase, a_database_is_replaced_in_its_directory);
    tcase_add_test(tcase, openers_wait_while_a_database_is_replaced);
    tcase_add_test(tcase,
                   readers_of_what_is_staged_keep_nothing_from_being_replaced);
    tcase_add_loop_test(tcase, a_data_file_that_is_none_is_refused, 0, 2);
    tcase_add_test(tcase,
                   a_database_whose_directory_cannot_be_written_to_is_refused);
    tcase_add_test(tcase, what_cannot_give_way_stays_with_its_database);
    tcase_add_test(tcase,
                   a_run_resumes_whatever_the_permissions_of_what_it_replaces);
    tcase_add_test(
        tcase, what_replaces_a_private_database_is_private_while_it_is_made);
    tcase_add_test(tcase, a_part_may_be_written_to_by_no_other_group);
    tcase_add_test(tcase, what_replaces_a_link_has_the_permissions_of_its_file);
    tcase_add_test(tcase, a_journal_cut_short_loses_nothing);
    tcase_add_test(tcase, other_arguments_tidy_up_and_start_over);
    tcase_add_test(tcase, a_second_run_is_refused);
    tcase_add_test(tcase, other_files_are_left_alone);
    tcase_add_test(tcase, a_target_that_came_meanwhile_is_not_replaced);
    tcase_add_test(tcase,
                   a_target_that_comes_at_the_last_moment_is_not_replaced);
    tcase_add_loop_test(
        tcase, a_target_whose_directory_became_another_is_not_made, 0, 8);
    tcase_add_loop_test(
        tcase, a_directory_that_becomes_another_at_the_last_moment_gets_nothing,
        0, 2);
    tcase_add_test(tcase, links_and_pipes_in_the_directory_are_not_followed);
    tcase_add_loop_test(
        tcase, a_pipe_that_came_in_the_place_of_the_journal_is_an_error, 0, 2);
    tcase_add_test(tcase, linked_directories_are_refused);
    tcase_add_test(tcase, a_link_stays_and_its_target_is_replaced);
    tcase_add_test(tcase, what_replaces_a_removed_directory_replaces_no_other);
    tcase_add_test(tcase, a_target_has_the_name_that_another_can_be_beside);
    tcase_add_test(tcase, why_a_long_path_cannot_be_made_is_told);
    return suite_run(suite);
}
