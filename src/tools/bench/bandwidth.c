#include "tools/bench/bandwidth.h"
#include "base/clock.h"
#include "base/parallel_for.h"
#include "tools/bench/bench.h"

#include "tools/cli/progress.h"

#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>

enum { BYTES = 64 << 20 };

static const double seconds = 0.4;

struct run {
    int copies; /* 1: memcpy, 0: memset */
    unsigned char *memory[BENCH_MOST_WORKERS];
    double rate[BENCH_MOST_WORKERS];
};

static int measure(int i, void *context)
{
    struct run *run = context;
    unsigned char *to = run->memory[i], *from = to + BYTES;
    double start = leat__clock_seconds(), now;
    int64_t rounds = 0;
    do {
        if (run->copies)
            memcpy(to, from, BYTES);
        else
            memset(to, (int)rounds & 0xff, BYTES);
        /* The compiler must not leave out what nobody reads. */
        __asm__ volatile("" : : "r"(to) : "memory");
        rounds++;
        now = leat__clock_seconds();
    } while (now - start < seconds);
    run->rate[i] = (double)rounds * BYTES / (now - start);
    return LEAT_OK;
}

static int measure_all(struct run *run, int threads, int copies, double *out)
{
    run->copies = copies;
    int status = leat__parallel_for("leat-bench", threads, measure, run);
    *out = 0;
    for (int i = 0; i < threads; i++)
        *out += run->rate[i];
    return status;
}

int bandwidth_measure(struct bandwidth *out)
{
    struct run *run = calloc(1, sizeof(*run));
    if (!run)
        return leat_error(LEAT_ENOMEM, "out of memory");
    int threads = bench_workers(0);
    int status = LEAT_OK;
    for (int i = 0; !status && i < threads; i++) {
        run->memory[i] = malloc(2 * (size_t)BYTES);
        if (!run->memory[i])
            status = leat_error(LEAT_ENOMEM, "out of memory");
        else
            memset(run->memory[i], 1, 2 * (size_t)BYTES);
    }
    if (!status)
        status = measure_all(run, threads, 0, &out->store);
    if (!status)
        status = measure_all(run, threads, 1, &out->memcpy);
    for (int i = 0; i < threads; i++)
        free(run->memory[i]);
    free(run);
    return status;
}
