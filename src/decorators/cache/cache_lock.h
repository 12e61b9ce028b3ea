/*
 * cache_lock.h: NAME.lock in PATH.partial (cache_partial.h), by which one
 * writer at a time has the directory, and what the names lead to. Callers hold
 * names_lock.
 */
#ifndef LEAT_DECORATORS_CACHE_CACHE_LOCK_H
#define LEAT_DECORATORS_CACHE_CACHE_LOCK_H

#include "decorators/cache/cache_format.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Which file it is; zeroed: none. */
typedef struct leat__cache_file {
    dev_t device;
    ino_t number;
} leat__cache_file;

/* The files are reached by descriptors only: whatever takes the place of the
 * directory, or of the working directory, is not touched. */
typedef struct leat__cache_partial {
    leat__cache_path path;    /* what it becomes; for errors */
    leat__cache_path partial; /* what it is until then; for errors */
    size_t name;              /* where the last part begins, of both */
    leat__cache_path lock;    /* the lock's name */
    int parent_fd;
    int fd;
    int lock_fd;        /* holds the lock; -1: nothing here is this writer's */
    bool is_made;       /* by this writer, not one that was there */
    bool has_made_lock; /* likewise */
    int no_lock;        /* why it cannot be locked; 0: it is */
    bool has_hidden;    /* files that FUSE or NFS keep until they are closed */
    pthread_mutex_t names_lock; /* held while names are made or removed */
    /* Protected by names_lock. */
    leat__cache_file data, index; /* that it has made */
    atomic_bool is_abandoned;     /* written under names_lock */
} leat__cache_partial;

/* openat, noted for forks. Returns the errno, 0 on success. */
int leat__cache_open_at(int *fd, int at, const char *name, int flags);

/* The last parts of the two paths. */
const char *leat__cache_name_of(const leat__cache_partial *partial);
const char *leat__cache_partial_name_of(const leat__cache_partial *partial);

/* Whether the directory's name leads to what is open. */
bool leat__cache_partial_is_there(const leat__cache_partial *partial);

/* Whether this writer holds the directory of this name. */
bool leat__cache_lock_is_there(const leat__cache_partial *partial);

/* What another user has left, or is about to lock. LEAT_AGAIN where it is gone;
 * LEAT_EIO. */
int leat__cache_refuse_leftover(const leat__cache_partial *partial);

/* Makes the lock in the open directory, or opens that of another writer, and
 * locks it. LEAT_AGAIN: the directory is gone, or a complete cache by now.
 * Errors: LEAT_ESTATE where another writer has it; LEAT_EIO: no lock that was
 * made here is left. */
int leat__cache_lock_take(leat__cache_partial *partial);

/* Removes it, if it is this writer's. */
void leat__cache_lock_remove(const leat__cache_partial *partial);

void leat__cache_lock_close(leat__cache_partial *partial);

#endif
