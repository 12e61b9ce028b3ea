/*
 * DESIGN
 *
 * Job j makes some consecutive records in slot j mod slots. A worker claims the
 * next job once its slot was taken, and the finished ones do not hold too many
 * bytes; the job that is to be taken next is always claimed. The taker empties
 * the slots in order. A slot belongs to the worker until `done`, then to the
 * taker. One lock guards the assignment of jobs and is not held while records
 * are made or taken; every change is broadcast. An error waits in its slot, so
 * that errors come in order, too. Closing lets each worker finish its job.
 */
#include "tools/database/worker_pool.h"

#include "base/thread.h"
#include "tools/cli/buffer.h"

#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_WORKERS = 64,
    SLOTS_PER_WORKER = 3,
    MOST_KEPT = 4 << 20 /* bytes of an empty slot */
};

struct slot {
    bool done;       /* guarded by the pool's lock; the rest is the owner's */
    int status;      /* of the record after those made */
    int made;        /* records */
    char error[512]; /* where status is one */
    struct pool_record record[POOL_JOB_MOST];
    struct buffer bytes; /* of all records, in order */
    size_t used;
};

struct worker_pool {
    struct pool_options options; /* immutable from here */
    int64_t jobs;
    int workers;
    int slots;
    leat__thread worker[MOST_WORKERS];

    int taken; /* the taker's: records of its slot, and their bytes */
    size_t taken_bytes;

    pthread_mutex_t lock; /* protects the rest, and `done` of slots */
    pthread_cond_t changed;
    int64_t claimed; /* jobs given to workers */
    int64_t emptied; /* jobs taken */
    size_t waiting;  /* bytes of slots that are done */
    bool stopping;

    struct slot slot[];
};

/* Copies a record to the end of its slot. */
static int append(struct slot *slot, const struct pool_record *record)
{
    int status = buffer_reserve(&slot->bytes, slot->used + record->size);
    if (status)
        return status;
    if (record->size)
        memcpy(slot->bytes.bytes + slot->used, record->bytes, record->size);
    slot->used += record->size;
    slot->record[slot->made++] = *record;
    return LEAT_OK;
}

static void run_job(const struct pool_options *options, void **state,
                    int64_t job, struct slot *slot)
{
    int64_t number = options->first + job * options->job_records;
    int64_t end = number + options->job_records;
    slot->used = 0;
    slot->made = 0;
    slot->status = *state ? LEAT_OK : options->open(state, options->context);
    for (; !slot->status && number < end && number < options->end; number++) {
        struct pool_record record = {0};
        slot->status = options->make(*state, options->context, number, &record);
        if (!slot->status)
            slot->status = append(slot, &record);
    }
    if (slot->status)
        snprintf(slot->error, sizeof(slot->error), "%s", leat_last_error());
}

/* The next job; -1: there is none. */
static int64_t claim_locked(struct worker_pool *pool)
{
    while (!pool->stopping && pool->claimed < pool->jobs &&
           (pool->claimed - pool->emptied >= pool->slots ||
            (pool->claimed > pool->emptied &&
             pool->waiting >= pool->options.most_bytes)))
        pthread_cond_wait(&pool->changed, &pool->lock);
    return pool->stopping || pool->claimed >= pool->jobs ? -1 : pool->claimed++;
}

static void *work(void *argument)
{
    struct worker_pool *pool = argument;
    void *state = NULL;
    pthread_mutex_lock(&pool->lock);
    for (int64_t job; (job = claim_locked(pool)) >= 0;) {
        struct slot *slot = &pool->slot[job % pool->slots];
        pthread_mutex_unlock(&pool->lock);
        run_job(&pool->options, &state, job, slot);
        pthread_mutex_lock(&pool->lock);
        slot->done = true;
        pool->waiting += slot->bytes.size;
        pthread_cond_broadcast(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    pool->options.close(state);
    return NULL;
}

int worker_pool_open(struct worker_pool **out,
                     const struct pool_options *options)
{
    int cores = leat__thread_cores();
    int workers = cores < MOST_WORKERS ? cores : MOST_WORKERS;
    int slots = workers * SLOTS_PER_WORKER, status = LEAT_OK;
    struct worker_pool *pool =
        calloc(1, sizeof(*pool) + (size_t)slots * sizeof(struct slot));
    if (!pool)
        return leat_error(LEAT_ENOMEM, "out of memory for records");
    pool->options = *options;
    pool->slots = slots;
    pool->jobs = (options->end - options->first + options->job_records - 1) /
                 options->job_records;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    for (; !status && pool->workers < workers; pool->workers += !status)
        status = leat__thread_start(&pool->worker[pool->workers],
                                    "leat-records", work, pool);
    /* Fewer do, too. */
    if (!pool->workers) {
        worker_pool_close(pool);
        return status;
    }
    *out = pool;
    return LEAT_OK;
}

static void wait_for(struct worker_pool *pool, const struct slot *slot)
{
    pthread_mutex_lock(&pool->lock);
    while (!slot->done)
        pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void give_back(struct worker_pool *pool, struct slot *slot)
{
    size_t size = slot->bytes.size;
    buffer_trim(&slot->bytes, MOST_KEPT);
    pool->taken = 0;
    pool->taken_bytes = 0;
    pthread_mutex_lock(&pool->lock);
    slot->done = false;
    pool->waiting -= size;
    pool->emptied++;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

int worker_pool_take(struct worker_pool *pool, struct pool_record *out)
{
    /* Only this thread changes `emptied`. */
    while (pool->emptied < pool->jobs) {
        struct slot *slot = &pool->slot[pool->emptied % pool->slots];
        if (!pool->taken)
            wait_for(pool, slot);
        if (pool->taken < slot->made) {
            *out = slot->record[pool->taken++];
            out->bytes =
                out->size ? slot->bytes.bytes + pool->taken_bytes : NULL;
            pool->taken_bytes += out->size;
            return LEAT_OK;
        }
        /* All of it was taken, and borrowed records are given back. */
        int status = slot->status;
        if (status)
            leat_error(status, "%s", slot->error);
        give_back(pool, slot);
        if (status)
            return status;
    }
    return LEAT_END;
}

void worker_pool_close(struct worker_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->workers; i++)
        leat__thread_join(&pool->worker[i]);
    for (int i = 0; i < pool->slots; i++)
        free(pool->slot[i].bytes.bytes);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
