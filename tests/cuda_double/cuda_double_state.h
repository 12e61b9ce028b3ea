/* cuda_double_state.h: what the parts of the double know of each other. */
#ifndef LEAT_TESTS_CUDA_DOUBLE_STATE_H
#define LEAT_TESTS_CUDA_DOUBLE_STATE_H

#include "cuda_double/cuda_double.h"

#include <pthread.h>
#include <stdatomic.h>

/* Addresses of a device, few of which have memory behind them. */
#define DOUBLE_WINDOW ((size_t)8 << 30)
#define DOUBLE_RANGES 4096

/* Of streams; the lowest is 0. */
#define DOUBLE_PRIORITY_HIGHEST (-5)

/* Set in what a device calls a page of host memory, which no host may use. */
#define DOUBLE_MAPPED ((uintptr_t)1 << 62)

typedef struct double_device double_device;
struct CUctx_st;

/* One thing for a stream to do. */
typedef struct double_operation {
    struct double_operation *next;
    enum {
        DOUBLE_WAIT,
        DOUBLE_COPY,
        DOUBLE_SET,
        DOUBLE_KERNEL,
        DOUBLE_HOLD
    } kind;
    struct CUstream_st *other; /* WAIT: for its operation `ticket` */
    int64_t ticket;
    char *to;
    const char *from; /* HOLD: the word that ends it */
    void *staged;     /* a copy of pageable memory, freed after it */
    size_t bytes;
    int value; /* HOLD: of the word when it was enqueued */
    int bus;   /* 0: none, 1: to the device, 2: to the host */
    void (*body)(void *);
    void *argument; /* freed after it */
    size_t argument_bytes;
    int64_t cost;   /* nanoseconds, the bus' left out */
    int64_t issued; /* at which the host had come to it */
} double_operation;

struct CUstream_st {
    double_device *device;
    struct CUctx_st *context;
    pthread_t thread;
    unsigned int flags;
    int is_callers;            /* of the test */
    struct CUstream_st *older; /* made before it */
    atomic_int capturing;
    _Atomic(struct CUgraph_st *)
        captured; /* by a capture that began; or NULL */
    enum cudaStreamCaptureMode capture_mode; /* of that */
    int64_t now; /* the thread's own: modelled nanoseconds */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* protected by lock */
    double_operation *first;
    double_operation **last;
    int64_t *stamps; /* when each operation ended */
    int64_t room;
    int64_t enqueued;
    int64_t issued; /* of the last that was enqueued */
    int64_t done;
    int64_t wanted;
    int64_t awaited; /* the least that a waiter sleeps for; INT64_MAX: none */
    int held;
    int ending;
    int is_gone; /* destroyed, or its context is */
};

struct CUevent_st {
    struct CUctx_st *context;
    /* protected by the lock of all events */
    struct CUevent_st *next;
    int is_gone; /* with its context */
    unsigned int flags;
    pthread_mutex_t lock;
    /* protected by lock */
    struct CUstream_st *on; /* NULL: never recorded */
    int64_t ticket;
    int64_t issued; /* at which the host recorded it */
};

struct CUctx_st {
    double_device *device;
    struct CUctx_st *root;  /* of a green one the primary one; else itself */
    atomic_int retained;    /* a primary one is there if it is above 0 */
    atomic_int is_runtimes; /* the runtime has made it */
    atomic_int destroyed;   /* as which one, from 1 on; 0: it is not */
    atomic_int revivals;
    atomic_int started; /* its default stream: 2 */
    struct CUstream_st by_default;
};

struct double_device {
    char *window;       /* what is handed out; no access */
    char *bytes;        /* the same memory, for streams */
    atomic_size_t used; /* of the window */
    atomic_size_t live; /* bytes allocated */
    atomic_int_fast64_t bus_free[3];
    atomic_int lost;     /* the error that all calls give; 0: none */
    atomic_int contexts; /* beside the primary one */
    struct CUctx_st primary;
};

extern double_device double_devices[CUDA_DOUBLE_DEVICES];
extern atomic_int double_eager;
extern atomic_int double_launch_blocking;
extern atomic_int double_unloaded;
extern atomic_int double_one_engine;
extern atomic_int_fast64_t double_bus_latency; /* nanoseconds */
extern atomic_int_fast64_t double_call_cost;   /* likewise */
extern atomic_int_fast64_t double_query_cost;  /* likewise */
extern atomic_int_fast64_t double_wake_cost;   /* likewise */
extern atomic_int double_computes;
extern _Atomic double double_bus_bandwidth;    /* bytes a nanosecond; 0: free */
extern _Atomic double double_memory_bandwidth; /* likewise */
extern atomic_int_fast64_t double_streams, double_events, double_busy;
extern atomic_int double_mutant;
extern _Atomic(cudaStream_t) double_next;
extern _Thread_local int64_t double_host_time;
extern atomic_int_fast64_t double_latest; /* of the hosts' times */

enum {
    DOUBLE_ALWAYS = 1,     /* works without a device, and cannot fail */
    DOUBLE_UNSAFE = 2,     /* not while a stream is captured globally */
    DOUBLE_NO_CONTEXT = 4, /* needs none, and makes none */
    DOUBLE_QUERY = 8       /* takes what a query takes of the host's time */
};

/* Logs the call, and says whether it fails before it has begun. */
cudaError_t double_enter(const char *name, const cuda_double_call *call,
                         int traits);
/* The default stream while one that it waits for is captured. */
int double_is_captured_implicitly(cudaStream_t stream);

/* Remembers the error for cudaGetLastError; returns it. */
cudaError_t double_leave(cudaError_t error);

/* The calling thread's device, be it without a context. */
int double_ordinal(void);
/* Makes the device's primary context, and makes it the thread's. */
cudaError_t double_context_set(int ordinal);
/* The same where the thread has none. */
cudaError_t double_context_ensure(void);
/* The calling thread's context, and device; aborts where none can be made. */
struct CUctx_st *double_context(void);
double_device *double_here(void);
/* The device that has the address, or NULL. */
double_device *double_owner(const void *address);

/* Whether the call of that name fails, by double_fault; or its device or
   context ends just before it. */
int double_is_faulty(const char *name);
cudaError_t double_fault(void);
/* Whether the copy or kernel about to run is the one that kills its device. */
void double_maybe_lose(double_device *device);

/* Whether memory can be pinned by registration; and how much is pinned. */
int double_registers(void);
size_t double_pinned_bytes(void);

/* Where the device finds what the host has at that address. */
char *double_dma_address(const char *host);

/* Modelled nanoseconds to move bytes within a device. */
int64_t double_memory_time(size_t bytes);

/* Whether the handle names a stream, and not a context's or thread's own. */
int double_is_stream(cudaStream_t handle);
/* The stream of the handle; 0 and the like: that of the current context. */
struct CUstream_st *double_stream_of(cudaStream_t handle);
/* Starts its thread; aborts the test where there is none. */
void double_stream_start(struct CUstream_st *stream, double_device *device);
/* Hands it an operation, which is copied. */
cudaError_t double_enqueue(struct CUstream_st *stream, double_operation what);
/* How many operations the stream has had so far. */
int64_t double_enqueued(struct CUstream_st *stream);
/* What a context that is destroyed takes with it. Its streams run to their end,
   but do nothing any more. */
void double_end_streams(struct CUctx_st *context);
void double_end_events(struct CUctx_st *context);
void double_end_memory(struct CUctx_st *context);
/* After something was made: it goes with a context destroyed meanwhile. */
cudaError_t double_context_keep(void);
/* The calling thread knows from now on which contexts are destroyed. */
void double_know_destroyed(void);
/* Aborts a thread that knows, and uses what the context took with it. */
void double_check_alive(const struct CUctx_st *context, const int *is_gone);

/* Ends the program where a destroyed stream is used, as the driver may. */
void double_check_undestroyed(cudaStream_t stream, const char *name);
/* Whether a capture of the stream has taken the operation. */
int double_capture_take(struct CUstream_st *stream,
                        const double_operation *one);
/* Makes a capture of the stream invalid; whether there is one. */
int double_capture_spoil(struct CUstream_st *stream);
/* A capture that the calling thread begins (1) or ends (-1). */
void double_note_capture(struct CUstream_st *stream,
                         enum cudaStreamCaptureMode mode, int change);
/* Sleeps until all that was enqueued so far is done. */
cudaError_t double_drain(struct CUstream_st *stream);

#endif
