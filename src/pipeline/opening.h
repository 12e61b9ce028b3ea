/*
 * opening.h: what wakes a thread that opens a pipeline.
 *
 * A reader may read while it is opened, as interleave reads its first name, and
 * its caller has no reader to cancel yet. So each opening lists what can be
 * cancelled: the upstream readers, or a source. Steps on a thread without an
 * opening are not listed.
 */
#ifndef LEAT_PIPELINE_OPENING_H
#define LEAT_PIPELINE_OPENING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A call that may wait, on the stack of the thread that opens. */
typedef struct leat__opening_step {
    void (*cancel)(void *object);
    void *object;
    struct leat__opening_step *outer;
} leat__opening_step;

typedef struct leat__opening {
    pthread_mutex_t *lock; /* immutable, as is the next one */
    const atomic_bool *cancelled;
    unsigned generation;      /* of the process that opens */
    leat__opening_step *step; /* protected by lock, under which cancel runs */
} leat__opening;

/* Steps on this thread are of this opening until the end, which takes what
 * begin has returned. */
leat__opening *leat__opening_begin(leat__opening *opening);
void leat__opening_end(leat__opening *outer);

/* A step that is entered after a cancel is cancelled at once. `object` is used
 * until leave, which comes on the same thread, the inner step's first. */
void leat__opening_enter(leat__opening_step *step, void (*cancel)(void *object),
                         void *object);
void leat__opening_leave(const leat__opening_step *step);

/* Whether this thread's opening is: what steps that it has left had to cancel
 * is cancelled, though it may have opened. */
bool leat__opening_is_cancelled(void);

/* LEAT_ECANCELLED then, with a line that names `name`. A few loads: for each of
 * many paths that are looked up. */
int leat__opening_check(const char *name);

/* Under the opening's lock, once `cancelled` is set. */
void leat__opening_cancel(const leat__opening *opening);

#endif
