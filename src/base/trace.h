/*
 * trace.h: reports spans of a thread's work to a profiler.
 *
 * A build has one tracer or none: the configuration chooses the file that
 * defines leat__tracer (trace_none.c here, trace_nvtx.c in cuda/). Without a
 * tracer a span costs the test of a pointer.
 */
#ifndef LEAT_BASE_TRACE_H
#define LEAT_BASE_TRACE_H

#include <stddef.h>

typedef enum leat__span {
    LEAT__SPAN_READ,      /* in the reader */
    LEAT__SPAN_TRANSFORM, /* writing samples into a batch, including decoding */
    LEAT__SPAN_UPLOAD,    /* enqueueing a batch's copy to the device */
    LEAT__SPAN_KERNEL,    /* enqueueing its transform on the device */
    LEAT__SPAN_WAIT,      /* forward waits for a batch; it may help meanwhile */
    LEAT__SPANS
} leat__span;

/* Called on any thread; a thread's spans nest. */
typedef struct leat__trace_ops {
    void (*begin)(leat__span span);
    void (*begin_named)(const char *name); /* borrowed until its end */
    void (*end)(void); /* the span that the thread began last */
    void (*name_thread)(const char *name); /* the calling one */
} leat__trace_ops;

/* NULL: no tracer. */
extern const leat__trace_ops *const leat__tracer;

static inline void leat__trace_begin(leat__span span)
{
    if (leat__tracer)
        leat__tracer->begin(span);
}

/* A span of a reader's, by its path. */
static inline void leat__trace_begin_named(const char *name)
{
    if (leat__tracer)
        leat__tracer->begin_named(name);
}

static inline void leat__trace_end(void)
{
    if (leat__tracer)
        leat__tracer->end();
}

static inline void leat__trace_thread(const char *name)
{
    if (leat__tracer)
        leat__tracer->name_thread(name);
}

#endif
