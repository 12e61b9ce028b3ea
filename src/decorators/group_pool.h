/*
 * group_pool.h: samples that a decorator holds until they are written as one
 * group.
 *
 * DESIGN. next fills a group's samples on its one thread, and binds the group
 * to the sample that it gives; materialize, on any thread, finds it there and
 * writes it. The sample may also be dropped unfinished, of which nobody tells.
 * So a group is bound to the sample's buffer, which goes wherever the sample
 * goes: when the buffer comes back to next, whatever was bound to it was
 * dropped, and is free. There are never more groups than buffers. The lock
 * protects which groups are free or bound; a group's samples are those of the
 * thread that took it.
 */
#ifndef LEAT_DECORATORS_GROUP_POOL_H
#define LEAT_DECORATORS_GROUP_POOL_H

#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct leat__group {
    leat_sample **sample; /* `room` of them, NULL until they are needed */
    int room;
    int n;              /* samples that it holds */
    int64_t length;     /* what samples are padded to; -1: the longest */
    leat_position kept; /* where its first sample is from; index -1: unknown */
    const char *line;   /* the error there, in that sample's buffer; or NULL */
    int index;          /* in the pool */
    int64_t bytes;      /* as the pool counts them */
    int summed;         /* samples whose buffers are in `held` */
    int64_t held;       /* bytes of these */
    /* protected by the pool's lock */
    const void *buffer;       /* what it is bound to; NULL: nothing */
    int64_t number;           /* of the last binding */
    struct leat__group *next; /* in a list: free, or bound */
} leat__group;

typedef struct leat__group_pool {
    const char *name; /* of the decorator */
    const leat_allocator *allocator;
    int64_t max_memory; /* of one group's samples; 0: no limit */
    int room;
    atomic_int_fast64_t bytes;   /* of all groups */
    atomic_int_fast64_t first;   /* of the first group, complete; 0: none yet */
    atomic_size_t usual;         /* bytes of the last group that was written */
    atomic_int_fast64_t largest; /* bytes of a complete sample; 0: none yet */
    pthread_mutex_t lock;
    /* protected by lock */
    leat__group **group;
    int n, capacity; /* the latter a power of two */
    leat__group *free;
    leat__group **bound; /* `capacity` lists, by the buffers' addresses: in a
                            shuffle's buffer there may be many */
    int64_t bindings;
} leat__group_pool;

/* For groups of up to `room` samples. Errors: LEAT_EIO. */
int leat__group_pool_init(leat__group_pool *pool, const char *name,
                          const leat_open *open, int room);
void leat__group_pool_finish(leat__group_pool *pool);

/* An empty group. Errors: LEAT_ENOMEM. Any thread. */
int leat__group_pool_take(leat__group_pool *pool, leat__group **out);

/* The free group whose `kept` is `at`, as it was given back; else an empty one,
 * whose `kept` the caller sets. Errors as above. Any thread. */
int leat__group_pool_take_kept(leat__group_pool *pool, leat_position at,
                               leat__group **out);
void leat__group_pool_give_back(leat__group_pool *pool, leat__group *group);

/*
 * How many of the `left` samples of a group are asked for in one call: their
 * buffers are made before it is known what the samples take. With max_memory as
 * many as take a sixteenth of it, if they are no larger than the largest so
 * far, and at most 16; one at first.
 */
int leat__group_pool_at_once(const leat__group_pool *pool, int left);

/* What a sample takes in bytes; notes it if the sample is complete. Any thread.
 */
int64_t leat__group_pool_measure(leat__group_pool *pool,
                                 const leat_sample *sample);

/* LEAT_ELIMIT: a group of `n` samples takes `bytes`, more than max_memory. */
int leat__group_pool_check(const leat__group_pool *pool, int n, int64_t bytes);

/*
 * Clears a sample of a group. With max_memory a buffer of more than a sample's
 * part of it that held little is freed: a rare long sample would leave one at
 * its place, which later groups count.
 */
void leat__group_pool_empty(const leat__group_pool *pool, leat_sample *sample);

/*
 * Samples `from` to `from` + n - 1 of the group, cleared. Errors: LEAT_ENOMEM;
 * LEAT_ELIMIT for a group that becomes larger than max_memory.
 */
int leat__group_clear(leat__group_pool *pool, leat__group *group, int from,
                      int n);

/* Has the pool's bytes follow what the samples' buffers have become. */
void leat__group_pool_count(leat__group_pool *pool, leat__group *group);

/* Counts likewise a group whose samples are complete, `first` if it is that. */
void leat__group_pool_complete(leat__group_pool *pool, leat__group *group);

/* Leaves the group to materialize of `sample`. Errors: LEAT_ENOMEM. */
int leat__group_pool_bind(leat__group_pool *pool, leat__group *group,
                          leat_sample *sample);

/* Takes the group that is bound to the sample. LEAT_ESTATE: none is. */
int leat__group_pool_unbind(leat__group_pool *pool, const leat_sample *sample,
                            leat__group **out);

#endif
