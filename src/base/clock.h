/* clock.h: monotonic time. */
#ifndef LEAT_BASE_CLOCK_H
#define LEAT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline int64_t leat__clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The same in seconds, for measurements. */
static inline double leat__clock_seconds(void)
{
    return 1e-9 * (double)leat__clock_now();
}

/* Converts a time of that clock for condition variables. */
static inline struct timespec leat__clock_timespec(int64_t nanoseconds)
{
    struct timespec when = {.tv_sec = nanoseconds / 1000000000,
                            .tv_nsec = nanoseconds % 1000000000};
    return when;
}

#endif
