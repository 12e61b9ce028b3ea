#include "tools/database/journal.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "leat import 2\n"
#define COMPLETE "complete: "

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
}

/* The text, or NULL with its line where asprintf failed. */
static char *checked(int length, char *text)
{
    if (length >= 0)
        return text;
    leat_error(LEAT_ENOMEM, "out of memory for a journal");
    return NULL;
}

char *journal_begin(const char *arguments)
{
    char *text;
    int length = asprintf(&text, HEADER "%s", arguments);
    return checked(length, text);
}

char *journal_complete(const char *journal, int64_t result, uint64_t inode)
{
    char *text;
    int length = asprintf(&text, "%s" COMPLETE "%" PRId64 " %" PRIu64 "\n",
                          journal, result, inode);
    return checked(length, text);
}

static int write_bytes(int fd, const char *text)
{
    while (*text) {
        ssize_t n = write(fd, text, strlen(text));
        if (n < 0 && errno != EINTR)
            return -1;
        text += n > 0 ? n : 0;
    }
    return 0;
}

int journal_write(int directory, const char *path, const char *text)
{
    if (unlinkat(directory, "journal.new", 0) && errno != ENOENT)
        return system_error(path);
    int fd = openat(directory, "journal.new",
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return system_error(path);
    int status = LEAT_OK;
    if (write_bytes(fd, text) || fsync(fd))
        status = system_error(path);
    if (close(fd) && !status)
        status = system_error(path);
    if (!status && renameat(directory, "journal.new", directory, "journal"))
        status = system_error(path);
    return status;
}

int journal_read(int directory, const char *path, char **out)
{
    struct stat file;
    int fd = openat(directory, "journal",
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return LEAT_OK;
    ssize_t n = -1;
    if (fd >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode) &&
        file.st_size < 1 << 24 && (*out = calloc(1, (size_t)file.st_size + 1)))
        n = read(fd, *out, (size_t)file.st_size);
    if (fd >= 0)
        close(fd);
    if (n < 0 || n < file.st_size)
        return leat_error(LEAT_EIO, "%s/journal: cannot be read; remove %s",
                          path, path);
    return LEAT_OK;
}

int journal_is_same(const char *found, const char *now)
{
    size_t length = strlen(now);
    return !strncmp(found, now, length) &&
           (!found[length] ||
            !strncmp(found + length, COMPLETE, strlen(COMPLETE)));
}

int journal_is_complete(const char *found, int64_t *result, uint64_t *inode)
{
    const char *line = strstr(found, "\n" COMPLETE);
    return line && sscanf(line, "\n" COMPLETE "%" SCNd64 " %" SCNu64, result,
                          inode) == 2;
}

int journal_other_error(const char *path, const char *found, const char *now)
{
    size_t line = 0;
    for (size_t i = 0; now[i] && now[i] == found[i]; i++)
        if (now[i] == '\n')
            line = i + 1;
    return leat_error(
        LEAT_EINVAL,
        "%s: an unfinished import of other files or options: "
        "'%.*s', now '%.*s'; finish that one, or --restart begins anew",
        path, (int)strcspn(found + line, "\n"), found + line,
        (int)strcspn(now + line, "\n"), now + line);
}
