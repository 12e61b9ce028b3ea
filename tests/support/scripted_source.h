/* scripted_source.h: a callback reader that fails, ends or blocks where told.
 */
#ifndef LEAT_TESTS_SCRIPTED_SOURCE_H
#define LEAT_TESTS_SCRIPTED_SOURCE_H

#include <leat.h>

#include <pthread.h>

/* Sample i is one float, i, and a label, i. */
typedef struct scripted_source {
    int64_t count;   /* samples in an epoch */
    int64_t bad;     /* this record is LEAT_EDATA; -1: none */
    int64_t broken;  /* from this one on the storage fails; -1: none */
    int64_t blocks;  /* this one never comes; -1: none */
    int64_t larger;  /* this one has two elements; -1: none */
    int single_pass; /* no reset */
    int bad_resets;  /* so many fail at first */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* protected by lock */
    int64_t next;
    int cancelled;
    int blocked; /* a next is waiting */
    int opened;  /* passes, so far */
    int resets;  /* of passes to the next epoch */
    int given;   /* samples, of all passes */
} scripted_source;

#define SCRIPTED_SOURCE_INIT                                                   \
    {                                                                          \
        .count = 10, .bad = -1, .broken = -1, .blocks = -1, .larger = -1,      \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

leat_pipeline *scripted_source_pipeline(scripted_source *source);

/* The same where it may fail: the status of leat_pipeline_callback. */
int scripted_source_try_pipeline(leat_pipeline **out, scripted_source *source);

/* A callback's next without end: one float, 1, whatever the pass. */
int scripted_source_one_float(void *pass, leat_sample *sample);

/*
 * Samples without end, two floats each, that take `*pause` nanoseconds
 * (borrowed while the pipeline is read); one reader at a time.
 */
leat_pipeline *scripted_source_slow_pipeline(long *pause);

/* Returns once a next waits for the sample that never comes. */
void scripted_source_await_blocked(scripted_source *source);

#endif
