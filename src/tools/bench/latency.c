#include "tools/bench/latency.h"

/* Times below LATENCY_STEPS nanoseconds have a bucket each. */
static int bucket_of(uint64_t nanoseconds)
{
    if (nanoseconds < LATENCY_STEPS)
        return (int)nanoseconds;
    int shift = 63 - __builtin_clzll(nanoseconds) - 6;
    int bucket = shift * LATENCY_STEPS + (int)(nanoseconds >> shift);
    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* The least time of a bucket. */
static double bucket_time(int bucket)
{
    if (bucket < LATENCY_STEPS)
        return bucket;
    int shift = bucket / LATENCY_STEPS - 1;
    int step = bucket % LATENCY_STEPS + LATENCY_STEPS;
    return (double)step * (double)(UINT64_C(1) << shift);
}

void latency_add(struct latency *latency, double seconds)
{
    uint64_t nanoseconds = seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
    latency->count[bucket_of(nanoseconds)]++;
    latency->total++;
    if (nanoseconds > latency->longest)
        latency->longest = nanoseconds;
}

double latency_percentile(const struct latency *latency, double p)
{
    double before = p * (double)latency->total;
    double sum = 0;
    for (int i = 0; i < LATENCY_BUCKETS; i++) {
        sum += (double)latency->count[i];
        if (latency->count[i] && sum >= before)
            return bucket_time(i) * 1e-3;
    }
    return 0;
}

double latency_longest(const struct latency *latency)
{
    return (double)latency->longest * 1e-3;
}
