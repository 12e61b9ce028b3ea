/*
 * DESIGN. A ring of pointers under one lock, with a condition for each end. A
 * push or pop signals the other end if a thread waits there, after releasing
 * the lock: the woken thread would block on it again. Counting the waiters
 * keeps the common case, nobody waiting, free of system calls. A closed queue
 * never blocks: it is checked under the lock before every wait, and close wakes
 * all waiters. No other lock is taken under this one.
 *
 * Trying an empty ring takes no lock: what the thread itself pushed, or knows
 * to be pushed, it sees; anything later may come later too.
 */
#include "base/queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Aligned: what each push and pop writes is one cache line, and the ring. */
struct leat__queue {
    pthread_mutex_t lock;
    /* written under lock */
    atomic_int size;
    atomic_bool closed;
    /* protected by lock */
    int head; /* where the next item is taken */
    int waiting_empty;
    int waiting_full;

    int capacity;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    void *ring[];
};

/* Under the lock, which orders it. */
static inline int size_of(const leat__queue *queue)
{
    return atomic_load_explicit(&queue->size, memory_order_relaxed);
}

static inline bool is_closed(const leat__queue *queue)
{
    return atomic_load_explicit(&queue->closed, memory_order_relaxed);
}

static inline void set_size(leat__queue *queue, int size)
{
    atomic_store_explicit(&queue->size, size, memory_order_relaxed);
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
    int status = leat__mutex_init(&queue->lock);
    if (status)
        goto fail_self;
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
fail_self:
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
    while (size_of(queue) == queue->capacity && !is_closed(queue)) {
        queue->waiting_full++;
        pthread_cond_wait(&queue->not_full, &queue->lock);
        queue->waiting_full--;
    }
    bool closed = is_closed(queue);
    if (!closed) {
        int n = size_of(queue);
        int end = queue->head + n;
        queue->ring[end < queue->capacity ? end : end - queue->capacity] = item;
        set_size(queue, n + 1);
    }
    bool wakes = !closed && queue->waiting_empty > 0;
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_empty);
    return closed ? LEAT_ECANCELLED : LEAT_OK;
}

/* Open, with nothing to take. */
static bool is_empty(const leat__queue *queue)
{
    return size_of(queue) == 0 && !is_closed(queue);
}

/* ETIMEDOUT at the deadline. */
static int sleep_until(leat__queue *queue, int64_t deadline)
{
    int code = 0;
    queue->waiting_empty++;
    if (deadline == LEAT__FOREVER) {
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    } else {
        struct timespec when = leat__clock_timespec(deadline);
        code = pthread_cond_timedwait(&queue->not_empty, &queue->lock, &when);
    }
    queue->waiting_empty--;
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
    return size_of(queue) > 0 ? LEAT_OK : LEAT_ECANCELLED;
}

int leat__queue_pop(leat__queue *queue, void **item, int64_t deadline)
{
    if (deadline == 0 && is_empty(queue))
        return LEAT_AGAIN;
    pthread_mutex_lock(&queue->lock);
    int status = wait_locked(queue, deadline);
    bool wakes = false;
    if (!status) {
        *item = queue->ring[queue->head];
        if (++queue->head == queue->capacity)
            queue->head = 0;
        set_size(queue, size_of(queue) - 1);
        wakes = queue->waiting_full > 0;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wakes)
        pthread_cond_signal(&queue->not_full);
    return status;
}

void leat__queue_close(leat__queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    atomic_store_explicit(&queue->closed, true, memory_order_relaxed);
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}
