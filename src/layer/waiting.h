/* waiting.h: a forward that waits for data says so in the log, now and then. */
#ifndef LEAT_LAYER_WAITING_H
#define LEAT_LAYER_WAITING_H

#include <leat/data_layer.h>

/* What a forward waits at least before it says so, and between two lines. */
#define LEAT__WAITING_PATIENCE ((int64_t)1000000000)
#define LEAT__WAITING_INTERVAL ((int64_t)10000000000)

/* Where a layer's threads are at a moment. */
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
leat__behind leat__waiting_judge(const leat__whereabouts *now, int lane);

/* What was said last; zeroed at the start. */
typedef struct leat__waiting {
    int64_t told;    /* leat__clock_now; 0: never */
    leat_stats then; /* at that time */
} leat__waiting;

/* Whether anybody would hear of it. */
int leat__waiting_is_heard(void);

/* The layer waits since `begin` and still does, at `now`. */
void leat__waiting_on(leat_data_layer *layer, int64_t begin, int64_t now);

/* A wait is over, one of many maybe: what they come to, and who is bound. */
void leat__waiting_over(leat_data_layer *layer, int64_t now);

/* The wait from `begin` to `now` was for the copy of a batch. */
void leat__waiting_for_copy(leat_data_layer *layer, int64_t begin, int64_t now);

#endif
