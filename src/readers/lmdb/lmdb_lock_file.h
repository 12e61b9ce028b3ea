/*
 * lmdb_lock_file.h: LMDB's lock file: its layout in memory, which is that of
 * liblmdb 0.9, and what it must be before it is used.
 *
 * The caller locks: lmdb_lock.c has the rules.
 */
#ifndef LEAT_READERS_LMDB_LOCK_FILE_H
#define LEAT_READERS_LMDB_LOCK_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LEAT__LMDB_LINE 64 /* liblmdb's cache line in bytes */

typedef struct leat__lmdb_lock_slot {
    /* LEAT__LMDB_NO_TXN: protects no page */
    _Alignas(LEAT__LMDB_LINE) _Atomic size_t txnid;
    _Atomic pid_t number; /* 0: the slot is free */
    pthread_t thread;
} leat__lmdb_lock_slot;

#define LEAT__LMDB_NO_TXN SIZE_MAX

typedef struct leat__lmdb_lock_table {
    uint32_t magic;
    uint32_t format;
    pthread_mutex_t readers_mutex;
    _Atomic size_t txnid;     /* the latest committed one */
    _Atomic uint32_t readers; /* slots ever used */
    _Alignas(LEAT__LMDB_LINE) pthread_mutex_t writer_mutex;
    leat__lmdb_lock_slot slot[];
} leat__lmdb_lock_table;

typedef struct leat__lmdb_lock_file {
    char *path; /* owned */
    int fd;     /* -1: none */
    dev_t device;
    ino_t inode;
    size_t size;             /* of the table in bytes */
    _Atomic size_t reserved; /* bytes that have blocks, from its beginning */
    leat__lmdb_lock_table *table;
    uint32_t capacity; /* slots */
    int kind;          /* __kind of a mutex initialised as liblmdb's */
    pid_t number;      /* this process's number in its slots */
    /* Owned, by slot: it is to be released once there is room for that. */
    _Atomic bool *unreleased;
} leat__lmdb_lock_file;

/* A bounded wait: pauses of growing length. */
typedef struct leat__lmdb_lock_wait {
    int64_t began; /* by leat__clock_now; 0: at the first pause */
    int64_t pause;
    bool logged;
} leat__lmdb_lock_wait;

/* Pauses once. LEAT_EIO, with `what` as the reason, 5 s after it began;
 * LEAT_ECANCELLED where the thread's opening is. */
int leat__lmdb_lock_wait_once(leat__lmdb_lock_wait *wait, const char *path,
                              const char *what);

/*
 * Opens the file, or creates an empty one, without following links; a new one
 * is the owner's of the open file `data`, where this process may give it. If it
 * cannot be opened, *code is the system's error and the status LEAT_OK. Errors:
 * LEAT_EIO if it is not a regular file; LEAT_ENOMEM. The caller closes it,
 * after an error too.
 */
int leat__lmdb_lock_file_open(leat__lmdb_lock_file *lock, const char *path,
                              int data, int *code);

/* Unmaps the table, releases all locks and closes the file. The caller holds
 * forks off (leat__fork_hold), and frees the path. */
void leat__lmdb_lock_file_close(leat__lmdb_lock_file *lock);

/* In a child after fork: releases the map and the descriptor, and leaves the
 * locks, which are the parent's. The file may be in any state. */
void leat__lmdb_lock_file_forget(leat__lmdb_lock_file *lock);

/* Sets this open file's lock on the byte. 0, or the system's error: EAGAIN for
 * a lock of others, EACCES where locks are forbidden. */
int leat__lmdb_lock_file_set_lock(const leat__lmdb_lock_file *lock, short type,
                                  off_t at);

/* The type of a lock of others on the byte: F_UNLCK if there is none; -1 if the
 * file system cannot say. */
int leat__lmdb_lock_file_find_lock(int fd, off_t at);

/* Whether that error of set_lock means that another has locked the byte. */
bool leat__lmdb_lock_file_is_taken(int code);

/* Finds the kind of mutex that a table has. 0, or the system's error. */
int leat__lmdb_lock_file_find_kind(leat__lmdb_lock_file *lock);

/*
 * Maps and initialises the table but for its latest transaction. The caller
 * holds byte 0 exclusively: the table's contents are stale. *code as above.
 * Errors: LEAT_EIO if it is not a lock file.
 */
int leat__lmdb_lock_file_make(leat__lmdb_lock_file *lock, int *code);

/*
 * Maps and checks the table. The caller holds byte 0 shared. *code as above.
 * Errors: LEAT_EIO if it is damaged.
 */
int leat__lmdb_lock_file_map(leat__lmdb_lock_file *lock, int *code);

/*
 * Makes what comes before the slots, or slot `at`, ready for stores, which
 * would raise SIGBUS where the file system has no room for them. Called right
 * before they are stored to, which includes locking a mutex. 0, or ENOSPC. Any
 * thread.
 */
int leat__lmdb_lock_file_ready(const leat__lmdb_lock_file *lock);
int leat__lmdb_lock_file_ready_slot(const leat__lmdb_lock_file *lock,
                                    int64_t at);

/*
 * Makes the table ready for stores, what comes before the slots and as many of
 * the first `n` as there is room for: *ready. 0, or ENOSPC.
 */
int leat__lmdb_lock_file_ready_slots(const leat__lmdb_lock_file *lock,
                                     int64_t n, int64_t *ready);

/* Whether slot `at` has its block. */
bool leat__lmdb_lock_file_has_slot(const leat__lmdb_lock_file *lock,
                                   int64_t at);

/*
 * Allocates it. The caller holds no mutex of the table: a full file system may
 * write the table's page to the disk meanwhile, and unlocking is a store. 0, or
 * ENOSPC or EDQUOT.
 */
int leat__lmdb_lock_file_reserve_slot(leat__lmdb_lock_file *lock, int64_t at);

/* LEAT_EIO if a table in use is not as liblmdb 0.9 initialises it. */
int leat__lmdb_lock_file_check(const leat__lmdb_lock_file *lock);

/* LEAT_EIO, and a line that says what to do. */
int leat__lmdb_lock_file_damaged(const char *path, const char *what);

void leat__lmdb_lock_file_unmap(leat__lmdb_lock_file *lock);

#endif
