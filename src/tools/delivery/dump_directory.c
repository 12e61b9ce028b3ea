#include "tools/delivery/dump_directory.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "tools/cli/interrupt.h"
#include "tools/delivery/directory.h"
#include "tools/delivery/token_file.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char dump_start[DUMP_START_BYTES + 1] =
    "\x93NUMPY\x01\x00\xf6\x00{'descr': '";

/* The last name found of each kind. */
struct entries {
    char earlier[NAME_MAX + 1]; /* of an earlier dump */
    char foreign[NAME_MAX + 1]; /* .npy files of other programs */
    char other[NAME_MAX + 1];
    bool is_database;
};

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno ? errno : EIO));
}

static bool ends_in_npy(const char *name, size_t length)
{
    return length > 4 && !strncmp(name + length - 4, ".npy", 4);
}

/* How many bytes of a dump's file a regular one has, of DUMP_START_BYTES; below
   0: it is something else, or errno says why that is not known. */
static ssize_t read_start(const struct dump_directory *directory,
                          const char *name, struct stat *about)
{
    char start[DUMP_START_BYTES];
    int fd = leat__file_open_regular(directory->fd, name, O_NOFOLLOW);
    if (fd < 0) {
        if (errno == ENXIO || errno == ENOENT)
            errno = 0;
        return -1;
    }
    errno = 0;
    ssize_t n = fstat(fd, about) ? -1 : read(fd, start, DUMP_START_BYTES);
    int code = errno;
    close(fd); /* only read from: nothing can be lost */
    errno = code;
    return n > 0 && memcmp(start, dump_start, (size_t)n) ? -1 : n;
}

/* Whether a dump made the file, and then which one it is. */
static int find_dump_file(const struct dump_directory *directory,
                          const char *name, bool *out, struct stat *about)
{
    *out = false;
    if (!ends_in_npy(name, strlen(name)))
        return LEAT_OK;
    ssize_t n = read_start(directory, name, about);
    *out = n == DUMP_START_BYTES;
    return n < 0 && errno
               ? leat__error_system(errno, "%s/%s", directory->path, name)
               : LEAT_OK;
}

static int path_of(const struct dump_directory *directory, const char *name,
                   char **out)
{
    return asprintf(out, "%s/%s", directory->path, name) < 0
               ? leat_error(LEAT_ENOMEM, "%s: out of memory", directory->path)
               : LEAT_OK;
}

/* Whether the file is empty or a token. */
static bool may_be_token(const struct dump_directory *directory,
                         const char *name)
{
    char *path;
    if (path_of(directory, name, &path))
        return false;
    bool may_be = !token_file_check(path);
    free(path);
    return may_be;
}

/* Whether a killed dump left the file, which may be empty. The name alone may
   be anybody's. */
static bool is_leftover(const struct dump_directory *directory,
                        const char *name)
{
    struct stat about;
    size_t length = staged_file_target(name);
    const char *token = directory->token;
    if (token && length == strlen(token) && !strncmp(name, token, length))
        return may_be_token(directory, name);
    return ends_in_npy(name, length) &&
           read_start(directory, name, &about) >= 0;
}

static int visit_entries(struct dump_directory *directory,
                         int (*visit)(struct dump_directory *directory,
                                      const char *name, void *context),
                         void *context)
{
    int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        int status = system_error(directory->path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    const struct dirent *entry;
    int status = directory_next(entries, directory->path, &entry);
    while (!status && entry) {
        status = visit(directory, entry->d_name, context);
        if (!status)
            status = directory_next(entries, directory->path, &entry);
    }
    closedir(entries);
    return status;
}

static int remove_leftover(struct dump_directory *directory, const char *name,
                           void *context)
{
    (void)context;
    if (!is_leftover(directory, name) || !unlinkat(directory->fd, name, 0))
        return LEAT_OK;
    return leat__error_system(errno, "%s/%s", directory->path, name);
}

static int check_file_place(const struct dump_directory *directory,
                            const char *name)
{
    char *path;
    int status = path_of(directory, name, &path);
    if (status)
        return status;
    status = leat__file_check_place(path);
    free(path);
    return status;
}

static int note_entry(struct dump_directory *directory, const char *name,
                      void *context)
{
    struct entries *found = context;
    if (!strcmp(name, ".") || !strcmp(name, "..") ||
        is_leftover(directory, name))
        return LEAT_OK;
    bool is_earlier;
    struct stat about;
    int status = find_dump_file(directory, name, &is_earlier, &about);
    if (status)
        return status;
    if (is_earlier && directory->force)
        status = check_file_place(directory, name);
    if (status)
        return status;
    char *list = is_earlier                        ? found->earlier
                 : ends_in_npy(name, strlen(name)) ? found->foreign
                                                   : found->other;
    snprintf(list, NAME_MAX + 1, "%s", name);
    found->is_database |= !strcmp(name, "data.mdb");
    return LEAT_OK;
}

/* Other .npy files or a database would be taken for a part of the dump. */
static int check(struct dump_directory *directory)
{
    const char *path = directory->path;
    bool force = directory->force;
    struct entries found = {.is_database = false};
    int status = leat__file_check_directory_renames(path);
    if (!status)
        status = visit_entries(directory, note_entry, &found);
    if (status)
        return status;
    if (found.is_database)
        return leat_error(LEAT_EINVAL,
                          "%s: is a database's directory; a dump needs "
                          "another one",
                          path);
    if (found.foreign[0])
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s, which leat dump did not write; remove "
                          "it first",
                          path, found.foreign);
    if (found.earlier[0] && !force)
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s already; --force would replace the "
                          "files of that dump",
                          path, found.earlier);
    if (found.other[0] && !force)
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s; --force would put the dump beside it",
                          path, found.other);
    return LEAT_OK;
}

/* Whether a file of that path would be in the directory. */
static int find_inside(const struct dump_directory *directory, const char *path,
                       bool *out)
{
    struct stat own, parent;
    char *above = leat__file_directory(path);
    if (!above)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    *out = !fstat(directory->fd, &own) && !stat(above, &parent) &&
           own.st_dev == parent.st_dev && own.st_ino == parent.st_ino;
    leat__free(above);
    return LEAT_OK;
}

/* Of an open directory, which knows its token's leftovers from then on. */
static int check_with_token(struct dump_directory *directory, const char *token)
{
    bool is_inside = false;
    int status = token ? find_inside(directory, token, &is_inside) : LEAT_OK;
    if (status)
        return status;
    const char *slash = is_inside ? strrchr(token, '/') : NULL;
    directory->token = !is_inside ? NULL : slash ? slash + 1 : token;
    return check(directory);
}

int dump_directory_probe(const char *path, const char *token, bool force)
{
    struct dump_directory directory = {.path = path, .force = force};
    int status = directory_check(path);
    if (status)
        return status;
    directory.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory.fd < 0)
        return errno == ENOENT ? LEAT_OK : system_error(path);
    status = faccessat(directory.fd, ".", W_OK | X_OK, AT_EACCESS)
                 ? system_error(path)
                 : check_with_token(&directory, token);
    close(directory.fd);
    return status;
}

int dump_directory_open(struct dump_directory *out, const char *path,
                        const char *token, bool force)
{
    *out = (struct dump_directory){.path = path, .fd = -1, .force = force};
    int status = directory_make(path, &out->kept);
    if (status)
        return status;
    out->is_made = true;
    out->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0)
        return system_error(path);
    /* Two dumps at once into one directory would write the same files. */
    if (flock(out->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        out->is_made = false;
        return leat_error(LEAT_EINVAL,
                          "%s: another program has locked it, as a leat that "
                          "writes into it does",
                          path);
    }
    return check_with_token(out, token);
}

int dump_directory_check(const struct dump_directory *directory,
                         const char *path)
{
    bool is_inside = false;
    int status = ends_in_npy(path, strlen(path))
                     ? find_inside(directory, path, &is_inside)
                     : LEAT_OK;
    if (status)
        return status;
    return is_inside
               ? leat_error(LEAT_EINVAL,
                            "%s: would be taken for a part of the dump in %s; "
                            "give it another name",
                            path, directory->path)
               : LEAT_OK;
}

/* Room for one more, zeroed. */
static struct dump_earlier *add_earlier(struct dump_directory *directory)
{
    size_t n = directory->nearlier;
    struct dump_earlier *grown =
        realloc(directory->earlier, (n + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    directory->earlier = grown;
    directory->nearlier = n + 1;
    grown[n] = (struct dump_earlier){0};
    return &grown[n];
}

static int list_earlier(struct dump_directory *directory, const char *name,
                        void *context)
{
    (void)context;
    bool is_earlier;
    struct stat about;
    int status = find_dump_file(directory, name, &is_earlier, &about);
    if (!status && is_earlier)
        status = interrupt_check();
    if (status || !is_earlier)
        return status;
    struct dump_earlier *one = add_earlier(directory);
    char *path;
    if (!one)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", directory->path);
    status = path_of(directory, name, &path);
    if (status)
        return status;
    one->about = about;
    status = staged_file_create_in(&one->aside, directory->fd, name, path);
    if (!status)
        status = staged_file_close(&one->aside, path);
    free(path);
    return status;
}

int dump_directory_list_earlier(struct dump_directory *directory)
{
    return directory->force ? visit_entries(directory, list_earlier, NULL)
                            : LEAT_OK;
}

int dump_directory_check_place(const struct dump_directory *directory)
{
    struct stat own, found;
    if (!fstat(directory->fd, &own) && !stat(directory->path, &found) &&
        own.st_dev == found.st_dev && own.st_ino == found.st_ino)
        return LEAT_OK;
    return leat_error(LEAT_EIO,
                      "%s: somebody else has moved, replaced or removed it "
                      "meanwhile",
                      directory->path);
}

/* The number of a file that was removed may be given to the next one. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether the file that has the temporary name is the one that was listed, or
   a dump's at least, on a file system that numbers files anew. */
static bool is_listed(const struct dump_directory *directory,
                      const struct dump_earlier *one)
{
    struct stat found;
    const char *name = one->aside.path;
    if (!fstatat(directory->fd, name, &found, AT_SYMLINK_NOFOLLOW) &&
        is_same_file(&found, &one->about))
        return true;
    return read_start(directory, name, &found) == DUMP_START_BYTES;
}

/* The rename replaces the empty file that has been created for it. */
static int set_aside(const struct dump_directory *directory,
                     struct dump_earlier *one)
{
    int status = interrupt_check();
    if (status)
        return status;
    if (staged_file_set_aside(&one->aside))
        return leat__error_system(errno, "%s/%s", directory->path,
                                  one->aside.name);
    one->gave_way = true;
    return is_listed(directory, one)
               ? LEAT_OK
               : leat_error(LEAT_EINVAL,
                            "%s/%s: somebody else has replaced it meanwhile",
                            directory->path, one->aside.name);
}

int dump_directory_set_aside(struct dump_directory *directory)
{
    int status = LEAT_OK;
    for (size_t i = 0; !status && i < directory->nearlier; i++)
        status = set_aside(directory, &directory->earlier[i]);
    return status;
}

int dump_directory_restore(struct dump_directory *directory, int status)
{
    for (size_t i = 0; i < directory->nearlier; i++) {
        struct dump_earlier *one = &directory->earlier[i];
        const char *path = directory->path;
        if (!one->gave_way)
            continue;
        if (staged_file_restore(&one->aside))
            leat__error_context(status, "%s/%s is now %s/%s, rename it", path,
                                one->aside.name, path, one->aside.path);
        /* Nothing of it is left to be removed. */
        free(one->aside.path);
        one->aside.path = NULL;
        one->gave_way = false;
    }
    return status;
}

void dump_directory_remove(const struct dump_directory *directory,
                           const struct staged_file *file, const char *name)
{
    struct stat found;
    if (fstatat(directory->fd, name, &found, AT_SYMLINK_NOFOLLOW) ||
        (found.st_dev == file->device && found.st_ino == file->number))
        unlinkat(directory->fd, name, 0);
}

void dump_directory_close(struct dump_directory *directory, bool keep)
{
    for (size_t i = 0; i < directory->nearlier; i++)
        staged_file_discard(&directory->earlier[i].aside);
    free(directory->earlier);
    /* Not before: they may be all that there is of an earlier dump. Only one
       process has the lock. */
    if (keep)
        (void)visit_entries(directory, remove_leftover, NULL);
    else if (directory->is_made)
        directory_unmake(directory->path, directory->kept);
    if (directory->fd >= 0)
        close(directory->fd);
}
