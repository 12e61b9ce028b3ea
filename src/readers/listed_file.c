#include "readers/listed_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#include <string.h>
#include <sys/stat.h>

int leat__listed_file_note(leat__listed_file **out, const char *path)
{
    struct stat about;
    *out = NULL;
    if (stat(path, &about) || !S_ISREG(about.st_mode))
        return LEAT_OK;
    leat__listed_file *file =
        leat__alloc_zero(1, sizeof(*file) + strlen(path) + 1);
    if (!file)
        return LEAT_ENOMEM;
    strcpy(file->path, path);
    file->device = about.st_dev;
    file->inode = about.st_ino;
    file->version = leat__file_version_of(&about);
    *out = file;
    return LEAT_OK;
}

static uint64_t digest_of(const char *bytes, size_t size)
{
    return leat__file_hash_bytes(0xcbf29ce484222325u, bytes, size);
}

void leat__listed_file_read(leat__listed_file *file, const char *bytes,
                            size_t size)
{
    file->digest = digest_of(bytes, size);
}

static bool has_same_bytes(const leat__listed_file *file)
{
    char *bytes;
    size_t size;
    if (leat__file_read(&bytes, &size, file->path, (size_t)file->version.size))
        return false;
    uint64_t digest = digest_of(bytes, size);
    leat__free(bytes);
    return digest == file->digest;
}

/* Some file systems number a file anew, and archives give files of two releases
 * one time. One that is written in place has been read whole. */
int leat__listed_file_check(const leat__listed_file *file)
{
    struct stat about;
    if (!stat(file->path, &about) &&
        ((about.st_dev == file->device && about.st_ino == file->inode) ||
         (leat__file_version_is_same(leat__file_version_of(&about),
                                     file->version) &&
          has_same_bytes(file))))
        return LEAT_OK;
    return leat_error(LEAT_EIO,
                      "%s: removed or replaced while its files were opened; "
                      "open them again",
                      file->path);
}
