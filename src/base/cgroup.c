#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CORES_MAX = 4096 };

/* "QUOTA PERIOD" or "max PERIOD", microseconds. */
static bool read_pair(const char *path, long long *quota, long long *period)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    int n = fscanf(file, "%lld %lld", quota, period);
    fclose(file);
    return n == 2;
}

static bool read_one(const char *group, const char *name, long long *out)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", group, name);
    FILE *file = length < (int)sizeof(path) ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    int n = fscanf(file, "%lld", out);
    fclose(file);
    return n == 1;
}

/* One group's quota in cores; 0: unlimited. */
static int cores_of(const char *group, int version)
{
    char path[PATH_MAX];
    long long quota = 0, period = 0;
    bool is_read;
    if (version == 1)
        is_read = read_one(group, "cpu.cfs_quota_us", &quota) &&
                  read_one(group, "cpu.cfs_period_us", &period);
    else
        is_read = snprintf(path, sizeof(path), "%s/cpu.max", group) <
                      (int)sizeof(path) &&
                  read_pair(path, &quota, &period);
    if (!is_read || quota < 1 || period < 1)
        return 0;
    long long cores = quota / period + (quota % period != 0);
    return cores > CORES_MAX ? CORES_MAX : (int)cores;
}

static void keep_least(int *least, int cores)
{
    if (cores > 0 && (*least == 0 || cores < *least))
        *least = cores;
}

/*
 * The smallest quota from the group at `path` up to the root. In a container
 * the path may be the host's and not exist; the root is then its own group.
 */
static int least_of(const char *mount, const char *path, int version)
{
    char group[PATH_MAX];
    int least = 0;
    size_t top = strlen(mount);
    if (snprintf(group, sizeof(group), "%s%s", mount, path) >=
        (int)sizeof(group))
        return 0;
    for (;;) {
        keep_least(&least, cores_of(group, version));
        char *slash = strrchr(group + top, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 &&
            (at[length] == ',' || at[length] == 0))
            return true;
    }
    return false;
}

/* A line is NUMBER:CONTROLLERS:PATH; version 2 names no controllers. */
static int cores_of_line(char *line, const char *root)
{
    char mount[PATH_MAX];
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return 0;
    controllers++;
    *path++ = 0;
    if (!*controllers)
        return least_of(root, path, 2);
    if (!has_word(controllers, "cpu") ||
        snprintf(mount, sizeof(mount), "%s/%s", root, controllers) >=
            (int)sizeof(mount))
        return 0;
    return least_of(mount, path, 1);
}

int leat__cgroup_cores(const char *groups, const char *root)
{
    char line[PATH_MAX + 256];
    int least = 0;
    FILE *file = fopen(groups, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file))
        keep_least(&least, cores_of_line(line, root));
    fclose(file);
    return least;
}
