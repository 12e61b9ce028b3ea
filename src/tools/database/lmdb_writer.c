#include "tools/database/lmdb_writer.h"

#include "tools/database/database.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    COMMIT_BYTES = 8 << 20,    /* what a transaction keeps in memory */
    FIRST_MAP_SIZE = 16 << 20, /* doubled when it is nearly full */
    SPARE_BYTES = 1 << 20,     /* for branch pages and the free list */
    MOST_KEY_BYTES = 511       /* of liblmdb as it is built */
};

static const char *target(const struct lmdb_writer *self)
{
    return self->staging.target;
}

static int database_error(const struct lmdb_writer *self, int code)
{
    if (code == ENOMEM)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", target(self));
    /* Its directory is gone. */
    if (code == ENOENT)
        return leat_error(LEAT_EIO, "%s: another leat is writing it",
                          target(self));
    /* liblmdb says EIO when only a part could be written. */
    struct statvfs disk;
    if (code == EIO && !statvfs(self->staging.path, &disk) &&
        disk.f_bavail * disk.f_frsize < SPARE_BYTES)
        code = ENOSPC;
    return leat_error(LEAT_EIO, "%s: cannot write it: %s%s", target(self),
                      mdb_strerror(code),
                      code == EIO ? ", or a file size limit" : "");
}

static int begin(struct lmdb_writer *self)
{
    int code = mdb_txn_begin(self->env, NULL, 0, &self->txn);
    if (!code)
        code = mdb_dbi_open(self->txn, NULL, 0, &self->dbi);
    return code ? database_error(self, code) : LEAT_OK;
}

/* Takes the sizes as of the last commit. */
static void measure(struct lmdb_writer *self)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(self->env, &info);
    mdb_env_stat(self->env, &stat);
    self->page = stat.ms_psize;
    self->map_size = info.me_mapsize;
    self->used = (info.me_last_pgno + 1) * stat.ms_psize;
    self->records = self->committed = (int64_t)stat.ms_entries;
    self->dirty = 0;
}

static int commit(struct lmdb_writer *self)
{
    if (!self->txn)
        return LEAT_OK;
    int code = mdb_txn_commit(self->txn);
    self->txn = NULL;
    if (code)
        return database_error(self, code);
    measure(self);
    return LEAT_OK;
}

/* The file of an earlier run may be a link by now, to one that must stay. */
static int open_data(const struct lmdb_writer *self, int *out)
{
    struct stat found;
    int fd =
        openat(self->staging.fd, "database/data.mdb",
               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    int code = fd < 0 || fstat(fd, &found) ? errno : 0;
    if (!code && S_ISREG(found.st_mode) && found.st_nlink == 1) {
        *out = fd;
        return LEAT_OK;
    }
    if (fd >= 0)
        close(fd);
    if (code && code != ELOOP)
        return database_error(self, code);
    return leat_error(LEAT_EIO,
                      "%s/data.mdb: a link, or no regular file: it is not "
                      "written to; remove it",
                      self->staging.database);
}

/*
 * No lock file: the staging directory's lock keeps others away. Without a
 * journal no sync before the end: a power cut then loses a directory that
 * nobody has seen.
 */
static int open_environment(struct lmdb_writer *self, int fd)
{
    unsigned flags =
        MDB_NOLOCK | MDB_NOSUBDIR | (self->durable ? 0 : MDB_NOSYNC);
    char opened[32];
    /* The very file, whatever has that name by now. */
    snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
    int code = mdb_env_create(&self->env);
    if (!code)
        code = mdb_env_set_mapsize(self->env, FIRST_MAP_SIZE);
    if (!code)
        code = mdb_env_open(self->env, opened, flags, 0666);
    if (code)
        return database_error(self, code);
    measure(self);
    return begin(self);
}

/*
 * The database of an earlier run is checked like a stranger's; less than the
 * two pages that LMDB begins with is none.
 */
static int check_found(const struct lmdb_writer *self, int fd)
{
    struct stat state;
    int64_t records;
    if (fstat(fd, &state))
        return database_error(self, errno);
    if (state.st_size < 2 * sysconf(_SC_PAGESIZE))
        return ftruncate(fd, 0) ? database_error(self, errno) : LEAT_OK;
    int status = database_check(self->staging.database, &records);
    if (status != LEAT_EFORMAT && status != LEAT_EUNSUPPORTED)
        return status;
    char line[400];
    snprintf(line, sizeof(line), "%s", leat_last_error());
    return leat_error(status, "%s; --restart starts over", line);
}

static int open_staged(struct lmdb_writer *self)
{
    int fd = -1;
    int status = open_data(self, &fd);
    if (status)
        return status;
    if (self->staging.state == STAGING_RESUMED)
        status = check_found(self, fd);
    if (!status)
        status = open_environment(self, fd);
    close(fd);
    return status;
}

int lmdb_writer_open(struct lmdb_writer *self,
                     const struct staging_options *options)
{
    *self = (struct lmdb_writer){.durable = options->arguments != NULL};
    int status = staging_open(&self->staging, options);
    if (status)
        return status;
    self->keep = self->staging.state == STAGING_RESUMED;
    status = self->staging.state == STAGING_COMPLETE
                 ? database_check(target(self), &self->records)
                 : open_staged(self);
    if (status)
        lmdb_writer_close(self);
    self->keep = false;
    return status;
}

int lmdb_writer_last(struct lmdb_writer *self, MDB_val *key, MDB_val *value)
{
    MDB_cursor *cursor;
    int code = mdb_cursor_open(self->txn, self->dbi, &cursor);
    if (!code) {
        code = mdb_cursor_get(cursor, key, value, MDB_LAST);
        mdb_cursor_close(cursor);
    }
    if (code == MDB_NOTFOUND)
        return LEAT_END;
    return code ? database_error(self, code) : LEAT_OK;
}

/*
 * The map cannot grow in a transaction, so it grows before one could fill it:
 * `used` is a bound, put right at each commit.
 */
static int make_room(struct lmdb_writer *self, size_t bytes)
{
    bool grow = self->used + bytes + SPARE_BYTES > self->map_size;
    if (!grow && self->dirty < COMMIT_BYTES)
        return LEAT_OK;
    int status = commit(self);
    if (status)
        return status;
    while (self->used + bytes + SPARE_BYTES > self->map_size) {
        int code = mdb_env_set_mapsize(self->env, 2 * self->map_size);
        if (code)
            return database_error(self, code);
        self->map_size *= 2;
    }
    return begin(self);
}

/*
 * What a record takes of the file, at most. One on pages of its own wastes part
 * of the last of them; of the page that holds any other up to half is waste.
 */
static size_t room_for(const struct lmdb_writer *self, size_t key_size,
                       size_t size)
{
    size_t node = key_size + size + 16;
    return node < self->page / 2 - 64 ? 2 * node : size + 2 * self->page;
}

int lmdb_writer_put(struct lmdb_writer *self, const void *key, size_t key_size,
                    const void *value, size_t size)
{
    if (!key_size || key_size > MOST_KEY_BYTES)
        return leat_error(LEAT_EINVAL,
                          "%s: a key of %zu bytes; LMDB takes 1 to %d: "
                          "'%.64s...'",
                          target(self), key_size, MOST_KEY_BYTES,
                          (const char *)key);
    if (size > INT32_MAX)
        return leat_error(LEAT_EINVAL,
                          "%s: a record of %zu bytes, which is too large",
                          target(self), size);
    size_t bytes = room_for(self, key_size, size);
    int status = make_room(self, bytes);
    if (status)
        return status;
    MDB_val k = {key_size, (void *)key};
    MDB_val v = {size, (void *)value};
    int code = mdb_put(self->txn, self->dbi, &k, &v, MDB_APPEND);
    if (code == MDB_KEYEXIST)
        return leat_error(LEAT_EINVAL,
                          "%s: key %.*s is not above the one before",
                          target(self), (int)key_size, (const char *)key);
    if (code)
        return database_error(self, code);
    self->used += bytes;
    self->dirty += bytes;
    self->records++;
    return LEAT_OK;
}

int lmdb_writer_publish(struct lmdb_writer *self, int64_t result)
{
    struct stat state;
    int status = LEAT_OK;
    if (self->staging.state != STAGING_COMPLETE) {
        status = commit(self);
        int code = status ? 0 : mdb_env_sync(self->env, 1);
        if (status || code)
            return status ? status : database_error(self, code);
        mdb_env_close(self->env);
        self->env = NULL;
        status = staging_publish(&self->staging, result);
    }
    self->bytes =
        status || stat(self->staging.data, &state) ? 0 : state.st_size;
    return status;
}

int64_t lmdb_writer_keep(struct lmdb_writer *self)
{
    if (!self->durable)
        return 0;
    commit(self); /* What fails is not committed. */
    self->records = self->committed;
    self->keep = self->records > 0;
    return self->records;
}

void lmdb_writer_close(struct lmdb_writer *self)
{
    if (self->txn)
        mdb_txn_abort(self->txn);
    if (self->env)
        mdb_env_close(self->env);
    staging_close(&self->staging, self->keep && self->durable);
    memset(self, 0, sizeof(*self));
}
