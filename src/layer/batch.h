/* batch.h: memory for a batch of samples, and its contents' description. */
#ifndef LEAT_LAYER_BATCH_H
#define LEAT_LAYER_BATCH_H

#include "base/memory.h"
#include "data/sample.h"
#include "data/syncedmem.h"
#include "layer/on_error/bad_list.h"
#include "layer/on_error/failure.h"
#include "layer/sampler.h"

#include <leat/token.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Streams whose end a batch can wait for: forward's, and 8 of a release. */
#define LEAT__STREAMS_MAX 9

/* Tops begin at multiples of this: a device's widest access. */
#define LEAT__TOP_ALIGNMENT 256

/* One top of a batch: samples without gaps, from `offset` in its memory on. */
typedef struct leat__top {
    leat_dtype dtype;
    int ndim; /* of one sample */
    int64_t shape[LEAT_MAX_DIMS];
    size_t bytes; /* of one sample */
    size_t offset;
    int image[3];     /* of an image: channels, height, width */
    bool is_batch;    /* samples are batches: there is no axis for them */
    bool is_variable; /* in the batch's extents, once all samples are known: of
                         `shape` -1 is the longest's, `bytes` is 0 */
} leat__top;

/* The layout of a batch; its first sample decides. */
typedef struct leat__batch_shape {
    int ntop;
    leat__top top[LEAT_MAX_FIELDS];
    size_t bytes; /* of all tops; of variable ones once all samples are known */
    size_t fixed; /* of those that are not variable, which come first */
    /* Where a device transforms, one top is uint8 crops, the choices made for
       them come after the others, and the top itself is in memory of its own.
     */
    bool is_cropped;
    int crop_top;             /* which one */
    leat_layout pixel_layout; /* of the crops */
    size_t choices;           /* where they begin in the batch's memory */
    size_t top_bytes;         /* of that top, all samples */
} leat__batch_shape;

/* A variable top of a batch whose samples are all known. */
typedef struct leat__extent {
    size_t offset;
    int ndim;
    int64_t shape[LEAT_MAX_DIMS]; /* with all axes */
} leat__extent;

typedef enum leat__shape_state {
    LEAT__SHAPE_OPEN = 0,
    LEAT__SHAPE_KNOWN,
    LEAT__SHAPE_FAILED
} leat__shape_state;

/* What batches grew to, beside the slab that they share from the start. */
typedef struct leat__batch_grown {
    atomic_int_fast64_t bytes; /* of host sides; pageable ones left out */
    atomic_int_fast64_t pageable;
    atomic_int_fast64_t tops; /* that a device computes */
} leat__batch_grown;

enum { LEAT__SPARE_SLABS = 32 };

/* The memory that the batches of a device may take, and take. */
typedef struct leat__batch_budget {
    const char *name; /* the layer's, borrowed */
    size_t limit;     /* bytes; 0: none */
    size_t share;     /* bytes that each may grow to if all do */
    /* Has idle batches give back what they grew to, by leat__batch_trim; NULL:
       there are none. */
    void (*trim)(void *owner);
    void *owner;
    /* Held while memory is made and freed, so that who needs room waits for
       what another gives back. */
    pthread_mutex_t lock;
    pthread_cond_t prepared; /* a batch is */
    int preparing;           /* threads that prepare one, which may give back */
    int waiting;             /* and of these, those that wait for others */
    size_t in_use;  /* bytes on host and device, those of all batches */
    size_t largest; /* and the most that one grew to */
    leat__slab *spare[LEAT__SPARE_SLABS]; /* given back, for the next that grows
                                           */
    int spares;
    /* Read by anybody: */
    atomic_size_t variable;  /* bytes that variable tops of a batch take */
    leat__batch_grown grown; /* now */
    leat__batch_grown most;  /* so far */
    atomic_int growths;
} leat__batch_budget;

/* The memory that a batch has from the start, while it has another. */
typedef struct leat__batch_home {
    leat__slab *slab; /* NULL: it has this one */
    size_t offset;
    size_t capacity;
} leat__batch_home;

enum {
    LEAT__UPLOAD_BATCHES = 16,    /* of one upload at most, */
    LEAT__UPLOAD_BYTES = 8 << 20, /* and bytes of more than one batch */
    LEAT__UPLOADS = 16            /* that are under way at most */
};

/* A copy that brings a batch to the device, and others with it if need be. */
typedef struct leat__upload {
    int64_t number;  /* from 1 on; 0: there was none */
    leat_event room; /* what was there before is read, the copy begins */
    leat_event over; /* the copy has read the host side */
    bool has_room;   /* `room` was recorded: else nobody used it any more */
    int batches;     /* that it brings */
    int64_t begin;   /* bytes of all uploads before it, */
    int64_t end;     /* and with it */
} leat__upload;

typedef struct leat__batch {
    /* Fields that each batch changes, for its workers and the caller: a cache
       line. Set under the claim lock by the thread that takes chunks: */
    _Alignas(LEAT__CACHE_LINE) int64_t number; /* since the threads started */
    leat__position after;                      /* it */
    leat_token mark;        /* of the reader, there; may be empty */
    atomic_int outstanding; /* samples not yet written */
    int n;                  /* rows; settled before outstanding is 0, as is */
    int valid;              /* of those, samples; the rest are padding */
    bool populates;         /* its samples are the first in the memory */
    bool is_streamed;       /* whole images go past the processor's caches */
    /* protected by lock */
    int failed; /* first bad sample; -1: none */
    int status;
    leat__bad_list bad; /* samples that another record or zeros replace */

    /* Fields that change while it is filled: another. */
    pthread_mutex_t lock;
    leat__shape_state state; /* protected by lock */
    int64_t held_up; /* nanoseconds for which the last upload delayed its shape
                      */

    /* the memory; changed by the thread that prepares the batch, or, before
       that, by one that needs room and took this from it: */
    atomic_bool is_idle;
    bool is_preparing; /* that thread does */
    leat__slab *slab;  /* shared with lent blobs, and with other batches */
    size_t offset;
    size_t capacity;      /* bytes */
    leat__slab *top_slab; /* of the top that a device computes; or NULL */
    size_t top_offset;
    size_t top_capacity;
    leat__batch_home home;
    leat__batch_home top_home;
    leat__batch_budget *budget; /* borrowed */
    bool is_lazy;               /* nothing has populated the memory yet */
    bool is_transformed;  /* the last upload had a transform after its copy */
    bool is_awaited;      /* a consumer waited for `ready`, or its stream does:
                              its use ends after the transform */
    int size;             /* samples there is room for */
    int slot;             /* its index among its device's batches */
    leat__upload upload;  /* the last one */
    leat_event room;      /* of uploads of which it is the first batch, */
    leat_event copied;    /* and their `over` */
    leat_event ready;     /* that of `written`: its upload and kernel end */
    leat__fence *written; /* shared with blobs that it is lent to */
    leat__fence *read;    /* the event consumed[0]; shared with blobs that it is
                             copied to */
    leat_event consumed[LEAT__STREAMS_MAX];
    int events;    /* of consumed, how many exist */
    int nconsumed; /* and how many the next upload waits for */
    leat_provenance *from;
    char *keys; /* size x LEAT__KEY_MAX */

    pthread_cond_t shaped;
    /* protected by lock */
    leat__batch_shape shape; /* read freely once known */
    leat__bad culprit;       /* sample `failed`, with the error line */
    leat__failure ending;    /* that sample, or one after it */

    /* Of a batch with variable tops; NULL else: */
    leat__extent *extent;       /* of each top */
    const leat_sample **sample; /* of each position, while it is filled;
                                   NULL: zeros */
} leat__batch;

/* The bytes that a batch of `size` samples takes beside those of its tops. */
size_t leat__batch_overhead(int size);

/*
 * A batch in `slab` (shared), whose memory is `lazy` if nothing has populated
 * it yet. Errors: LEAT_ENOMEM, LEAT_EIO, LEAT_EDEVICE.
 */
int leat__batch_init(leat__batch *batch, leat__slab *slab, size_t offset,
                     size_t capacity, int size, bool is_lazy);
/* Takes a zeroed batch too. */
void leat__batch_finish(leat__batch *batch);

/* Forgets the contents, for the next ones. Nobody else uses the batch. */
void leat__batch_begin(leat__batch *batch, int64_t number);

/* Gives it memory for the top that a device computes, in `slab` (shared). */
void leat__batch_set_top(leat__batch *batch, leat__slab *slab, size_t offset,
                         size_t capacity);

/* Gives it what variable tops need. Errors: LEAT_ENOMEM. */
int leat__batch_make_variable(leat__batch *batch, int ntop);

/* From now on until it is prepared its memory may be given back. */
static inline void leat__batch_set_idle(leat__batch *batch)
{
    atomic_store_explicit(&batch->is_idle, true, memory_order_release);
}

/*
 * The thread that prepares the batch takes its memory, before it looks at it.
 * Until the end others wait for what it may give back.
 */
void leat__batch_begin_prepare(leat__batch *batch);
void leat__batch_end_prepare(leat__batch *batch);

/* Gives back what a batch grew to under a limit, of which it needs nothing: it
 * failed. */
void leat__batch_give_back(leat__batch *batch);

/*
 * Makes room for the shape, in slabs of its own if need be, and, where there is
 * a limit, gives back one of which it needs less than half. Errors: LEAT_ELIMIT
 * beyond the budget, LEAT_ENOMEM, LEAT_EIO, LEAT_EDEVICE.
 */
int leat__batch_reserve(leat__batch *batch, const leat__batch_shape *shape);

/*
 * Likewise for `bytes`, of a batch with variable tops, and keeps the first
 * `kept` that are there. Memory grows by a quarter more, so that it settles,
 * where all batches may.
 */
int leat__batch_extend(leat__batch *batch, size_t bytes, size_t kept);

/* Whether the batch was idle: its memory is the caller's now. For `trim`. */
static inline bool leat__batch_take_idle(leat__batch *batch)
{
    return atomic_exchange(&batch->is_idle, false);
}

/* Gives back what such a batch grew to. For `trim`. Errors: LEAT_EDEVICE. */
int leat__batch_trim(leat__batch *batch);

/* Errors: LEAT_EIO. Finish takes a zeroed one too; no batch uses it. */
int leat__batch_budget_init(leat__batch_budget *budget);
void leat__batch_budget_finish(leat__batch_budget *budget);

/* Counts `bytes` that one more batch brings into use; false: there is no room
 * for it to grow as others did. Any thread. */
bool leat__batch_budget_add(leat__batch_budget *budget, size_t bytes);

/* The shape of top `i` of `n` samples, with all its axes. Returns ndim. */
int leat__top_full_shape(const leat__top *top, int64_t n,
                         int64_t shape[LEAT_MAX_DIMS]);

/*
 * Populates the memory of `n` samples from `first` on, for the first batch in
 * lazy memory. Errors: LEAT_ENOMEM, where a plain access would raise SIGBUS.
 */
int leat__batch_populate(const leat__batch *batch, int first, int n);

/*
 * Sets the shape, or with NULL that there is none, and wakes the threads that
 * wait for it: nobody does where one chunk is the whole batch. Once a batch.
 */
void leat__batch_set_shape(leat__batch *batch, const leat__batch_shape *shape,
                           bool is_whole);
/* Waits for that; whether there is a shape. */
bool leat__batch_wait_shape(leat__batch *batch);

/*
 * Notes the failure of sample `i`, described by `from` (may be NULL); the
 * earliest one counts, and the earliest one that ends reading.
 */
void leat__batch_fail(leat__batch *batch, int i, int status,
                      const leat_provenance *from, const char *line);

/* Adds a chunk's bad records; sample 0 of the list is `first`. LEAT_ENOMEM. */
int leat__batch_note_bad(leat__batch *batch, const leat__bad_list *bad,
                         int first);

/* The address of sample `i` in top `top`, on the host. */
static inline void *leat__batch_at(const leat__batch *batch, int top, int i)
{
    const leat__top *shape = &batch->shape.top[top];
    return (char *)batch->slab->host + batch->offset + shape->offset +
           (size_t)i * shape->bytes;
}

/* The choices made for sample `i` of crops. */
static inline leat_device_choice *leat__batch_choice(const leat__batch *batch,
                                                     int i)
{
    char *first =
        (char *)batch->slab->host + batch->offset + batch->shape.choices;
    return (leat_device_choice *)(void *)first + i;
}

/* The provenance of a row after its samples. */
void leat__batch_note_padding(leat__batch *batch, int i);

/* The epoch of a batch that an epoch's end cuts short, by its end. */
static inline int64_t leat__batch_cut_epoch(const leat__batch *batch)
{
    return batch->after.epoch - (batch->after.index == 0);
}

/* Keeps the key of sample `i`, which does not last, as long as the batch. */
void leat__batch_keep_key(leat__batch *batch, int i);

/* Copies where a sample came from. */
static inline void leat__batch_note(leat__batch *batch, int i,
                                    const leat_sample *sample)
{
    batch->from[i] = sample->from;
    if (!leat__sample_lasts(sample, sample->from.key))
        leat__batch_keep_key(batch, i);
}

/* Whether batches of both shapes have the same layout. */
bool leat__batch_shape_is_same(const leat__batch_shape *one,
                               const leat__batch_shape *other);

/*
 * Lays the tops out one after the other. Errors: LEAT_EINVAL on overflow, and
 * for more dimensions than a top has.
 */
int leat__batch_shape_lay_out(leat__batch_shape *shape, int size);

#endif
