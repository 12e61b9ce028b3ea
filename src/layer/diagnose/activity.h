/* activity.h: where a layer's threads are at a moment, and who is behind.
 */
#ifndef LEAT_LAYER_DIAGNOSE_ACTIVITY_H
#define LEAT_LAYER_DIAGNOSE_ACTIVITY_H

typedef struct leat__activity {
    int workers;
    int working;      /* of them, transforming or decoding */
    int reading;      /* threads, of any kind, in the reader */
    int copying;      /* workers that wait for a copy to leave their slot */
    int out_of_slots; /* while all workers rest: the lane that has none for the
                         next batch; -1: none is known */
} leat__activity;

/* The stage that keeps forward waiting. */
typedef enum leat__bottleneck {
    LEAT__BOTTLENECK_NOBODY, /* work is there, but no thread runs */
    LEAT__BOTTLENECK_READER,
    LEAT__BOTTLENECK_WORKERS,
    LEAT__BOTTLENECK_COPY,
    LEAT__BOTTLENECK_MEMBER /* of the group, which takes no batches */
} leat__bottleneck;

/* For the caller of that lane. */
leat__bottleneck leat__activity_judge(const leat__activity *now, int lane);

#endif
