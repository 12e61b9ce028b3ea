/*
 * DESIGN. A stream is a list of operations with numbers, and a thread that runs
 * them in order as far as `wanted`, or at once where streams are eager. A
 * recorded event is a stream and a number. Waiting, by the host or by another
 * stream, raises `wanted` and sleeps until `done` has come that far; it learns
 * the modelled time at which that was. A stream's lock is held for these
 * numbers alone, never while an operation runs, and never together with
 * another's. Streams are kept until the process ends, because events may still
 * name them.
 */
#include "cuda_double/cuda_double_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* All that were created; a stream that is kept on purpose is no leak. */
static _Atomic(struct CUstream_st *) newest;

static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUevent_st *events; /* protected by events_lock */

static void keep(struct CUstream_st *stream)
{
    stream->older = atomic_load_explicit(&newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&newest, &stream->older,
                                                  stream, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int is_mutant(cuda_double_mutant mutant)
{
    return atomic_load_explicit(&double_mutant, memory_order_relaxed) ==
           (int)mutant;
}

static int may_run(const struct CUstream_st *self)
{
    if (self->done == self->enqueued || atomic_load(&double_unloaded))
        return 0;
    return self->ending || (!self->held && (self->done < self->wanted ||
                                            atomic_load(&double_eager)));
}

/* Sleeps until operation `ticket` is done; when that was, in modelled time. */
static int64_t wait_for(struct CUstream_st *self, int64_t ticket)
{
    pthread_mutex_lock(&self->lock);
    self->wanted = later(self->wanted, ticket);
    pthread_cond_broadcast(&self->changed);
    while (self->done < ticket && !atomic_load(&double_unloaded)) {
        if (ticket < self->awaited)
            self->awaited = ticket;
        pthread_cond_wait(&self->changed, &self->lock);
    }
    int64_t stamp =
        ticket > 0 && self->done >= ticket ? self->stamps[ticket - 1] : 0;
    pthread_mutex_unlock(&self->lock);
    return stamp;
}

static int64_t bus_time(size_t bytes)
{
    double bandwidth = atomic_load(&double_bus_bandwidth);
    int64_t cost = bandwidth > 0 ? (int64_t)((double)bytes / bandwidth) : 0;
    return cost + atomic_load(&double_bus_latency);
}

/* Takes the bus from `begin` on, or when it is free; until when. */
static int64_t take_bus(double_device *device, int bus, int64_t begin,
                        int64_t cost)
{
    int_fast64_t free =
        atomic_load_explicit(&device->bus_free[bus], memory_order_relaxed);
    int64_t end;
    do
        end = later(free, begin) + cost;
    while (!atomic_compare_exchange_weak_explicit(&device->bus_free[bus], &free,
                                                  end, memory_order_relaxed,
                                                  memory_order_relaxed));
    return end;
}

int64_t double_memory_time(size_t bytes)
{
    double bandwidth = atomic_load(&double_memory_bandwidth);
    return bandwidth > 0 ? (int64_t)((double)bytes / bandwidth) : 0;
}

/* Whatever a test makes of CLOCK_MONOTONIC. */
static int64_t real_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The modelled time at which the word, or the time that it may take, ends it.
 */
static int64_t end_of_hold(struct CUstream_st *self,
                           const double_operation *one, int64_t begin)
{
    const uint32_t *word = cuda_double_bytes(one->from);
    if (one->value)
        return begin;
    int64_t deadline = real_time() + one->cost;
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
        if (real_time() >= deadline)
            return begin + one->cost;
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    pthread_mutex_lock(&self->lock);
    int64_t issued = self->issued;
    pthread_mutex_unlock(&self->lock);
    return later(begin, issued);
}

static void execute(struct CUstream_st *self, const double_operation *one)
{
    double_device *device = self->device;
    int64_t begin = later(self->now, one->issued);
    if (one->kind == DOUBLE_WAIT) {
        self->now = later(begin, wait_for(one->other, one->ticket));
        return;
    }
    double_maybe_lose(device);
    if (one->kind == DOUBLE_HOLD) {
        self->now = end_of_hold(self, one, begin);
        return;
    }
    if (one->bus)
        begin = take_bus(device, one->bus, begin, bus_time(one->bytes));
    else if (one->kind == DOUBLE_KERNEL && atomic_load(&double_one_engine))
        begin = take_bus(device, 1, begin, one->cost) - one->cost;
    else if (one->kind == DOUBLE_COPY)
        begin += double_memory_time(2 * one->bytes);
    self->now = begin + one->cost;
    if (atomic_load(&device->lost) || atomic_load(&self->context->destroyed))
        return;
    if (one->kind == DOUBLE_COPY)
        memcpy(one->bus == 2 ? double_dma_address(one->to) : one->to,
               one->bus == 1 ? double_dma_address(one->from) : one->from,
               one->bytes);
    else if (one->kind == DOUBLE_SET)
        memset(one->to, one->value, one->bytes);
    else if (one->body)
        one->body(one->argument);
}

static void *run(void *argument)
{
    struct CUstream_st *self = argument;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (!may_run(self) && !self->ending)
            pthread_cond_wait(&self->changed, &self->lock);
        double_operation *one = self->first;
        if (!one)
            break;
        self->first = one->next;
        if (!self->first)
            self->last = &self->first;
        pthread_mutex_unlock(&self->lock);
        execute(self, one);
        free(one->staged);
        free(one->argument);
        free(one);
        pthread_mutex_lock(&self->lock);
        self->stamps[self->done++] = self->now;
        if (self->done < self->awaited)
            continue;
        self->awaited = INT64_MAX;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

void double_stream_start(struct CUstream_st *stream, double_device *device)
{
    stream->device = device;
    stream->last = &stream->first;
    stream->awaited = INT64_MAX;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, run, stream))
        abort();
}

static struct CUstream_st *make_stream(unsigned int flags)
{
    struct CUstream_st *created = calloc(1, sizeof(*created));
    if (!created)
        abort();
    created->flags = flags;
    created->context = double_context();
    double_stream_start(created, double_here());
    keep(created);
    return created;
}

/* The calling thread's own default stream of its context. */
static struct CUstream_st *of_thread(void)
{
    static _Thread_local struct CUstream_st *made[8];
    int i = 0;
    while (made[i] && made[i]->context != double_context())
        if (++i == 8)
            abort();
    if (!made[i]) {
        made[i] = make_stream(0);
        made[i]->is_callers = 1;
    }
    return made[i];
}

struct CUstream_st *double_stream_of(cudaStream_t handle)
{
    if (handle == cudaStreamPerThread)
        return of_thread();
    return double_is_stream(handle) ? handle : &double_context()->by_default;
}

int double_is_stream(cudaStream_t handle)
{
    return handle && handle != cudaStreamLegacy &&
           handle != cudaStreamPerThread;
}

cudaError_t double_enqueue(struct CUstream_st *stream, double_operation what)
{
    if (double_capture_take(stream, &what))
        return cudaSuccess;
    double_operation *one = malloc(sizeof(*one));
    if (!one)
        abort();
    *one = what;
    one->next = NULL;
    double_host_time += atomic_load(&double_call_cost);
    one->issued = double_host_time;
    pthread_mutex_lock(&stream->lock);
    stream->issued = one->issued;
    if (stream->enqueued == stream->room) {
        stream->room = stream->room ? 2 * stream->room : 64;
        stream->stamps = realloc(stream->stamps, (size_t)stream->room *
                                                     sizeof(*stream->stamps));
        if (!stream->stamps)
            abort();
    }
    *stream->last = one;
    stream->last = &one->next;
    stream->enqueued++;
    if (may_run(stream))
        pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return cudaSuccess;
}

int64_t double_enqueued(struct CUstream_st *stream)
{
    pthread_mutex_lock(&stream->lock);
    int64_t n = stream->enqueued;
    pthread_mutex_unlock(&stream->lock);
    return n;
}

void cuda_double_unload(void)
{
    atomic_store(&double_unloaded, 1);
    for (struct CUstream_st *each = atomic_load(&newest); each;
         each = each->older) {
        pthread_mutex_lock(&each->lock);
        pthread_cond_broadcast(&each->changed);
        pthread_mutex_unlock(&each->lock);
    }
}

static cudaError_t host_wait(struct CUstream_st *stream, int64_t ticket)
{
    int64_t end = wait_for(stream, ticket);
    if (end > double_host_time)
        double_host_time = end + atomic_load(&double_wake_cost);
    int_fast64_t latest =
        atomic_load_explicit(&double_latest, memory_order_relaxed);
    while (latest < double_host_time &&
           !atomic_compare_exchange_weak_explicit(
               &double_latest, &latest, double_host_time, memory_order_relaxed,
               memory_order_relaxed))
        continue;
    return atomic_load(&double_unloaded)
               ? cudaErrorCudartUnloading
               : (cudaError_t)atomic_load(&stream->device->lost);
}

/* Whether the stream was counted up to now, as those of the test are not. */
static int stop_counting(struct CUstream_st *stream)
{
    pthread_mutex_lock(&stream->lock);
    int counts = !stream->is_gone && !stream->is_callers;
    stream->is_gone = 1;
    pthread_mutex_unlock(&stream->lock);
    return counts;
}

void double_end_streams(struct CUctx_st *context)
{
    struct CUstream_st *stream =
        atomic_load_explicit(&newest, memory_order_acquire);
    for (; stream; stream = stream->older) {
        if (stream->context != context)
            continue;
        (void)wait_for(stream, double_enqueued(stream));
        atomic_fetch_sub_explicit(&double_streams, stop_counting(stream),
                                  memory_order_relaxed);
    }
}

cudaError_t double_drain(struct CUstream_st *stream)
{
    return host_wait(stream, double_enqueued(stream));
}

static cudaError_t create_stream(const char *name, cudaStream_t *stream,
                                 unsigned int flags, int priority)
{
    cudaError_t error = double_enter(
        name, &(cuda_double_call){.flags = flags, .priority = priority},
        DOUBLE_UNSAFE);
    if (!error && priority < DOUBLE_PRIORITY_HIGHEST)
        error = cudaErrorInvalidValue;
    if (error)
        return double_leave(error);
    atomic_fetch_add_explicit(&double_streams, 1, memory_order_relaxed);
    cudaStream_t created = make_stream(flags);
    error = double_context_keep();
    if (!error)
        *stream = created;
    return error;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return create_stream(__func__, stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                         unsigned int flags, int priority)
{
    return create_stream(__func__, stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t error = double_enter(__func__, &(cuda_double_call){0}, 0);
    if (!error && least)
        *least = 0;
    if (!error && greatest)
        *greatest = DOUBLE_PRIORITY_HIGHEST;
    return double_leave(error);
}

cudaStream_t cuda_double_stream(void)
{
    cudaStream_t stream = NULL;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) || !stream)
        abort();
    stream->is_callers = 1;
    atomic_fetch_sub_explicit(&double_streams, 1, memory_order_relaxed);
    return stream;
}

void double_check_undestroyed(cudaStream_t stream, const char *name)
{
    pthread_mutex_lock(&stream->lock);
    int is_destroyed = stream->ending;
    pthread_mutex_unlock(&stream->lock);
    if (!is_destroyed)
        return;
    fprintf(stderr, "%s: the stream was destroyed before\n", name);
    abort();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.stream = stream}, 0);
    int counts = stop_counting(stream);
    pthread_mutex_lock(&stream->lock);
    atomic_fetch_add_explicit(&double_busy,
                              counts && stream->done < stream->enqueued,
                              memory_order_relaxed);
    stream->ending = 1;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    atomic_fetch_sub_explicit(&double_streams, counts, memory_order_relaxed);
    return double_leave(error);
}

/* What the call gives after the wait: an error does not make it shorter. */
static cudaError_t waited(cudaError_t error, cudaError_t from_stream)
{
    return double_leave(error ? error : from_stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.stream = stream},
                     DOUBLE_UNSAFE | DOUBLE_QUERY);
    if (error == cudaErrorStreamCaptureUnsupported)
        return double_leave(error);
    struct CUstream_st *self = double_stream_of(stream);
    if (double_capture_spoil(self))
        return double_leave(cudaErrorStreamCaptureUnsupported);
    if (!self->is_callers && is_mutant(CUDA_DOUBLE_DESTROY_DOES_NOT_WAIT))
        return double_leave(error);
    return waited(error, double_drain(self));
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_UNSAFE);
    if (error)
        return double_leave(error);
    struct CUctx_st *context = double_context();
    struct CUstream_st *stream =
        atomic_load_explicit(&newest, memory_order_acquire);
    error = double_drain(&context->by_default);
    for (; stream && !error; stream = stream->older)
        if (stream->context == context)
            error = double_drain(stream);
    return double_leave(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.stream = stream}, DOUBLE_QUERY);
    if (!error && double_is_captured_implicitly(stream))
        error = cudaErrorStreamCaptureImplicit;
    if (!error)
        *status = atomic_load(&double_stream_of(stream)->capturing)
                      ? cudaStreamCaptureStatusActive
                      : cudaStreamCaptureStatusNone;
    return double_leave(error);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.flags = flags}, 0);
    if (error)
        return double_leave(error);
    struct CUevent_st *created = calloc(1, sizeof(*created));
    if (!created)
        abort();
    created->context = double_context();
    created->flags = flags;
    pthread_mutex_init(&created->lock, NULL);
    atomic_fetch_add_explicit(&double_events, 1, memory_order_relaxed);
    pthread_mutex_lock(&events_lock);
    created->next = events;
    events = created;
    pthread_mutex_unlock(&events_lock);
    error = double_context_keep();
    if (!error)
        *event = created;
    return error;
}

void double_end_events(struct CUctx_st *context)
{
    pthread_mutex_lock(&events_lock);
    for (struct CUevent_st *event = events; event; event = event->next)
        if (event->context == context && !event->is_gone) {
            event->is_gone = 1;
            atomic_fetch_sub_explicit(&double_events, 1, memory_order_relaxed);
        }
    pthread_mutex_unlock(&events_lock);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.event = event}, 0);
    pthread_mutex_lock(&events_lock);
    struct CUevent_st **at = &events;
    while (*at != event)
        at = &(*at)->next;
    *at = event->next;
    atomic_fetch_sub_explicit(&double_events, !event->is_gone,
                              memory_order_relaxed);
    pthread_mutex_unlock(&events_lock);
    pthread_mutex_destroy(&event->lock);
    free(event);
    return double_leave(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.stream = stream, .event = event},
        DOUBLE_QUERY);
    struct CUstream_st *on = error ? NULL : double_stream_of(stream);
    if (!error && on->context->root != event->context->root)
        error = cudaErrorInvalidResourceHandle;
    if (!error && double_capture_spoil(on))
        error = cudaErrorStreamCaptureUnsupported;
    if (error)
        return double_leave(error);
    if (on->is_callers && is_mutant(CUDA_DOUBLE_CONSUMED_IS_NOT_RECORDED))
        return cudaSuccess;
    if (on->is_callers && is_mutant(CUDA_DOUBLE_CONSUMED_ON_NEXT_STREAM))
        on = atomic_load(&double_next);
    int64_t ticket = double_enqueued(on);
    if (!on->is_callers && is_mutant(CUDA_DOUBLE_READY_BEFORE_COPY))
        ticket--;
    pthread_mutex_lock(&event->lock);
    event->on = on;
    event->ticket = ticket;
    event->issued = double_host_time;
    pthread_mutex_unlock(&event->lock);
    return cudaSuccess;
}

/*
 * The event's latest record; NULL where there is none. The thread is told of it
 * by the one that recorded it, and so is not earlier.
 */
static struct CUstream_st *latest(cudaEvent_t event, int64_t *ticket)
{
    pthread_mutex_lock(&event->lock);
    struct CUstream_st *on = event->on;
    *ticket = event->ticket;
    double_host_time = later(double_host_time, event->issued);
    pthread_mutex_unlock(&event->lock);
    return on;
}

/* What is broken where `self` does not wait for `on`. */
static cuda_double_mutant rule_of_wait(const struct CUstream_st *self,
                                       const struct CUstream_st *on)
{
    if (self->is_callers)
        return CUDA_DOUBLE_CALLER_DOES_NOT_AWAIT_READY;
    return on->is_callers ? CUDA_DOUBLE_UPLOAD_DOES_NOT_AWAIT_CONSUMED
                          : CUDA_DOUBLE_TRANSFORM_DOES_NOT_AWAIT_COPIED;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags)
{
    cudaError_t error = double_enter(
        __func__,
        &(cuda_double_call){.stream = stream, .event = event, .flags = flags},
        0);
    if (error)
        return double_leave(error);
    int64_t ticket;
    struct CUstream_st *on = latest(event, &ticket);
    struct CUstream_st *self = double_stream_of(stream);
    if (double_capture_spoil(self))
        return double_leave(cudaErrorStreamCaptureIsolation);
    if (!on || on == self || is_mutant(rule_of_wait(self, on)))
        return cudaSuccess;
    return double_leave(double_enqueue(
        self, (double_operation){
                  .kind = DOUBLE_WAIT, .other = on, .ticket = ticket}));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.event = event},
                     DOUBLE_UNSAFE | DOUBLE_QUERY);
    int64_t ticket;
    struct CUstream_st *on = latest(event, &ticket);
    if (!on || error == cudaErrorStreamCaptureUnsupported ||
        is_mutant(on->is_callers ? CUDA_DOUBLE_DESTROY_DOES_NOT_WAIT
                                 : CUDA_DOUBLE_REFILL_DOES_NOT_AWAIT_READY))
        return double_leave(error);
    return waited(error, host_wait(on, ticket));
}

/* At the thread's time; nothing runs because of it. */
static int is_over(struct CUstream_st *on, int64_t ticket)
{
    pthread_mutex_lock(&on->lock);
    int result = on->done >= ticket &&
                 (ticket == 0 || on->stamps[ticket - 1] <= double_host_time);
    pthread_mutex_unlock(&on->lock);
    return result;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.event = event},
                     DOUBLE_UNSAFE | DOUBLE_QUERY);
    int64_t ticket;
    struct CUstream_st *on = latest(event, &ticket);
    if (!error && on && !is_over(on, ticket) &&
        !is_mutant(CUDA_DOUBLE_UPLOAD_DOES_NOT_AWAIT_CONSUMED))
        error = cudaErrorNotReady;
    return double_leave(error);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.event = end}, 0);
    if (!error && ((start->flags | end->flags) & cudaEventDisableTiming))
        error = cudaErrorInvalidResourceHandle;
    if (error)
        return double_leave(error);
    int64_t ticket[2];
    struct CUstream_st *on[2] = {latest(start, &ticket[0]),
                                 latest(end, &ticket[1])};
    if (!on[0] || !on[1])
        return double_leave(cudaErrorInvalidResourceHandle);
    int64_t nanoseconds =
        wait_for(on[1], ticket[1]) - wait_for(on[0], ticket[0]);
    *milliseconds = (float)((double)nanoseconds * 1e-6);
    return cudaSuccess;
}

cudaError_t cuda_double_launch(void (*body)(void *), void *argument,
                               size_t bytes, double us, cudaStream_t stream)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.stream = stream, .bytes = bytes}, 0);
    if (error)
        return double_leave(error);
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        abort();
    if (bytes)
        memcpy(copy, argument, bytes);
    struct CUstream_st *on = double_stream_of(stream);
    if (!on->is_callers && is_mutant(CUDA_DOUBLE_TRANSFORM_ON_ANOTHER_STREAM))
        on = double_stream_of(NULL);
    return double_leave(
        double_enqueue(on, (double_operation){.kind = DOUBLE_KERNEL,
                                              .body = body,
                                              .argument = copy,
                                              .argument_bytes = bytes,
                                              .cost = (int64_t)(us * 1e3)}));
}

cudaError_t cuda_double_launch_hold(const uint32_t *release, double seconds,
                                    cudaStream_t stream)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.stream = stream}, 0);
    if (error)
        return double_leave(error);
    const uint32_t *word = cuda_double_bytes(release);
    int is_set = __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0;
    struct CUstream_st *on = double_stream_of(stream);
    error = double_enqueue(
        on, (double_operation){.kind = DOUBLE_HOLD,
                               .value = is_set,
                               .from = (const char *)release,
                               .cost = (int64_t)(seconds * 1e9)});
    if (!error && atomic_load(&double_launch_blocking))
        error = double_drain(on);
    return double_leave(error);
}

static void set_held(struct CUstream_st *self, int held)
{
    pthread_mutex_lock(&self->lock);
    self->held = held;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

void cuda_double_hold(cudaStream_t stream)
{
    set_held(double_stream_of(stream), 1);
}

void cuda_double_let_go(cudaStream_t stream)
{
    set_held(double_stream_of(stream), 0);
}

int64_t cuda_double_now(void)
{
    return atomic_load_explicit(&double_latest, memory_order_relaxed);
}

double cuda_double_host_time(void)
{
    return (double)double_host_time * 1e-3;
}

double cuda_double_time(cudaStream_t stream)
{
    struct CUstream_st *self = double_stream_of(stream);
    return (double)wait_for(self, double_enqueued(self)) * 1e-3;
}
