/*
 * slow_storage.h: a file on storage of a given latency and bandwidth.
 *
 * A process of its own serves the file by FUSE. Requests wait out the latency
 * side by side; then their bytes come one after the other, as by a wire.
 */
#ifndef LEAT_BENCHMARKS_SLOW_STORAGE_H
#define LEAT_BENCHMARKS_SLOW_STORAGE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/* What the storage did so far; shared between the processes. */
typedef struct slow_storage_totals {
    pthread_mutex_t lock;
    /* protected by lock */
    int64_t requests;
    int64_t bytes;
    int64_t busy; /* nanoseconds that the wire was in use */
    int64_t free; /* the clock's time at which it will be free */
} slow_storage_totals;

typedef struct slow_storage {
    char path[256]; /* of a directory with data.mdb */
    int64_t size;   /* of data.mdb */
    pid_t server;
    slow_storage_totals *totals; /* NULL: nothing is mounted */
} slow_storage;

/*
 * Mounts DIRECTORY/data.mdb, with nothing of it in memory. Returns 0, or -1
 * with a line on stderr; 1 where FUSE cannot be used.
 */
int slow_storage_mount(slow_storage *out, const char *directory,
                       int64_t latency, int64_t bytes_per_second);
void slow_storage_unmount(slow_storage *storage);

/* Copies what was done so far; `requests`, `bytes` and `busy` mean something.
 */
void slow_storage_read(slow_storage *storage, slow_storage_totals *out);

#endif
