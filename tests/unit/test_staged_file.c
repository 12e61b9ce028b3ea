/* What stands at the name of a staged file is never opened, and never replaced
   by anything but a complete file. */
#include "base/file_access.h"
#include "support/few_users.h"
#include "support/suite.h"
#include "tools/cli/staged_file.h"

#include <leat/status.h>

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static char directory[] = "/tmp/leat_staged_XXXXXX";
static char target[64];

/* How many of the next draws give zeros, which are the letters "aaaaaa". */
static int rigged;

ssize_t getrandom(void *out, size_t size, unsigned flags)
{
    if (rigged <= 0)
        return syscall(SYS_getrandom, out, size, flags);
    rigged--;
    memset(out, 0, size);
    return (ssize_t)size;
}

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(target, sizeof(target), "%s/sheet.png", directory);
    rigged = 0;
}

static void tear_down(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* Borrowed until the next call. */
static const char *in(const char *name)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s/%s", directory, name);
    return text;
}

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static int has_text(const char *name, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(found, 1, sizeof(found) - 1, file);
    fclose(file);
    return n == strlen(text) && !memcmp(found, text, n);
}

static int count_files(void)
{
    int n = 0;
    DIR *entries = opendir(directory);
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *e; (e = readdir(entries));)
        n += e->d_name[0] != '.';
    closedir(entries);
    return n;
}

static void create(struct staged_file *file)
{
    int status = staged_file_create(file, target);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

static void publish(struct staged_file *file, const char *text)
{
    fputs(text, file->stream);
    ck_assert_int_eq(staged_file_close(file, target), LEAT_OK);
    ck_assert_int_eq(staged_file_publish(file, target), LEAT_OK);
    staged_file_discard(file);
}

START_TEST(a_file_appears_when_it_is_published)
{
    struct staged_file file;
    write_file(target, "old");
    create(&file);
    fputs("ne", file.stream);
    fflush(file.stream);
    ck_assert(has_text(target, "old"));
    ck_assert_int_eq(count_files(), 2);
    publish(&file, "w");
    ck_assert(has_text(target, "new"));
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(what_is_discarded_leaves_nothing)
{
    struct staged_file file;
    create(&file);
    staged_file_discard(&file);
    ck_assert_int_eq(count_files(), 0);
    create(&file);
    ck_assert_int_eq(staged_file_close(&file, target), LEAT_OK);
    staged_file_discard(&file);
    staged_file_discard(&file);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(several_of_one_target_are_several_files)
{
    struct staged_file file[10];
    char text[4];
    for (int i = 0; i < 10; i++)
        create(&file[i]);
    ck_assert_int_eq(count_files(), 10);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "%d", i);
        publish(&file[i], text);
        ck_assert(has_text(target, text));
    }
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* Whoever guesses the name gains nothing by it. */
START_TEST(nothing_that_has_the_name_is_opened)
{
    struct staged_file file;
    char name[128], victim[128], nowhere[128];
    snprintf(name, sizeof(name), "%s", in("sheet.png.leat-aaaaaa"));
    snprintf(victim, sizeof(victim), "%s", in("victim"));
    snprintf(nowhere, sizeof(nowhere), "%s", in("nowhere"));
    for (int kind = 0; kind < 5; kind++) {
        write_file(victim, "dear");
        if (kind == 0)
            ck_assert_int_eq(symlink(victim, name), 0);
        else if (kind == 1)
            ck_assert_int_eq(symlink("nowhere", name), 0);
        else if (kind == 2)
            ck_assert_int_eq(mkfifo(name, 0600), 0);
        else if (kind == 3)
            ck_assert_int_eq(link(victim, name), 0);
        else
            write_file(name, "theirs");
        rigged = 3;
        create(&file);
        ck_assert_int_eq(rigged, 0);
        ck_assert_str_ne(file.path, name);
        publish(&file, "sheet");
        ck_assert(has_text(target, "sheet"));
        ck_assert(has_text(victim, "dear"));
        ck_assert_int_eq(access(nowhere, F_OK), -1);
        ck_assert_int_eq(unlink(name), 0);
        ck_assert_int_eq(count_files(), 2);
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_created_is_an_error)
{
    struct staged_file file = {0};
    write_file(in("sheet.png.leat-aaaaaa"), "theirs");
    rigged = 1000;
    ck_assert_int_eq(staged_file_create(&file, target), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), target));
    rigged = 0;
    ck_assert_int_eq(count_files(), 1);
    ck_assert_int_eq(staged_file_create(&file, in("none/sheet.png")), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "none/sheet.png: "));
    ck_assert_ptr_null(file.path);
}
END_TEST

/* The access of a file that replaces one of that user, group and mode. */
static struct stat replaced(uid_t user, gid_t group, mode_t mode)
{
    struct staged_file file;
    struct stat found;
    unlink(target);
    write_file(target, "old");
    ck_assert_int_eq(chown(target, user, group), 0);
    ck_assert_int_eq(chmod(target, mode), 0);
    create(&file);
    ck_assert_int_eq(fstat(fileno(file.stream), &found), 0);
    publish(&file, "new");
    return found;
}

START_TEST(a_file_has_the_access_of_the_one_that_it_replaces)
{
    static const mode_t modes[] = {0600, 0640, 0664, 0604, 0660, 0200, 0644};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct stat found = replaced((uid_t)-1, (gid_t)-1, modes[i]);
        ck_assert_uint_eq(found.st_mode & 07777, modes[i]);
        ck_assert_int_eq(found.st_uid, geteuid());
    }
    struct staged_file file;
    struct stat found;
    ck_assert_int_eq(unlink(target), 0);
    ck_assert_int_eq(symlink("nowhere", target), 0);
    create(&file);
    ck_assert_int_eq(fstat(fileno(file.stream), &found), 0);
    mode_t mask = umask(0);
    ck_assert_uint_eq(found.st_mode & 07777, 0666 & ~mask);
    staged_file_discard(&file);
}
END_TEST

/* The permissions that a file has when its own are set. */
static mode_t first_mode;

int fchmod(int fd, mode_t mode)
{
    struct stat found;
    ck_assert_int_eq(fstat(fd, &found), 0);
    first_mode = found.st_mode & 0777;
    return (int)syscall(SYS_fchmod, fd, mode);
}

START_TEST(nobody_opens_a_file_before_it_has_its_access)
{
    struct staged_file file;
    mode_t old = umask(0);
    write_file(target, "old");
    ck_assert_int_eq(chmod(target, 0640), 0);
    create(&file);
    ck_assert_int_eq(first_mode, 0600);
    publish(&file, "new");
    umask(old);
}
END_TEST

START_TEST(a_superuser_keeps_owner_and_group)
{
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    for (int i = 0; i < 4; i++) {
        uid_t user = i & 1 ? 1234 : 0;
        gid_t group = i & 2 ? 4321 : 0;
        struct stat found = replaced(user, group, 0640);
        ck_assert_int_eq(found.st_uid, user);
        ck_assert_int_eq(found.st_gid, group);
        ck_assert_uint_eq(found.st_mode & 07777, 0640);
    }
}
END_TEST

static void replace_target(void)
{
    struct staged_file file;
    create(&file);
    publish(&file, "new");
}

/* Which is shown as a user and a group that are others. */
START_TEST(an_unknown_owner_and_group_are_not_kept)
{
    enum { UNKNOWN = 70000, SHOWN = 65534 };
    struct stat found;
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    write_file(target, "old");
    ck_assert_int_eq(chown(target, UNKNOWN, UNKNOWN), 0);
    ck_assert_int_eq(chmod(target, 0664), 0);
    if (!few_users_do(replace_target)) {
        fprintf(stderr, "skipped: no user namespaces\n");
        return;
    }
    ck_assert_int_eq(stat(target, &found), 0);
    ck_assert_int_eq(found.st_uid, 0);
    ck_assert_int_eq(found.st_gid, 0);
    ck_assert_uint_eq(found.st_mode & 07777, 0644);
    /* Where all are known they are a user and a group as any. */
    found = replaced(SHOWN, SHOWN, 0640);
    ck_assert_int_eq(found.st_uid, SHOWN);
    ck_assert_int_eq(found.st_gid, SHOWN);
    ck_assert_uint_eq(found.st_mode & 07777, 0640);
}
END_TEST

/* A group that the process is not in: its own may do no more than all, and all
   no more than that group, which is among them by then. */
START_TEST(another_group_may_do_no_more_than_all)
{
    static const struct {
        gid_t group;
        mode_t before, after;
    } cases[] = {{4321, 0660, 0600}, {4321, 0664, 0644}, {4321, 0646, 0644},
                 {4321, 0604, 0600}, {4321, 0600, 0600}, {77, 0660, 0660},
                 {77, 0604, 0604},   {55, 0640, 0640}};
    gid_t groups[] = {77};
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    ck_assert_int_eq(chmod(directory, 0777), 0);
    ck_assert_int_eq(setgroups(1, groups), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct staged_file file;
        struct stat found;
        unlink(target);
        write_file(target, "old");
        ck_assert_int_eq(chown(target, 1234, cases[i].group), 0);
        ck_assert_int_eq(chmod(target, cases[i].before), 0);
        ck_assert_int_eq(setegid(55), 0);
        ck_assert_int_eq(seteuid(6789), 0);
        create(&file);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(setegid(0), 0);
        ck_assert_int_eq(fstat(fileno(file.stream), &found), 0);
        ck_assert_uint_eq(found.st_mode & 07777, cases[i].after);
        ck_assert_int_eq(found.st_uid, 6789);
        ck_assert_int_eq(found.st_gid,
                         cases[i].group == 4321 ? 55 : cases[i].group);
        staged_file_discard(&file);
    }
}
END_TEST

/* Of the owner, user 1234, the group, the mask and all. */
struct list {
    uint32_t version;
    struct {
        uint16_t tag, permissions;
        uint32_t id;
    } entry[5];
};

static struct list list_of(uint16_t of_user, uint16_t of_group, uint16_t mask,
                           uint16_t of_all)
{
    return (struct list){2,
                         {{1, 6, UINT32_MAX},
                          {2, of_user, 1234},
                          {4, of_group, UINT32_MAX},
                          {0x10, mask, UINT32_MAX},
                          {0x20, of_all, UINT32_MAX}}};
}

/* Of group 1234 instead of the user. */
static struct list list_of_groups(uint16_t of_named, uint16_t of_group,
                                  uint16_t mask, uint16_t of_all)
{
    struct list list = list_of(of_group, of_named, mask, of_all);
    list.entry[1].tag = 4;
    list.entry[1].id = UINT32_MAX;
    list.entry[2].tag = 8;
    list.entry[2].id = 1234;
    return list;
}

static int set_list(const char *name, uint16_t of_user, uint16_t of_group,
                    uint16_t mask, uint16_t of_all)
{
    struct list list = list_of(of_user, of_group, mask, of_all);
    return setxattr(target, name, &list, sizeof(list), 0);
}

START_TEST(a_file_has_the_list_of_the_one_that_it_replaces)
{
    struct staged_file file;
    char before[64], after[64];
    write_file(target, "old");
    if (set_list("system.posix_acl_access", 6, 0, 6, 0)) {
        fprintf(stderr, "skipped: no access control lists here\n");
        return;
    }
    ssize_t n = getxattr(target, "system.posix_acl_access", before, 64);
    create(&file);
    publish(&file, "new");
    ck_assert_int_eq(getxattr(target, "system.posix_acl_access", after, 64), n);
    ck_assert(!memcmp(before, after, (size_t)n));
    /* A list that the directory gives new files is none of the old one's. */
    struct stat found;
    ck_assert_int_eq(removexattr(target, "system.posix_acl_access"), 0);
    ck_assert_int_eq(chmod(target, 0640), 0);
    char name[sizeof(target)];
    memcpy(name, target, sizeof(name));
    memcpy(target, directory, sizeof(directory));
    ck_assert_int_eq(set_list("system.posix_acl_default", 6, 6, 6, 6), 0);
    memcpy(target, name, sizeof(name));
    create(&file);
    publish(&file, "new");
    ck_assert_int_lt(getxattr(target, "system.posix_acl_access", after, 64), 0);
    ck_assert_int_eq(stat(target, &found), 0);
    ck_assert_uint_eq(found.st_mode & 07777, 0640);
}
END_TEST

static bool lets(uid_t user, gid_t group, int mode)
{
    return leat__file_lets(target, user, group, mode);
}

enum { NOBODY = 65534 };

/* Of a file that all may read, of a group that may write. */
static void expect_unknown(void)
{
    ck_assert(!lets(NOBODY, 1, R_OK));
    ck_assert(!lets(2, NOBODY, W_OK));
}

START_TEST(permissions_say_who_may_do_what)
{
    enum { OWNER = 1234, GROUP = 4321 };
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: not the superuser\n");
        return;
    }
    ck_assert(!lets(OWNER, GROUP, R_OK));
    write_file(target, "old");
    ck_assert_int_eq(chown(target, OWNER, GROUP), 0);
    ck_assert_int_eq(chmod(target, 0064), 0);
    ck_assert(lets(OWNER, 1, R_OK | W_OK));
    ck_assert(lets(2, GROUP, R_OK | W_OK));
    ck_assert(!lets(2, GROUP, R_OK | W_OK | X_OK));
    ck_assert(lets(2, 3, R_OK));
    ck_assert(!lets(2, 3, W_OK));
    ck_assert(!lets(2, 3, R_OK | W_OK));
    ck_assert(!lets(2, (gid_t)-1, W_OK));
    /* The system shows an unknown group so, of files, too. */
    ck_assert_int_eq(chown(target, OWNER, NOBODY), 0);
    ck_assert_int_eq(lets(NOBODY, 1, R_OK), leat__file_knows_user(NOBODY));
    ck_assert_int_eq(lets(2, NOBODY, W_OK), leat__file_knows_group(NOBODY));
    if (!few_users_do(expect_unknown))
        fprintf(stderr, "left out: user namespaces\n");
}
END_TEST

START_TEST(a_list_says_who_may_do_what)
{
    static const struct {
        uint16_t of_user, of_group, mask, of_all;
        bool by_name, by_group, by_all; /* reading and writing */
    } cases[] = {
        {6, 6, 6, 6, true, true, true},   {6, 0, 6, 0, true, false, false},
        {0, 6, 6, 6, false, true, true},  {6, 6, 4, 6, false, false, true},
        {6, 4, 7, 6, true, false, true},  {4, 6, 6, 4, false, true, false},
        {0, 0, 0, 6, false, false, true},
    };
    enum { NAMED = 1234, GROUP = 4321 };
    write_file(target, "old");
    if (geteuid() != 0 || chown(target, 7, GROUP) ||
        set_list("system.posix_acl_access", 6, 6, 6, 6)) {
        fprintf(stderr, "skipped: no access control lists here\n");
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(set_list("system.posix_acl_access", cases[i].of_user,
                                  cases[i].of_group, cases[i].mask,
                                  cases[i].of_all),
                         0);
        ck_assert_int_eq(lets(NAMED, 3, R_OK | W_OK), cases[i].by_name);
        ck_assert_int_eq(lets(2, GROUP, R_OK | W_OK), cases[i].by_group);
        ck_assert_int_eq(lets(2, 3, R_OK | W_OK), cases[i].by_all);
        ck_assert_int_eq(lets(2, (gid_t)-1, R_OK | W_OK), cases[i].by_all);
        ck_assert(lets(7, 3, R_OK | W_OK));
    }
}
END_TEST

/* By the list itself, not by its mask; what the file inherited goes. */
START_TEST(who_may_write_to_a_directory_may_write_to_its_files)
{
    static const char *const name = "system.posix_acl_access";
    const struct {
        struct list above, after;
    } cases[] = {
        {list_of(7, 5, 7, 0), list_of(7, 5, 6, 4)},
        {list_of(0, 7, 7, 5), list_of(0, 7, 6, 4)},
        {list_of_groups(7, 5, 7, 0), list_of_groups(7, 5, 6, 4)},
    };
    const struct list inherited = list_of(6, 6, 6, 4);
    struct list found;
    struct stat own;
    int at = open(directory, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(at, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(target, "lock");
        int fd = open(target, O_RDWR);
        if (fsetxattr(at, name, &cases[i].above, sizeof(found), 0) ||
            (i > 0 && fsetxattr(fd, name, &inherited, sizeof(found), 0))) {
            fprintf(stderr, "skipped: no access control lists here\n");
            return;
        }
        ck_assert_int_eq(fchmod(fd, 0644), 0);
        leat__file_share(fd, at);
        ck_assert_int_eq(fgetxattr(fd, name, &found, sizeof(found)),
                         sizeof(found));
        ck_assert_msg(!memcmp(&found, &cases[i].after, sizeof(found)),
                      "list %zu", i);
        close(fd);
        unlink(target);
    }
    /* One that a file got from what only new files get. */
    ck_assert_int_eq(fremovexattr(at, name), 0);
    ck_assert_int_eq(fchmod(at, 0770), 0);
    write_file(target, "lock");
    int fd = open(target, O_RDWR);
    ck_assert_int_eq(fsetxattr(fd, name, &inherited, sizeof(found), 0), 0);
    leat__file_share(fd, at);
    ck_assert_int_eq(fgetxattr(fd, name, &found, sizeof(found)), -1);
    ck_assert_int_eq(fstat(fd, &own), 0);
    ck_assert_int_eq(own.st_mode & 0777, 0664);
    close(fd);
    close(at);
}
END_TEST

/* Whatever the umask. */
START_TEST(all_write_to_a_file_only_where_they_may_to_its_directory)
{
    static const mode_t cases[][2] = {
        {0777, 0666}, {0770, 0664}, {0775, 0664}, {0755, 0664}, {0700, 0664}};
    struct stat found;
    int at = open(directory, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(at, 0);
    write_file(target, "lock");
    int fd = open(target, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(fchmod(at, cases[i][0]), 0);
        ck_assert_int_eq(fchmod(fd, 0666), 0);
        leat__file_share(fd, at);
        ck_assert_int_eq(fstat(fd, &found), 0);
        ck_assert_uint_eq(found.st_mode & 0777, cases[i][1]);
    }
    close(fd);
    close(at);
}
END_TEST

/* Where the group is another one, which is cut, not the mask: whom a list names
   may do what they could. */
START_TEST(another_group_leaves_what_a_list_gives_by_name)
{
    const struct {
        struct list before, after;
    } cases[] = {
        {list_of(6, 0, 6, 0), list_of(6, 0, 6, 0)},
        {list_of(6, 6, 6, 0), list_of(6, 0, 6, 0)},
        {list_of(6, 6, 6, 4), list_of(6, 4, 6, 4)},
        {list_of(6, 0, 6, 4), list_of(6, 0, 6, 0)},
        {list_of(0, 6, 4, 6), list_of(0, 6, 4, 4)},
        {list_of_groups(6, 0, 6, 0), list_of_groups(6, 0, 6, 0)},
        {list_of_groups(6, 4, 6, 4), list_of_groups(6, 4, 6, 4)},
        {list_of_groups(0, 6, 6, 4), list_of_groups(0, 0, 6, 4)},
    };
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    ck_assert_int_eq(chmod(directory, 0777), 0);
    ck_assert_int_eq(setgroups(0, NULL), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static const char *const name = "system.posix_acl_access";
        struct staged_file file;
        struct list found;
        unlink(target);
        write_file(target, "old");
        ck_assert_int_eq(chown(target, 1234, 4321), 0);
        if (setxattr(target, name, &cases[i].before, sizeof(found), 0)) {
            fprintf(stderr, "skipped: no access control lists here\n");
            return;
        }
        ck_assert_int_eq(setegid(55), 0);
        ck_assert_int_eq(seteuid(6789), 0);
        create(&file);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(setegid(0), 0);
        publish(&file, "new");
        ck_assert_int_eq(getxattr(target, name, &found, sizeof(found)),
                         sizeof(found));
        ck_assert_msg(!memcmp(&found, &cases[i].after, sizeof(found)),
                      "list %zu", i);
    }
}
END_TEST

/* Of as many users as the file system holds. */
START_TEST(a_long_list_is_kept_whole)
{
    enum { USERS = 300 };
    struct {
        uint32_t version;
        struct {
            uint16_t tag, permissions;
            uint32_t id;
        } entry[USERS + 4];
    } list = {2, {{1, 6, UINT32_MAX}}}, after;
    for (uint32_t i = 0; i < USERS; i++) {
        list.entry[i + 1].tag = 2;
        list.entry[i + 1].permissions = 4;
        list.entry[i + 1].id = 1000 + i;
    }
    for (int i = 0; i < 3; i++) {
        static const uint16_t tags[] = {4, 0x10, 0x20};
        list.entry[USERS + 1 + i].tag = tags[i];
        list.entry[USERS + 1 + i].permissions = i < 2 ? 4 : 0;
        list.entry[USERS + 1 + i].id = UINT32_MAX;
    }
    struct staged_file file;
    write_file(target, "old");
    if (setxattr(target, "system.posix_acl_access", &list, sizeof(list), 0)) {
        fprintf(stderr, "skipped: no long access control lists here\n");
        return;
    }
    create(&file);
    publish(&file, "new");
    ck_assert_int_eq(
        getxattr(target, "system.posix_acl_access", &after, sizeof(after)),
        sizeof(after));
    ck_assert(!memcmp(&list, &after, sizeof(list)));
}
END_TEST

/* As in a container without that right. */
START_TEST(a_superuser_need_not_change_files_of_others)
{
    struct __user_cap_header_struct header = {.version =
                                                  _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct can[2];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    struct staged_file file;
    struct stat found = replaced(1234, 4321, 0640);
    ck_assert_int_eq(syscall(SYS_capget, &header, can), 0);
    can[0].effective &= ~(1u << CAP_FOWNER);
    ck_assert_int_eq(syscall(SYS_capset, &header, can), 0);
    create(&file);
    publish(&file, "newer");
    ck_assert_int_eq(stat(target, &found), 0);
    ck_assert_int_eq(found.st_uid, 1234);
    ck_assert_int_eq(found.st_gid, 4321);
    ck_assert_uint_eq(found.st_mode & 07777, 0640);
}
END_TEST

START_TEST(a_staged_name_is_known_by_its_end)
{
    struct staged_file file;
    create(&file);
    ck_assert_uint_eq(staged_file_target(file.path), strlen(target));
    staged_file_discard(&file);
    ck_assert_uint_eq(staged_file_target("a.leat-abc234"), 1);
    ck_assert_uint_eq(staged_file_target(".leat-abc234"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat-abc23"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat-abc2345"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat-ABC234"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat_abc234"), 0);
    ck_assert_uint_eq(staged_file_target(""), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("staged file");
    TCase *tests = tcase_create("staged file");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_file_appears_when_it_is_published);
    tcase_add_test(tests, what_is_discarded_leaves_nothing);
    tcase_add_test(tests, several_of_one_target_are_several_files);
    tcase_add_test(tests, nothing_that_has_the_name_is_opened);
    tcase_add_test(tests, a_file_that_cannot_be_created_is_an_error);
    tcase_add_test(tests, a_file_has_the_access_of_the_one_that_it_replaces);
    tcase_add_test(tests, nobody_opens_a_file_before_it_has_its_access);
    tcase_add_test(tests, a_superuser_keeps_owner_and_group);
    tcase_add_test(tests, an_unknown_owner_and_group_are_not_kept);
    tcase_add_test(tests, another_group_may_do_no_more_than_all);
    tcase_add_test(tests, a_file_has_the_list_of_the_one_that_it_replaces);
    tcase_add_test(tests, another_group_leaves_what_a_list_gives_by_name);
    tcase_add_test(tests, permissions_say_who_may_do_what);
    tcase_add_test(tests, a_list_says_who_may_do_what);
    tcase_add_test(tests, who_may_write_to_a_directory_may_write_to_its_files);
    tcase_add_test(tests,
                   all_write_to_a_file_only_where_they_may_to_its_directory);
    tcase_add_test(tests, a_long_list_is_kept_whole);
    tcase_add_test(tests, a_superuser_need_not_change_files_of_others);
    tcase_add_test(tests, a_staged_name_is_known_by_its_end);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
