/* cancel.h: holds pthread_cancel. */
#ifndef LEAT_BASE_CANCEL_H
#define LEAT_BASE_CANCEL_H

/*
 * Disables pthread_cancel for the calling thread, which may hold locks, until
 * the state that disable returned is restored. leat's own threads are never
 * cancelled.
 */
int leat__cancel_disable(void);
void leat__cancel_restore(int before);

#endif
