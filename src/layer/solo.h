/*
 * solo.h: whether the caller had better work alone.
 *
 * On the only core a worker gains nothing while the caller computes: the caller
 * makes the next batch as soon itself, in memory that its cache still has, and
 * nobody changes over. What a worker is good for is the time in which the
 * caller sleeps. So every few batches the system is asked whether it did.
 */
#ifndef LEAT_LAYER_SOLO_H
#define LEAT_LAYER_SOLO_H

#include <pthread.h>
#include <stdint.h>

/* The caller's alone. */
typedef struct leat__solo {
    int is_possible; /* one core, and the caller may work */
    int is_on;
    int until_look; /* batches */
    int pause;      /* batches between two looks; 0: none was had */
    int is_looking;
    pthread_t caller; /* who was seen to leave, after how many sleeps */
    int64_t sleeps;
} leat__solo;

/* At the beginning of a forward: whether workers are to rest. */
int leat__solo_enter(leat__solo *solo);

/* At the end of one that gave a batch. */
void leat__solo_leave(leat__solo *solo);

#endif
