/* whereabouts.h: where a layer's threads are at a moment, and who is behind.
 */
#ifndef LEAT_LAYER_WHEREABOUTS_H
#define LEAT_LAYER_WHEREABOUTS_H

typedef struct leat__whereabouts {
    int workers;
    int working;      /* of them, transforming or decoding */
    int reading;      /* threads, of any kind, in the reader */
    int copying;      /* workers that wait for a copy to leave their slot */
    int out_of_slots; /* while all workers rest: the lane that has none for the
                         next batch; -1: none is known */
} leat__whereabouts;

/* The stage that keeps forward waiting. */
typedef enum leat__behind {
    LEAT__BEHIND_NOBODY, /* all have something to do, and none is at it */
    LEAT__BEHIND_READER,
    LEAT__BEHIND_WORKERS,
    LEAT__BEHIND_COPY,
    LEAT__BEHIND_MEMBER /* of the group, which takes no batches */
} leat__behind;

/* For the caller of that lane. */
leat__behind leat__whereabouts_judge(const leat__whereabouts *now, int lane);

#endif
