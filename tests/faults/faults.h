/*
 * faults.h: calls of the system and of libc that fail when told to.
 *
 * The shared library defines the functions below in front of libc, so that
 * leat, liblmdb, libjpeg and zlib in the same process all come by here: a test
 * program is linked with it, a tool gets it by LD_PRELOAD. What libc calls by
 * itself (a FILE's write, a thread's stack) does not.
 */
#ifndef LEAT_TESTS_FAULTS_H
#define LEAT_TESTS_FAULTS_H

#include <stdint.h>

/* Kinds of calls, their names, and the error that each commonly gives. */
#define FAULT_MAP(X)                                                           \
    X(OPEN, "open", EMFILE)      /* open, openat, opendir */                   \
    X(STAT, "stat", EIO)         /* stat, fstat, lstat, fstatat */             \
    X(READ, "read", EIO)         /* read */                                    \
    X(PREAD, "pread", EIO)       /* pread */                                   \
    X(WRITE, "write", ENOSPC)    /* write, pwrite, writev */                   \
    X(STREAM, "stream", ENOSPC)  /* fopen, fread, fwrite, fflush, fclose */    \
    X(SYNC, "sync", EIO)         /* fsync, fdatasync, msync */                 \
    X(TRUNCATE, "truncate", EIO) /* ftruncate */                               \
    X(SEEK, "seek", EIO)         /* lseek, fseek */                            \
    X(CLOSE, "close", EIO)       /* close, which closes all the same */        \
    X(LOCK, "lock", ENOLCK)      /* fcntl, flock */                            \
    X(NAME, "name", EIO)         /* mkdir, rename, renameat2, linkat */        \
    X(REMOVE, "remove", EIO)     /* unlink, unlinkat, rmdir */                 \
    X(MAP, "map", ENOMEM)        /* mmap */                                    \
    X(HINT, "hint", EAGAIN)      /* madvise, posix_fadvise, mincore */         \
    X(THREAD, "thread", EAGAIN)  /* pthread_create */                          \
    X(MUTEX, "mutex", ENOMEM)    /* pthread_mutex_init */                      \
    X(CONDITION, "condition", EAGAIN) /* pthread_cond_init; not under TSan */  \
    X(KEY, "key", EAGAIN)             /* pthread_key_create */                 \
    X(MEMORY, "memory", ENOMEM) /* malloc and so on; not with sanitizers */

typedef enum fault_call {
#define FAULT_CODE(name, text, error) FAULT_##name,
    FAULT_MAP(FAULT_CODE)
#undef FAULT_CODE
        FAULT_CALLS
} fault_call;

const char *fault_name(fault_call call);
int fault_error(fault_call call); /* the common one */

/* In place of an error: read, pread and write move less than they could. */
#define FAULT_SHORT (-1)

/* In place of an error: the call waits until fault_act's function returned. */
#define FAULT_ACT (-2)
void fault_act(void (*act)(void));

/*
 * Call number `n` of that kind from now on, counted from 0, fails with `error`;
 * with `stays` all later ones too. One fault at a time, whatever the thread.
 */
void fault_arm(fault_call call, int64_t n, int error, int stays);

/* No fault any more. Whether there was one. */
int fault_disarm(void);

/* Calls of that kind so far. */
int64_t fault_count(fault_call call);

/*
 * For a tool, by the environment: LEAT_FAULT=NAME:N:ERROR, the error a number,
 * with a + after it when it stays. At the first failure the file
 * LEAT_FAULT_MARK is made. LEAT_WATCHDOG=SECONDS starts the watchdog.
 */

#endif
