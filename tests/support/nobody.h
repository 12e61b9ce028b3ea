/* nobody.h: what a user may do who owns nothing. The superuser may do
 * everything, and becomes that user here; others stay who they are. */
#ifndef LEAT_TESTS_NOBODY_H
#define LEAT_TESTS_NOBODY_H

/* For good, with the group: for a forked child. 0; -1: that is refused. */
int nobody_become(void);

/* Until nobody_leave. Assert that they succeed. The second for a process that
 * another user has started, as a program with the set-user-ID bit. */
void nobody_enter(void);
void nobody_enter_for_another(void);
void nobody_leave(void);

#endif
