#include "tools/delivery/dump_files.h"
#include "tools/cli/staged_file.h"

#include "tools/delivery/directory.h"
#include "tools/delivery/npy.h"

#include <leat/ext/reader.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
}

/* The entries, from the first; NULL is an error. */
static DIR *open_entries(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries && fd >= 0)
        close(fd);
    return entries;
}

static int ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), of_end = strlen(end);
    return length > of_end && !strcmp(name + length - of_end, end);
}

/* Of a dump that was killed: who looks holds the lock of the directory. */
static int is_left_behind(const char *name)
{
    size_t length = staged_file_target(name);
    return length > 4 && !strncmp(name + length - 4, ".npy", 4);
}

static int is_earlier(int directory, const char *name)
{
    return ends_with(name, ".npy") && npy_writer_wrote(directory, name);
}

/* What is in the directory; the last one found of each. */
struct contents {
    char earlier[NAME_MAX + 1]; /* of an earlier dump */
    char foreign[NAME_MAX + 1]; /* .npy, but of somebody else */
    char other[NAME_MAX + 1];
    int is_database;
};

static int look(int directory, const char *path, const char *name,
                struct contents *contents)
{
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return LEAT_OK;
    if (is_left_behind(name))
        return unlinkat(directory, name, 0) ? system_error(path) : LEAT_OK;
    char *list = contents->other;
    if (ends_with(name, ".npy"))
        list = npy_writer_wrote(directory, name) ? contents->earlier
                                                 : contents->foreign;
    snprintf(list, NAME_MAX + 1, "%s", name);
    contents->is_database |= !strcmp(name, "data.mdb");
    return LEAT_OK;
}

static int look_at_all(int directory, const char *path,
                       struct contents *contents)
{
    DIR *entries = open_entries(directory);
    if (!entries)
        return system_error(path);
    const struct dirent *entry;
    int status = directory_next(entries, path, &entry);
    while (!status && entry) {
        status = look(directory, path, entry->d_name, contents);
        if (!status)
            status = directory_next(entries, path, &entry);
    }
    closedir(entries);
    return status;
}

int dump_files_check(int directory, const char *path, int force)
{
    struct contents contents = {0};
    int status = look_at_all(directory, path, &contents);
    if (status)
        return status;
    /* Beside either the dump would be taken for something else. */
    if (contents.is_database)
        return leat_error(LEAT_EINVAL,
                          "%s: is a database's directory; a dump needs "
                          "another one",
                          path);
    if (contents.foreign[0])
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s, which leat dump did not write; remove "
                          "it first",
                          path, contents.foreign);
    if (contents.earlier[0] && !force)
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s already; --force would replace the "
                          "files of that dump",
                          path, contents.earlier);
    if (contents.other[0] && !force)
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s; --force would put the dump beside it",
                          path, contents.other);
    return LEAT_OK;
}

int dump_files_clear(int directory, const char *path)
{
    DIR *entries = open_entries(directory);
    if (!entries)
        return system_error(path);
    const struct dirent *entry;
    int status = directory_next(entries, path, &entry);
    while (!status && entry) {
        if (is_earlier(directory, entry->d_name) &&
            unlinkat(directory, entry->d_name, 0))
            status = system_error(path);
        if (!status)
            status = directory_next(entries, path, &entry);
    }
    closedir(entries);
    return status;
}
