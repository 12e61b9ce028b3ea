/* listed_file.h: a file that lists others, as it was when it was read. */
#ifndef LEAT_READERS_LISTED_FILE_H
#define LEAT_READERS_LISTED_FILE_H

#include "base/file_version.h"

#include <sys/types.h>

typedef struct leat__listed_file {
    struct leat__listed_file *next;
    dev_t device;
    ino_t inode;
    leat__file_version version;
    uint64_t digest; /* of its bytes: leat__listed_file_read */
    char path[];
} leat__listed_file;

/* Before it is read. A pipe is not asked again: *out is NULL. LEAT_ENOMEM. */
int leat__listed_file_note(leat__listed_file **out, const char *path);

/* What was read. */
void leat__listed_file_read(leat__listed_file *file, const char *bytes,
                            size_t size);

/* LEAT_EIO if another file has its place: files that were opened since may be
 * those of that. Takes one that was read. */
int leat__listed_file_check(const leat__listed_file *file);

#endif
