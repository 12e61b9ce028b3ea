/* cgroup.h: the CPU quota of the process's control groups. */
#ifndef LEAT_BASE_CGROUP_H
#define LEAT_BASE_CGROUP_H

/*
 * The smallest quota of the process's groups and their parents in cores,
 * rounded up; 0: no quota, or none that can be read. `groups` lists the groups
 * in the format of /proc/self/cgroup; `root` is where the hierarchies are
 * mounted. Versions 1 and 2 (cgroups(7)).
 */
int leat__cgroup_cores(const char *groups, const char *root);

#endif
