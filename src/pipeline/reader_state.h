/* reader_state.h: what leat keeps of an open reader, and checks of its
 * operations' results. */
#ifndef LEAT_PIPELINE_READER_STATE_H
#define LEAT_PIPELINE_READER_STATE_H

#include "base/error.h"

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Tables of an older header are shorter and lack later operations. */
#define LEAT__HAS(reader, operation)                                           \
    ((reader)->ops->size >= offsetof(leat_reader_ops, operation) +             \
                                sizeof((reader)->ops->operation) &&            \
     (reader)->ops->operation)

/* What leat knows of an open reader. One caller's at a time. */
struct leat_reader_state {
    leat_reader *upstream; /* the only one; NULL: none, or several */
    int depth;             /* in the chain: 1 delivers to the caller */
    uint64_t form;         /* of its marks: pipeline/reader_form.h */
    bool is_part;          /* another reader reads it, whose mark has its own */
    bool is_again;         /* of a pipeline that a reader has opened again */
    bool defers;           /* it may leave work to materialize */
    bool reads_once;       /* what was read does not come again */
    bool lasting_access;   /* random access, whatever caches keep */
    bool has_begun;        /* it may not be at the beginning of the data */
    bool is_moved;         /* one of several inputs, by the latest seek */
    leat_position at;      /* where next goes on */
    /* What the next call returns instead of samples; LEAT_OK: nothing. */
    int status;
    leat_provenance from; /* of a bad record; source NULL: unknown */
    char key[64];
    char line[LEAT__ERROR_MAX];
    leat_sample scratch; /* for samples that are dropped */
    leat_sample *held;   /* pulled, but given by no call yet: */
    int held_at, nheld;  /* these */
    int held_capacity;
    atomic_bool cancelled; /* on any thread: nothing kept or held is given */
    atomic_bool is_random; /* leat__reader_set_random was called */
    struct leat_reader_figures *figures; /* shared by the readers of its path */
    /* In the chain's list, under its lock: of a reader that reports memory. */
    leat_reader *reader; /* NULL: not in the list */
    struct leat_reader_state *next;
    struct leat_reader_state *previous;
    int ninputs;
    leat_reader *input[]; /* upstream readers, open as long as it is */
};

/* Whether leat__reader_set_random noted it. */
static inline bool leat__reader_is_random(const leat_reader *reader)
{
    return atomic_load_explicit(&reader->state->is_random,
                                memory_order_relaxed);
}

/* Seeks one of several inputs of `reader`, in its own seek: where another
 * refuses after that, the reader's error is sticky. */
int leat__reader_seek_input(leat_reader *reader, leat_reader *input,
                            leat_position to, leat_token *mark);

/* LEAT_EUNSUPPORTED: the reader lacks an operation, and so cannot do that. */
int leat__reader_unsupported(const leat_reader *reader, const char *what);

/*
 * Checks the status that an operation returned. `lines` is the thread's count
 * of error lines before the call: a failure without a line of its own gets one,
 * so that an older one is not reported.
 */
int leat__reader_check_status(const leat_reader *reader, const char *operation,
                              unsigned lines, int status);
/* The same of one that concerns no record: LEAT_EDATA becomes LEAT_EFORMAT. */
int leat__reader_check_operation(const leat_reader *reader,
                                 const char *operation, unsigned lines,
                                 int status);

/* Only next ends: LEAT_END of another operation becomes LEAT_ESTATE. */
int leat__reader_refuse_end(const leat_reader *reader, const char *operation,
                            int status);

/* The same for an operation that fills up to `n` samples: its count, too. */
int leat__reader_check_count(const leat_reader *reader, const char *operation,
                             unsigned lines, int status,
                             leat_sample *const out[], int n, int *got);

/*
 * Checks samples: counts of fields, which would lead out of them, of those that
 * are complete. `*deferred` is the number of the others. Returns `status`, or
 * LEAT_ESTATE with *got 0.
 */
int leat__reader_check_samples(const leat_reader *reader, int status,
                               leat_sample *const out[], int *got,
                               int *deferred);

/* LEAT_ESTATE, with *got 0, for the first sample of a bad count of fields. */
int leat__reader_bad_sample(const leat_reader *reader, leat_sample *const out[],
                            int *got);

/* Notes in samples that next gave how deep in the chain they have work left. */
void leat__reader_set_depths(const leat_reader *reader,
                             leat_sample *const out[], int n);

/*
 * A map's work on the samples that its read_at gave before it returned
 * `status`, or that status for other readers.
 */
int leat__reader_map(leat_reader *reader, leat_sample *const out[], int status,
                     int *got);

#endif
