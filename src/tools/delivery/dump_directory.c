#include "tools/delivery/dump_directory.h"

#include "tools/cli/staged_file.h"
#include "tools/delivery/directory.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

/* Whether a dump made the file: a regular one with such a header. */
static bool is_dump_file(int directory, const char *name)
{
    struct stat found;
    char start[DUMP_START_BYTES];
    size_t length = strlen(name);
    if (length < 5 || strcmp(name + length - 4, ".npy") != 0)
        return false;
    int fd =
        openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_same = !fstat(fd, &found) && S_ISREG(found.st_mode) &&
                   read(fd, start, DUMP_START_BYTES) == DUMP_START_BYTES &&
                   !memcmp(start, dump_start, DUMP_START_BYTES);
    close(fd);
    return is_same;
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

static int remove_entry(struct dump_directory *directory, const char *name)
{
    return unlinkat(directory->fd, name, 0) ? system_error(directory->path)
                                            : LEAT_OK;
}

static int remove_earlier(struct dump_directory *directory, const char *name,
                          void *context)
{
    (void)context;
    return is_dump_file(directory->fd, name) ? remove_entry(directory, name)
                                             : LEAT_OK;
}

/* Removes the temporary files of a killed dump: only one process has the lock.
 */
static int note_entry(struct dump_directory *directory, const char *name,
                      void *context)
{
    struct entries *found = context;
    size_t length = strlen(name), target = staged_file_target(name);
    bool is_npy = length > 4 && !strcmp(name + length - 4, ".npy");
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return LEAT_OK;
    if (target > 4 && !strncmp(name + target - 4, ".npy", 4))
        return remove_entry(directory, name);
    char *list = is_dump_file(directory->fd, name) ? found->earlier
                 : is_npy                          ? found->foreign
                                                   : found->other;
    snprintf(list, NAME_MAX + 1, "%s", name);
    found->is_database |= !strcmp(name, "data.mdb");
    return LEAT_OK;
}

/* Other .npy files or a database would be taken for a part of the dump. */
static int check(struct dump_directory *directory, bool force)
{
    const char *path = directory->path;
    struct entries found = {.is_database = false};
    int status = visit_entries(directory, note_entry, &found);
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

int dump_directory_open(struct dump_directory *out, const char *path,
                        bool force)
{
    *out = (struct dump_directory){.path = path, .fd = -1};
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
        return leat_error(LEAT_EINVAL, "%s: another leat is writing into it",
                          path);
    }
    return check(out, force);
}

int dump_directory_clear(struct dump_directory *directory)
{
    return visit_entries(directory, remove_earlier, NULL);
}

void dump_directory_close(struct dump_directory *directory, bool keep)
{
    if (directory->is_made && !keep)
        directory_unmake(directory->path, directory->kept);
    if (directory->fd >= 0)
        close(directory->fd);
}
