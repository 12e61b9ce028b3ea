/*
 * graph_cuda: the net's step as CUDA graphs, fed by the data layer without a
 * copy. The layer delivers into a few slots by turns, whose addresses stay, so
 * the step is captured once for each slot. forward itself is never captured: on
 * the stream, what it enqueues comes before the launch and after it.
 *
 * With LEAT_TOP_COPY all batches have one address, and one graph does, for a
 * copy on the device with every batch.
 */
#include "gpu_feed.h"
#include "softmax.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS 400
#define RATE 0.05f

/* The step on these addresses; nothing is computed while it is captured. */
static int capture(cudaGraphExec_t *out, const gpu_feed *feed,
                   const softmax *net, const float *images, const float *labels,
                   cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    /* Of this thread alone: leat's threads go on. */
    cudaError_t error =
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error)
        return gpu_feed_check(error);
    error = softmax_forward(net, images, labels, feed->images, stream);
    if (!error)
        error = softmax_update(net, images, feed->images, RATE, stream);
    cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (!error)
        error = ended;
    if (!error)
        error = cudaGraphInstantiateWithFlags(out, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return gpu_feed_check(error);
}

/* One graph for each slot, captured when the first batch comes in it. */
static int train(gpu_feed *feed, const softmax *net, cudaStream_t stream,
                 cudaGraphExec_t steps[], int *captures)
{
    for (int i = 0; i < STEPS; i++) {
        const float *images;
        const float *labels;
        if (gpu_feed_next(feed, &images, &labels, stream))
            return GPU_FEED_FAILED;
        int slot = leat_data_layer_batch(feed->layer)->slot;
        if (!steps[slot]) {
            if (capture(&steps[slot], feed, net, images, labels, stream))
                return GPU_FEED_FAILED;
            ++*captures;
        }
        if (gpu_feed_check(cudaGraphLaunch(steps[slot], stream)))
            return GPU_FEED_FAILED;
    }
    return GPU_FEED_DONE;
}

static int run(gpu_feed *feed, const softmax *net, cudaStream_t stream)
{
    softmax_sums sums;
    int captures = 0;
    int slots = leat_data_layer_slots(feed->layer);
    cudaGraphExec_t *steps = calloc((size_t)slots, sizeof(*steps));
    if (!steps)
        return gpu_feed_check(cudaErrorMemoryAllocation);
    int rc = train(feed, net, stream, steps, &captures);
    if (!rc)
        rc = gpu_feed_check(softmax_read(net, &sums, stream));
    for (int i = 0; i < slots; i++)
        if (steps[i])
            (void)cudaGraphExecDestroy(steps[i]);
    free(steps);
    if (rc)
        return rc;
    float n = (float)STEPS * (float)feed->images;
    printf("%d launches of %d graphs: loss %.4f, %.1f %% right\n", STEPS,
           captures, sums.loss / n, 100 * sums.correct / n);
    return GPU_FEED_DONE;
}

int main(int argc, char **argv)
{
    gpu_feed feed = {0};
    softmax net = {0};
    cudaStream_t stream = NULL;
    const char *file = argc > 1 ? argv[1] : "train_test.prototxt";
    int rc = gpu_feed_open(&feed, file, LEAT_TRAIN, LEAT_TOP_LEND);
    if (!rc)
        rc = gpu_feed_check(
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!rc)
        rc = gpu_feed_check(softmax_init(&net, feed.images, feed.pixels));
    if (!rc)
        rc = run(&feed, &net, stream);
    gpu_feed_close(&feed);
    softmax_finish(&net);
    if (stream)
        (void)cudaStreamDestroy(stream);
    return rc;
}
