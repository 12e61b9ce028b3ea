/*
 * dump_directory.h: the directory of a dump, locked while a process writes
 * there, and the files that an earlier dump left in it.
 */
#ifndef LEAT_TOOLS_DELIVERY_DUMP_DIRECTORY_H
#define LEAT_TOOLS_DELIVERY_DUMP_DIRECTORY_H

#include "tools/cli/staged_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A file of an earlier dump. */
struct dump_earlier {
    struct staged_file aside; /* empty, until the file takes its name */
    struct stat about;        /* of the file */
    bool gave_way;            /* `aside` is the file */
};

struct dump_directory {
    const char *path; /* borrowed */
    int fd;           /* holds the lock on it; -1: none */
    bool is_made;     /* it, but for the first `kept` letters of the path */
    size_t kept;
    const char *token; /* borrowed, a file's name in it; NULL: not in it */
    bool force;        /* an earlier dump gives way */
    struct dump_earlier *earlier;
    size_t nearlier;
};

/* A dump's file begins with these bytes: magic, version 1.0, the length of the
   header and its beginning. Others write headers of this length only for
   records, {'descr': [(...), ...]. */
enum { DUMP_START_BYTES = 21 };
extern const char dump_start[DUMP_START_BYTES + 1];

/*
 * Makes the directory if need be and locks it. With `force` other files in it
 * stay. `token` is the path of the token's file, borrowed until close; NULL:
 * none. What a killed dump left of it or of a .npy is none of the other files.
 * Errors: LEAT_EINVAL for a database's directory, for .npy files of
 * others, for other files without `force`, and while another process writes
 * there; LEAT_EIO, LEAT_ENOMEM. Closed by the caller in any case.
 */
int dump_directory_open(struct dump_directory *out, const char *path,
                        const char *token, bool force);

/*
 * Whether dump_directory_open would refuse the directory, as far as is known
 * without the lock, or no file can be made in it. Makes nothing. Errors: as of
 * dump_directory_open.
 */
int dump_directory_probe(const char *path, const char *token, bool force);

/*
 * Whether a file of that path would not be taken for a part of the dump.
 * Errors: LEAT_EINVAL for a .npy in the directory, LEAT_ENOMEM.
 */
int dump_directory_check(const struct dump_directory *directory,
                         const char *path);

/*
 * Lists the files of an earlier dump, which are to give way. Without `force`
 * there was none, and what has come since stays. Errors: LEAT_EIO, LEAT_ENOMEM,
 * LEAT_ECANCELLED after a signal.
 */
int dump_directory_list_earlier(struct dump_directory *directory);

/*
 * Gives these files temporary names, since files of two dumps must never be
 * taken for one. Errors: LEAT_EINVAL where another file has the
 * name of one by now; LEAT_EIO; LEAT_ECANCELLED after a signal; some then have
 * these names.
 */
int dump_directory_set_aside(struct dump_directory *directory);

/* Whether the path leads to the directory still. Errors: LEAT_EIO. */
int dump_directory_check_place(const struct dump_directory *directory);

/*
 * Gives these files their names back, after an error; nothing that has come
 * there since is replaced. Returns `status`; where a file keeps its temporary
 * name, the error line then says so.
 */
int dump_directory_restore(struct dump_directory *directory, int status);

/* Removes a file that has been published, unless something else is seen to have
   its name by now. */
void dump_directory_remove(const struct dump_directory *directory,
                           const struct staged_file *file, const char *name);

/* Removes what is set aside. With `keep` removes what a killed dump left, too;
   else takes the directory back, where it was made and is empty. */
void dump_directory_close(struct dump_directory *directory, bool keep);

#endif
