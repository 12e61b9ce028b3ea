/*
 * train_test_cuda: a TRAIN and a TEST layer on one device. Each reads ahead by
 * itself, on a copy stream of its own; the net is tested after every hundred
 * steps.
 */
#include "gpu_feed.h"
#include "softmax.h"

#include <stdio.h>

#define ROUNDS 4
#define TRAIN_STEPS 100
#define TEST_STEPS 10
#define RATE 0.05f

/* So many batches; `rate` 0 leaves the weights as they are. */
static int run(gpu_feed *feed, const softmax *net, int steps, float rate,
               cudaStream_t stream)
{
    softmax_sums sums;
    float n = 0;
    int rc = GPU_FEED_DONE;
    for (int step = 0; step < steps && !rc; step++) {
        const float *images;
        const float *labels;
        rc = gpu_feed_next(feed, &images, &labels, stream);
        if (!rc)
            rc = gpu_feed_check(
                softmax_forward(net, images, labels, feed->valid, stream));
        if (!rc && rate > 0)
            rc = gpu_feed_check(
                softmax_update(net, images, feed->valid, rate, stream));
        n += (float)feed->valid;
    }
    if (!rc)
        rc = gpu_feed_check(softmax_read(net, &sums, stream));
    if (rc)
        return rc;
    printf("%s: loss %.4f, %.1f %% right\n", rate > 0 ? "train" : "test",
           sums.loss / n, 100 * sums.correct / n);
    return GPU_FEED_DONE;
}

static int open_net(softmax *net, const gpu_feed *train, const gpu_feed *test)
{
    if (train->pixels != test->pixels) {
        fprintf(stderr, "the images to train and to test differ in shape\n");
        return GPU_FEED_FAILED;
    }
    int images = train->images > test->images ? train->images : test->images;
    return gpu_feed_check(softmax_init(net, images, train->pixels));
}

int main(int argc, char **argv)
{
    gpu_feed train = {0};
    gpu_feed test = {0};
    softmax net = {0};
    cudaStream_t stream = NULL;
    const char *file = argc > 1 ? argv[1] : "train_test.prototxt";
    int rc = gpu_feed_open(&train, file, LEAT_TRAIN, LEAT_TOP_LEND);
    if (!rc)
        rc = gpu_feed_open(&test, file, LEAT_TEST, LEAT_TOP_LEND);
    if (!rc)
        rc = open_net(&net, &train, &test);
    if (!rc)
        rc = gpu_feed_check(
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < ROUNDS && !rc; round++) {
        rc = run(&train, &net, TRAIN_STEPS, RATE, stream);
        if (!rc)
            rc = run(&test, &net, TEST_STEPS, 0, stream);
    }
    gpu_feed_close(&train);
    gpu_feed_close(&test);
    softmax_finish(&net);
    if (stream)
        (void)cudaStreamDestroy(stream);
    return rc;
}
