#include "tools/bench/host.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 512, LINE_BYTES = 4096, MOST_NODE = 1024 };

/* The first line of a file; empty where it cannot be read. */
static bool read_line(const char *root, const char *path, char *line, int size)
{
    char full[PATH_BYTES];
    *line = 0;
    snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *file = fopen(full, "re");
    if (!file)
        return false;
    bool found = fgets(line, size, file) != NULL;
    fclose(file);
    return found;
}

/* Takes the next range of a list such as "0-3,8"; false at its end. */
static bool next_range(char **list, long *first, long *last)
{
    char *end;
    *first = *last = strtol(*list, &end, 10);
    if (end == *list || *first < 0)
        return false;
    if (*end == '-')
        *last = strtol(end + 1, &end, 10);
    *list = end + (*end == ',');
    return *last >= *first;
}

int host_nodes(const char *root, int node[], int most)
{
    char line[LINE_BYTES];
    char *list = line;
    int n = 0;
    (void)read_line(root, "/sys/devices/system/node/has_memory", line,
                    sizeof(line));
    for (long first, last; next_range(&list, &first, &last);)
        for (long i = first; i <= last && i < MOST_NODE && n < most; i++)
            node[n++] = (int)i;
    return n;
}

int host_run_on(const char *root, int node)
{
    static cpu_set_t allowed;
    char path[PATH_BYTES], line[LINE_BYTES];
    char *list = line;
    cpu_set_t there;
    CPU_ZERO(&there);
    if (node < 0 || (!CPU_COUNT(&allowed) &&
                     sched_getaffinity(0, sizeof(allowed), &allowed)))
        return 0;
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
             node);
    (void)read_line(root, path, line, sizeof(line));
    for (long first, last; next_range(&list, &first, &last);)
        for (long i = first; i <= last && i < CPU_SETSIZE; i++)
            if (CPU_ISSET((size_t)i, &allowed))
                CPU_SET((size_t)i, &there);
    int n = CPU_COUNT(&there);
    return n && !sched_setaffinity(0, sizeof(there), &there) ? n : 0;
}

/* A number of bytes in a control group's file; -1: "max", or unknown. */
static int64_t read_bytes(const char *root, const char *group, const char *name)
{
    char path[PATH_BYTES], line[64];
    char *end;
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
    (void)read_line(root, path, line, sizeof(line));
    long long bytes = strtoll(line, &end, 10);
    return end == line ? -1 : bytes;
}

/* What the group leaves, and all around it. */
static int64_t left_by_groups(const char *root)
{
    char line[PATH_BYTES / 2] = "";
    int64_t left = INT64_MAX;
    (void)read_line(root, "/proc/self/cgroup", line, sizeof(line));
    if (strncmp(line, "0::/", 4) != 0)
        return left;
    char *group = line + 3;
    for (group[strcspn(group, "\n")] = 0;; *strrchr(group, '/') = 0) {
        int64_t most = read_bytes(root, group, "memory.max");
        int64_t taken = read_bytes(root, group, "memory.current");
        if (most >= 0 && taken >= 0 && most - taken < left)
            left = most > taken ? most - taken : 0;
        if (!*group)
            return left;
    }
}

int64_t host_available(const char *root)
{
    char path[PATH_BYTES], line[256];
    long long kib = -1;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    while (file && kib < 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    int64_t left = left_by_groups(root);
    return kib >= 0 && kib < left / 1024 ? kib * 1024 : left;
}

bool host_place(void *memory, size_t bytes, int node)
{
    enum { LONG_BITS = 8 * sizeof(long) };
    unsigned long mask[MOST_NODE / LONG_BITS] = {0};
    if (node < 0)
        return true;
    if (node >= MOST_NODE)
        return false;
    mask[node / LONG_BITS] = 1ul << node % LONG_BITS;
    return syscall(SYS_mbind, memory, bytes, MPOL_BIND, mask,
                   (unsigned long)MOST_NODE, 0) == 0;
}
