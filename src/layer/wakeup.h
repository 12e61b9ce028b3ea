/*
 * wakeup.h: who sleeps how long, so that few have to be woken.
 *
 * Waking a thread costs its waker more than most hand-overs, so a worker that
 * has no slot sleeps for a time that the caller's pace sets (a timed wait), and
 * where a single core has no use for workers the caller works alone (inline
 * mode): it makes the next batch as soon itself, in memory that its cache still
 * has. What a worker is good for there is the time in which the caller sleeps,
 * so every few batches the system is asked whether it did.
 */
#ifndef LEAT_LAYER_WAKEUP_H
#define LEAT_LAYER_WAKEUP_H

#include <pthread.h>
#include <stdint.h>

/* One thread's; zeroed at first. */
typedef struct leat__timed_wait {
    int64_t pace;   /* nanoseconds between two batches; 0: not yet known */
    int64_t since;  /* when it was last told, */
    int64_t number; /* and how many batches had been opened then */
    int64_t last;   /* how many there were before the last wait */
} leat__timed_wait;

/*
 * When to look for a slot again. Waking a worker is expensive, so it polls
 * after half the time in which the caller should empty `late` slots. `number`
 * batches have been opened so far. LEAT__FOREVER, until the worker is woken:
 * each slot wakes, the pace is unknown or too quick, or the last wait found no
 * slot.
 */
int64_t leat__timed_wait_until(leat__timed_wait *wait, int64_t now,
                               int64_t number, int late);

/* The caller's alone. */
typedef struct leat__inline_mode {
    int is_possible; /* one core, and the caller may work */
    int is_on;
    int until_look; /* batches */
    int pause;      /* batches between two looks; 0: none was had */
    int is_looking;
    pthread_t caller; /* who was seen to leave, after how many sleeps */
    int64_t sleeps;
} leat__inline_mode;

/* At the beginning of a forward: whether workers are to rest. */
int leat__inline_mode_enter(leat__inline_mode *mode);

/* At the end of one that gave a batch. */
void leat__inline_mode_leave(leat__inline_mode *mode);

#endif
