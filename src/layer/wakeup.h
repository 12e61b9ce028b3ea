/*
 * wakeup.h: which threads sleep, which thread wakes them, and when.
 *
 * Waking a thread costs its waker more than most hand-overs, so few are woken:
 *
 * - A worker sleeps on an event count: for a free batch, or for input. The
 *   thread that makes one available adds an event and wakes one sleeper; a
 *   woken worker that leaves more work than it took wakes the next.
 * - A free batch wakes nobody below a threshold (leat__wake_threshold). That
 *   loses nothing: a caller that finds no batch ready wakes the workers
 *   regardless.
 * - A worker that runs out of free batches first sleeps for a time that the
 *   caller's pace sets (a timed wait), so that it need not be woken at all.
 * - On a single core the caller works alone (inline mode): it makes the next
 *   batch as soon itself, in memory that its cache still has. Workers are of
 *   use there only while the caller sleeps, so every few batches the system is
 *   asked whether it did.
 *
 * What each of these is worth is measured in benchmarks/RESULTS.md, "Waking".
 * That none loses a wake-up is checked by tests/models/prefetcher.pml, rule by
 * rule, and devices.pml.
 */
#ifndef LEAT_LAYER_WAKEUP_H
#define LEAT_LAYER_WAKEUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Event-count wait: take a ticket, re-check the condition, then wait. An event
 * after the ticket ends the wait, so none is missed, and adding one takes no
 * lock while no thread sleeps.
 */
typedef struct leat__event_count {
    atomic_int_fast64_t events;
    atomic_int sleepers;
    pthread_mutex_t lock;
    bool closed; /* protected by lock */
    pthread_cond_t woken;
} leat__event_count;

/* Errors: LEAT_EIO, LEAT_ENOMEM. */
int leat__event_count_init(leat__event_count *count);
void leat__event_count_finish(leat__event_count *count); /* nobody waits */

static inline int64_t leat__event_count_ticket(leat__event_count *count)
{
    return atomic_load(&count->events);
}

/*
 * Waits for an event after `ticket` until `deadline` (leat__clock_now's time,
 * or LEAT__FOREVER). LEAT_OK then too: the condition is to be checked again.
 * LEAT_ECANCELLED, without an error line, once it is closed.
 */
int leat__event_count_wait(leat__event_count *count, int64_t ticket,
                           int64_t deadline);

/* An event that wakes nobody: only those about to sleep notice. */
static inline void leat__event_count_add(leat__event_count *count)
{
    atomic_fetch_add(&count->events, 1);
}

static inline bool leat__event_count_has_sleepers(leat__event_count *count)
{
    return atomic_load(&count->sleepers) > 0;
}

/* An event, and one sleeper, or all, wake for it. */
void leat__event_count_wake_one(leat__event_count *count);
void leat__event_count_wake_all(leat__event_count *count);

/* Every wait ends, now and later. */
void leat__event_count_close(leat__event_count *count);

/*
 * How many batches of `circulating` are free when a worker is woken: half of
 * them, while a batch is ready besides the caller's. Beside other devices' each
 * free batch wakes: their callers may wait for the batches after it.
 */
int leat__wake_threshold(int circulating, bool is_alone);

/* One worker's; zeroed at first. */
typedef struct leat__timed_wait {
    int64_t pace;   /* nanoseconds between two batches; 0: not yet known */
    int64_t since;  /* when it was last measured, */
    int64_t number; /* and how many batches had been opened then */
    int64_t last;   /* how many there were before the last wait */
} leat__timed_wait;

/*
 * When to check for a free batch again: after half the time in which the caller
 * should free `threshold` batches. `number` batches have been opened so far.
 * LEAT__FOREVER, until the worker is woken: each free batch wakes, the pace is
 * unknown or too quick, or the last wait found no batch.
 */
int64_t leat__timed_wait_until(leat__timed_wait *wait, int64_t now,
                               int64_t number, int threshold);

/* The caller's alone. */
typedef struct leat__inline_mode {
    bool is_possible; /* one core, and the caller may work */
    bool is_on;
    bool is_probing;  /* `caller` and `sleeps` were noted at its last return */
    int until_probe;  /* batches */
    int pause;        /* batches between two probes; 0: none was made */
    pthread_t caller; /* the thread that returned, after how many sleeps */
    int64_t sleeps;
} leat__inline_mode;

/* At the beginning of a forward: whether the caller is to work alone. */
bool leat__inline_mode_enter(leat__inline_mode *mode);

/* At the end of one that delivered a batch. */
void leat__inline_mode_leave(leat__inline_mode *mode);

#endif
