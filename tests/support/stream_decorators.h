/*
 * stream_decorators.h: decorators of the kinds that no index finds again, as a
 * user of leat would write them, against leat/ext/reader.h alone.
 */
#ifndef LEAT_TESTS_STREAM_DECORATORS_H
#define LEAT_TESTS_STREAM_DECORATORS_H

#include <leat/ext/reader.h>

enum { STREAM_WINDOW = 5, STREAM_ONCE = 23 };

typedef enum stream_kind {
    STREAM_FILTER, /* drops every upstream sample i with i mod 3 = 1; marks */
    STREAM_ROTATE, /* STREAM_WINDOW at a time in a buffer of its own, in an
                      order that depends on the epoch; marks */
    STREAM_END,    /* a single pass of STREAM_ONCE samples at most; no mark */
    STREAM_ZIP,    /* the fields of all its upstreams; marks */
    STREAM_KINDS
} stream_kind;

/* A pipeline over others, which stay the caller's. */
leat_pipeline *stream_decorators_over(stream_kind kind,
                                      leat_pipeline *const upstream[], int n);

/* The same over one, which it takes. */
leat_pipeline *stream_decorators_take(stream_kind kind,
                                      leat_pipeline *upstream);

/* The upstream sample that they give at a position, of `count` upstream. */
int64_t stream_decorators_filtered(int64_t index);
int64_t stream_decorators_rotated(leat_position at, int64_t count);

/* The samples that a filter leaves of `count`. */
int64_t stream_decorators_left(int64_t count);

#endif
