#include "tools/processor.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Cores that the cgroup's quota lends, rounded up; INT_MAX without one. */
static int quota_count(void)
{
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    long long quota = 0, period = 0;
    int n = file ? fscanf(file, "%lld %lld", &quota, &period) : 0;
    if (file)
        fclose(file);
    if (n != 2 || quota < 1 || period < 1 || quota / period >= INT_MAX)
        return INT_MAX;
    return (int)((quota - 1) / period) + 1;
}

int processor_count(int most)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    int n = CPU_COUNT(&set), quota = quota_count();
    n = n < quota ? n : quota;
    return n < most ? n : most;
}

const char *processor_name(void)
{
    static char name[128] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "model name : %127[^\n]", name) == 1)
            break;
    if (file)
        fclose(file);
    return name;
}

double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
