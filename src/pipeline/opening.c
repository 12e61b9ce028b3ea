#include "pipeline/opening.h"
#include "base/error.h"
#include "base/fork.h"

#include <stdbool.h>
#include <stddef.h>

static _Thread_local leat__opening *current;

/* In a child of a fork the lock may be held for ever. */
static leat__opening *find_own(void)
{
    return current && current->generation == leat__fork_generation() ? current
                                                                     : NULL;
}

leat__opening *leat__opening_begin(leat__opening *opening)
{
    leat__opening *outer = current;
    opening->generation = leat__fork_generation();
    current = opening;
    return outer;
}

void leat__opening_end(leat__opening *outer)
{
    current = outer;
}

void leat__opening_enter(leat__opening_step *step, void (*cancel)(void *object),
                         void *object)
{
    leat__opening *own = find_own();
    if (!own)
        return;
    *step = (leat__opening_step){cancel, object, own->step};
    pthread_mutex_lock(own->lock);
    own->step = step;
    if (atomic_load(own->cancelled))
        cancel(object);
    pthread_mutex_unlock(own->lock);
}

void leat__opening_leave(const leat__opening_step *step)
{
    leat__opening *own = find_own();
    if (!own)
        return;
    pthread_mutex_lock(own->lock);
    own->step = step->outer;
    pthread_mutex_unlock(own->lock);
}

bool leat__opening_is_cancelled(void)
{
    const leat__opening *own = find_own();
    return own && atomic_load(own->cancelled);
}

int leat__opening_check(const char *name)
{
    if (!leat__opening_is_cancelled())
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled", name);
}

void leat__opening_cancel(const leat__opening *opening)
{
    const leat__opening_step *at = opening->step;
    for (; at; at = at->outer)
        at->cancel(at->object);
}
