/*
 * DESIGN
 * NAME.leat-part holds all there is of an unfinished database:
 *
 *   journal     what it is made of; once all records are committed, a last line
 *               with the result and the inode of database/
 *   database/   LMDB's commits say how many of its records are on disk
 *   replaced/   the target, between two renames where names cannot be exchanged
 *
 * The directory is never renamed, so one lock on it guards everything. It tells
 * how far a killed run came:
 *
 *   no journal                            nothing worth keeping
 *   a journal                             the same arguments resume database/
 *   a last line, database/ has its inode  likewise; only to be published
 *   a last line, database/ has another    published: database/ was replaced
 *   replaced/ and no target               replaced/ is put back
 *
 * A run killed after it removed its journal may leave an empty directory.
 */
#include "tools/database/staging.h"

#include "tools/database/directory.h"
#include "tools/database/journal.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const entries[] = {"journal", "journal.new", "database",
                                      "replaced", NULL};
static const char *const database_files[] = {"data.mdb", "lock.mdb", NULL};

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
}

/* Where the directory is gone, another leat has completed or removed it. */
static int entry_error(const struct staging *self)
{
    if (errno != ENOENT && errno != EWOULDBLOCK)
        return system_error(self->path);
    return leat_error(LEAT_EINVAL, "%s: another leat is writing it",
                      self->target);
}

/* A link is never followed: its directory is somebody else's. */
static int open_directory(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A missing entry has no inode: *found is zero. What cannot be told is an
   error, since much is removed because something else is missing. */
static int look(int at, const char *name, const char *path, struct stat *found)
{
    memset(found, 0, sizeof(*found));
    if (!fstatat(at, name, found, AT_SYMLINK_NOFOLLOW) || errno == ENOENT)
        return LEAT_OK;
    return system_error(path);
}

static int is_listed(const char *name, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Whether `name` is a directory with no other names in it than these, or
   missing. */
static int holds_only(int at, const char *name, const char *path,
                      const char *const *names, int *out)
{
    int fd = open_directory(at, name);
    *out = fd >= 0 || errno == ENOENT;
    if (fd < 0)
        return *out || errno == ENOTDIR || errno == ELOOP ? LEAT_OK
                                                          : system_error(path);
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    }
    const struct dirent *entry;
    int status = directory_next(directory, path, &entry);
    while (!status && entry && *out) {
        *out = is_listed(entry->d_name, names);
        if (*out)
            status = directory_next(directory, path, &entry);
    }
    closedir(directory);
    return status;
}

/* No descriptor is needed, since none may be left. That `name` is no link was
   checked under the lock. */
static int remove_database(const struct staging *self, const char *name)
{
    char file[32];
    for (const char *const *entry = database_files; *entry; entry++) {
        snprintf(file, sizeof(file), "%s/%s", name, *entry);
        if (unlinkat(self->fd, file, 0) && errno != ENOENT)
            return system_error(self->path);
    }
    if (unlinkat(self->fd, name, AT_REMOVEDIR) && errno != ENOENT)
        return system_error(self->path);
    return LEAT_OK;
}

/* A file system that cannot sync directories need not. */
static int sync_directory(const struct staging *self, const char *name)
{
    int fd = openat(self->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* One that may be written but not read cannot be synced. */
    if (fd < 0)
        return errno == EACCES ? LEAT_OK : system_error(self->path);
    int status =
        fsync(fd) && errno != EINVAL ? system_error(self->path) : LEAT_OK;
    close(fd);
    return status;
}

static int write_journal(const struct staging *self, const char *text)
{
    int status = journal_write(self->fd, self->path, text);
    return status ? status : sync_directory(self, ".");
}

static int complete_journal(const struct staging *self, int64_t result,
                            uint64_t inode)
{
    char *text = journal_complete(self->journal, result, inode);
    int status = text ? write_journal(self, text) : LEAT_ENOMEM;
    free(text);
    return status;
}

static int check_target(const struct staging *self)
{
    struct stat found;
    int is_database = 0;
    int status = look(AT_FDCWD, self->target, self->target, &found);
    if (status || !found.st_ino)
        return status;
    status = holds_only(AT_FDCWD, self->target, self->target, database_files,
                        &is_database);
    if (status || (is_database && self->replace))
        return status;
    return leat_error(LEAT_EINVAL,
                      is_database
                          ? "%s: exists already; --force would replace it"
                          : "%s: exists and is no database directory; choose "
                            "another name",
                      self->target);
}

/* Nothing that leat did not write is removed, nor what a link leads to. */
static int check_entries(const struct staging *self)
{
    static const char *const names[] = {".", "database", "replaced"};
    int status = LEAT_OK, is_ours = 1;
    for (int i = 0; i < 3 && !status && is_ours; i++)
        status = holds_only(self->fd, names[i], self->path,
                            i ? database_files : entries, &is_ours);
    if (is_ours)
        return status;
    return leat_error(LEAT_EINVAL,
                      "%s: holds files that leat did not write; remove it",
                      self->path);
}

/* Takes the lock, by the name that the directory has now. */
static int lock(struct staging *self)
{
    struct stat opened, now;
    int made = !mkdir(self->path, 0777);
    if (!made && errno != EEXIST) {
        const char *slash = strrchr(self->target, '/');
        return leat_error(
            LEAT_EIO, "%s: cannot be made in %.*s: %s", self->target,
            slash > self->target ? (int)(slash - self->target) : 1,
            slash ? self->target : ".", strerror(errno));
    }
    self->fd = open_directory(AT_FDCWD, self->path);
    errno = self->fd < 0 ? errno : ENOENT; /* the name is another one's now */
    if (self->fd >= 0 && !flock(self->fd, LOCK_EX | LOCK_NB) &&
        !fstat(self->fd, &opened) && !stat(self->path, &now) &&
        opened.st_ino == now.st_ino)
        return check_entries(self);
    int status = entry_error(self);
    if (made && status == LEAT_EIO)
        rmdir(self->path);
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    return status;
}

/* Ends two renames in the middle of which a run was killed. */
static int put_back(const struct staging *self)
{
    struct stat replaced, target;
    int status = look(self->fd, "replaced", self->path, &replaced);
    if (!status)
        status = look(AT_FDCWD, self->target, self->target, &target);
    if (status || !replaced.st_ino)
        return status;
    if (target.st_ino)
        return remove_database(self, "replaced");
    return renameat(self->fd, "replaced", AT_FDCWD, self->target)
               ? system_error(self->target)
               : LEAT_OK;
}

/* Tidies up after a run that was killed once it had published, and empties its
   journal. */
static int finish_publishing(struct staging *self, char *journal)
{
    struct stat database, target;
    int64_t result;
    uint64_t inode;
    if (!journal || !journal_is_complete(journal, &result, &inode))
        return LEAT_OK;
    int status = look(self->fd, "database", self->path, &database);
    if (!status)
        status = look(AT_FDCWD, self->target, self->target, &target);
    if (status || database.st_ino == inode)
        return status;
    status = remove_database(self, "database");
    if (!status && target.st_ino == inode && self->journal &&
        journal_is_same(journal, self->journal)) {
        self->state = STAGING_COMPLETE;
        self->result = result;
        self->published = self->tidy = 1;
    } else if (!status && unlinkat(self->fd, "journal", 0)) {
        status = system_error(self->path);
    }
    *journal = 0;
    return status;
}

/* Whoever has read the database may have left its lock file. */
static int remove_lock(const struct staging *self)
{
    if (!unlinkat(self->fd, "database/lock.mdb", 0) || errno == ENOENT)
        return LEAT_OK;
    return system_error(self->path);
}

/* Resumes what is there, or begins anew where that may go. */
static int take_over(struct staging *self, const char *found, int restart)
{
    if (found && *found && !self->journal)
        return leat_error(LEAT_EINVAL,
                          "%s: an unfinished import stands there; finish it, "
                          "or remove the directory",
                          self->path);
    if (found && *found && !restart && !journal_is_same(found, self->journal))
        return journal_other_error(self->path, found, self->journal);
    if (found && *found && !restart) {
        self->state = STAGING_RESUMED;
        if (mkdirat(self->fd, "database", 0777) && errno != EEXIST)
            return entry_error(self);
        return remove_lock(self);
    }
    self->owned = 1;
    if (unlinkat(self->fd, "journal", 0) && errno != ENOENT)
        return system_error(self->path);
    int status = remove_database(self, "database");
    if (!status && self->journal)
        status = write_journal(self, self->journal);
    if (!status && mkdirat(self->fd, "database", 0777))
        status = entry_error(self);
    return status;
}

/* A symbolic link stays one: what it leads to is what is replaced. */
static char *resolve(const char *path)
{
    struct stat found;
    if (!lstat(path, &found) && S_ISLNK(found.st_mode)) {
        char *target = realpath(path, NULL);
        if (target)
            return target;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return strndup(path, length);
}

static int set_texts(struct staging *self,
                     const struct staging_options *options)
{
    self->target = resolve(options->target);
    if (self->target && asprintf(&self->path, "%s.leat-part", self->target) < 0)
        self->path = NULL;
    if (self->path && asprintf(&self->database, "%s/database", self->path) < 0)
        self->database = NULL;
    if (options->arguments &&
        !(self->journal = journal_begin(options->arguments)))
        return LEAT_ENOMEM;
    if (self->path && self->database)
        return LEAT_OK;
    leat_error(LEAT_ENOMEM, "%s: out of memory", options->target);
    return LEAT_ENOMEM;
}

static int begin(struct staging *self, int restart)
{
    struct stat found;
    char *journal = NULL;
    int status = look(AT_FDCWD, self->path, self->path, &found);
    /* A plain refusal writes nothing. */
    if (!status && !found.st_ino)
        status = check_target(self);
    if (!status)
        status = lock(self);
    if (!status)
        status = journal_read(self->fd, self->path, &journal);
    if (!status)
        status = put_back(self);
    if (!status)
        status = finish_publishing(self, journal);
    if (!status && self->state != STAGING_COMPLETE)
        status = check_target(self);
    if (!status && self->state != STAGING_COMPLETE)
        status = take_over(self, journal, restart);
    free(journal);
    return status;
}

int staging_open(struct staging *self, const struct staging_options *options)
{
    memset(self, 0, sizeof(*self));
    if (!options->target[0])
        return leat_error(LEAT_EINVAL,
                          "the database to be made needs a path; this is ''");
    self->fd = -1;
    self->result = -1;
    self->replace = options->replace;
    int status = set_texts(self, options);
    if (!status)
        status = begin(self, options->restart);
    if (status)
        staging_close(self, !self->owned);
    return status;
}

static int came_meanwhile(const struct staging *self)
{
    return leat_error(
        LEAT_EINVAL,
        "%s: somebody else has made it meanwhile; it was not replaced",
        self->target);
}

/* In two steps there is a moment without the target. */
static int move_by_two(const struct staging *self, int replaces)
{
    if (replaces && renameat(AT_FDCWD, self->target, self->fd, "replaced"))
        return system_error(self->target);
    if (!renameat(self->fd, "database", AT_FDCWD, self->target))
        return LEAT_OK;
    int code = errno;
    if (replaces)
        renameat(self->fd, "replaced", AT_FDCWD, self->target);
    errno = code;
    return code == ENOTEMPTY || code == EEXIST || code == ENOTDIR
               ? came_meanwhile(self)
               : system_error(self->target);
}

/* What came while this was made is told so: --force is too late an advice. */
static int move_to_target(const struct staging *self)
{
    struct stat found;
    int status = look(AT_FDCWD, self->target, self->target, &found);
    int replaces = found.st_ino != 0;
    if (replaces && !self->replace)
        return came_meanwhile(self);
    if (!status)
        status = check_target(self);
    if (status || !renameat2(self->fd, "database", AT_FDCWD, self->target,
                             replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE))
        return status;
    if (errno == EEXIST)
        return came_meanwhile(self);
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return system_error(self->target);
    return move_by_two(self, replaces);
}

int staging_publish(struct staging *self, int64_t result)
{
    struct stat database;
    int status = look(self->fd, "database", self->path, &database);
    if (!status)
        status = remove_lock(self);
    if (!status)
        status = sync_directory(self, "database");
    if (!status && self->journal)
        status = complete_journal(self, result, database.st_ino);
    if (!status)
        status = move_to_target(self);
    if (status)
        return status;
    self->published = 1;
    status = sync_directory(self, "..");
    /* What fails here the next run does. */
    self->tidy = !status && !remove_database(self, "database") &&
                 !remove_database(self, "replaced");
    return status;
}

void staging_close(struct staging *self, int keep)
{
    if (self->path && self->fd >= 0) {
        if (!self->published && !keep)
            remove_database(self, "database");
        if (self->published ? self->tidy : !keep) {
            unlinkat(self->fd, "journal.new", 0);
            unlinkat(self->fd, "journal", 0);
        }
        rmdir(self->path); /* which fails while something is in it */
        close(self->fd);
    }
    free(self->target);
    free(self->path);
    free(self->database);
    free(self->journal);
    memset(self, 0, sizeof(*self));
}
