/* publisher.h: hands finished batches on, in sequence. */
#ifndef LEAT_LAYER_PUBLISHER_H
#define LEAT_LAYER_PUBLISHER_H

#include "base/queue.h"
#include "layer/uploader.h"

typedef struct leat__publisher {
    leat__queue *full;        /* borrowed; where they go */
    leat__uploader *uploader; /* borrowed */
    int slots;
    pthread_mutex_t lock;
    /* protected by lock, as is the upload */
    leat__batch **finished; /* by number modulo slots */
    int64_t next;           /* the number that is published next */
} leat__publisher;

/* Errors: LEAT_ENOMEM, LEAT_EIO; the struct is then as if zeroed. */
int leat__publisher_init(leat__publisher *publisher, leat__queue *full,
                         leat__uploader *uploader, int slots);
void leat__publisher_finish(leat__publisher *publisher); /* a zeroed one too */

/*
 * `n` samples of the batch are in place. Behind the last one it is published,
 * with its finished successors; whose upload fails is a failed batch.
 */
void leat__publisher_place(leat__publisher *publisher, leat__batch *batch,
                           int n);

#endif
