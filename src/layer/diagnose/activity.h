/* activity.h: the current activity of a layer's threads, and the bottleneck. */
#ifndef LEAT_LAYER_DIAGNOSE_ACTIVITY_H
#define LEAT_LAYER_DIAGNOSE_ACTIVITY_H

typedef struct leat__activity {
    int workers;
    int working;        /* of them, transforming or decoding */
    int reading;        /* threads, of any kind, in the reader */
    int copying;        /* threads that wait for a copy out of a batch */
    int out_of_batches; /* while all workers sleep: the device that has none
                           free for the next batch; -1: none is known */
} leat__activity;

/* The stage that keeps forward waiting. */
typedef enum leat__bottleneck {
    LEAT__BOTTLENECK_NOBODY, /* work is available, but no thread is running */
    LEAT__BOTTLENECK_READER,
    LEAT__BOTTLENECK_WORKERS,
    LEAT__BOTTLENECK_COPY,
    LEAT__BOTTLENECK_MEMBER /* of the group, which takes no batches */
} leat__bottleneck;

/* For the caller of device number `i`. */
leat__bottleneck leat__activity_judge(const leat__activity *now, int i);

#endif
