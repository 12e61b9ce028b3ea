/*
 * DESIGN
 *
 * NAME.leat-part holds all there is of an unfinished database:
 *
 *   journal     the import's arguments, written before database/ is made; once
 *               every record is on disk, a line with the result and the
 *               identity of data.mdb is appended
 *   database/   data.mdb; LMDB's commits show how many records are on disk
 *
 * Each step is on disk before the next one begins. The last one is one rename:
 * of database/, or, where the target is a database that gives way, of data.mdb
 * onto that database's. The staging directory is never renamed, so one lock on
 * it guards everything. The next run finds how far a killed run came:
 *
 *   no journal, or no data.mdb                nothing worth keeping
 *   a journal                                 the same arguments resume
 *   its last line, and database/ has the file likewise; only to be published
 *   its last line, and the target has it      published, not yet reported
 *
 * A run killed after it removed its journal may leave an empty directory. Where
 * the target is a directory, database/ is made in that, as leat-part, so that
 * data.mdb gets what files there get, and then moved; a killed run may leave
 * it.
 */
#include "tools/database/staging.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_access.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "tools/database/replaced_lock.h"
#include "tools/database/staged_access.h"
#include "tools/database/staged_contents.h"
#include "tools/database/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "leat import 2\n"
#define COMPLETE "complete: "

enum {
    DIRECTORY = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
    BESIDE = NAME_MAX + 4, /* of a name with ../ before it */
    IDENTITY = 96          /* of a file, as text */
};

/* Where the directory is gone, another leat has completed or removed it. */
static int directory_error(const struct staging *staging)
{
    if (errno != ENOENT && errno != EWOULDBLOCK)
        return leat__error_system(errno, "%s", staging->path);
    return leat_error(LEAT_EINVAL, "%s: another leat is writing it",
                      staging->target);
}

/* A path's file, in the directory's own, as seen from there: the path may lead
   elsewhere by now. */
static void name_beside(char out[BESIDE], const char *path)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, BESIDE, "../%s", slash ? slash + 1 : path);
}

/* Whether what has a name, seen from `at`, is another file than the directory;
   not so, and errno, where that cannot be told. */
static bool is_other(const struct staging *staging, int at, const char *name)
{
    struct stat held, found;
    return !fstatat(staging->fd, "", &held, AT_EMPTY_PATH) &&
           !fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW) &&
           (held.st_dev != found.st_dev || held.st_ino != found.st_ino);
}

/* Somebody may have renamed it or one above, or changed a link to one: then the
   target's path is that of another database. */
static int check_held(const struct staging *staging)
{
    char opened[32], now[PATH_MAX];
    errno = 0;
    if (!is_other(staging, AT_FDCWD, staging->path) && !errno)
        return LEAT_OK;
    if (errno && errno != ENOENT && errno != ENOTDIR)
        return leat__error_system(errno, "%s", staging->path);
    snprintf(opened, sizeof(opened), "/proc/thread-self/fd/%d", staging->fd);
    ssize_t length = readlink(opened, now, sizeof(now));
    return leat_error(LEAT_ESTATE,
                      "%s: its directory is another one now, not that of %.*s",
                      staging->target, length < 0 ? INT_MAX : (int)length,
                      length < 0 ? staging->path : now);
}

static int is_foreign_here(const struct dirent *entry)
{
    return staged_contents_is_foreign(entry) &&
           strcmp(entry->d_name, "journal") != 0 &&
           strcmp(entry->d_name, "database") != 0;
}

/* *out is owned by the caller, and unchanged where there is no journal. */
static int read_journal(const struct staging *staging, char **out)
{
    struct stat file;
    int fd = leat__file_open_at(staging->fd, "journal", O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return LEAT_OK;
    ssize_t n = -1;
    errno = fd < 0 ? errno : 0;
    if (fd >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode) &&
        file.st_size < 1 << 24 && (*out = calloc(1, (size_t)file.st_size + 1)))
        n = read(fd, *out, (size_t)file.st_size);
    const char *reason = errno ? strerror(errno) : "no file of up to 16 MiB";
    if (fd >= 0)
        close(fd);
    if (n < 0 || n < file.st_size)
        return leat_error(LEAT_EIO, "%s/journal: cannot be read: %s; remove %s",
                          staging->path, reason, staging->path);
    return LEAT_OK;
}

/* Makes the journal its first `kept` bytes and the text, on disk. If that is
   cut short, the next run begins, or publishes, once more. */
static int write_journal(const struct staging *staging, size_t kept,
                         const char *text)
{
    ssize_t length = (ssize_t)strlen(text);
    const int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    /* Waits for another program's lease, and for no reader of a pipe. */
    int fd = leat__file_open_at(staging->fd, "journal", flags);
    if (fd < 0 && errno == ENOENT) {
        fd = openat(staging->fd, "journal", flags | O_CREAT | O_EXCL, 0666);
        if (fd >= 0)
            leat__file_share(fd, staging->fd);
    }
    if (fd < 0)
        return directory_error(staging);
    /* As of a short write. */
    int code = leat__file_check_limit((int64_t)kept + length);
    errno = code ? code : ENOSPC;
    int status = ftruncate(fd, (off_t)kept) ||
                         write(fd, text, (size_t)length) != length || fsync(fd)
                     ? leat__error_system(errno, "%s", staging->path)
                     : LEAT_OK;
    close(fd); /* fsync has reported any failure. */
    return status ? status
                  : staged_contents_sync(staging->fd, ".", staging->path);
}

/* Takes the result and the identity saved by the last line, if the journal has
   it whole. Older builds wrote the device's number for the word between. */
static bool read_result(const char *journal, int64_t *result,
                        char identity[IDENTITY])
{
    char end[2] = "";
    const char *line = strstr(journal, "\n" COMPLETE);
    return line && sscanf(line, "\n" COMPLETE "%" SCNd64 " %*s %95[^\n]%1[\n]",
                          result, identity, end) == 3;
}

/* Whether a journal is of this run's arguments; its last line may be cut. */
static bool is_same(const struct staging *staging, const char *journal)
{
    size_t length = staging->journal ? strlen(staging->journal) : 0;
    const char *rest = journal + length;
    return length && !strncmp(journal, staging->journal, length) &&
           !strncmp(rest, COMPLETE, strnlen(rest, strlen(COMPLETE)));
}

/* The same of a published database's journal, whatever the last lines of the
   arguments are, so many. */
static bool is_same_but(const struct staging *staging, const char *journal,
                        int lines)
{
    size_t length = strlen(staging->journal);
    for (int i = 0; i < lines; i++)
        length = (size_t)((char *)memrchr(staging->journal, '\n', length - 1) +
                          1 - staging->journal);
    if (strncmp(journal, staging->journal, length) != 0)
        return false;
    const char *rest = journal + length;
    for (int i = 0; i < lines && *rest; i++) {
        rest += strcspn(rest, "\n");
        rest += *rest == '\n';
    }
    return !strncmp(rest, COMPLETE, strlen(COMPLETE));
}

/* Whether a published database's journal is of this run's arguments. An import
   in place has replaced its own source, so that the line of all data is another
   one now. If that of the others is, too, making it again would apply it twice
   to its own source, and passing it by would not apply it to the others. */
static int check_published(const struct staging *staging, const char *journal,
                           bool *is_own)
{
    if (!staging->in_place || !staging->journal) {
        *is_own = is_same(staging, journal);
        return LEAT_OK;
    }
    *is_own = is_same_but(staging, journal, 1);
    if (*is_own || !is_same_but(staging, journal, 2))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: the same command has made it, of other inputs than "
                      "now or of some that cannot be told from it: remove %s "
                      "to keep it so, or --restart imports once more",
                      staging->target, staging->path);
}

/* Names the first line in which the two differ. Nobody can finish an import of
   what importer_add_once names. */
static int refuse_other(const struct staging *staging, const char *found)
{
    const char *now = staging->journal;
    if (!now)
        return leat_error(LEAT_EINVAL,
                          "%s: holds an unfinished import; finish it, "
                          "or remove the directory",
                          staging->path);
    bool is_once = strstr(found, ", read once by process ") != NULL;
    size_t line = 0;
    for (size_t i = 0; now[i] && now[i] == found[i]; i++)
        if (now[i] == '\n')
            line = i + 1;
    return leat_error(LEAT_EINVAL,
                      "%s: an unfinished import of other files or options: "
                      "'%.*s', now '%.*s'; %s--restart starts over",
                      staging->path, (int)strcspn(found + line, "\n"),
                      found + line, (int)strcspn(now + line, "\n"), now + line,
                      is_once ? "" : "finish that one, or ");
}

/* Nothing that leat did not write is removed, nor the target of a link. */
static int check_entries(const struct staging *staging)
{
    enum staged_contents here, inside = STAGED_OWN;
    int status = staged_contents_find(staging->fd, ".", staging->path,
                                      is_foreign_here, &here);
    if (!status)
        status = staged_contents_find(staging->fd, "database", staging->path,
                                      staged_contents_is_foreign, &inside);
    errno = ENOENT;
    if (!status && here == STAGED_MISSING)
        return directory_error(staging);
    if (status || (here != STAGED_FOREIGN && inside != STAGED_FOREIGN))
        return status;
    return leat_error(LEAT_EINVAL,
                      "%s: holds files that leat did not write; remove it",
                      staging->path);
}

/* What is there may be another user's who planted it. */
static int check_found(const struct staging *staging)
{
    int status = check_entries(staging);
    return status ? status
                  : staged_access_check_makers(staging->fd, staging->path,
                                               staging->target, staging->data);
}

static int lock(struct staging *staging)
{
    mode_t mode = staged_access_directory(staging->target, staging->data);
    bool made = !mkdir(staging->path, mode);
    if (!made && errno != EEXIST)
        return staged_contents_cannot_make(staging->target, errno);
    staging->fd = open(staging->path, DIRECTORY | O_NOFOLLOW);
    if (staging->fd >= 0 && !flock(staging->fd, LOCK_EX | LOCK_NB)) {
        if (made)
            staged_access_share(staging->fd, mode, staging->target,
                                staging->data);
        return made ? check_entries(staging) : check_found(staging);
    }
    int status = directory_error(staging);
    if (made && status == LEAT_EIO)
        rmdir(staging->path);
    if (staging->fd >= 0)
        close(staging->fd);
    staging->fd = -1;
    return status;
}

/* Inode, size and time of modification: all that a rename and another mount
   leave as it is. A file system gives the inode of a removed file to the next
   one. "" where there is no such file. */
static int find_data(int at, const char *name, const char *path,
                     char identity[IDENTITY])
{
    struct stat found;
    identity[0] = 0;
    if (!fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW))
        snprintf(identity, IDENTITY, "%ju %jd %jd.%09ld",
                 (uintmax_t)found.st_ino, (intmax_t)found.st_size,
                 (intmax_t)found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
    else if (errno != ENOENT && errno != ENOTDIR)
        return leat__error_system(errno, "%s", path);
    return LEAT_OK;
}

/* How far the run came that wrote the journal. Nothing is kept of a published
   one whose target went since, or which is to be made again. */
static int find_state(struct staging *staging, const char *journal,
                      bool restart)
{
    int64_t result;
    char saved[IDENTITY], staged[IDENTITY], target[IDENTITY];
    int status = find_data(staging->fd, STAGED_DATA, staging->path, staged);
    if (!status)
        status = find_data(AT_FDCWD, staging->data, staging->target, target);
    if (status || !*journal)
        return status;
    if (*staged || !read_result(journal, &result, saved)) {
        staging->state = *staged ? STAGING_RESUMED : STAGING_FRESH;
        return LEAT_OK;
    }
    bool is_own = false;
    if (!restart && !strcmp(target, saved))
        status = check_published(staging, journal, &is_own);
    if (!status && is_own) {
        staging->state = STAGING_COMPLETE;
        staging->result = result;
        staging->published = true;
    } else if (!status) {
        status = staged_contents_remove(staging->fd, staging->path);
        if (!status)
            status =
                staged_contents_unlink(staging->fd, "journal", staging->path);
    }
    return status;
}

/* Resumes the unfinished database, or starts over where that is allowed. */
static int take_over(struct staging *staging, const char *journal, bool restart)
{
    struct stat left;
    if (staging->state == STAGING_RESUMED &&
        (!staging->journal || (!restart && !is_same(staging, journal))))
        return refuse_other(staging, journal);
    if (staging->state == STAGING_RESUMED && !restart) {
        int status = staged_access_resume(staging->fd, STAGED_DATA,
                                          staging->path, staging->data);
        return status
                   ? status
                   : staged_contents_remove_locks(staging->fd, staging->path);
    }
    staging->state = STAGING_FRESH;
    staging->owned = true;
    int status = staged_contents_unlink(staging->fd, "journal", staging->path);
    if (!status)
        status = staged_contents_remove(staging->fd, staging->path);
    if (!status && staging->journal)
        status = write_journal(staging, 0, staging->journal);
    /* It stays where it holds what a reader has open. */
    if (!status && fstatat(staging->fd, "database", &left, AT_SYMLINK_NOFOLLOW))
        status = staged_access_make(staging->fd, "database", staging->target);
    return status;
}

static int check_target(const struct staging *staging, int at, const char *from)
{
    int status = leat__file_check_place(staging->path);
    return status ? status
                  : staged_contents_check_target(staging->target, at, from,
                                                 staging->replace);
}

static int begin(struct staging *staging, bool restart)
{
    char *found = NULL;
    int status = leat__file_check_renames(staging->path);
    if (!status)
        status = lock(staging);
    if (!status)
        status = read_journal(staging, &found);
    const char *journal = found ? found : "";
    if (!status)
        status = find_state(staging, journal, restart);
    if (!status && staging->state != STAGING_COMPLETE)
        status = check_target(staging, staging->fd, "");
    if (!status && staging->state != STAGING_COMPLETE)
        status = take_over(staging, journal, restart);
    if (!status && staging->state != STAGING_COMPLETE && staging->replace)
        status =
            staged_contents_try_move(staging->fd, STAGED_FILE, staging->target);
    free(found);
    return status;
}

static int name_paths(struct staging *staging,
                      const struct staging_options *options)
{
    *staging = (struct staging){.fd = -1,
                                .result = -1,
                                .in_place = options->in_place,
                                .replace = options->replace};
    if (!options->target[0])
        return leat_error(LEAT_EINVAL,
                          "the database to be made needs a path; this is ''");
    const char *arguments = options->arguments;
    char *target = staging->target = target_resolve(options->target);
    bool is_short =
        !target || asprintf(&staging->path, "%s.leat-part", target) < 0 ||
        asprintf(&staging->database, "%s.leat-part/database", target) < 0 ||
        asprintf(&staging->data, "%s/data.mdb", target) < 0 ||
        (arguments && asprintf(&staging->journal, HEADER "%s", arguments) < 0);
    return is_short
               ? leat_error(LEAT_ENOMEM, "%s: out of memory", options->target)
               : LEAT_OK;
}

int staging_open(struct staging *staging, const struct staging_options *options)
{
    int status = name_paths(staging, options);
    if (!status)
        status = begin(staging, options->restart);
    if (status)
        staging_close(staging, !staging->owned);
    return status;
}

static bool holds(const struct staging *staging, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", staging->path, name);
    return length >= (int)sizeof(path) || !leat__file_access(path, F_OK);
}

/* What an earlier run has left, which may go meanwhile. */
static int check_left(struct staging *staging)
{
    staging->fd = open(staging->path, DIRECTORY | O_NOFOLLOW);
    if (staging->fd < 0)
        return errno == ENOENT ? LEAT_OK : directory_error(staging);
    int status = check_found(staging);
    close(staging->fd);
    staging->fd = -1;
    return status;
}

/* Without the lock: a target that an earlier run may have published is not
   judged. */
static int check_early(struct staging *staging, const char *parent,
                       bool restart)
{
    struct stat found;
    bool is_there = !lstat(staging->path, &found);
    int code = is_there          ? 0
               : errno != ENOENT ? errno
                                 : leat__file_check_directory(staging->path);
    if (code)
        return staged_contents_cannot_make(staging->target, code);
    int status = leat__file_check_renames(staging->path);
    if (!status && is_there)
        status = check_left(staging);
    if (status)
        return status;
    bool is_published = is_there && !restart && holds(staging, "journal") &&
                        !holds(staging, STAGED_DATA);
    return is_published ? LEAT_OK : check_target(staging, AT_FDCWD, parent);
}

int staging_check(const struct staging_options *options)
{
    struct staging staging;
    int status = name_paths(&staging, options);
    char *parent = status ? NULL : leat__file_directory(staging.path);
    if (!status)
        status = parent ? check_early(&staging, parent, options->restart)
                        : leat_error(LEAT_ENOMEM, "%s: out of memory",
                                     options->target);
    leat__free(parent);
    staging_close(&staging, true);
    return status;
}

/* The lock file goes with the database that is replaced; a process that has
   these open keeps both. */
static int move_file(const struct staging *staging, const char *beside)
{
    struct replaced_lock lock;
    int target = openat(staging->fd, beside, DIRECTORY);
    if (target < 0)
        return leat__error_system(errno, "%s", staging->target);
    int status = staged_access_keep(staging->fd, STAGED_DATA, staging->path,
                                    staging->data);
    /* Renamed at once: killed before, it leaves the old data a new lock. */
    if (!status)
        status = replaced_lock_begin(&lock, staging->fd, staging->path,
                                     STAGED_FILE, target, staging->target);
    if (!status && renameat(staging->fd, STAGED_DATA, target, "data.mdb")) {
        status = leat__error_system(errno, "%s", staging->target);
        replaced_lock_undo(&lock);
    } else if (!status) {
        replaced_lock_finish(&lock);
        status = staged_contents_sync(target, ".", staging->target);
    }
    close(target);
    return status;
}

/* Without NOREPLACE, a rename replaces an empty directory, nothing else. */
static bool move_directory(const struct staging *staging, const char *beside)
{
    if (!renameat2(staging->fd, "database", staging->fd, beside,
                   RENAME_NOREPLACE))
        return true;
    return (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) &&
           !renameat(staging->fd, "database", staging->fd, beside);
}

/* If the target came meanwhile, it is too late to advise --force. */
static int move_to_target(const struct staging *staging)
{
    enum staged_contents found;
    char beside[BESIDE];
    int status = check_held(staging);
    name_beside(beside, staging->target);
    if (!status)
        status = staged_contents_find(staging->fd, beside, staging->target,
                                      staged_contents_is_foreign, &found);
    if (!status && found == STAGED_OWN && staging->replace)
        return move_file(staging, beside);
    if (status)
        return status;
    if (found == STAGED_MISSING && move_directory(staging, beside))
        return LEAT_OK;
    if (found == STAGED_MISSING && errno != EEXIST && errno != ENOTEMPTY &&
        errno != ENOTDIR)
        return leat__error_system(errno, "%s", staging->target);
    return leat_error(
        LEAT_EINVAL,
        "%s: somebody else has made it meanwhile; it was not replaced",
        staging->target);
}

int staging_publish(struct staging *staging, int64_t result)
{
    char line[IDENTITY + 64], identity[IDENTITY];
    int status = staged_contents_remove_locks(staging->fd, staging->path);
    if (!status)
        status = find_data(staging->fd, STAGED_DATA, staging->path, identity);
    if (!status)
        status = staged_contents_sync(staging->fd, "database", staging->path);
    if (!status && staging->journal) {
        snprintf(line, sizeof(line), COMPLETE "%" PRId64 " inode %s\n", result,
                 identity);
        status = write_journal(staging, strlen(staging->journal), line);
    }
    if (!status)
        status = move_to_target(staging);
    if (!status)
        status = staged_contents_sync(staging->fd, "..", staging->path);
    staging->published = !status;
    return status;
}

void staging_close(struct staging *staging, bool keep)
{
    char beside[BESIDE];
    if (staging->path && staging->fd >= 0) {
        if (staging->published || !keep) {
            staged_contents_remove(staging->fd, staging->path);
            if (!staging->unreported)
                unlinkat(staging->fd, "journal", 0);
        }
        name_beside(beside, staging->path);
        if (!is_other(staging, staging->fd, beside)) /* A full one stays. */
            unlinkat(staging->fd, beside, AT_REMOVEDIR);
        close(staging->fd);
    }
    free(staging->target);
    free(staging->path);
    free(staging->database);
    free(staging->data);
    free(staging->journal);
    memset(staging, 0, sizeof(*staging));
}
