#include "tools/database/target.h"

#include "tools/database/database.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LMDB's, in its data files behind the head of a page, in its lock files first.
 */
enum { MAGIC_PLACE = 16 };
static const uint32_t lmdb_magic = 0xbeefc0de;

int64_t target_begin(const char *path, void *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, size);
    close(fd); /* Read-only: nothing is lost if it fails. */
    return n;
}

/* By its name, as a damaged one is of one, too; or by what is in it. */
static int is_of_database(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    unsigned char head[MAGIC_PLACE + sizeof(lmdb_magic)] = {0};
    if (!strcmp(name, "data.mdb") || !strcmp(name, "lock.mdb"))
        return 1;
    return target_begin(path, head, sizeof(head)) > 0 &&
           (!memcmp(head, &lmdb_magic, sizeof(lmdb_magic)) ||
            !memcmp(head + MAGIC_PLACE, &lmdb_magic, sizeof(lmdb_magic)));
}

int target_check(const char *path, const char *source, int force,
                 target_own *is_own)
{
    struct stat found;
    int status = database_spare(source, path);
    if (status)
        return status;
    int is_there = !lstat(path, &found);
    /* Whoever writes it refuses what is no file, and says what fails. */
    if (is_there && !S_ISREG(found.st_mode))
        return LEAT_OK;
    if (is_of_database(path))
        return leat_error(LEAT_EINVAL,
                          "%s: is a file of a database; give another name",
                          path);
    if (!is_there || !found.st_size || force || is_own(path))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: exists already, and this command writes other "
                      "files; --force would replace it",
                      path);
}
