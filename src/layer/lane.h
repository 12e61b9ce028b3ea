/* lane.h: the way of one device's batches: to the caller, and empty back. */
#ifndef LEAT_LAYER_LANE_H
#define LEAT_LAYER_LANE_H

#include "base/memory.h"
#include "base/queue.h"
#include "layer/batch_pool.h"
#include "layer/device_copy.h"

typedef struct leat__lane {
    leat_device *device;
    leat__queue *free; /* of empty slots */
    leat__queue *full; /* of batches for the caller */
    leat__batch_pool pool;
    leat__device_copy device_copy;
    int is_alone;           /* the prefetcher has no other lane */
    int rests;              /* slots wake no worker; the caller's */
    atomic_int was_full;    /* workers ran out of slots since the last growth */
    atomic_int circulating; /* slots in use; the caller's, read by anybody */
    char apart[LEAT__CACHE_LINE]; /* from the next lane's */
} leat__lane;

/*
 * Makes the slots for `device` and what uploads them. Errors: LEAT_ENOMEM,
 * LEAT_EIO, LEAT_EDEVICE, LEAT_EUNSUPPORTED, LEAT_EINVAL; finish is due all the
 * same.
 */
int leat__lane_init(leat__lane *lane, leat_device *device,
                    const leat__prefetcher_options *options);
/* Takes a zeroed one too. Nobody works on its batches. */
void leat__lane_finish(leat__lane *lane);

/*
 * Takes an empty slot without waiting, rather one that `who` filled last.
 * LEAT_AGAIN: there is none; LEAT_ECANCELLED.
 */
int leat__lane_take(leat__lane *lane, const void *who, leat__batch **out);

/*
 * How many slots are empty when a worker is woken, since waking costs more than
 * handing a batch over: half of them, while a batch is ready besides the
 * caller's; a caller that finds none wakes the workers regardless. Any thread.
 */
int leat__lane_late(const leat__lane *lane);

/* While it rests, an empty slot wakes no worker. The caller's. */
void leat__lane_rest(leat__lane *lane, int rest);

/*
 * Brings one more slot into use where workers had chunk out of them. The
 * caller's.
 */
void leat__lane_grow(leat__lane *lane);

/* Wakes everybody who waits for its slots or batches, for good. Any thread. */
void leat__lane_close(leat__lane *lane);

/* Adds its memory, its copies and its slots. */
void leat__lane_stats(const leat__lane *lane, leat_stats *stats);

#endif
