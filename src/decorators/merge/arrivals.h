/*
 * arrivals.h: samples of several readers in the order of their arrival.
 *
 * DESIGN. Each input has a thread, which the first next starts, and `buffer`
 * items, each a sample with its status. `lock` protects the items' lists, the
 * counts and the flags. An item in no list is owned by its input's thread from
 * when it leaves the free ones until it arrives, and by next from its arrival
 * until it is free. Under the lock no reader reads.
 *
 * A thread waits on `room` while it has nothing to do: at the end of the epoch,
 * while all of them pause, without a free item, or without room in max_memory.
 * next waits on `arrival`, and pause on `idle` until no thread is inside its
 * reader. cancel wakes all, after its caller has cancelled the readers; finish
 * cancels them before it joins.
 */
#ifndef LEAT_DECORATORS_MERGE_ARRIVALS_H
#define LEAT_DECORATORS_MERGE_ARRIVALS_H

#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct leat__arrived_item leat__arrived_item;
typedef struct leat__arrivals_input leat__arrivals_input;

typedef struct leat__arrivals {
    leat_reader *reader; /* that the waits of next are counted for */
    int n, buffer;
    int64_t max_bytes; /* of an input's samples' buffers; -1: no limit */
    leat__arrivals_input *input;
    leat__arrived_item *items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t first_bytes; /* of the first sample; -1: none yet */
    bool is_started;                 /* all threads are; one caller's */
    pthread_mutex_t lock;
    pthread_cond_t room, arrival, idle;
    /* Under lock: */
    leat__arrived_item **arrived; /* a ring of all items */
    int first, narrived;
    int nreading; /* inputs that have not ended */
    int ninside;  /* threads that are inside their reader */
    bool is_pausing, is_cancelled, is_closing;
} leat__arrivals;

typedef struct leat__arrivals_options {
    leat_reader *reader;
    leat_reader *const *upstream; /* borrowed until finish */
    int n;
    int buffer;                      /* samples that are read ahead of each */
    const leat_allocator *allocator; /* of samples */
    int64_t max_memory;              /* 0: no limit */
    int64_t ahead_bytes;             /* of it for samples */
} leat__arrivals_options;

/* Errors: LEAT_ENOMEM; LEAT_ELIMIT for a buffer of more than max_memory. */
int leat__arrivals_init(leat__arrivals *out,
                        const leat__arrivals_options *options);
/* What it may hold, were samples as large as the first: one of each input has
 * room always. Any thread. */
int64_t leat__arrivals_most(const leat__arrivals *arrivals);

/* Cancels the readers that have a thread, and joins the threads. */
void leat__arrivals_finish(leat__arrivals *arrivals);

/* As a reader's next. LEAT_ECANCELLED after cancel. */
int leat__arrivals_next(leat__arrivals *arrivals, leat_sample *const out[],
                        int n, int *got);

/* Has all threads wait outside of their readers, and drops what arrived. */
void leat__arrivals_pause(leat__arrivals *arrivals);
/* Goes on after a pause; `is_reading` false: as if all had ended. */
void leat__arrivals_resume(leat__arrivals *arrivals, bool is_reading);

/* Wakes all, for good. Any thread. */
void leat__arrivals_cancel(leat__arrivals *arrivals);

#endif
