/*
 * Graphs of the double: what a capture takes from one stream, in its order, and
 * what each launch enqueues again. A capture of several streams, by events, is
 * not played: it is an error.
 */
#include "cuda_double/cuda_double_state.h"

#include <stdlib.h>
#include <string.h>

/* The operations of a stream, in order. */
struct CUgraph_st {
    double_operation *first;
    double_operation **last;
    double_device *device;
    int is_invalid; /* the capture was */
};

/* What is launched: a copy of the graph, which may go. */
struct CUgraphExec_st {
    struct CUgraph_st graph;
    struct CUstream_st *on; /* the latest launch; NULL: none */
    int64_t ticket;         /* and its last operation */
};

/* A copy, for a list of its own. */
static double_operation *copy_of(const double_operation *one)
{
    double_operation *copy = malloc(sizeof(*copy));
    if (!copy)
        abort();
    *copy = *one;
    copy->next = NULL;
    if (!one->argument)
        return copy;
    copy->argument = malloc(one->argument_bytes + 1);
    if (!copy->argument)
        abort();
    memcpy(copy->argument, one->argument, one->argument_bytes);
    return copy;
}

static void append(struct CUgraph_st *graph, double_operation *one)
{
    *graph->last = one;
    graph->last = &one->next;
}

static void clear(struct CUgraph_st *graph)
{
    while (graph->first) {
        double_operation *one = graph->first;
        graph->first = one->next;
        free(one->argument);
        free(one);
    }
}

int double_capture_take(struct CUstream_st *stream, const double_operation *one)
{
    struct CUgraph_st *graph =
        atomic_load_explicit(&stream->captured, memory_order_relaxed);
    if (!graph)
        return 0;
    double_operation *taken = malloc(sizeof(*taken));
    if (!taken)
        abort();
    *taken = *one;
    taken->next = NULL;
    append(graph, taken);
    return 1;
}

int double_capture_spoil(struct CUstream_st *stream)
{
    struct CUgraph_st *graph =
        atomic_load_explicit(&stream->captured, memory_order_relaxed);
    if (graph)
        graph->is_invalid = 1;
    return graph != NULL;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.stream = stream}, 0);
    if (!error && (!stream || stream == cudaStreamLegacy))
        error = cudaErrorStreamCaptureUnsupported;
    if (!error && atomic_load_explicit(&stream->captured, memory_order_relaxed))
        error = cudaErrorIllegalState;
    if (error)
        return double_leave(error);
    struct CUgraph_st *graph = calloc(1, sizeof(*graph));
    if (!graph)
        abort();
    graph->last = &graph->first;
    graph->device = stream->device;
    stream->capture_mode = mode;
    atomic_store_explicit(&stream->captured, graph, memory_order_relaxed);
    double_note_capture(stream, mode, 1);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.stream = stream}, 0);
    struct CUgraph_st *graph =
        atomic_exchange_explicit(&stream->captured, NULL, memory_order_relaxed);
    *out = NULL;
    if (!graph)
        return double_leave(error ? error : cudaErrorIllegalState);
    double_note_capture(stream, stream->capture_mode, -1);
    if (!error && graph->is_invalid)
        error = cudaErrorStreamCaptureInvalidated;
    if (error)
        (void)cudaGraphDestroy(graph);
    else
        *out = graph;
    return double_leave(error);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    clear(graph);
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out,
                                          cudaGraph_t graph,
                                          unsigned long long flags)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.flags = (unsigned int)flags}, 0);
    if (error)
        return double_leave(error);
    struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
    if (!exec)
        abort();
    exec->graph.last = &exec->graph.first;
    exec->graph.device = graph->device;
    for (double_operation *one = graph->first; one; one = one->next)
        append(&exec->graph, copy_of(one));
    *out = exec;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    clear(&exec->graph);
    free(exec);
    return cudaSuccess;
}

/* Launches of one graph do not overlap, whatever their streams. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.stream = stream}, 0);
    struct CUstream_st *self = error ? NULL : double_stream_of(stream);
    if (!error && self->device != exec->graph.device)
        error = cudaErrorInvalidValue;
    if (!error && double_capture_spoil(self))
        error = cudaErrorStreamCaptureUnsupported;
    if (!error && exec->on && exec->on != self)
        error =
            double_enqueue(self, (double_operation){.kind = DOUBLE_WAIT,
                                                    .other = exec->on,
                                                    .ticket = exec->ticket});
    for (double_operation *one = exec->graph.first; one && !error;
         one = one->next) {
        double_operation *copy = copy_of(one);
        error = double_enqueue(self, *copy);
        free(copy);
    }
    if (error)
        return double_leave(error);
    exec->on = self;
    exec->ticket = double_enqueued(self);
    return cudaSuccess;
}
