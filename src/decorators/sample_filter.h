/*
 * sample_filter.h: a decorator that gives those samples of its upstream reader
 * for which a predicate is true.
 *
 * DESIGN. The predicate looks at complete samples, so next completes what it
 * pulls, in its own thread. A bad record is given, as its error: whether it
 * would have been dropped is unknown. The samples that were pulled with it are
 * held for the next call, and a mark is then that of the upstream reader before
 * the pull, and how many samples of it were done with. Else it is the upstream
 * reader's own. Either way it has the upstream reader's position, too.
 */
#ifndef LEAT_DECORATORS_SAMPLE_FILTER_H
#define LEAT_DECORATORS_SAMPLE_FILTER_H

#include "decorators/decorator.h"
#include "decorators/field.h"

#include <stdbool.h>

typedef struct leat__sample_filter leat__sample_filter;

/* What a filter does. */
typedef struct leat__filter_kind {
    const char *name; /* of the decorator */
    /*
     * Whether a complete sample is given, in `*keeps`; field `first` is the
     * upstream reader's first. Errors: LEAT_EDATA concerns the sample; its line
     * gets source and record.
     */
    int (*test)(leat__sample_filter *filter, leat_sample *sample, int first,
                bool *keeps);
    void (*cancel)(leat__sample_filter *filter); /* NULL: nothing more */
} leat__filter_kind;

/* The first member of such a decorator's own struct. */
struct leat__sample_filter {
    leat__decorator decorator; /* first */
    /* Immutable once it is open. */
    leat_reader_ops ops;
    const leat__filter_kind *kind;
    const leat_field_spec *given;    /* the upstream reader's fields; */
    int ngiven;                      /* 0: it has no samples */
    const leat_allocator *allocator; /* of samples, borrowed */
    /* Of one caller at a time. */
    leat_position pulled; /* where the upstream reader was before the latest
                             pull, */
    int64_t done;         /* how many samples after that are done with, */
    leat_token mark;      /* and its mark there */
    leat_sample *held;    /* those that are not: */
    int held_at, nheld, held_capacity;
    /* Bytes of these; any thread reads it. */
    atomic_int_fast64_t held_bytes;
};

/*
 * Allocates a zeroed filter of `size` bytes over the upstream reader of `open`.
 * Freed by the reader's close, or leat__sample_filter_opened. Errors:
 * those of leat_reader_fields but LEAT_END; LEAT_ENOMEM.
 */
int leat__sample_filter_new(leat__sample_filter **out, const leat_open *open,
                            const leat__filter_kind *kind, size_t size);

/* Ends open: the filter, or frees it where `status` is a failure, whose line
 * gets the decorator's name. */
int leat__sample_filter_opened(leat__sample_filter *filter, int status,
                               leat_reader **out);

#endif
