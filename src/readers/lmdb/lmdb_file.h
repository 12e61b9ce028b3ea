/* lmdb_file.h: finds the files of an LMDB by a path, and reads the data file's
 * meta pages. */
#ifndef LEAT_READERS_LMDB_FILE_H
#define LEAT_READERS_LMDB_FILE_H

#include "readers/lmdb/lmdb_map.h"

#include <stdbool.h>
#include <sys/types.h>

/* The paths of a data file: a link's, and all to which it leads. */
#define LEAT__LMDB_PATHS 8

/* The lock files that liblmdb uses for them: for each path, that of the file by
 * itself (MDB_NOSUBDIR), then that of its directory. */
#define LEAT__LMDB_LOCKS (2 * LEAT__LMDB_PATHS)

typedef struct leat__lmdb_file {
    char *path;                    /* as given; all are owned */
    char *data;                    /* the data file */
    char *lock;                    /* its lock file, the one that leat uses */
    char *locks[LEAT__LMDB_LOCKS]; /* of all of its paths; NULL: none */
    char *directory;               /* of data and lock */
    bool in_directory; /* the data file is data.mdb: locked by the directory's
                          lock.mdb */
    bool is_hidden;    /* `data` is a descriptor's link to where this process
                          cannot look, and so are the lock files */
    int fd;            /* of the data file */
    dev_t device;
    ino_t inode;
} leat__lmdb_file;

/*
 * Finds and opens the data file at `path`, or in the directory `path`, and
 * checks its meta pages and size. Errors: LEAT_EIO, LEAT_EFORMAT, naming the
 * path and what to do; LEAT_ENOMEM.
 */
int leat__lmdb_file_open(leat__lmdb_file *out, const char *path);

/* The same without checking its contents. */
int leat__lmdb_file_find(leat__lmdb_file *out, const char *path);

void leat__lmdb_file_close(leat__lmdb_file *file);

/* The data file's current size in bytes. */
int leat__lmdb_file_size(const leat__lmdb_file *file, size_t *out);

/* Reads meta page `number` as it is now; the second one is at `page_size`. */
int leat__lmdb_file_meta(const leat__lmdb_file *file, int number,
                         size_t page_size, leat__lmdb_meta *out);

/*
 * Maps the first `size` bytes, for the transaction of a meta page that was read
 * of the file. An overlay file system copies a file to another layer at the
 * first write to it: what is mapped by a descriptor from before is the file as
 * it was, while reads and the size are of the copy. The descriptor is then
 * renewed, and the copy mapped.
 */
int leat__lmdb_file_map(const leat__lmdb_file *file,
                        const leat__lmdb_meta *meta, size_t size, void **out);

/*
 * Whether there is no lock file and this process can create none. The mode of
 * the directory does not tell: it binds neither the superuser nor his writers,
 * from which only a reader slot protects the pages.
 */
bool leat__lmdb_file_is_sealed(const leat__lmdb_file *file);

#endif
