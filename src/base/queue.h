/* queue.h: a bounded blocking queue of pointers; the only way between stages.
 */
#ifndef LEAT_BASE_QUEUE_H
#define LEAT_BASE_QUEUE_H

#include <leat/status.h>

/* First in, first out; any number of threads at both ends. */
typedef struct leat__queue leat__queue;

/* No deadline: wait for ever. */
#define LEAT__FOREVER INT64_MAX

/* Errors: LEAT_EINVAL for a capacity below 1, LEAT_ENOMEM, LEAT_EIO. */
int leat__queue_create(leat__queue **out, int capacity);
void leat__queue_destroy(leat__queue *queue); /* nobody may be waiting */

/*
 * Waits for room. LEAT_ECANCELLED, without an error line, once the queue is
 * closed. Woken by a pop or close.
 */
int leat__queue_push(leat__queue *queue, void *item);

/*
 * Waits for an item until `deadline` (leat__clock_now's time; 0: does not
 * wait). LEAT_AGAIN at the deadline; LEAT_ECANCELLED, without an error line,
 * once the queue is closed and empty. Woken by a push or close.
 */
int leat__queue_pop(leat__queue *queue, void **item, int64_t deadline);

/*
 * Takes, without waiting, the newest item that `who` prefers, or else the
 * newest of all: the one likeliest in the cache. For queues whose order is of
 * no account. The predicate is called under the queue's lock.
 */
int leat__queue_pick(leat__queue *queue, void **item,
                     int (*is_preferred)(const void *item, const void *who),
                     const void *who);

/*
 * From now on a push wakes those who wait only once there are `n` items: waking
 * costs more than most hand-overs, and whoever waits loses nothing while enough
 * is ready elsewhere. leat__queue_kick wakes them all the same.
 */
void leat__queue_wake_at(leat__queue *queue, int n);
void leat__queue_kick(leat__queue *queue);

/* Waits as pop does, and takes nothing. */
int leat__queue_wait(leat__queue *queue, int64_t deadline);

/*
 * Event-count wait: take a ticket (the count of stirs), re-check the condition,
 * then wait. A stir ends every wait that began with an older ticket, whether or
 * not there is an item.
 */
int64_t leat__queue_stirs(leat__queue *queue);
void leat__queue_stir(leat__queue *queue);
int leat__queue_wait_stirred(leat__queue *queue, int64_t stirs);

/* Pushes fail from now on, pops once the queue is empty. Everybody wakes. */
void leat__queue_close(leat__queue *queue);

/* Empties the queue and opens it again. Nobody may be waiting. */
void leat__queue_reopen(leat__queue *queue);

#endif
