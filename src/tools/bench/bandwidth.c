#include "tools/bench/bandwidth.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel_for.h"
#include "tools/bench/bench.h"

#include <string.h>

enum { BYTES = 64 << 20 };

static const double seconds = 0.4;

/* Bytes a second of one core, which writes, or copies from the second half. */
static double measure(unsigned char *to, int copies)
{
    double start = leat__clock_seconds(), now;
    int64_t rounds = 0;
    do {
        if (copies)
            memcpy(to, to + BYTES, BYTES);
        else
            memset(to, (int)rounds & 0xff, BYTES);
        /* The compiler must not drop stores that are never read. */
        __asm__ volatile("" : : "r"(to) : "memory");
        rounds++;
        now = leat__clock_seconds();
    } while (now - start < seconds);
    return (double)rounds * BYTES / (now - start);
}

/* All cores write at the same time, and then all copy. */
static int measure_core(int i, void *context)
{
    struct bandwidth *rates = context;
    unsigned char *memory = leat__alloc(2 * (size_t)BYTES);
    if (!memory)
        return LEAT_ENOMEM;
    memset(memory, 1, 2 * (size_t)BYTES);
    rates[i].store = measure(memory, 0);
    rates[i].memcpy = measure(memory, 1);
    leat__free(memory);
    return LEAT_OK;
}

int bandwidth_measure(struct bandwidth *out)
{
    struct bandwidth rates[BENCH_MOST_WORKERS] = {{0}};
    int threads = bench_workers(0);
    int status = leat__parallel_for("leat-bench", threads, measure_core, rates);
    *out = (struct bandwidth){0};
    for (int i = 0; i < threads; i++) {
        out->store += rates[i].store;
        out->memcpy += rates[i].memcpy;
    }
    return status;
}
