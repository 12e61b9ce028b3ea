/*
 * train_cuda: a training loop on a GPU: forward, launch, forward, launch. The
 * host waits for nothing but data, and for the sums at the end.
 */
#include "gpu_feed.h"
#include "softmax.h"

#include <stdio.h>

#define STEPS 400
#define SHOWN 100 /* steps from line to line */
#define RATE 0.05f

/*
 * The next batch is copied while this one is computed. forward gives the
 * previous batch back after what was launched on the stream until now.
 */
static int train(gpu_feed *feed, const softmax *net, cudaStream_t stream)
{
    for (int step = 0; step < STEPS; step++) {
        const float *images;
        const float *labels;
        softmax_sums sums;
        if (gpu_feed_next(feed, &images, &labels, stream) ||
            gpu_feed_check(
                softmax_forward(net, images, labels, feed->images, stream)) ||
            gpu_feed_check(
                softmax_update(net, images, feed->images, RATE, stream)))
            return GPU_FEED_FAILED;
        if ((step + 1) % SHOWN)
            continue;
        if (gpu_feed_check(softmax_read(net, &sums, stream)))
            return GPU_FEED_FAILED;
        float n = (float)SHOWN * (float)feed->images;
        printf("step %d: loss %.4f, %.1f %% right\n", step + 1, sums.loss / n,
               100 * sums.correct / n);
    }
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
        rc = train(&feed, &net, stream);
    gpu_feed_close(&feed);
    softmax_finish(&net);
    if (stream)
        (void)cudaStreamDestroy(stream);
    return rc;
}
