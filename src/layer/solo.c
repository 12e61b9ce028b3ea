#include "layer/solo.h"
#include "base/thread.h"

/* A look costs two system calls: fewer are had while all see the same. */
enum { PAUSE_MIN = 8, PAUSE_MAX = 32 };

static int next_pause(const leat__solo *solo, int is_on)
{
    if (is_on != solo->is_on || solo->pause == 0)
        return PAUSE_MIN;
    return solo->pause < PAUSE_MAX ? 2 * solo->pause : PAUSE_MAX;
}

int leat__solo_enter(leat__solo *solo)
{
    if (solo->is_looking) {
        int is_on = pthread_equal(solo->caller, pthread_self()) &&
                    solo->sleeps == leat__thread_sleeps();
        solo->is_looking = 0;
        solo->pause = next_pause(solo, is_on);
        solo->until_look = solo->pause - 1;
        solo->is_on = is_on;
    }
    return solo->is_on;
}

void leat__solo_leave(leat__solo *solo)
{
    if (!solo->is_possible || solo->until_look-- > 0)
        return;
    solo->is_looking = 1;
    solo->caller = pthread_self();
    solo->sleeps = leat__thread_sleeps();
}
