/*
 * timed_readers.h: readers whose work takes a known time on a clock that only
 * they advance: the caller's own, for programs that put timed_now in front of
 * clock_gettime.
 */
#ifndef LEAT_TESTS_TIMED_READERS_H
#define LEAT_TESTS_TIMED_READERS_H

#include <leat/ext/reader.h>

/* What one call of an operation takes of its own, in nanoseconds. */
typedef struct timed_plan {
    leat_reader_type type; /* timed_pipeline fills all but its name */
    int64_t next;
    int64_t blocked; /* of next: reported as a wait */
    int64_t materialize;
    int64_t read_at;
    int64_t seek;
    int64_t skip;
    int64_t advise;
    int64_t memory; /* that each of its readers holds; 0: it has no `memory` */
    int samples;    /* of a source in an epoch, of timed_bytes each */
    int defers;     /* a source does so, a decorator maps */
    void (*also)(leat_reader *reader); /* called by next; may be NULL */
    leat_open open; /* what its reader that delivers was opened with */
} timed_plan;

enum { TIMED_BYTES = 100 };

/* The calling thread's time in nanoseconds. */
extern _Thread_local int64_t timed_now;

/* A source for no upstream pipelines, a decorator for one, which can also read
   in any order, and for several one that reads call k from pipeline k mod n.
   The plan is borrowed. */
leat_pipeline *timed_pipeline(timed_plan *plan, leat_pipeline *const upstream[],
                              int n);

/* `plan` over `upstream`, whose reference it takes over. */
leat_pipeline *timed_over(timed_plan *plan, leat_pipeline *upstream);

#endif
