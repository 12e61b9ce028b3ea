/* lmdb_file.h: the files of an LMDB, found by a path, and the data file's head.
 */
#ifndef LEAT_READERS_LMDB_FILE_H
#define LEAT_READERS_LMDB_FILE_H

#include "readers/lmdb/lmdb_map.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct leat__lmdb_file {
    char *path; /* as given; all four owned */
    char *data; /* the data file */
    char *lock;
    char *directory;   /* that they are in */
    bool in_directory; /* `path` is it, or its data.mdb: locked as it is */
    int fd;            /* of the data file */
    dev_t device;
    ino_t inode;
} leat__lmdb_file;

/*
 * Finds and opens the data file that `path` is, or has in it, and checks its
 * meta pages and size. Errors: LEAT_EIO, LEAT_EFORMAT, naming the path and what
 * to do; LEAT_ENOMEM.
 */
int leat__lmdb_file_open(leat__lmdb_file *out, const char *path);

/* The same without a look at what is in it. */
int leat__lmdb_file_find(leat__lmdb_file *out, const char *path);

void leat__lmdb_file_close(leat__lmdb_file *file);

/* The data file's size in bytes now. */
int leat__lmdb_file_size(const leat__lmdb_file *file, size_t *out);

/* What meta page `number` says now; `page_size` finds the second one. */
int leat__lmdb_file_meta(const leat__lmdb_file *file, int number,
                         size_t page_size, leat__lmdb_meta *out);

/*
 * Whether there is no lock file and none is to be made: the directory is
 * read-only, by its mode too, which the superuser would not be held by.
 */
bool leat__lmdb_file_is_sealed(const leat__lmdb_file *file);

#endif
