/* counter.h: sums that threads add to and anybody reads. */
#ifndef LEAT_BASE_COUNTER_H
#define LEAT_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* These order nothing else. */
static inline void leat__counter_add(atomic_int_fast64_t *counter,
                                     int64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

/* Where nobody else adds meanwhile: a bus lock less. */
static inline void leat__counter_add_alone(atomic_int_fast64_t *counter,
                                           int64_t value)
{
    int64_t sum = atomic_load_explicit(counter, memory_order_relaxed) + value;
    atomic_store_explicit(counter, sum, memory_order_relaxed);
}

static inline int64_t leat__counter_get(const atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* A sum of nanoseconds, in seconds. */
static inline double leat__counter_seconds(const atomic_int_fast64_t *counter)
{
    return (double)atomic_load(counter) * 1e-9;
}

#endif
