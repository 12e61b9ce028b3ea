/*
 * DESIGN
 * What is there tells how far a run came, wherever it was killed:
 *
 *   part without leat-import          nothing worth keeping: thrown away
 *   part with leat-import             unfinished; the records that it holds are
 *                                     whole, since LMDB's commits are
 *   target with leat-import           in place; what it replaced, which is now
 *                                     in the part or in PATH.leat-old, goes,
 *                                     and leat-import last
 *   PATH.leat-old and no target       stopped between two renames, where the
 *                                     file system cannot exchange names; it is
 *                                     put back
 *
 * Everything happens under a lock on the directory's inode, which the rename
 * keeps: whoever finds the target with leat-import in it takes its lock, too.
 */
#include "tools/database/part.h"

#include "tools/database/directory.h"

#include <leat/ext/reader.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NOTE "leat-import"
#define NEW_NOTE NOTE ".new"

static const char note_header[] = "leat import 1\n";
/* The last line of a note, when the part is complete. */
#define REMEMBERED "remembered: "

struct part {
    char *target;
    char *path;       /* target.leat-part */
    char *old;        /* target.leat-old */
    char *note;       /* what leat-import says; NULL without a recipe */
    size_t note_head; /* bytes of it before the line on the base */
    enum part_mode mode;
    enum part_state state;
    int restart;
    int fd;        /* of the directory; holds the lock; -1: none */
    int owned;     /* what is in it is this run's own */
    int published; /* the directory is at the target */
    int tidy;      /* and what it replaced is gone */
    int has_base;
    struct stat base;   /* of the data.mdb to be appended to */
    int64_t remembered; /* by the run before; below 0: nothing */
};

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
}

/* The part is nobody's business where it is the target's place that is amiss.
 */
static int place_error(const struct part *part)
{
    const char *slash = strrchr(part->target, '/');
    int length =
        slash ? (int)(slash - part->target) + (slash == part->target) : 1;
    return leat_error(LEAT_EIO, "%s: cannot be made in %.*s: %s", part->target,
                      length, slash ? part->target : ".", strerror(errno));
}

static int busy_error(const struct part *part)
{
    return leat_error(LEAT_EINVAL, "%s: another leat is writing it",
                      part->target);
}

static const char *const database_files[] = {"data.mdb", "lock.mdb", NEW_NOTE,
                                             NOTE};
enum { DATABASE_FILES = sizeof(database_files) / sizeof(database_files[0]) };

static int is_database_file(const char *name)
{
    for (int i = 0; i < DATABASE_FILES; i++)
        if (!strcmp(name, database_files[i]))
            return 1;
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Of a directory that was there: without it another leat has completed or
   removed it. */
static int vanished_error(const char *path)
{
    return errno == ENOENT
               ? leat_error(LEAT_EINVAL, "%s: another leat is writing it", path)
               : system_error(path);
}

/* Whether a directory holds a database's files and nothing else. */
static int look_inside(const char *path, int *is_database)
{
    struct stat found;
    if (lstat(path, &found))
        return vanished_error(path);
    *is_database = 0;
    if (!S_ISDIR(found.st_mode))
        return LEAT_OK;
    DIR *directory = opendir(path);
    if (!directory)
        return vanished_error(path);
    const struct dirent *entry;
    int status = directory_next(directory, path, &entry);
    *is_database = 1;
    while (!status && entry && *is_database) {
        *is_database = is_database_file(entry->d_name);
        if (*is_database)
            status = directory_next(directory, path, &entry);
    }
    closedir(directory);
    return status;
}

/* The note goes last: as long as it is there, so is what it speaks of. */
static int remove_files(int directory, const char *path, int files)
{
    int status = LEAT_OK;
    for (int i = 0; i < files; i++)
        if (unlinkat(directory, database_files[i], 0) && errno != ENOENT)
            status = system_error(path);
    return status;
}

/* Of a link the directory that it leads to is somebody else's. */
static int open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_database(const char *path)
{
    int directory = open_directory(path);
    if (directory < 0)
        return errno == ENOENT ? LEAT_OK : system_error(path);
    int status = remove_files(directory, path, DATABASE_FILES);
    close(directory);
    if (!status && rmdir(path))
        status = system_error(path);
    return status;
}

/* A file system that cannot sync directories need not. */
static int sync_directory(int directory, const char *path)
{
    if (!fsync(directory) || errno == EINVAL)
        return LEAT_OK;
    return system_error(path);
}

/* A name is on disk only when its directory is. */
static int sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent =
        slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!parent)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* One that may be written but not read cannot be synced. */
    int status = directory < 0 ? LEAT_OK : sync_directory(directory, parent);
    if (directory >= 0)
        close(directory);
    free(parent);
    return status;
}

/* Whether there is anything of that name. What cannot be told is an error, as
   much is removed for something else not being there. */
static int find(const char *path, int *out)
{
    struct stat found;
    *out = !lstat(path, &found);
    return *out || errno == ENOENT || errno == ENOTDIR ? LEAT_OK
                                                       : system_error(path);
}

/* Whether the target is in place and was not yet tidied up behind. */
static int find_note(const char *directory, int *out)
{
    char *path = NULL;
    if (asprintf(&path, "%s/" NOTE, directory) < 0)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", directory);
    int status = find(path, out);
    free(path);
    return status;
}

/* An empty directory gives way to a database, but is none to append to. */
static int look_at_base(const char *target, int *is_database)
{
    char *path = NULL;
    if (asprintf(&path, "%s/data.mdb", target) < 0)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", target);
    int status = find(path, is_database);
    free(path);
    return status;
}

static int check_target(const struct part *part)
{
    struct stat status;
    if (lstat(part->target, &status))
        return errno == ENOENT ? LEAT_OK : system_error(part->target);
    int gives_way = 0, has_base = 0;
    int result = look_inside(part->target, &gives_way);
    if (!result && gives_way)
        result = look_at_base(part->target, &has_base);
    if (result)
        return result;
    if (part->mode == PART_REFUSE && gives_way)
        return leat_error(
            LEAT_EINVAL, "%s: exists already; --force would replace it%s",
            part->target, part->note && has_base ? ", --append add to it" : "");
    if (part->mode == PART_APPEND ? has_base : gives_way)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: exists and is no database directory; %s",
                      part->target,
                      part->mode == PART_APPEND ? "it is not appended to"
                                                : "choose another name");
}

/* Takes the lock on the directory that `path` is, by the name it has now. */
static int lock_directory(const struct part *part, const char *path, int *out)
{
    int fd = open_directory(path);
    if (fd < 0)
        return path == part->path ? vanished_error(path) : system_error(path);
    /* Somebody else may hold it, or have renamed or removed it meanwhile. */
    struct stat opened, there = {0};
    int status = LEAT_OK;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        status = busy_error(part);
    else if (fstat(fd, &opened) || (stat(path, &there) && errno != ENOENT))
        status = system_error(path);
    else if (opened.st_ino != there.st_ino)
        status = busy_error(part);
    if (status)
        close(fd);
    else
        *out = fd;
    return status;
}

static int stranger_error(const char *path)
{
    return leat_error(LEAT_EINVAL,
                      "%s: holds files that leat did not write; remove it",
                      path);
}

/* Makes the directory, or takes over one that a killed run left. */
static int make_directory(struct part *part)
{
    int made = !mkdir(part->path, 0777);
    if (!made && errno != EEXIST)
        return place_error(part);
    int status = lock_directory(part, part->path, &part->fd);
    int is_database = 1;
    if (!status)
        status = look_inside(part->path, &is_database);
    if (!is_database)
        status = stranger_error(part->path);
    if (status && made)
        rmdir(part->path);
    if (status && part->fd >= 0) {
        close(part->fd);
        part->fd = -1;
    }
    return status;
}

/* As many bytes as there are, up to `size`; below 0: an error. */
static ssize_t read_bytes(int fd, char *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, out + done, size - done);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)done;
}

/* The note in a directory, NUL-terminated; NULL in *out: there is none. */
static int read_note(int directory, const char *path, char **out)
{
    *out = NULL;
    int fd =
        openat(directory, NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? LEAT_OK : system_error(path);
    struct stat file;
    char *text = NULL;
    ssize_t n = -1;
    if (!fstat(fd, &file) && S_ISREG(file.st_mode) && file.st_size < 1 << 24)
        text = malloc((size_t)file.st_size + 1);
    if (text)
        n = read_bytes(fd, text, (size_t)file.st_size);
    close(fd);
    if (n < 0) {
        free(text);
        return leat_error(LEAT_EIO, "%s/" NOTE ": cannot be read", path);
    }
    text[n] = 0;
    *out = text;
    return LEAT_OK;
}

static int write_bytes(int fd, const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            text += n;
            left -= (size_t)n;
        }
    }
    return 0;
}

/* On disk before the first record is. What a killed run left of it goes; the
   lock is held, so nobody of leat's makes it anew. */
static int write_note(const struct part *part, const char *text)
{
    if (unlinkat(part->fd, NEW_NOTE, 0) && errno != ENOENT)
        return system_error(part->path);
    int fd = openat(part->fd, NEW_NOTE,
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return vanished_error(part->path);
    int failed = write_bytes(fd, text) || fsync(fd);
    int code = errno;
    if (close(fd) && !failed) {
        failed = 1;
        code = errno;
    }
    if (!failed && renameat(part->fd, NEW_NOTE, part->fd, NOTE)) {
        failed = 1;
        code = errno;
    }
    if (failed)
        return leat_error(LEAT_EIO, "%s: cannot write it: %s", part->path,
                          strerror(code));
    return sync_directory(part->fd, part->path);
}

/* The number in the last line of a note; -1: it has none. */
static int64_t find_remembered(const char *note)
{
    const char *line = strstr(note, "\n" REMEMBERED);
    return line ? strtoll(line + strlen("\n" REMEMBERED), NULL, 10) : -1;
}

/* The run before was of the same order: this one has only to report. */
static void become_target(struct part *part, int target, int64_t remembered)
{
    part->remembered = remembered;
    rmdir(part->path);
    close(part->fd);
    part->fd = target;
    part->state = PART_COMPLETE;
    part->published = 1;
    part->tidy = 1;
}

/* The target is complete: what it replaced goes, and then its note. */
static int tidy_target(struct part *part)
{
    int fd = -1;
    int status = lock_directory(part, part->target, &fd);
    if (status)
        return status;
    char *note = NULL;
    status = read_note(fd, part->target, &note);
    int same = !status && note && part->note &&
               !strncmp(note, part->note, part->note_head);
    int64_t remembered = same ? find_remembered(note) : -1;
    free(note);
    /* What has a note of its own is no database that was replaced. */
    int keeps = 0;
    if (!status)
        status = find_note(part->path, &keeps);
    if (!status && !keeps)
        status = part_clear(part);
    if (!status && same) {
        become_target(part, fd, remembered);
        return LEAT_OK;
    }
    if (!status && unlinkat(fd, NOTE, 0))
        status = system_error(part->target);
    close(fd);
    return status;
}

/* Whether a replaced database was put aside; nothing else gives way. */
static int find_old(const struct part *part, int *out)
{
    int is_database = 1;
    int status = find(part->old, out);
    if (!status && *out)
        status = look_inside(part->old, &is_database);
    return is_database ? status : stranger_error(part->old);
}

/* Ends what a run was killed in the middle of when it published. */
static int recover(struct part *part)
{
    int old, target, note = 0;
    int status = find_old(part, &old);
    if (!status)
        status = find(part->target, &target);
    if (!status && old && target)
        status = remove_database(part->old);
    else if (!status && old && rename(part->old, part->target))
        status = system_error(part->target);
    if (!status)
        status = find_note(part->target, &note);
    return status || !note ? status : tidy_target(part);
}

/* The first line in which two notes differ, as a sentence. */
static int other_note_error(const struct part *part, const char *found)
{
    const char *wanted = part->note;
    while (*wanted && *wanted == *found) {
        const char *line = strchr(wanted, '\n');
        size_t length = line ? (size_t)(line - wanted) + 1 : strlen(wanted);
        if (strncmp(wanted, found, length) != 0)
            break;
        wanted += length;
        found += length;
    }
    return leat_error(
        LEAT_EINVAL,
        "%s: an unfinished import of other files or options: "
        "'%.*s', now '%.*s'; finish that one, or --restart begins "
        "anew",
        part->path, (int)strcspn(found, "\n"), found,
        (int)strcspn(wanted, "\n"), wanted);
}

/* Whether it is the part's own note, with or without a number remembered. */
static int is_own_note(const struct part *part, const char *found)
{
    size_t length = strlen(part->note);
    if (strncmp(found, part->note, length) != 0)
        return 0;
    found += length;
    return !*found || !strncmp(found, REMEMBERED, strlen(REMEMBERED));
}

/* liblmdb would follow a link, and wait for a pipe. */
static int check_files(const struct part *part)
{
    struct stat found;
    for (int i = 0; i < DATABASE_FILES; i++) {
        const char *name = database_files[i];
        if (fstatat(part->fd, name, &found, AT_SYMLINK_NOFOLLOW)) {
            if (errno != ENOENT)
                return system_error(part->path);
        } else if (!S_ISREG(found.st_mode)) {
            return leat_error(LEAT_EINVAL,
                              "%s/%s: is no regular file; remove it, or "
                              "--restart begins anew",
                              part->path, name);
        }
    }
    return LEAT_OK;
}

static int take_over(struct part *part)
{
    char *found;
    int status = read_note(part->fd, part->path, &found);
    if (status)
        return status;
    if (found && !part->note)
        status = leat_error(LEAT_EINVAL,
                            "%s: an unfinished import stands there; finish "
                            "it, or remove the directory",
                            part->path);
    else if (found && !part->restart && is_own_note(part, found))
        part->state = PART_STOPPED;
    else if (found && !part->restart)
        status = other_note_error(part, found);
    free(found);
    if (status)
        return status;
    if (part->state == PART_STOPPED)
        return check_files(part);
    part->owned = 1;
    status = remove_files(part->fd, part->path, DATABASE_FILES);
    if (!status && part->note)
        status = write_note(part, part->note);
    return status;
}

/* The state of the target's file, if there is one. */
static int find_base(const struct part *part, int *out, struct stat *found)
{
    char *file = NULL;
    if (asprintf(&file, "%s/data.mdb", part->target) < 0)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", part->target);
    *out = !stat(file, found);
    int status = *out || errno == ENOENT || errno == ENOTDIR
                     ? LEAT_OK
                     : system_error(file);
    free(file);
    return status;
}

static int make_note(struct part *part, const char *recipe)
{
    static const char *const modes[] = {"new", "replace", "append"};
    char base[128] = "base: none\n";
    part->has_base = 0;
    if (part->mode == PART_APPEND) {
        int status = find_base(part, &part->has_base, &part->base);
        if (status)
            return status;
    }
    if (part->has_base)
        snprintf(
            base, sizeof(base), "base: file %llu, %lld bytes of %lld.%09ld\n",
            (unsigned long long)part->base.st_ino,
            (long long)part->base.st_size, (long long)part->base.st_mtim.tv_sec,
            part->base.st_mtim.tv_nsec);
    int length = asprintf(&part->note, "%s%s\n%s%s", note_header,
                          modes[part->mode], recipe, base);
    if (length < 0) {
        part->note = NULL;
        return leat_error(LEAT_ENOMEM, "%s: out of memory", part->target);
    }
    part->note_head = (size_t)length - strlen(base);
    return LEAT_OK;
}

/* A symbolic link stays one: what it leads to is what is replaced. */
static char *resolve(const char *path)
{
    struct stat status;
    if (!lstat(path, &status) && S_ISLNK(status.st_mode)) {
        char *target = realpath(path, NULL);
        if (target)
            return target;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return strndup(path, length);
}

static int set_paths(struct part *part, const char *path)
{
    part->target = resolve(path);
    if (!part->target ||
        asprintf(&part->path, "%s.leat-part", part->target) < 0)
        part->path = NULL;
    if (!part->path || asprintf(&part->old, "%s.leat-old", part->target) < 0)
        part->old = NULL;
    if (part->old)
        return LEAT_OK;
    leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    return LEAT_ENOMEM;
}

static int begin(struct part *part, const char *recipe)
{
    int old, note = 0;
    int status = find(part->old, &old);
    if (!status)
        status = find_note(part->target, &note);
    int unfinished = old || note;
    /* A plain refusal need not write anything. */
    if (!status && !unfinished)
        status = check_target(part);
    if (!status)
        status = make_directory(part);
    if (!status && unfinished)
        status = recover(part);
    if (status || part->state == PART_COMPLETE)
        return status;
    if (unfinished && recipe) {
        free(part->note);
        part->note = NULL;
        status = make_note(part, recipe);
    }
    if (!status)
        status = check_target(part);
    if (!status)
        status = take_over(part);
    return status;
}

int part_open(struct part **out, const struct part_order *order)
{
    if (!order->path[0])
        return leat_error(LEAT_EINVAL,
                          "the database to be made needs a path; this is ''");
    struct part *part = calloc(1, sizeof(*part));
    if (!part)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", order->path);
    part->fd = -1;
    part->remembered = -1;
    part->mode = order->mode;
    part->restart = order->restart;
    int status = set_paths(part, order->path);
    if (!status && order->recipe)
        status = make_note(part, order->recipe);
    if (!status)
        status = begin(part, order->recipe);
    if (status) {
        part_close(part, !part->owned);
        return status;
    }
    *out = part;
    return LEAT_OK;
}

enum part_state part_state(const struct part *part)
{
    return part->state;
}

const char *part_path(const struct part *part)
{
    return part->path;
}

const char *part_target(const struct part *part)
{
    return part->target;
}

int part_has_base(const struct part *part)
{
    return part->has_base;
}

int64_t part_free_bytes(const struct part *part)
{
    struct statvfs disk;
    if (fstatvfs(part->fd, &disk))
        return INT64_MAX;
    return (int64_t)(disk.f_bavail * disk.f_frsize);
}

int part_remember(struct part *part, int64_t number)
{
    char *text = NULL;
    if (!part->note)
        return LEAT_OK;
    if (asprintf(&text, "%s" REMEMBERED "%lld\n", part->note,
                 (long long)number) < 0)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", part->target);
    int status = write_note(part, text);
    free(text);
    return status;
}

int64_t part_remembered(const struct part *part)
{
    return part->remembered;
}

int part_clear(struct part *part)
{
    return remove_files(part->fd, part->path, DATABASE_FILES - 2);
}

/* Where names cannot be exchanged there is a moment without the target. */
static int replace_by_two(struct part *part)
{
    if (rename(part->target, part->old))
        return system_error(part->target);
    if (rename(part->path, part->target)) {
        int status = system_error(part->target);
        rename(part->old, part->target);
        return status;
    }
    return LEAT_OK;
}

/* The target was not there when this began. */
static int came_meanwhile(const struct part *part)
{
    return leat_error(
        LEAT_EINVAL, "%s: somebody else has made it meanwhile; it was not %s",
        part->target, part->mode == PART_APPEND ? "appended to" : "replaced");
}

/*
 * Where a rename cannot be told not to replace. A directory replaces nothing
 * but an empty one, of which nobody misses anything.
 */
static int move_to_new(const struct part *part)
{
    if (!rename(part->path, part->target))
        return LEAT_OK;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
        return came_meanwhile(part);
    return system_error(part->target);
}

/* Whether the file system does not know renameat2's flags. */
static int lacks_flags(int code)
{
    return code == EINVAL || code == ENOSYS || code == ENOTSUP;
}

/* What came while this was made is told so: --force is too late an advice. */
static int check_target_again(const struct part *part)
{
    int came = 0;
    if (part->mode != PART_REFUSE)
        return check_target(part);
    int status = find(part->target, &came);
    return !status && came ? came_meanwhile(part) : status;
}

static int move_to_target(struct part *part)
{
    int replaces = 0;
    int status = LEAT_OK;
    if (part->mode != PART_REFUSE)
        status = find(part->target, &replaces);
    if (status)
        return status;
    unsigned flags = replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (!renameat2(AT_FDCWD, part->path, AT_FDCWD, part->target, flags))
        return LEAT_OK;
    if (errno == EEXIST)
        return came_meanwhile(part);
    if (!lacks_flags(errno))
        return system_error(part->target);
    return replaces ? replace_by_two(part) : move_to_new(part);
}

static int check_base(const struct part *part)
{
    struct stat now;
    int there = 0;
    if (part->mode != PART_APPEND)
        return LEAT_OK;
    int status = find_base(part, &there, &now);
    if (status)
        return status;
    if ((!there && !part->has_base) ||
        (there && part->has_base && now.st_ino == part->base.st_ino &&
         now.st_size == part->base.st_size &&
         now.st_mtim.tv_sec == part->base.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == part->base.st_mtim.tv_nsec))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: somebody else has written to it meanwhile; nothing "
                      "was appended",
                      part->target);
}

int part_publish(struct part *part)
{
    /* Reading the part may have left a lock file. */
    if (unlinkat(part->fd, "lock.mdb", 0) && errno != ENOENT)
        return system_error(part->path);
    int status = sync_directory(part->fd, part->path);
    if (!status)
        status = check_target_again(part);
    if (!status)
        status = check_base(part);
    if (!status)
        status = move_to_target(part);
    if (status)
        return status;
    part->published = 1;
    status = sync_parent(part->target);
    if (status)
        return status;

    /* What fails from here on the next run would do. */
    part->tidy = !remove_database(part->path) && !remove_database(part->old);
    return LEAT_OK;
}

void part_close(struct part *part, int keep)
{
    if (!part)
        return;
    if (part->fd >= 0 && !part->published) {
        if (!keep)
            remove_files(part->fd, part->path, DATABASE_FILES);
        /* What holds files stays. */
        rmdir(part->path);
    }
    if (part->fd >= 0 && part->tidy)
        unlinkat(part->fd, NOTE, 0);
    if (part->fd >= 0)
        close(part->fd);
    free(part->target);
    free(part->path);
    free(part->old);
    free(part->note);
    free(part);
}
