#include "base/cancel.h"

#include <pthread.h>
#include <stddef.h>

/* Neither can fail: both states are valid. */
int leat__cancel_disable(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void leat__cancel_restore(int before)
{
    (void)pthread_setcancelstate(before, NULL);
}
