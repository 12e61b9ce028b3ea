#include "tools/bench/caller.h"

#include <time.h>

/* Seconds of the processor that this thread has had. */
static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Some microseconds of multiplications within the first cache. */
static void multiply(void)
{
    static float matrix[1024];
    for (int round = 0; round < 16; round++)
        for (int i = 0; i < 1024; i++)
            matrix[i] = matrix[i] * 0.5f + (float)round;
    /* The compiler must not drop stores that are never read. */
    __asm__ volatile("" : : "r"(matrix) : "memory");
}

/*
 * A net's work does not shrink when the caller's thread loses its core, so the
 * thread's own processor time counts.
 */
void caller_compute(double milliseconds)
{
    if (milliseconds <= 0)
        return;
    double end = thread_seconds() + 1e-3 * milliseconds;
    do
        multiply();
    while (thread_seconds() < end);
}

void caller_sleep(double milliseconds)
{
    if (milliseconds <= 0)
        return;
    struct timespec pause = {(time_t)(milliseconds / 1e3), 0};
    pause.tv_nsec = (long)(1e6 * (milliseconds - 1e3 * (double)pause.tv_sec));
    nanosleep(&pause, NULL);
}
