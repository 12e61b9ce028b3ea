/*
 * trace.h: what a thread is at, told to a profiler.
 *
 * A build has one tracer or none: the file that defines leat__tracer is chosen
 * when leat is configured (trace_none.c here, trace_nvtx.c in cuda/). Without
 * one a span costs the look at a pointer.
 */
#ifndef LEAT_BASE_TRACE_H
#define LEAT_BASE_TRACE_H

#include <stddef.h>

typedef enum leat__span {
    LEAT__SPAN_READ,      /* in the reader */
    LEAT__SPAN_TRANSFORM, /* putting samples in place, decoding included */
    LEAT__SPAN_UPLOAD,    /* enqueuing a batch's copy to the device */
    LEAT__SPAN_KERNEL,    /* enqueuing its transform there */
    LEAT__SPAN_WAIT, /* forward has no batch ready; it may help meanwhile */
    LEAT__SPANS
} leat__span;

/* Called from any thread; a thread's spans are nested. */
typedef struct leat__trace_ops {
    void (*begin)(leat__span span);
    void (*end)(void); /* the span that the thread began last */
    void (*name_thread)(const char *name); /* the calling one */
} leat__trace_ops;

/* NULL: there is none. */
extern const leat__trace_ops *const leat__tracer;

static inline void leat__trace_begin(leat__span span)
{
    if (leat__tracer)
        leat__tracer->begin(span);
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
