/*
 * DESIGN. A ring of pointers under one lock, with a condition for each end.
 * Whoever changes the ring signals the other end if a thread waits there, once
 * the lock is free: who is woken would else sleep again, for that. Counting the
 * waiters keeps the common case, nobody waiting, free of system calls. A closed
 * queue never blocks: it is checked under the lock before every wait, and close
 * wakes all waiters. No other lock is taken under this one.
 *
 * A look at an empty ring, or for waiters, needs no lock: what the thread
 * itself pushed, or knows to be pushed, it sees; anything later may come later
 * too.
 */
#include "base/queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>

/* Aligned: what each push and pop writes is one cache line, and the ring. */
struct leat__queue {
    pthread_mutex_t lock;
    /* written under lock */
    atomic_int size;
    atomic_int waiting_empty;
    atomic_int closed;
    /* protected by lock */
    int head; /* where the next item is taken */
    int waiting_full;
    int wake_at; /* items from which on a push wakes; at least 1 */

    int capacity;
    int64_t stirs; /* protected by lock */
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    void *ring[];
};

/* Of what is written under the lock alone. */
static inline int get(const atomic_int *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static inline void set(atomic_int *value, int to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static inline void add(atomic_int *value, int n)
{
    set(value, get(value) + n);
}

int leat__queue_create(leat__queue **out, int capacity)
{
    if (capacity < 1)
        return leat_error(LEAT_EINVAL, "a queue holds at least 1 item, not %d",
                          capacity);
    size_t bytes = sizeof(leat__queue) + (size_t)capacity * sizeof(void *);
    leat__queue *queue = leat__alloc_aligned_zero(bytes);
    if (!queue)
        return LEAT_ENOMEM;
    queue->capacity = capacity;
    queue->wake_at = 1;
    int status = leat__mutex_init(&queue->lock);
    if (status)
        goto fail_queue;
    status = leat__cond_init(&queue->not_empty);
    if (status)
        goto fail_lock;
    status = leat__cond_init(&queue->not_full);
    if (status)
        goto fail_not_empty;
    *out = queue;
    return LEAT_OK;

fail_not_empty:
    pthread_cond_destroy(&queue->not_empty);
fail_lock:
    pthread_mutex_destroy(&queue->lock);
fail_queue:
    leat__free(queue);
    return status;
}

void leat__queue_destroy(leat__queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->not_full);
    pthread_cond_destroy(&queue->not_empty);
    pthread_mutex_destroy(&queue->lock);
    leat__free(queue);
}

/* The place of the item at `i` from the head on. */
static void **at(leat__queue *queue, int i)
{
    int place = queue->head + i;
    return &queue->ring[place < queue->capacity ? place
                                                : place - queue->capacity];
}

int leat__queue_push(leat__queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (get(&queue->size) == queue->capacity && !get(&queue->closed)) {
        queue->waiting_full++;
        pthread_cond_wait(&queue->not_full, &queue->lock);
        queue->waiting_full--;
    }
    int closed = get(&queue->closed);
    int wakes = 0;
    if (!closed) {
        *at(queue, get(&queue->size)) = item;
        add(&queue->size, 1);
        wakes = get(&queue->waiting_empty) > 0 &&
                get(&queue->size) >= queue->wake_at;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_empty);
    return closed ? LEAT_ECANCELLED : LEAT_OK;
}

/* Open, with nothing to take. */
static int is_empty(const leat__queue *queue)
{
    return get(&queue->size) == 0 && !get(&queue->closed);
}

/* ETIMEDOUT at the deadline. */
static int sleep_until(leat__queue *queue, int64_t deadline)
{
    int code = 0;
    add(&queue->waiting_empty, 1);
    if (deadline == LEAT__FOREVER) {
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    } else {
        struct timespec when = leat__clock_timespec(deadline);
        code = pthread_cond_timedwait(&queue->not_empty, &queue->lock, &when);
    }
    add(&queue->waiting_empty, -1);
    return code;
}

/* LEAT_OK with an item in the ring, under the lock. */
static int wait_locked(leat__queue *queue, int64_t deadline)
{
    int code = 0;
    while (is_empty(queue)) {
        if (deadline == 0 || code == ETIMEDOUT)
            return LEAT_AGAIN;
        code = sleep_until(queue, deadline);
    }
    return get(&queue->size) > 0 ? LEAT_OK : LEAT_ECANCELLED;
}

int leat__queue_pop(leat__queue *queue, void **item, int64_t deadline)
{
    if (deadline == 0 && is_empty(queue))
        return LEAT_AGAIN;
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, deadline);
    int wakes = 0;
    if (status == LEAT_OK) {
        *item = queue->ring[queue->head];
        if (++queue->head == queue->capacity)
            queue->head = 0;
        add(&queue->size, -1);
        wakes = queue->waiting_full > 0;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_full);
    return status;
}

int leat__queue_pick(leat__queue *queue, void **item,
                     int (*is_preferred)(const void *item, const void *who),
                     const void *who)
{
    if (is_empty(queue))
        return LEAT_AGAIN;
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, 0);
    int wakes = 0;
    if (status == LEAT_OK) {
        int newest = get(&queue->size) - 1;
        int i = newest;
        while (i > 0 && !is_preferred(*at(queue, i), who))
            i--;
        if (!is_preferred(*at(queue, i), who))
            i = newest;
        *item = *at(queue, i);
        *at(queue, i) = *at(queue, newest);
        add(&queue->size, -1);
        wakes = queue->waiting_full > 0;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_full);
    return status;
}

void leat__queue_wake_at(leat__queue *queue, int n)
{
    pthread_mutex_lock(&queue->lock);
    queue->wake_at = n < 1 ? 1 : n;
    pthread_mutex_unlock(&queue->lock);
}

void leat__queue_kick(leat__queue *queue)
{
    if (get(&queue->waiting_empty) == 0)
        return;
    pthread_mutex_lock(&queue->lock);
    int wakes = get(&queue->waiting_empty) > 0 && get(&queue->size) > 0;
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_broadcast(&queue->not_empty);
}

int leat__queue_wait(leat__queue *queue, int64_t deadline)
{
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, deadline);
    int wakes = status == LEAT_OK && get(&queue->waiting_empty) > 0;
    pthread_mutex_unlock(&queue->lock);
    /* The wake-up was meant for one taker: hand it on to those who wait. */
    if (wakes)
        pthread_cond_signal(&queue->not_empty);
    return status;
}

int64_t leat__queue_stirs(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int64_t stirs = queue->stirs;
    pthread_mutex_unlock(&queue->lock);
    return stirs;
}

void leat__queue_stir(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stirs++;
    int wakes = get(&queue->waiting_empty) > 0;
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_broadcast(&queue->not_empty);
}

int leat__queue_wait_stirred(leat__queue *queue, int64_t stirs)
{
    pthread_mutex_lock(&queue->lock);
    while (is_empty(queue) && queue->stirs == stirs) {
        add(&queue->waiting_empty, 1);
        pthread_cond_wait(&queue->not_empty, &queue->lock);
        add(&queue->waiting_empty, -1);
    }
    int status = get(&queue->size) > 0 || !get(&queue->closed)
                     ? LEAT_OK
                     : LEAT_ECANCELLED;
    int wakes = get(&queue->size) > 0 && get(&queue->waiting_empty) > 0;
    pthread_mutex_unlock(&queue->lock);
    /* The wake-up was meant for one taker: hand it on to those who wait. */
    if (wakes)
        pthread_cond_signal(&queue->not_empty);
    return status;
}

void leat__queue_close(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    set(&queue->closed, 1);
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

void leat__queue_reopen(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    set(&queue->size, 0);
    queue->head = 0;
    set(&queue->closed, 0);
    pthread_mutex_unlock(&queue->lock);
}
