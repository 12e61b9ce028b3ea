/* fork.h: tells a forked child from the process that it was forked from. */
#ifndef LEAT_BASE_FORK_H
#define LEAT_BASE_FORK_H

#include <pthread.h>

/*
 * From now on leat__fork_generation() counts forks. Whoever keeps a generation
 * calls this first. Errors: LEAT_ENOMEM. Any thread.
 */
int leat__fork_watch(void);

/*
 * The number of forks between the process in which leat__fork_watch() first
 * succeeded and this one. What was made in another generation belongs to an
 * ancestor: its threads do not run here, and its locks may be held for ever.
 * One load. Any thread, and a forked child.
 */
unsigned leat__fork_generation(void);

/*
 * In every child forked from now on `lock`, a default mutex that lives for
 * ever, is unlocked: whoever held it does not run there. What it protects must
 * be usable at any moment. May come again; of so few locks none is refused.
 */
void leat__fork_reset_mutex(pthread_mutex_t *lock);

#endif
