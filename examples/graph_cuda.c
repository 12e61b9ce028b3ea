/*
 * graph_cuda: the net's step as a CUDA graph, fed by the data layer. With
 * LEAT_TOP_COPY the tops keep their addresses, so what was captured once reads
 * every later batch. forward itself is never captured: it stays outside.
 */
#include "gpu_feed.h"
#include "softmax.h"

#include <stdio.h>

#define STEPS 400
#define RATE 0.05f

/* The step on these addresses; the stream computes nothing while it is taken.
 */
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

static int train(gpu_feed *feed, const softmax *net, cudaStream_t stream,
                 cudaGraphExec_t *step)
{
    softmax_sums sums;
    const float *captured = NULL;
    int rc = GPU_FEED_DONE;
    for (int i = 0; i < STEPS && !rc; i++) {
        const float *images;
        const float *labels;
        rc = gpu_feed_next(feed, &images, &labels, stream);
        if (!rc && i == 0) {
            captured = images;
            rc = capture(step, feed, net, images, labels, stream);
        }
        if (!rc && images != captured) {
            fprintf(stderr, "the top has moved\n");
            rc = GPU_FEED_FAILED;
        }
        if (!rc)
            rc = gpu_feed_check(cudaGraphLaunch(*step, stream));
    }
    if (!rc)
        rc = gpu_feed_check(softmax_read(net, &sums, stream));
    if (rc)
        return rc;
    float n = (float)STEPS * (float)feed->images;
    printf("%d launches of one graph: loss %.4f, %.1f %% right\n", STEPS,
           sums.loss / n, 100 * sums.correct / n);
    return GPU_FEED_DONE;
}

int main(int argc, char **argv)
{
    gpu_feed feed = {0};
    softmax net = {0};
    cudaStream_t stream = NULL;
    cudaGraphExec_t step = NULL;
    const char *file = argc > 1 ? argv[1] : "train_test.prototxt";
    int rc = gpu_feed_open(&feed, file, LEAT_TRAIN, LEAT_TOP_COPY);
    if (!rc)
        rc = gpu_feed_check(
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!rc)
        rc = gpu_feed_check(softmax_init(&net, feed.images, feed.pixels));
    if (!rc)
        rc = train(&feed, &net, stream, &step);
    gpu_feed_close(&feed);
    if (step)
        (void)cudaGraphExecDestroy(step);
    softmax_finish(&net);
    if (stream)
        (void)cudaStreamDestroy(stream);
    return rc;
}
