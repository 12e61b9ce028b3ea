#include "tools/bench/bench.h"

#include "base/thread.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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

double bench_share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

double bench_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* /proc/TASK/schedstat: nanoseconds that it ran, those that it was ready, and
   its turns. */
static double queued_of(const char *task)
{
    char path[300];
    double queued = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", task);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*f %lf", &queued) != 1)
        queued = 0;
    fclose(file); /* only read from */
    return 1e-9 * queued;
}

double bench_queued_seconds(void)
{
    double queued = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));)
        if (task->d_name[0] != '.')
            queued += queued_of(task->d_name);
    if (tasks)
        closedir(tasks);
    return queued;
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
