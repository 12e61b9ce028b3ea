/*
 * prefetch_reader.h: what the threads of prefetch share with its caller. How
 * they go together is described in prefetch_threads.c.
 */
#ifndef LEAT_DECORATORS_PREFETCH_PREFETCH_READER_H
#define LEAT_DECORATORS_PREFETCH_PREFETCH_READER_H

#include "base/thread.h"
#include "decorators/decorator.h"
#include "decorators/prefetch/prefetch_buffer.h"
#include "decorators/recent_largest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct leat__prefetch leat__prefetch;

/* What the caller waits for, under the lock. */
typedef bool leat__prefetch_condition(const leat__prefetch *prefetch);

struct leat__prefetch {
    leat__decorator decorator; /* first */

    /* Immutable. */
    bool by_index;
    bool is_unordered;
    bool has_mark;
    bool is_auto;
    int nthreads;
    int most;          /* slots */
    int usual;         /* slots of AUTO, unless the caller finds none */
    int64_t count;     /* with by_index */
    int64_t max_bytes; /* that samples may take; 0: no limit */

    /* The caller's, one at a time. */
    bool is_started;
    int nrunning; /* threads that started */
    leat__thread *thread;
    leat__prefetch_slot **given; /* popped, not yet delivered */
    int ngiven, given_at;
    leat__prefetch_slot **spent; /* delivered, not yet given back */
    int nspent;
    const leat_field_spec *spec; /* once known */
    int nspec;

    atomic_size_t first_bytes; /* of the first sample; any thread */
    leat__block_probe probe;   /* of upstream; the thread's that is pulling */

    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t changed;
    /* Protected by lock. */
    leat__prefetch_buffer buffer;
    bool is_paused;  /* the caller wants the upstream reader alone */
    bool is_pulling; /* a thread, or the caller, has it */
    bool is_stuck;   /* there is nothing to read until seek */
    bool is_closing;
    bool was_full;               /* a thread found no empty slot */
    int busy;                    /* threads that work */
    int idle;                    /* threads that wait */
    int chunk;                   /* slots to claim at a time */
    leat__recent_largest recent; /* bytes of samples; -1: none was read yet */
    int64_t reserved;            /* by which those being read may grow */
    leat__prefetch_slot *pulled; /* being pulled, with its mark; or NULL */
    leat_position next;          /* to be claimed; in order, its epoch alone */
    int seek_status;             /* of seeking ahead of the caller, */
    char seek_line[LEAT__ERROR_MAX];
    leat__prefetch_condition
        *awaited; /* by the caller; NULL: it does not wait */
};

static inline leat_reader *
leat__prefetch_upstream(const leat__prefetch *prefetch)
{
    return prefetch->decorator.upstream[0];
}

/*
 * Releases the lock and wakes the caller, if what it awaits is there, and one
 * thread, if it can claim slots; that wakes the next once it has claimed.
 */
void leat__prefetch_unlock(leat__prefetch *prefetch);

/*
 * Slots that may hold samples now, one at least: those that do, and as many
 * more as max_bytes has room for beside all buffers, were each of their samples
 * the largest of the last ones. Under the lock.
 */
int leat__prefetch_room(const leat__prefetch *prefetch);

/*
 * Frees buffers of empty slots that take the room of the next sample. Under the
 * lock, after slots were given back or buffers have grown.
 */
void leat__prefetch_fit(leat__prefetch *prefetch);

/*
 * With AUTO, makes slots until there are `n`, or as many as max_bytes has room
 * for with their samples. Under the lock.
 */
void leat__prefetch_grow(leat__prefetch *prefetch, int n);

/* Waits under the lock, by the caller. LEAT_ECANCELLED after cancel. */
int leat__prefetch_wait(leat__prefetch *prefetch,
                        leat__prefetch_condition *condition);

/* Starts the threads; one is enough. Errors: LEAT_EIO, LEAT_ENOMEM. */
int leat__prefetch_start(leat__prefetch *prefetch);

/* Operations of a leat__prefetch. */
int leat__prefetch_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n);
int leat__prefetch_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got);
int leat__prefetch_seek(leat_reader *reader, leat_position position,
                        leat_token *mark);
int leat__prefetch_skip(leat_reader *reader, int64_t n, int64_t *skipped);
int leat__prefetch_mark(leat_reader *reader, leat_token *token);
int leat__prefetch_save(leat_reader *reader, leat_token *token);
int leat__prefetch_restore(leat_reader *reader, leat_token *token);
void leat__prefetch_cancel(leat_reader *reader);
void leat__prefetch_close(leat_reader *reader);

/* Frees what is its own, once no thread runs. */
void leat__prefetch_finish(leat__prefetch *prefetch);

#endif
