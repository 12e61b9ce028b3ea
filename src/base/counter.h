/* counter.h: sums that threads add to and any thread reads. */
#ifndef LEAT_BASE_COUNTER_H
#define LEAT_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* Relaxed: they order no other accesses. */
static inline void leat__counter_add(atomic_int_fast64_t *counter,
                                     int64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

/* For a counter with a single writer: saves the bus lock. */
static inline void leat__counter_add_exclusive(atomic_int_fast64_t *counter,
                                               int64_t value)
{
    int64_t sum = atomic_load_explicit(counter, memory_order_relaxed) + value;
    atomic_store_explicit(counter, sum, memory_order_relaxed);
}

static inline int64_t leat__counter_get(const atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/*
 * A wait of the counter's single writer, from clock `begin` to `end`. Until
 * wait_end, the sum has `begin` subtracted and is negative.
 */
static inline void leat__counter_wait_begin(atomic_int_fast64_t *counter,
                                            int64_t begin)
{
    leat__counter_add_exclusive(counter, -begin);
}

static inline void leat__counter_wait_end(atomic_int_fast64_t *counter,
                                          int64_t end)
{
    leat__counter_add_exclusive(counter, end);
}

/* The sum of waits in seconds; a running wait counts up to `now`. */
static inline double leat__counter_waited(const atomic_int_fast64_t *counter,
                                          int64_t now)
{
    int64_t sum = atomic_load(counter);
    return (double)(sum < 0 ? sum + now : sum) * 1e-9;
}

/* A sum of nanoseconds, in seconds. */
static inline double leat__counter_seconds(const atomic_int_fast64_t *counter)
{
    return (double)atomic_load(counter) * 1e-9;
}

#endif
