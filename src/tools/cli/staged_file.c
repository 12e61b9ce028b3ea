#include "tools/cli/staged_file.h"

#include "base/error.h"
#include "base/file_access.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK ".leat-"

/* Another name is drawn where such a file exists already. */
enum { LETTERS = 6, TRIES = 100 };

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

/* Draws LETTERS letters of the alphabet and ends them with NUL. */
static int draw_letters(char *out)
{
    unsigned char drawn[LETTERS];
    if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
        return -1;
    for (int i = 0; i < LETTERS; i++)
        out[i] = alphabet[drawn[i] % (sizeof(alphabet) - 1)];
    out[LETTERS] = 0;
    return 0;
}

/* O_EXCL: an existing file of that name, or a dangling link, is not opened. */
static int open_new(int directory, char *path, char *letters, mode_t mode)
{
    int fd = -1;
    for (int i = 0; i < TRIES; i++) {
        if (draw_letters(letters))
            return -1;
        fd = openat(directory, path,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    return fd;
}

int staged_file_check(const char *target)
{
    const char *slash = strrchr(target, '/');
    size_t length = strlen(slash ? slash + 1 : target);
    return length + strlen(MARK) + LETTERS > NAME_MAX
               ? leat__error_system(ENAMETOOLONG, "%s", target)
               : LEAT_OK;
}

int staged_file_create(struct staged_file *out, const char *target)
{
    return staged_file_create_in(out, AT_FDCWD, target, target);
}

int staged_file_create_in(struct staged_file *out, int directory,
                          const char *name, const char *target)
{
    size_t length = strlen(name) + strlen(MARK);
    char *path = malloc(length + LETTERS + 1 + strlen(name) + 1);
    if (!path)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", target);
    char *letters = path + length;
    char *copy = strcpy(letters + LETTERS + 1, name);
    sprintf(path, "%s" MARK, name);
    int fd = open_new(directory, path, letters, leat__file_first_mode(target));
    struct stat about;
    FILE *stream =
        fd < 0 || fstat(fd, &about) || leat__file_keep_access(fd, target)
            ? NULL
            : fdopen(fd, "w+b");
    if (stream) {
        *out = (struct staged_file){directory, path,         copy,
                                    stream,    about.st_dev, about.st_ino};
        return LEAT_OK;
    }
    int status = leat__error_system(errno ? errno : EIO, "%s", target);
    if (fd >= 0) {
        unlinkat(directory, path, 0);
        close(fd);
    }
    free(path);
    return status;
}

int staged_file_close(struct staged_file *file, const char *target)
{
    bool had_failed = ferror(file->stream);
    errno = 0;
    bool failed = fclose(file->stream) || had_failed;
    file->stream = NULL;
    return failed ? leat__error_system(errno ? errno : EIO, "%s", target)
                  : LEAT_OK;
}

static int move(struct staged_file *file, const char *target, bool failed)
{
    if (failed)
        return leat__error_system(errno ? errno : EIO, "%s", target);
    free(file->path);
    file->path = NULL;
    return LEAT_OK;
}

int staged_file_publish(struct staged_file *file, const char *target)
{
    int directory = file->directory;
    return move(file, target,
                renameat(directory, file->path, directory, file->name));
}

int staged_file_set_aside(const struct staged_file *file)
{
    return renameat(file->directory, file->name, file->directory, file->path);
}

int staged_file_restore(const struct staged_file *file)
{
    struct stat found;
    int directory = file->directory;
    if (!renameat2(directory, file->path, directory, file->name,
                   RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return -1;
    /* A file system without it. */
    if (fstatat(directory, file->name, &found, AT_SYMLINK_NOFOLLOW))
        return renameat(directory, file->path, directory, file->name);
    errno = EEXIST;
    return -1;
}

int staged_file_publish_new(struct staged_file *file, const char *target)
{
    bool failed = staged_file_restore(file);
    if (failed && errno == EEXIST)
        return leat_error(LEAT_EINVAL,
                          "%s: somebody else has made it meanwhile; it was not "
                          "replaced",
                          target);
    return move(file, target, failed);
}

void staged_file_discard(struct staged_file *file)
{
    if (file->stream)
        fclose(file->stream);
    if (file->path)
        unlinkat(file->directory, file->path, 0);
    free(file->path);
    *file = (struct staged_file){0};
}

size_t staged_file_target(const char *name)
{
    size_t length = strlen(name), suffix = strlen(MARK) + LETTERS;
    if (length <= suffix)
        return 0;
    const char *mark = name + length - suffix;
    const char *letters = mark + strlen(MARK);
    bool is_staged = !strncmp(mark, MARK, strlen(MARK)) &&
                     strspn(letters, alphabet) == LETTERS;
    return is_staged ? length - suffix : 0;
}
