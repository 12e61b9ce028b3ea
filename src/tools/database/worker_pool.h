/* worker_pool.h: records made by several threads, taken in order. */
#ifndef LEAT_TOOLS_DATABASE_WORKER_POOL_H
#define LEAT_TOOLS_DATABASE_WORKER_POOL_H

#include <leat/status.h>

#include <stddef.h>

enum {
    POOL_JOB_MOST = 32,    /* records of a job */
    POOL_BYTES = 512 << 20 /* that may wait by default */
};

/* A record of an image. */
struct pool_record {
    const void *bytes; /* a Datum in wire format */
    size_t size;
    int shape[3];      /* of the image: channels, height, width */
    char warning[160]; /* to be reported, or "" */
};

/* Which records to make, and how. Each thread has a state of its own. */
struct pool_options {
    int64_t first;     /* number of the first one */
    int64_t end;       /* and the number after the last one */
    int job_records;   /* records of a job; 1 for large ones */
    size_t most_bytes; /* no job begins while more wait to be taken, but the
                          one that is to be taken next */
    const void *context;

    int (*open)(void **state, const void *context);
    void (*close)(void *state); /* takes NULL */

    /*
     * Makes record `number`, always the same one; borrowed until the state's
     * next. An error replaces this record and the rest of its job.
     */
    int (*make)(void *state, const void *context, int64_t number,
                struct pool_record *out);
};

struct worker_pool;

/* Starts the threads. Errors: LEAT_ENOMEM, LEAT_EIO. */
int worker_pool_open(struct worker_pool **out,
                     const struct pool_options *options);

/*
 * The next record; borrowed until the next take. LEAT_END after the last one.
 * Errors: those of open and make; the next take gives the record after it.
 */
int worker_pool_take(struct worker_pool *pool, struct pool_record *out);

/* Stops the threads and frees everything, at any time. Takes NULL. */
void worker_pool_close(struct worker_pool *pool);

#endif
