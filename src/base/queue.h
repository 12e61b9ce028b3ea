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

/* Pushes fail from now on, pops once the queue is empty. Everybody wakes. */
void leat__queue_close(leat__queue *queue);

#endif
