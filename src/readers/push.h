/* push.h: what readers of a queue receive from it. */
#ifndef LEAT_READERS_PUSH_H
#define LEAT_READERS_PUSH_H

#include "base/error.h"

#include <leat/ext/reader.h>
#include <leat/push.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define LEAT__PUSH_NAME_SIZE 64

struct leat_push {
    /* immutable */
    char name[LEAT__PUSH_NAME_SIZE];
    int nfields;
    leat_field_spec spec[LEAT_MAX_FIELDS];
    char field_name[LEAT_MAX_FIELDS][LEAT__PUSH_NAME_SIZE];
    char offsets_of[LEAT_MAX_FIELDS][LEAT__PUSH_NAME_SIZE];
    int capacity;
    unsigned generation; /* of the process */

    atomic_int references;
    atomic_int_fast64_t held; /* bytes of buffers in the ring */

    pthread_mutex_t lock;
    /* guarded by lock */
    int first; /* of the samples in the ring */
    int n;
    bool closed;
    int killed; /* its status; 0: not */
    char line[LEAT__ERROR_MAX];
    int64_t sent; /* in this pass */
    uint64_t pass;
    int waiting_senders, waiting_readers;

    pthread_cond_t has_room;
    pthread_cond_t has_sample;
    leat_sample ring[];
};

/* An end of the queue that receives, used by one caller at a time. */
typedef struct leat__push_receiver {
    leat_push *push;     /* borrowed from the pipeline */
    leat_reader *reader; /* that waits are counted for */
    uint64_t pass;       /* of which it has begun to read */
    bool has_begun;
    bool has_sample; /* in `taken`: it could not be copied yet */
    leat_sample taken;
    atomic_bool cancelled; /* written under the queue's lock */
} leat__push_receiver;

/*
 * Waits for samples and takes those that are there into `out`; where the first
 * one has to be copied, that one alone, into `taken`. LEAT_END once the queue
 * is closed and empty. Errors: LEAT_ECANCELLED; after leat_push_kill its
 * status.
 */
int leat__push_receive(leat__push_receiver *receiver, leat_sample *const out[],
                       int n, int *got);

/* For the pass that the queue is in. LEAT_EUNSUPPORTED once it has begun to
 * read that. */
int leat__push_restart(leat__push_receiver *receiver);

/* Wakes it, for good. Any thread. */
void leat__push_cancel(leat__push_receiver *receiver);

#endif
