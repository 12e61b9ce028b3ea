/* nap.h: how long a worker sleeps for which there is no slot. */
#ifndef LEAT_LAYER_NAP_H
#define LEAT_LAYER_NAP_H

#include <stdint.h>

/* One thread's; zeroed at first. */
typedef struct leat__nap {
    int64_t pace;   /* nanoseconds between two batches; 0: not yet known */
    int64_t since;  /* when it was last told, */
    int64_t number; /* and how many batches had been opened then */
    int64_t last;   /* how many there were before the last nap */
} leat__nap;

/*
 * When to look for a slot again. A caller that has emptied `late` of them has
 * to wake somebody, which takes it longer than all the rest of a forward; so
 * the worker looks by itself before that, when by the caller's pace half of
 * those are empty. `number` tells how many batches have been opened.
 * LEAT__FOREVER: each slot wakes, or the pace is not known, or too quick, or
 * the last nap was in vain; then it is woken.
 */
int64_t leat__nap_until(leat__nap *nap, int64_t now, int64_t number, int late);

#endif
