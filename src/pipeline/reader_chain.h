/*
 * reader_chain.h: the readers that were opened together, and what each of them
 * did.
 *
 * DESIGN. A chain is made with the reader that delivers, and freed with it; it
 * has the figures of that reader, of its upstream readers and of those that any
 * of them opens by leat_open_again. Figures belong to a path, not to a reader:
 * readers that are opened one after the other under one path share them, so
 * that they outlive these.
 *
 * A path, once there, does not change. The counters are atomic, and any thread
 * adds to them. `lock` protects the list of paths and that of the open readers
 * that report their memory; `memory` of these is called under it, and no other
 * lock of leat's is taken there. In a forked child the lock may be held for
 * ever, so the lists are left alone there.
 *
 * What readers can do without, such as an index that speeds up later epochs,
 * setup does not count: all of a chain's share `spare_bytes`.
 *
 * Time is a call's own: a call notes in thread-local memory that it runs, and
 * subtracts what calls of other readers took inside of it. That is right on any
 * thread, whatever a reader calls there. A chain of one reader takes no clock.
 */
#ifndef LEAT_PIPELINE_READER_CHAIN_H
#define LEAT_PIPELINE_READER_CHAIN_H

#include "base/memory.h"
#include "pipeline/reader_state.h"

#include <leat/stats.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct leat__reader_chain leat__reader_chain;

/* Of the readers of one path. */
typedef struct leat_reader_figures {
    /* Written by all threads that read. */
    _Alignas(LEAT__CACHE_LINE) atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy; /* nanoseconds, as the next */
    atomic_int_fast64_t blocked;
    /* Immutable. */
    leat__reader_chain *chain;
    const struct leat_reader_figures *owner; /* NULL: it delivers */
    int number; /* of several upstream readers; -1: the only one */
    char name[64];
    char path[LEAT_READER_PATH_MAX];
} leat_reader_figures;

struct leat__reader_chain {
    pthread_mutex_t lock;
    unsigned generation; /* of the process that opened it */
    /* Changed under lock. */
    atomic_int n;                    /* of reader, how many are in use */
    struct leat_reader_state *first; /* of the readers that report memory */
    atomic_int_fast64_t spare_bytes;
    /* In a forked child. */
    leat_reader *abandoned;
    leat__reader_chain *next_abandoned;
    leat_reader_figures reader[LEAT_MAX_READER_STATS];
};

/* A measured call of a reader, which runs on this thread. */
typedef struct leat__reader_call {
    struct leat__reader_call *outer;
    leat_reader_figures *figures; /* NULL: it is not measured */
    int64_t begun;
    int64_t inner; /* of its time, what is not its own */
} leat__reader_call;

/* A chain of one path. LEAT_ENOMEM. */
int leat__reader_chain_create(leat__reader_chain **out, const char *name);

/* Frees it after its readers. Takes NULL. */
void leat__reader_chain_destroy(leat__reader_chain *chain);

/*
 * Whether the chain is a parent's, in a forked child. `reader` delivers; what a
 * thread of the parent's may have been changing is then left where it is, and
 * leak checkers see that it was not forgotten.
 */
bool leat__reader_chain_abandon(leat__reader_chain *chain, leat_reader *reader);

/* LEAT_ESTATE: the reader is a parent's, in a forked child: its threads do not
 * run there, and its locks may be held for ever. Any thread. */
int leat__reader_check_process(const leat_reader *reader);

/*
 * The figures of a reader that `owner` reads; those of the last path where all
 * others are taken.
 */
leat_reader_figures *leat__reader_chain_add(leat_reader_figures *owner,
                                            const char *name, int number);

/* Has the memory of an open reader reported, until it is removed. */
void leat__reader_chain_attach(leat_reader *reader);
void leat__reader_chain_detach(const leat_reader *reader);

/* leat_reader_chain_stats, but `memory` is what setup leaves each. */
int leat__reader_chain_reserves(leat_reader *reader,
                                leat_reader_stats out[LEAT_MAX_READER_STATS]);

/*
 * Counts `bytes` of what a reader can do without, unless the chain's readers
 * then have more than `most` of that. Any thread.
 */
bool leat__reader_chain_take_spare(leat_reader_figures *figures, int64_t bytes,
                                   int64_t most);
void leat__reader_chain_return_spare(leat_reader_figures *figures,
                                     int64_t bytes);

/* For an inline function. */
void leat__reader_call_enter(leat__reader_call *call,
                             leat_reader_figures *figures);
void leat__reader_call_leave(leat__reader_call *call);

/* Counts samples that a reader gave, and the bytes of those that have all. */
void leat__reader_count_given(leat_reader_figures *figures,
                              leat_sample *const out[], int n);

/* Counts the bytes of samples that had been deferred, now that they are there.
 */
void leat__reader_count_completed(leat_reader_figures *figures,
                                  leat_sample *const out[], int n);

static inline bool leat__reader_is_measured(const leat_reader_figures *figures)
{
    return atomic_load_explicit(&figures->chain->n, memory_order_relaxed) > 1;
}

/* A call that begins, and ends, on the calling thread. */
static inline void leat__reader_call_begin(leat__reader_call *call,
                                           const leat_reader *reader)
{
    leat_reader_figures *figures = reader->state->figures;
    call->figures = NULL;
    if (leat__reader_is_measured(figures))
        leat__reader_call_enter(call, figures);
}

static inline void leat__reader_call_end(leat__reader_call *call)
{
    if (call->figures)
        leat__reader_call_leave(call);
}

#endif
