/* cgroup.h: the processor time that the process's control groups lend it. */
#ifndef LEAT_BASE_CGROUP_H
#define LEAT_BASE_CGROUP_H

/*
 * Cores by the smallest quota of the groups that the process is in, their
 * parents included, rounded up; 0: no quota, or none that can be read. `groups`
 * is the list of them, of /proc/self/cgroup's format, `root` where their
 * hierarchies are mounted. Versions 1 and 2 (cgroups(7)).
 */
int leat__cgroup_cores(const char *groups, const char *root);

#endif
