/* prefetcher.h: workers that make batches ahead of the callers. */
#ifndef LEAT_LAYER_PREFETCHER_H
#define LEAT_LAYER_PREFETCHER_H

#include "layer/diagnose/activity.h"
#include "layer/worker.h"

typedef struct leat__prefetcher leat__prefetcher;

typedef struct leat__prefetcher_options {
    leat__worker_options worker; /* its reader is not yet started */
    leat__device_queue_options queue;
    leat_device *const *device; /* borrowed; one for each caller */
    int devices;
    int workers;
    bool at_start;        /* no record comes before the first one */
    bool decodes;         /* samples are encoded images: names the stage */
    bool may_time_waits;  /* workers have cores besides the caller's */
    int chunk_size;       /* samples in a chunk that a worker reads */
    int ahead_size;       /* and in one that the reader's thread reads ahead */
    size_t sample_buffer; /* bytes of the first good sample's buffer */
    size_t ahead_bytes;   /* of buffers that such a chunk takes at least */
    const void *owner;    /* of the workers' threads: leat__thread */
} leat__prefetcher_options;

/*
 * Takes all memory and starts the threads.
 * Errors: LEAT_ENOMEM, LEAT_EIO, LEAT_EDEVICE.
 */
int leat__prefetcher_create(leat__prefetcher **out,
                            const leat__prefetcher_options *options);
/*
 * Cancels the reader, joins all threads, waits for copies under way and frees
 * all but lent slabs. Takes NULL.
 */
void leat__prefetcher_destroy(leat__prefetcher *prefetcher);

/*
 * The next batch of device number `i`, in sequence, until `deadline` (as
 * leat__queue_pop's). With `help` the caller works while none is ready. A
 * caller tries deadline 0 first, since only then nothing is woken. LEAT_AGAIN;
 * LEAT_ECANCELLED without an error line; after a batch of another device that
 * failed for good, its status and line. One caller at a time a device.
 */
int leat__prefetcher_next(leat__prefetcher *prefetcher, int i,
                          leat__batch **out, int64_t deadline, bool help);

/*
 * In inline mode a caller that helps wakes no worker; they are woken where next
 * has to wait. The caller's.
 */
void leat__prefetcher_set_inline(leat__prefetcher *prefetcher, int i,
                                 bool is_inline);

/*
 * Gives a delivered batch back; it is refilled once the `n` streams have passed
 * this point. Errors: LEAT_EDEVICE; it is given back all the same.
 */
int leat__prefetcher_give(leat__prefetcher *prefetcher, leat__batch *batch,
                          const leat_stream *streams, int n);

/*
 * Notes that the streams read a delivered batch that is not given back: destroy
 * waits for them, and its contents stay. Errors: LEAT_EDEVICE.
 */
int leat__prefetcher_mark(leat__prefetcher *prefetcher, leat__batch *batch,
                          const leat_stream *streams, int n);

/* What copies the batches of device number `i`. */
leat__device_copy *leat__prefetcher_copy(leat__prefetcher *prefetcher, int i);

/* How many batches device number `i` has. */
int leat__prefetcher_slots(const leat__prefetcher *prefetcher, int i);

/*
 * Ends the sequence: a device whose batches are no longer taken would block the
 * others. Batches that are ready can still be had, then `status`. Any thread.
 */
void leat__prefetcher_end(leat__prefetcher *prefetcher, int status,
                          const char *line);

/* Wakes everybody; next gives LEAT_ECANCELLED from now on. Any thread. */
void leat__prefetcher_cancel(leat__prefetcher *prefetcher);

/* Where its threads are just now, the callers left out. */
leat__activity leat__prefetcher_activity(const leat__prefetcher *prefetcher);

/* Reader and workers are all devices', the rest is device number `i`'s. */
void leat__prefetcher_stats(const leat__prefetcher *prefetcher, int i,
                            leat_stats *stats);

#endif
