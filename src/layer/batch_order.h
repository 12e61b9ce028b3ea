/* batch_order.h: hands finished batches on, in sequence. */
#ifndef LEAT_LAYER_BATCH_ORDER_H
#define LEAT_LAYER_BATCH_ORDER_H

#include "layer/lane.h"

typedef struct leat__batch_order {
    pthread_mutex_t lock;
    /* protected by lock, as are the uploads */
    leat__batch **finished; /* by number modulo slots */
    int64_t next;           /* the number that is published next */
    int ended;              /* the status after which none is; 0: it goes on */
    int slots;              /* of all lanes */
    leat__lane *lanes;      /* borrowed */
    int nlanes;
    char line[LEAT__ERROR_MAX]; /* with `ended` */
} leat__batch_order;

/* Errors: LEAT_ENOMEM, LEAT_EIO; the struct is then as if zeroed. */
int leat__batch_order_init(leat__batch_order *order, leat__lane *lanes,
                           int nlanes, int slots);
void leat__batch_order_finish(leat__batch_order *order); /* a zeroed one too */

/*
 * `n` samples of the batch are in place. Behind the last one it is published,
 * with its finished successors; whose upload fails is a failed batch. Behind a
 * failed one that is no LEAT_EDATA the sequence ends. Returns the nanoseconds
 * that uploads have held the caller up, its own and those that it waited for; 0
 * where there are none.
 */
int64_t leat__batch_order_place(leat__batch_order *order, leat__batch *batch,
                                int n);

/*
 * Ends the sequence, if it goes on: what is published is still there, and
 * whoever waits for more wakes. Any thread.
 */
void leat__batch_order_end(leat__batch_order *order, int status,
                           const char *line);

/* The status that it ended with, and in leat_last_error its line; or 0. */
int leat__batch_order_ended(leat__batch_order *order);

#endif
