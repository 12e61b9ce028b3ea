#include "tools/bench/bench.h"
#include "base/thread.h"

#include "tools/bench/processor.h"
#include "tools/cli/output.h"

#include <leat/status.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option_spec bench_seconds(double *seconds)
{
    return (struct option_spec){
        "seconds", "S",  "how long to measure (3)", option_seconds, seconds,
        0,         86400};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_spread bench_spread_of(double rounds[], int n)
{
    qsort(rounds, (size_t)n, sizeof(rounds[0]), ascending);
    return (struct bench_spread){rounds[n / 2], rounds[n / 10],
                                 rounds[n - 1 - n / 10]};
}

double bench_overlap(double one, double other, double together)
{
    double shorter = one < other ? one : other;
    double share = bench_share(one + other - together, shorter);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

double bench_share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

void bench_add_machine(json_t *object)
{
    json_object_set_new(object, "cpu", json_string(processor_name()));
    json_object_set_new(object, "cores", json_integer(leat__thread_cores()));
    json_object_set_new(object, "version", json_string(leat_version()));
}

void bench_add_verdict(json_t *object, const leat_stats *now,
                       const leat_stats *before)
{
    char verdict[LEAT_VERDICT_MAX];
    int has_one = leat_stats_verdict(now, before, verdict) == LEAT_OK;
    json_object_set_new(object, "bound_by",
                        has_one ? json_string(leat_stats_bound_by(now, before))
                                : json_null());
    json_object_set_new(object, "verdict",
                        has_one ? output_text(verdict) : json_null());
}

void bench_print_machine(void)
{
    printf("%s, %s, leat %s\n", processor_name(),
           output_count(leat__thread_cores(), "core", "cores"), leat_version());
}

void bench_print_waits(const struct latency *waits)
{
    printf("wait p50          %12s\n",
           output_time(1e-6 * latency_percentile(waits, .5)));
    printf("wait p99          %12s\n",
           output_time(1e-6 * latency_percentile(waits, .99)));
    printf("wait max          %12s\n",
           output_time(1e-6 * latency_longest(waits)));
}

int64_t bench_allocations(void)
{
    void *found = dlsym(RTLD_DEFAULT, "leat_allocation_count");
    int64_t (*count)(void);
    /* ISO C converts no such pointer to one of a function. */
    memcpy(&count, &found, sizeof(count));
    return found ? count() : -1;
}

int bench_workers(int64_t asked)
{
    if (!asked)
        asked = leat__thread_cores();
    return asked < BENCH_MOST_WORKERS ? (int)asked : BENCH_MOST_WORKERS;
}
