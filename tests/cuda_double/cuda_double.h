/* cuda_double.h: a CUDA runtime for tests, and what only tests may ask of it.
 */
#ifndef LEAT_TESTS_CUDA_DOUBLE_H
#define LEAT_TESTS_CUDA_DOUBLE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>

/*
 * Linked instead of libcudart, it runs cuda/device_cuda.c itself on a machine
 * with neither GPU nor toolkit.
 *
 * A device's addresses are mapped without access: a host that reads or writes
 * one faults. The bytes lie under a second mapping of the same memory, which
 * streams alone use. New memory, on host and device, is garbage; freed memory
 * faults, and addresses are not used again.
 *
 * A stream is a thread that runs nothing before somebody waits for it, and then
 * no further than is waited for, so that whatever is not ordered by an event
 * shows. With cuda_double_set_eager streams run as soon as they can.
 *
 * A capture takes what one stream is given into a graph, and a launch enqueues
 * it again; captures of several streams are errors.
 *
 * Time is modelled, not measured: every stream has a clock that its operations
 * move. A copy between host and device holds the device's bus, of which there
 * is one for each direction, for its latency and bytes; a kernel costs what the
 * test says; host code costs nothing unless it waits, or calls have a latency.
 * Each thread has a clock, too: one that waits for an event, or makes a stream
 * wait for it, is not earlier than the thread that recorded it. So figures of
 * overlap are the same on any machine.
 *
 * No lock is shared by two streams, and all else is relaxed atomics: the thread
 * sanitizer sees what streams and events do not order.
 */

#define CUDA_DOUBLE_DEVICES 4

/*
 * Every device as new, all settings at their defaults: 2 devices, a driver of
 * the runtime's own version, 1 GiB each, no cache, a bus that costs nothing.
 * Streams, events and memory must have been let go.
 */
void cuda_double_reset(void);

/*
 * As after main, where exit handlers that were registered before the runtime's
 * run: nothing runs on any device any more, and all calls give
 * cudaErrorCudartUnloading. For good.
 */
void cuda_double_unload(void);

/* What the machine is like. */
void cuda_double_set_devices(int n);
void cuda_double_set_driver(int version); /* 12040: CUDA 12.4; 0: none */
int cuda_double_driver(void);
/*
 * 1: another process has the device, whose compute mode is exclusive: no
 * context can be made there.
 */
void cuda_double_set_taken(int device, int taken);
void cuda_double_set_memory(size_t bytes);
void cuda_double_set_l2(size_t bytes); /* what a device says; it has none */
/* Host memory that can be pinned; 0: none. */
void cuda_double_set_pinnable(size_t bytes);
void cuda_double_set_registers(int registers); /* 0: no cudaHostRegister */
void cuda_double_set_bus(double gb_per_s, double latency_us); /* 0: no cost */
/* The host's time for each call that hands a stream something to do. */
void cuda_double_set_call(double us);
/* The same for others about streams and events: records, queries, waits. */
void cuda_double_set_query(double us);
/* How long after the end of what it waits for a sleeping thread goes on. */
void cuda_double_set_wake(double us);
/*
 * What a device does with its own memory, bytes read plus written: copies
 * within it, and leat's kernels. 0: no cost.
 */
void cuda_double_set_memory_bus(double gb_per_s);
/* 0: leat's kernels take their time, and compute nothing. */
void cuda_double_set_computes(int computes);
/* 1: a device computes or is copied to, never both at a time. */
void cuda_double_set_one_engine(int one_engine);
void cuda_double_set_eager(int eager);
/* 1: a copy from pageable memory is over when its call returns. */
void cuda_double_set_blocking(int blocking);
/* 1: a kernel that holds a stream is over when its call returns. */
void cuda_double_set_launch_blocking(int value);

/*
 * Call number `n` from now on, of those that can fail, counted from 0, fails
 * with `error`; only that one. Below 0: none.
 */
void cuda_double_fail_at(int64_t n, cudaError_t error);
/* The same, of the calls of that name, which is borrowed. */
void cuda_double_fail_named(const char *name, int64_t n, cudaError_t error);
/* From now on all that concerns the device gives `error`. */
void cuda_double_lose(int device, cudaError_t error);
/*
 * Just before that call the device that is current there is lost, or its
 * primary context is destroyed by the caller.
 */
void cuda_double_lose_at_call(int64_t n, cudaError_t error);
void cuda_double_destroy_at_call(int64_t n);
/* The call that has failed so, or NULL. */
const char *cuda_double_failed(void);

/*
 * Copy or kernel number `n` from now on kills its device when it runs: from
 * then on all that concerns the device gives `error`. Below 0: none.
 */
void cuda_double_lose_at(int64_t n, cudaError_t error);

/*
 * A stream of the test's own: calls that concern it are the caller's in
 * leat's words, all others the layer's.
 */
cudaStream_t cuda_double_stream(void);

/*
 * Rules of the hand-off that can be broken, as if leat did not keep them: the
 * double does not do, or does elsewhere, what it is asked for.
 */
typedef enum cuda_double_mutant {
    CUDA_DOUBLE_FAITHFUL,
    CUDA_DOUBLE_CALLER_DOES_NOT_AWAIT_READY,
    CUDA_DOUBLE_UPLOAD_DOES_NOT_AWAIT_CONSUMED,
    CUDA_DOUBLE_REFILL_DOES_NOT_AWAIT_READY,
    CUDA_DOUBLE_READY_BEFORE_COPY,
    CUDA_DOUBLE_CONSUMED_IS_NOT_RECORDED,
    CUDA_DOUBLE_CONSUMED_ON_NEXT_STREAM,
    CUDA_DOUBLE_DESTROY_DOES_NOT_WAIT,
    CUDA_DOUBLE_TRANSFORM_DOES_NOT_AWAIT_COPIED,
    CUDA_DOUBLE_TRANSFORM_ON_ANOTHER_STREAM,
    CUDA_DOUBLE_MUTANTS
} cuda_double_mutant;

void cuda_double_set_mutant(cuda_double_mutant mutant);
/* For CONSUMED_ON_NEXT_STREAM: what the next forward is given. */
void cuda_double_set_next(cudaStream_t stream);

/*
 * A context such as the driver's API makes, current nowhere; a green one shares
 * the primary one's memory and events. Those that there are on the device.
 */
CUcontext cuda_double_context(int device);
CUcontext cuda_double_green_context(int device);
int cuda_double_contexts(int device);
/* As a caller's cudaDeviceReset: what needs the primary context fails. */
void cuda_double_destroy_primary(int device);
/* And what the program calls next: it is another one, under the old handle. */
void cuda_double_revive_primary(int device);

/* Marks a stream as being captured, in global mode, or no more. */
void cuda_double_set_capturing(cudaStream_t stream, int capturing);
/* Calls that a capture of the test's streams has swallowed so far. */
int cuda_double_captured(void);

/* Holds a stream back, whoever waits for it, until it is let go. */
void cuda_double_hold(cudaStream_t stream);
void cuda_double_let_go(cudaStream_t stream);

/* A call of the runtime. */
typedef struct cuda_double_call {
    const char *name; /* "cudaMemcpyAsync" */
    int thread;       /* from 0, in the order of their first calls */
    int device;       /* current at the call */
    cudaStream_t stream;
    cudaEvent_t event;
    size_t bytes;
    unsigned int flags; /* or the kind of a copy */
    int priority;       /* of the stream that is made */
} cuda_double_call;

/*
 * The calls since the latest cuda_double_forget, and how many; to be asked for
 * when no other thread calls.
 */
const cuda_double_call *cuda_double_calls(int *n);
void cuda_double_forget(void);
/* The calling thread, as the log has it. */
int cuda_double_thread(void);

/*
 * What is alive: created or allocated, and not yet let go. Streams of
 * cuda_double_stream do not count.
 */
typedef struct cuda_double_living {
    int64_t streams;
    int64_t events;
    int64_t device_bytes;
    int64_t pinned_bytes;
    int64_t destroyed_busy; /* streams let go with work left, so far */
} cuda_double_living;

cuda_double_living cuda_double_count(void);

/*
 * Enqueues a kernel that takes `us` microseconds of the stream's time and calls
 * `body(argument)` on the stream's thread; `body` may be NULL. Device memory is
 * reached through cuda_double_bytes.
 */
cudaError_t cuda_double_launch(void (*body)(void *), void *argument,
                               size_t bytes, double us, cudaStream_t stream);

/*
 * Enqueues a kernel that ends when the word, as the device calls it, is not 0,
 * and after `seconds` of real time. In modelled time a release comes after all
 * that the stream has been handed by then.
 */
cudaError_t cuda_double_launch_hold(const uint32_t *release, double seconds,
                                    cudaStream_t stream);

/* Where the bytes are of a device's address, or of its name for host memory. */
void *cuda_double_bytes(const void *address);

/* The latest modelled time in nanoseconds that anybody on the host waited for.
 */
int64_t cuda_double_now(void);

/* The calling thread's modelled time in microseconds. */
double cuda_double_host_time(void);

/* The modelled time in microseconds at which the stream has run so far. */
double cuda_double_time(cudaStream_t stream);

#endif
