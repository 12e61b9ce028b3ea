/*
 * device_queue.h: the batches of each device: free, then in work, then ready
 * for its caller in the order of the sequence.
 */
#ifndef LEAT_LAYER_DEVICE_QUEUE_H
#define LEAT_LAYER_DEVICE_QUEUE_H

#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "layer/device_copy.h"
#include "layer/wakeup.h"

#include <leat/stats.h>

#include <stdbool.h>

/* Options that the batches of all devices share. */
typedef struct leat__device_queue_options {
    const leat_transformer *transformer; /* of the first image, borrowed; NULL:
                                            there is none */
    /* Where their memory comes from, borrowed; NULL: the device's. */
    const leat_allocator *host_slabs;   /* where it computes in host memory */
    const leat_allocator *pinned_slabs; /* else */
    leat__batch_shape shape;            /* the first record's */
    size_t room; /* bytes of a batch from the start, if more than the shape's */
    int batch_size;
    bool must_pin;     /* no batch in pageable memory */
    const char *name;  /* the layer's, borrowed */
    size_t max_memory; /* of a device's batches; 0: no limit */
    bool is_variable;  /* some tops are */
    int batches;       /* of a device: prefetch, and the one its caller holds */
    int circulating;   /* batches in use from the start; the rest as needed */
    bool has_thread;   /* one thread uploads, not the workers */
    const void *owner; /* whom that works for */
} leat__device_queue_options;

typedef struct leat__device_queue {
    leat_device *device;
    leat__queue *ready; /* completed batches, for the caller */
    leat__device_copy copy;
    leat__batch *batch; /* all of them */
    leat__batch_budget budget;
    int n;
    bool is_alone;           /* there is no other device */
    int64_t slab_bytes;      /* of the slab that they share from the start */
    int64_t top_bytes;       /* of tops that the device computes */
    leat__host_tally *tally; /* of their host sides; NULL: there are none */
    bool is_pageable;        /* the slab's host side is not pinned */
    bool is_lazy;            /* it takes memory as batches come into use */
    int host_node;           /* of NUMA, where it begins; -1: not known */
    int next_slot;           /* after that of the batch taken last */
    bool is_inline;          /* a free batch wakes no worker; the caller's */
    atomic_bool was_full;    /* workers ran out of batches since it grew last */
    atomic_int circulating;  /* batches in use; the caller's, read by anybody */
    pthread_mutex_t lock;
    leat__batch **free; /* a stack; protected by lock, as is */
    /* which anybody may read, and looks at while he waits: a line of its own */
    _Alignas(LEAT__CACHE_LINE) atomic_int nfree;
} leat__device_queue;

/* All of them, and the in-order completion of finished batches. */
typedef struct leat__device_queues {
    leat__device_queue *queue; /* batch k goes through queue k mod n */
    int n;
    leat__event_count room; /* a batch came free */
    leat__thread uploader;
    bool has_thread;
    /* Of that thread, on a cache line apart from those of workers: */
    _Alignas(LEAT__CACHE_LINE) leat__event_count done; /* one is finished */
    atomic_bool is_copying;                            /* it is in a call */
    pthread_mutex_t lock;
    /* protected by lock */
    bool is_uploading;      /* a thread does, and looks for more after it */
    leat__batch **finished; /* by number modulo `capacity` */
    atomic_int nfinished;   /* so many were, and so many are no more; read */
    atomic_int ntaken;      /* by anybody; both wrap */
    int64_t next;           /* the number that is completed next */
    int ended;              /* the status after which none is; 0: it goes on */
    int capacity;           /* batches of all devices */
    char line[LEAT__ERROR_MAX]; /* with `ended` */
} leat__device_queues;

/*
 * Makes the batches for `n` devices (borrowed) and their uploads. Errors:
 * LEAT_ENOMEM, LEAT_EIO, LEAT_EDEVICE, LEAT_EUNSUPPORTED, LEAT_EINVAL; finish
 * is due all the same.
 */
int leat__device_queues_init(leat__device_queues *queues,
                             leat_device *const devices[], int n,
                             const leat__device_queue_options *options);
/* Takes a zeroed one too. Nobody works on the batches. */
void leat__device_queues_finish(leat__device_queues *queues);

/* The one that the batch of this number goes through. */
static inline leat__device_queue *
leat__device_queues_of(const leat__device_queues *queues, int64_t number)
{
    return queues->n == 1 ? queues->queue : &queues->queue[number % queues->n];
}

/*
 * Takes a free batch without waiting: in host memory the newest, which is the
 * likeliest to be in a cache; else the next in memory if it is free, which may
 * share an upload with the one before. LEAT_AGAIN: none is free.
 */
int leat__device_queue_take(leat__device_queue *queue, leat__batch **out);

/* Gives a batch back, and wakes a worker if it is time. The caller's. */
void leat__device_queue_give(leat__device_queues *all,
                             leat__device_queue *queue, leat__batch *batch);

/*
 * The caller found nothing ready: brings one more batch into use where workers
 * had run out of them, and wakes those that sleep while one is free.
 */
void leat__device_queue_press(leat__device_queues *all,
                              leat__device_queue *queue);

/* In inline mode a free batch wakes no worker. The caller's. */
void leat__device_queue_set_inline(leat__device_queues *all,
                                   leat__device_queue *queue, bool is_inline);

/*
 * `n` samples of the batch are written. After the last one it is completed, by
 * the calling thread or the one that uploads: uploaded and made ready, with its
 * finished successors, in sequence; one whose upload fails is a failed batch.
 * After a failure that is not LEAT_EDATA the sequence ends. Returns the
 * nanoseconds for which uploads held the caller up; 0 where there are none. Any
 * thread.
 */
int64_t leat__device_queues_complete(leat__device_queues *queues,
                                     leat__batch *batch, int n);

/*
 * Whether the thread that uploads has batches to come: a caller has nothing to
 * add to them. Any thread.
 */
static inline bool
leat__device_queues_has_finished(const leat__device_queues *queues)
{
    return queues->has_thread &&
           atomic_load_explicit(&queues->nfinished, memory_order_relaxed) !=
               atomic_load_explicit(&queues->ntaken, memory_order_relaxed);
}

/* Starts the thread that uploads, where there is to be one. Errors: LEAT_EIO,
 * LEAT_ENOMEM. */
int leat__device_queues_start(leat__device_queues *queues);

/*
 * Ends the sequence, if it goes on: ready batches can still be taken, and
 * threads waiting for more wake. Any thread.
 */
void leat__device_queues_end(leat__device_queues *queues, int status,
                             const char *line);

/* The status that it ended with, and in leat_last_error its line; or 0. */
int leat__device_queues_ended(leat__device_queues *queues);

/*
 * Wakes every thread waiting for a batch, free or ready, for good. Takes one
 * whose init failed. Any thread.
 */
void leat__device_queues_close(leat__device_queues *queues);

/* Adds the queue's memory, copies and batches. Any thread. */
void leat__device_queue_stats(const leat__device_queues *all,
                              const leat__device_queue *queue,
                              leat_stats *stats);

#endif
