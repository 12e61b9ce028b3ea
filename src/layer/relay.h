/*
 * relay.h: what stands at the end of a run, handed on to the next one.
 *
 * A place whose record is bad may get what stands before it, and that may be in
 * the run before, which another thread works on. So each run takes a baton from
 * the run before it and hands one on.
 */
#ifndef LEAT_LAYER_RELAY_H
#define LEAT_LAYER_RELAY_H

#include "layer/batch.h"

/* What stands at the last place of a run. */
typedef enum leat__baton_state {
    LEAT__BATON_OPEN = 0, /* the run is in work */
    LEAT__BATON_RECORD,   /* `sample`, which was good in a batch of `shape` */
    LEAT__BATON_NONE,     /* nothing: no record so far was good in `shape`;
                             with no tops in it: there was no record at all */
    LEAT__BATON_UNKNOWN   /* it lies before this start of the layer */
} leat__baton_state;

typedef struct leat__baton {
    leat__baton_state state; /* protected by the relay's lock while open */
    int is_mixed;            /* behind `sample` came records of other shapes */
    leat_sample *sample;     /* owned; the record, or an empty box */
    leat__batch_shape shape;
    int holders; /* protected by the relay's lock: of the two runs, how many
                    still need it */
} leat__baton;

typedef struct leat__relay leat__relay;

/*
 * For at most `runs` runs in work at a time; `begin` is what stands before the
 * first one: NONE or UNKNOWN. The samples' boxes come from `boxes` (borrowed;
 * NULL: malloc). Errors: LEAT_ENOMEM, LEAT_EIO.
 */
int leat__relay_create(leat__relay **out, int runs, const leat_allocator *boxes,
                       leat__baton_state begin);
void leat__relay_destroy(leat__relay *relay); /* takes NULL */

/* Gives a run its two batons. One caller at a time, in the order of runs. */
void leat__relay_enter(leat__relay *relay, leat__run *run);

/*
 * Waits for the baton that the run takes: until all runs before it are through,
 * which never wait for one behind them.
 */
const leat__baton *leat__relay_await(leat__relay *relay, const leat__run *run);

/* The run is through: its own baton is filled, but for `state`. */
void leat__relay_leave(leat__relay *relay, leat__run *run,
                       leat__baton_state state);

#endif
