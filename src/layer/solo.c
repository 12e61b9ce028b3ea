#include "layer/solo.h"
#include "base/thread.h"

/* A look costs two system calls. */
enum { BATCHES_A_LOOK = 8 };

int leat__solo_enter(leat__solo *solo)
{
    if (solo->is_looking) {
        solo->is_looking = 0;
        solo->is_on = pthread_equal(solo->caller, pthread_self()) &&
                      solo->sleeps == leat__thread_sleeps();
    }
    return solo->is_on;
}

void leat__solo_leave(leat__solo *solo)
{
    if (!solo->is_possible || solo->until_look-- > 0)
        return;
    solo->until_look = BATCHES_A_LOOK - 1;
    solo->is_looking = 1;
    solo->caller = pthread_self();
    solo->sleeps = leat__thread_sleeps();
}
