#include "tools/lmdb_writer.h"

#include <leat/ext/reader.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    COMMIT_RECORDS = 1000,     /* as Caffe's tools */
    COMMIT_BYTES = 64 << 20,   /* what a transaction keeps in memory */
    FIRST_MAP_SIZE = 16 << 20, /* doubled when it is nearly full */
    SPARE_BYTES = 1 << 20      /* for branch pages and the free list */
};

struct lmdb_writer {
    char *path;      /* where the database will be */
    char *part;      /* where it is written */
    int part_fd;     /* holds the lock on it */
    int force;       /* path may exist */
    int published;   /* part is gone */
    int64_t bytes;   /* of the published file */
    size_t map_size; /* of the environment */
    size_t used;     /* bytes of it, at most */
    size_t dirty;    /* bytes put since the last commit */
    int records;     /* records put since the last commit */
    MDB_env *env;
    MDB_txn *txn; /* NULL between two */
    MDB_dbi dbi;
};

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
}

static int database_error(const struct lmdb_writer *writer, int code)
{
    if (code == ENOMEM)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", writer->path);
    /* liblmdb says EIO when only a part could be written. */
    struct statvfs disk;
    if (code == EIO && !fstatvfs(writer->part_fd, &disk) &&
        disk.f_bavail * disk.f_frsize < SPARE_BYTES)
        code = ENOSPC;
    return leat_error(LEAT_EIO, "%s: cannot write it: %s%s", writer->path,
                      mdb_strerror(code),
                      code == EIO ? ", or a file size limit" : "");
}

static int is_database_file(const char *name)
{
    return !strcmp(name, "data.mdb") || !strcmp(name, "lock.mdb");
}

/* Whether a directory holds a database's files and nothing else. */
static int is_database_directory(const char *path)
{
    struct stat status;
    if (lstat(path, &status) || !S_ISDIR(status.st_mode))
        return 0;
    DIR *directory = opendir(path);
    if (!directory)
        return 0;
    int only = 1;
    for (struct dirent *entry; only && (entry = readdir(directory));)
        only = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
               is_database_file(entry->d_name);
    closedir(directory);
    return only;
}

static int remove_database_files(const char *path)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return system_error(path);
    int status = LEAT_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (unlinkat(directory, names[i], 0) && errno != ENOENT)
            status = system_error(path);
    close(directory);
    return status;
}

static int remove_database(const char *path)
{
    int status = remove_database_files(path);
    if (!status && rmdir(path))
        status = system_error(path);
    return status;
}

static int check_target(const struct lmdb_writer *writer)
{
    struct stat status;
    if (lstat(writer->path, &status))
        return errno == ENOENT ? LEAT_OK : system_error(writer->path);
    if (!writer->force)
        return leat_error(LEAT_EINVAL,
                          "%s: exists already; --force would replace it",
                          writer->path);
    if (!is_database_directory(writer->path))
        return leat_error(LEAT_EINVAL,
                          "%s: exists and is no database directory; it is not "
                          "replaced, remove it first",
                          writer->path);
    return LEAT_OK;
}

/* Makes the working directory, or takes over one that a killed run left. */
static int open_part(struct lmdb_writer *writer)
{
    int made = !mkdir(writer->part, 0777);
    if (!made && errno != EEXIST)
        return system_error(writer->path);
    writer->part_fd = open(writer->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (writer->part_fd < 0) {
        int status = system_error(writer->part);
        if (made)
            rmdir(writer->part);
        return status;
    }

    /* Somebody else may hold it, or have renamed or removed it meanwhile. */
    struct stat opened, there;
    if ((flock(writer->part_fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) ||
        fstat(writer->part_fd, &opened) || stat(writer->part, &there) ||
        opened.st_ino != there.st_ino) {
        close(writer->part_fd);
        writer->part_fd = -1;
        return leat_error(LEAT_EINVAL, "%s: another leat is writing it",
                          writer->path);
    }
    if (!is_database_directory(writer->part)) {
        close(writer->part_fd);
        writer->part_fd = -1;
        return leat_error(LEAT_EINVAL,
                          "%s: holds files that leat did not write; remove it",
                          writer->part);
    }
    return remove_database_files(writer->part);
}

static int begin(struct lmdb_writer *writer)
{
    int code = mdb_txn_begin(writer->env, NULL, 0, &writer->txn);
    if (!code)
        code = mdb_dbi_open(writer->txn, NULL, 0, &writer->dbi);
    return code ? database_error(writer, code) : LEAT_OK;
}

static int commit(struct lmdb_writer *writer)
{
    if (!writer->txn)
        return LEAT_OK;
    int code = mdb_txn_commit(writer->txn);
    writer->txn = NULL;
    if (code)
        return database_error(writer, code);

    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(writer->env, &info);
    mdb_env_stat(writer->env, &stat);
    writer->used = (info.me_last_pgno + 1) * stat.ms_psize;
    writer->dirty = 0;
    writer->records = 0;
    return LEAT_OK;
}

/*
 * No lock file: nobody else knows of the directory. No sync before the end: a
 * power cut before it loses a directory that nobody has seen.
 */
static int open_environment(struct lmdb_writer *writer)
{
    writer->map_size = FIRST_MAP_SIZE;
    int code = mdb_env_create(&writer->env);
    if (!code)
        code = mdb_env_set_mapsize(writer->env, writer->map_size);
    if (!code)
        code = mdb_env_open(writer->env, writer->part, MDB_NOLOCK | MDB_NOSYNC,
                            0666);
    return code ? database_error(writer, code) : begin(writer);
}

static char *with_suffix(const char *path, size_t length, const char *suffix)
{
    char *joined = malloc(length + strlen(suffix) + 1);
    if (joined)
        sprintf(joined, "%.*s%s", (int)length, path, suffix);
    return joined;
}

int lmdb_writer_open(struct lmdb_writer **out, const char *path, int force)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;

    struct lmdb_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    writer->part_fd = -1;
    writer->force = force;
    writer->path = with_suffix(path, length, "");
    writer->part = with_suffix(path, length, ".leat-part");

    int status = LEAT_OK;
    if (!writer->path || !writer->part)
        status = leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    if (!status)
        status = check_target(writer);
    if (!status)
        status = open_part(writer);
    if (!status)
        status = open_environment(writer);
    if (status) {
        lmdb_writer_close(writer);
        return status;
    }
    *out = writer;
    return LEAT_OK;
}

/*
 * The map cannot grow in a transaction, so it grows before one could fill it:
 * `used` is a bound, put right at each commit.
 */
static int make_room(struct lmdb_writer *writer, size_t bytes)
{
    int grow = writer->used + bytes + SPARE_BYTES > writer->map_size;
    if (!grow && writer->records < COMMIT_RECORDS &&
        writer->dirty < COMMIT_BYTES)
        return LEAT_OK;
    int status = commit(writer);
    if (status)
        return status;
    while (writer->used + bytes + SPARE_BYTES > writer->map_size) {
        writer->map_size *= 2;
        int code = mdb_env_set_mapsize(writer->env, writer->map_size);
        if (code)
            return database_error(writer, code);
    }
    return begin(writer);
}

int lmdb_writer_put(struct lmdb_writer *writer, const char *key,
                    const void *value, size_t size)
{
    /* A value on pages of its own wastes part of one; any other half a page. */
    size_t bytes = 2 * (size + strlen(key) + 16);
    if (size > 2000)
        bytes = size + (size_t)2 * 4096;
    int status = make_room(writer, bytes);
    if (status)
        return status;

    MDB_val k = {strlen(key), (void *)key};
    MDB_val v = {size, (void *)value};
    int code = mdb_put(writer->txn, writer->dbi, &k, &v, MDB_APPEND);
    if (code == MDB_KEYEXIST)
        return leat_error(LEAT_EINVAL, "%s: key %s is not above the one before",
                          writer->path, key);
    if (code)
        return database_error(writer, code);
    writer->used += bytes;
    writer->dirty += bytes;
    writer->records++;
    return LEAT_OK;
}

/* The directory's entry is on disk only when its parent is. */
static void sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? with_suffix(path, (size_t)(slash - path), "/")
                         : with_suffix(".", 1, "");
    int directory = parent ? open(parent, O_RDONLY | O_DIRECTORY) : -1;
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
    free(parent);
}

/* Puts the part in the target's place; an old one ends up in the part's. */
static int replace_target(struct lmdb_writer *writer)
{
    unsigned flags = writer->force ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (!renameat2(AT_FDCWD, writer->part, AT_FDCWD, writer->path, flags)) {
        if (writer->force)
            remove_database(writer->part);
        return LEAT_OK;
    }
    if (errno == EEXIST)
        return check_target(writer);
    /* Not every file system has these flags. */
    if (errno == EINVAL && writer->force && remove_database(writer->path))
        return LEAT_EIO;
    if ((errno == EINVAL || errno == ENOENT || errno == ENOSYS) &&
        !rename(writer->part, writer->path))
        return LEAT_OK;
    return system_error(writer->path);
}

int lmdb_writer_publish(struct lmdb_writer *writer)
{
    int status = commit(writer);
    if (status)
        return status;
    int code = mdb_env_sync(writer->env, 1);
    if (code)
        return database_error(writer, code);
    mdb_env_close(writer->env);
    writer->env = NULL;

    struct stat file;
    if (!fstatat(writer->part_fd, "data.mdb", &file, 0))
        writer->bytes = file.st_size;
    fsync(writer->part_fd);
    status = check_target(writer);
    if (!status)
        status = replace_target(writer);
    if (status)
        return status;
    writer->published = 1;
    sync_parent(writer->path);
    return LEAT_OK;
}

int64_t lmdb_writer_bytes(const struct lmdb_writer *writer)
{
    return writer->bytes;
}

void lmdb_writer_close(struct lmdb_writer *writer)
{
    if (!writer)
        return;
    if (writer->txn)
        mdb_txn_abort(writer->txn);
    if (writer->env)
        mdb_env_close(writer->env);
    if (writer->part_fd >= 0 && !writer->published) {
        remove_database_files(writer->part);
        rmdir(writer->part);
    }
    if (writer->part_fd >= 0)
        close(writer->part_fd);
    free(writer->path);
    free(writer->part);
    free(writer);
}
