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
static inline int size_of(const leat__queue *self)
{
    return atomic_load_explicit(&self->size, memory_order_relaxed);
}

static inline bool is_closed(const leat__queue *self)
{
    return atomic_load_explicit(&self->closed, memory_order_relaxed);
}

static inline void set_size(leat__queue *self, int size)
{
    atomic_store_explicit(&self->size, size, memory_order_relaxed);
}

int leat__queue_create(leat__queue **out, int capacity)
{
    if (capacity < 1)
        return leat_error(LEAT_EINVAL, "a queue holds at least 1 item, not %d",
                          capacity);
    size_t bytes = sizeof(leat__queue) + (size_t)capacity * sizeof(void *);
    leat__queue *self = leat__alloc_aligned_zero(bytes);
    if (!self)
        return LEAT_ENOMEM;
    self->capacity = capacity;
    int status = leat__mutex_init(&self->lock);
    if (status)
        goto fail_self;
    status = leat__cond_init(&self->not_empty);
    if (status)
        goto fail_lock;
    status = leat__cond_init(&self->not_full);
    if (status)
        goto fail_not_empty;
    *out = self;
    return LEAT_OK;

fail_not_empty:
    pthread_cond_destroy(&self->not_empty);
fail_lock:
    pthread_mutex_destroy(&self->lock);
fail_self:
    leat__free(self);
    return status;
}

void leat__queue_destroy(leat__queue *self)
{
    if (!self)
        return;
    pthread_cond_destroy(&self->not_full);
    pthread_cond_destroy(&self->not_empty);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
}

int leat__queue_push(leat__queue *self, void *item)
{
    pthread_mutex_lock(&self->lock);
    while (size_of(self) == self->capacity && !is_closed(self)) {
        self->waiting_full++;
        pthread_cond_wait(&self->not_full, &self->lock);
        self->waiting_full--;
    }
    bool closed = is_closed(self);
    if (!closed) {
        int n = size_of(self);
        int end = self->head + n;
        self->ring[end < self->capacity ? end : end - self->capacity] = item;
        set_size(self, n + 1);
    }
    bool wakes = !closed && self->waiting_empty > 0;
    pthread_mutex_unlock(&self->lock);
    if (wakes)
        pthread_cond_signal(&self->not_empty);
    return closed ? LEAT_ECANCELLED : LEAT_OK;
}

/* Open, with nothing to take. */
static bool is_empty(const leat__queue *self)
{
    return size_of(self) == 0 && !is_closed(self);
}

/* ETIMEDOUT at the deadline. */
static int sleep_until(leat__queue *self, int64_t deadline)
{
    int code = 0;
    self->waiting_empty++;
    if (deadline == LEAT__FOREVER) {
        pthread_cond_wait(&self->not_empty, &self->lock);
    } else {
        struct timespec when = leat__clock_timespec(deadline);
        code = pthread_cond_timedwait(&self->not_empty, &self->lock, &when);
    }
    self->waiting_empty--;
    return code;
}

/* LEAT_OK with an item in the ring, under the lock. */
static int wait_locked(leat__queue *self, int64_t deadline)
{
    int code = 0;
    while (is_empty(self)) {
        if (deadline == 0 || code == ETIMEDOUT)
            return LEAT_AGAIN;
        code = sleep_until(self, deadline);
    }
    return size_of(self) > 0 ? LEAT_OK : LEAT_ECANCELLED;
}

int leat__queue_pop(leat__queue *self, void **item, int64_t deadline)
{
    if (deadline == 0 && is_empty(self))
        return LEAT_AGAIN;
    pthread_mutex_lock(&self->lock);
    int status = wait_locked(self, deadline);
    bool wakes = false;
    if (status == LEAT_OK) {
        *item = self->ring[self->head];
        if (++self->head == self->capacity)
            self->head = 0;
        set_size(self, size_of(self) - 1);
        wakes = self->waiting_full > 0;
    }
    pthread_mutex_unlock(&self->lock);
    if (wakes)
        pthread_cond_signal(&self->not_full);
    return status;
}

void leat__queue_close(leat__queue *self)
{
    pthread_mutex_lock(&self->lock);
    atomic_store_explicit(&self->closed, true, memory_order_relaxed);
    pthread_cond_broadcast(&self->not_empty);
    pthread_cond_broadcast(&self->not_full);
    pthread_mutex_unlock(&self->lock);
}
