/* team.h: the same function on a thread for each core. */
#ifndef LEAT_TOOLS_TEAM_H
#define LEAT_TOOLS_TEAM_H

#include <leat/status.h>

/*
 * Calls function(i, context) for i from 0 to n - 1, each on a thread of its
 * own, and waits for all. Returns the first error, with its line.
 */
int team_run(int n, int (*function)(int i, void *context), void *context);

#endif
