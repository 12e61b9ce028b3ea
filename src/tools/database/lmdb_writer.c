#include "tools/database/lmdb_writer.h"

#include "base/file.h"
#include "base/file_access.h"
#include "base/file_place.h"
#include "tools/cli/interrupt.h"
#include "tools/database/database.h"
#include "tools/database/staged_access.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define STAGED_DATA "database/data.mdb"

enum {
    COMMIT_BYTES = 8 << 20,    /* data of a transaction, kept in memory */
    FIRST_MAP_SIZE = 16 << 20, /* doubled when it is nearly full */
    SPARE_BYTES = 1 << 20,     /* for branch pages and the free list */
    FULL_BYTES = 4 << 20,      /* free where ext4 cuts a large write short */
    MOST_KEY_BYTES = 511       /* of liblmdb as it is built */
};

static const char *target(const struct lmdb_writer *writer)
{
    return writer->staging.target;
}

/* Whether the limit is below what has been given to be written: LMDB's first
   pages at least. */
static bool is_limited(const struct lmdb_writer *writer)
{
    size_t least = 2 * (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = writer->used < least ? least : writer->used;
    return leat__file_check_limit((int64_t)bytes) != 0;
}

static int database_error(const struct lmdb_writer *writer, int code)
{
    if (code == ENOMEM)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", target(writer));
    /* Its directory is gone. */
    if (code == ENOENT)
        return leat_error(LEAT_EIO, "%s: another leat is writing it",
                          target(writer));
    /* liblmdb returns either when only a part could be written. */
    struct statvfs disk;
    bool is_cut = code == EIO || code == ENOSPC;
    bool is_full = is_cut && !statvfs(writer->staging.path, &disk) &&
                   disk.f_bavail * disk.f_frsize < FULL_BYTES;
    bool is_long = is_cut && !is_full && is_limited(writer);
    code = is_full ? ENOSPC : is_long ? EFBIG : code;
    return leat_error(
        LEAT_EIO, "%s: cannot write it: %s%s", target(writer),
        mdb_strerror(code),
        is_cut && !is_full && !is_long ? ", a quota or a file size limit" : "");
}

static int begin(struct lmdb_writer *writer)
{
    int code = mdb_txn_begin(writer->env, NULL, 0, &writer->txn);
    if (!code)
        code = mdb_dbi_open(writer->txn, NULL, 0, &writer->dbi);
    return code ? database_error(writer, code) : LEAT_OK;
}

/* Takes the sizes as of the last commit. */
static void measure(struct lmdb_writer *writer)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(writer->env, &info);
    mdb_env_stat(writer->env, &stat);
    writer->page = stat.ms_psize;
    writer->map_size = info.me_mapsize;
    writer->used = (info.me_last_pgno + 1) * stat.ms_psize;
    writer->records = writer->committed = (int64_t)stat.ms_entries;
    writer->dirty = 0;
}

static int commit(struct lmdb_writer *writer)
{
    if (!writer->txn)
        return LEAT_OK;
    int code = mdb_txn_commit(writer->txn);
    writer->txn = NULL;
    if (code)
        return database_error(writer, code);
    measure(writer);
    return LEAT_OK;
}

/* The file of an earlier run may be a link by now, to one that must stay. */
static int open_data(const struct lmdb_writer *writer, int *out)
{
    struct stat found;
    const int at = writer->staging.fd, flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    /* Waits for another program's lease, and for no reader of a pipe. */
    int fd = leat__file_open_at(at, STAGED_DATA, flags);
    bool failed = fd < 0;
    if (fd < 0 && errno == ENOENT) {
        const char *replaced = writer->staging.data;
        fd = openat(at, STAGED_DATA, flags | O_CREAT | O_EXCL,
                    leat__file_first_mode(replaced));
        failed = fd < 0 || staged_access_begin(fd, at, replaced);
    }
    int code = failed || fstat(fd, &found) ? errno : 0;
    if (!code && S_ISREG(found.st_mode) && found.st_nlink == 1) {
        *out = fd;
        return LEAT_OK;
    }
    if (fd >= 0)
        close(fd);
    if (code && code != ELOOP)
        return database_error(writer, code);
    return leat_error(LEAT_EIO,
                      "%s/data.mdb: a link, or no regular file: it is not "
                      "written to; remove it",
                      writer->staging.database);
}

/* 0, or liblmdb's error. */
static int open_file(struct lmdb_writer *writer, const char *path)
{
    unsigned flags =
        MDB_NOLOCK | MDB_NOSUBDIR | (writer->durable ? 0 : MDB_NOSYNC);
    int code = mdb_env_create(&writer->env);
    if (!code)
        code = mdb_env_set_mapsize(writer->env, FIRST_MAP_SIZE);
    if (!code)
        code = mdb_env_open(writer->env, path, flags, 0666);
    return code;
}

/* Likewise; the file must still be the one that is open. */
static int open_by_name(struct lmdb_writer *writer, int fd)
{
    char path[PATH_MAX];
    struct stat wanted, found;
    mdb_filehandle_t opened;
    mdb_env_close(writer->env);
    writer->env = NULL;
    int n =
        snprintf(path, sizeof(path), "%s/data.mdb", writer->staging.database);
    if (n < 0 || (size_t)n >= sizeof(path))
        return ENAMETOOLONG;
    int code = open_file(writer, path);
    if (!code)
        code = mdb_env_get_fd(writer->env, &opened);
    if (!code && (fstat(fd, &wanted) || fstat(opened, &found)))
        code = errno;
    if (!code &&
        (wanted.st_dev != found.st_dev || wanted.st_ino != found.st_ino))
        code = ENOENT;
    return code;
}

/*
 * No lock file: the staging directory's lock keeps others away. Without a
 * journal no sync before the end: a power cut then loses a directory that
 * nobody has seen.
 */
static int open_environment(struct lmdb_writer *writer, int fd)
{
    char opened[32];
    /* The very file, whatever has that name by now. */
    snprintf(opened, sizeof(opened), "/proc/thread-self/fd/%d", fd);
    int code = open_file(writer, opened);
    /* Where /proc is missing. */
    if (code == ENOENT && leat__file_access(opened, F_OK))
        code = open_by_name(writer, fd);
    if (code)
        return database_error(writer, code);
    measure(writer);
    return begin(writer);
}

/*
 * The database of an earlier run is checked like a stranger's; less than the
 * two pages that LMDB begins with is none.
 */
static int check_found(const struct lmdb_writer *writer, int fd)
{
    struct stat state;
    int64_t records;
    if (fstat(fd, &state))
        return database_error(writer, errno);
    if (state.st_size < 2 * sysconf(_SC_PAGESIZE))
        return ftruncate(fd, 0) ? database_error(writer, errno) : LEAT_OK;
    int status = database_check(writer->staging.database, &records);
    if (status != LEAT_EFORMAT && status != LEAT_EUNSUPPORTED)
        return status;
    char line[400];
    snprintf(line, sizeof(line), "%s", leat_last_error());
    return leat_error(status, "%s; --restart starts over", line);
}

static int open_staged(struct lmdb_writer *writer)
{
    int fd = -1;
    int status = open_data(writer, &fd);
    if (status)
        return status;
    if (writer->staging.state == STAGING_RESUMED)
        status = check_found(writer, fd);
    if (!status)
        status = open_environment(writer, fd);
    close(fd);
    return status;
}

int lmdb_writer_open(struct lmdb_writer *writer,
                     const struct staging_options *options)
{
    *writer = (struct lmdb_writer){.durable = options->arguments != NULL};
    int status = staging_open(&writer->staging, options);
    if (status)
        return status;
    writer->keep = writer->staging.state == STAGING_RESUMED;
    status = writer->staging.state == STAGING_COMPLETE
                 ? database_check(target(writer), &writer->records)
                 : open_staged(writer);
    if (status)
        lmdb_writer_close(writer);
    writer->keep = false;
    return status;
}

int lmdb_writer_last(struct lmdb_writer *writer, MDB_val *key, MDB_val *value)
{
    MDB_cursor *cursor;
    int code = mdb_cursor_open(writer->txn, writer->dbi, &cursor);
    if (!code) {
        code = mdb_cursor_get(cursor, key, value, MDB_LAST);
        mdb_cursor_close(cursor);
    }
    if (code == MDB_NOTFOUND)
        return LEAT_END;
    return code ? database_error(writer, code) : LEAT_OK;
}

/*
 * The map cannot grow in a transaction, so it grows before one could fill it:
 * `used` is a bound, put right at each commit.
 */
static int make_room(struct lmdb_writer *writer, size_t bytes)
{
    bool grow = writer->used + bytes + SPARE_BYTES > writer->map_size;
    if (!grow && writer->dirty < COMMIT_BYTES)
        return LEAT_OK;
    int status = commit(writer);
    if (status)
        return status;
    while (writer->used + bytes + SPARE_BYTES > writer->map_size) {
        int code = mdb_env_set_mapsize(writer->env, 2 * writer->map_size);
        if (code)
            return database_error(writer, code);
        writer->map_size *= 2;
    }
    return begin(writer);
}

/*
 * What a record takes of the file, at most. One on pages of its own wastes part
 * of the last of them; of the page that holds any other up to half is waste.
 */
static size_t room_for(const struct lmdb_writer *writer, size_t key_size,
                       size_t size)
{
    size_t node = key_size + size + 16;
    return node < writer->page / 2 - 64 ? 2 * node : size + 2 * writer->page;
}

int lmdb_writer_put(struct lmdb_writer *writer, const void *key,
                    size_t key_size, const void *value, size_t size)
{
    if (!key_size || key_size > MOST_KEY_BYTES)
        return leat_error(LEAT_EINVAL,
                          "%s: a key of %zu bytes; LMDB takes 1 to %d: "
                          "'%.64s...'",
                          target(writer), key_size, MOST_KEY_BYTES,
                          (const char *)key);
    if (size > INT32_MAX)
        return leat_error(LEAT_EINVAL,
                          "%s: a record of %zu bytes: expected at most %d",
                          target(writer), size, INT32_MAX);
    size_t bytes = room_for(writer, key_size, size);
    int status = make_room(writer, bytes);
    if (status)
        return status;
    MDB_val k = {key_size, (void *)key};
    MDB_val v = {size, (void *)value};
    int code = mdb_put(writer->txn, writer->dbi, &k, &v, MDB_APPEND);
    if (code == MDB_KEYEXIST)
        return leat_error(LEAT_EINVAL,
                          "%s: key %.*s is not above the one before",
                          target(writer), (int)key_size, (const char *)key);
    if (code)
        return database_error(writer, code);
    writer->used += bytes;
    writer->dirty += bytes;
    writer->records++;
    return LEAT_OK;
}

/* Whether the file that is written still has its name: somebody else may have
 * moved, replaced or removed it. */
static bool is_in_place(const struct lmdb_writer *writer)
{
    struct stat written, found;
    mdb_filehandle_t fd;
    return !mdb_env_get_fd(writer->env, &fd) && !fstat(fd, &written) &&
           !fstatat(writer->staging.fd, STAGED_DATA, &found,
                    AT_SYMLINK_NOFOLLOW) &&
           written.st_dev == found.st_dev && written.st_ino == found.st_ino;
}

/* What is published is what has the name. */
static int check_place(const struct lmdb_writer *writer)
{
    if (is_in_place(writer))
        return LEAT_OK;
    return leat_error(LEAT_EIO,
                      "%s/data.mdb: somebody else has moved, replaced or "
                      "removed it meanwhile",
                      writer->staging.database);
}

int lmdb_writer_publish(struct lmdb_writer *writer, int64_t result)
{
    struct stat state;
    int status = LEAT_OK;
    if (writer->staging.state != STAGING_COMPLETE) {
        status = commit(writer);
        int code = status ? 0 : mdb_env_sync(writer->env, 1);
        if (code)
            status = database_error(writer, code);
        if (!status)
            status = check_place(writer);
        if (!status)
            status = interrupt_check();
        if (status)
            return status;
        mdb_env_close(writer->env);
        writer->env = NULL;
        status = staging_publish(&writer->staging, result);
    }
    writer->bytes =
        status || stat(writer->staging.data, &state) ? 0 : state.st_size;
    return status;
}

int64_t lmdb_writer_keep(struct lmdb_writer *writer)
{
    if (!writer->durable)
        return 0;
    commit(writer); /* What fails is not committed. */
    bool is_lost = writer->env && !is_in_place(writer);
    writer->records = is_lost ? 0 : writer->committed;
    writer->keep = writer->records > 0;
    return writer->records;
}

void lmdb_writer_close(struct lmdb_writer *writer)
{
    if (writer->txn)
        mdb_txn_abort(writer->txn);
    if (writer->env)
        mdb_env_close(writer->env);
    staging_close(&writer->staging, writer->keep && writer->durable);
    memset(writer, 0, sizeof(*writer));
}
