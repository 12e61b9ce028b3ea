/*
 * DESIGN. A ring of pointers under one lock, with a condition for each end.
 * Whoever changes the ring signals the other end if a thread waits there, once
 * the lock is free: who is woken would else sleep again, for that. Counting the
 * waiters keeps the common case, nobody waiting, free of system calls. A closed
 * queue never blocks: it is checked under the lock before every wait, and close
 * wakes all waiters. No other lock is taken under this one.
 */
#include "base/queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>

/* Aligned: what each push and pop writes is one cache line, and the ring. */
struct leat__queue {
    pthread_mutex_t lock;
    /* protected by lock */
    int size;
    int head; /* where the next item is taken */
    int waiting_empty;
    int waiting_full;
    int closed;
    int wake_at; /* items from which on a push wakes; at least 1 */

    int capacity;
    int64_t stirs; /* protected by lock */
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    void *ring[];
};

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

int leat__queue_push(leat__queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->size == queue->capacity && !queue->closed) {
        queue->waiting_full++;
        pthread_cond_wait(&queue->not_full, &queue->lock);
        queue->waiting_full--;
    }
    int closed = queue->closed;
    int wakes = 0;
    if (!closed) {
        queue->ring[(queue->head + queue->size++) % queue->capacity] = item;
        wakes = queue->waiting_empty > 0 && queue->size >= queue->wake_at;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_empty);
    return closed ? LEAT_ECANCELLED : LEAT_OK;
}

/* LEAT_OK with an item in the ring, under the lock. */
static int wait_locked(leat__queue *queue, int64_t deadline)
{
    struct timespec when = leat__clock_timespec(deadline);
    int code = 0;
    while (queue->size == 0 && !queue->closed) {
        if (deadline == 0 || code == ETIMEDOUT)
            return LEAT_AGAIN;
        queue->waiting_empty++;
        if (deadline == LEAT__FOREVER)
            pthread_cond_wait(&queue->not_empty, &queue->lock);
        else
            code =
                pthread_cond_timedwait(&queue->not_empty, &queue->lock, &when);
        queue->waiting_empty--;
    }
    return queue->size > 0 ? LEAT_OK : LEAT_ECANCELLED;
}

int leat__queue_pop(leat__queue *queue, void **item, int64_t deadline)
{
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, deadline);
    int wakes = 0;
    if (status == LEAT_OK) {
        *item = queue->ring[queue->head];
        queue->head = (queue->head + 1) % queue->capacity;
        queue->size--;
        wakes = queue->waiting_full > 0;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_full);
    return status;
}

/* The place of the item at `i` from the head on. */
static void **at(leat__queue *queue, int i)
{
    return &queue->ring[(queue->head + i) % queue->capacity];
}

int leat__queue_pick(leat__queue *queue, void **item,
                     int (*is_preferred)(const void *item, const void *who),
                     const void *who)
{
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, 0);
    int wakes = 0;
    if (status == LEAT_OK) {
        int newest = queue->size - 1;
        int i = newest;
        while (i > 0 && !is_preferred(*at(queue, i), who))
            i--;
        if (!is_preferred(*at(queue, i), who))
            i = newest;
        *item = *at(queue, i);
        *at(queue, i) = *at(queue, newest);
        queue->size--;
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
    pthread_mutex_lock(&queue->lock);
    int wakes = queue->waiting_empty > 0 && queue->size > 0;
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_broadcast(&queue->not_empty);
}

int leat__queue_wait(leat__queue *queue, int64_t deadline)
{
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, deadline);
    int wakes = status == LEAT_OK && queue->waiting_empty > 0;
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
    int wakes = queue->waiting_empty > 0;
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_broadcast(&queue->not_empty);
}

int leat__queue_wait_stirred(leat__queue *queue, int64_t stirs)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->size == 0 && !queue->closed && queue->stirs == stirs) {
        queue->waiting_empty++;
        pthread_cond_wait(&queue->not_empty, &queue->lock);
        queue->waiting_empty--;
    }
    int status = queue->size > 0 || !queue->closed ? LEAT_OK : LEAT_ECANCELLED;
    int wakes = queue->size > 0 && queue->waiting_empty > 0;
    pthread_mutex_unlock(&queue->lock);
    /* The wake-up was meant for one taker: hand it on to those who wait. */
    if (wakes)
        pthread_cond_signal(&queue->not_empty);
    return status;
}

void leat__queue_close(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

void leat__queue_reopen(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->size = 0;
    queue->head = 0;
    queue->closed = 0;
    pthread_mutex_unlock(&queue->lock);
}
