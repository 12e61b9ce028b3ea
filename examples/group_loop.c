/*
 * group_loop: the loop of training over several devices that one reader feeds,
 * without the net:
 *
 *     group_loop PIPELINE STEPS TOKEN DEVICE...
 *
 * A thread for each device takes a batch, works on it and meets the others, as
 * those do who add up their gradients. TOKEN is where to go on, or "-"; where
 * the next run should is printed at the end, for any number of devices.
 */
#include <leat.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 8
#define BATCH 4

typedef struct trainer {
    leat_data_layer *layer;
    pthread_barrier_t *meeting;
    int steps;
    double sum; /* of the labels: what stands for the work of a net */
    char error[512];
} trainer;

/* On a GPU this is where kernels are launched, on a stream given to forward. */
static int work(trainer *one)
{
    leat_blob *labels = leat_data_layer_top(one->layer, 1);
    const float *label = labels ? leat_blob_cpu_data(labels) : NULL;
    if (!label)
        return LEAT_EINVAL;
    for (int64_t i = 0; i < leat_blob_count(labels); i++)
        one->sum += label[i];
    return LEAT_OK;
}

/* Who fails goes on meeting the others, who are told by their own forward. */
static void *train(void *argument)
{
    trainer *one = argument;
    int status = LEAT_OK;
    for (int step = 0; step < one->steps; step++) {
        if (!status)
            status = leat_data_layer_forward(one->layer, NULL, 0, LEAT_HOST);
        if (!status)
            status = work(one);
        if (status && !one->error[0])
            snprintf(one->error, sizeof(one->error), "%s",
                     status == LEAT_END ? "the data has ended"
                                        : leat_last_error());
        pthread_barrier_wait(one->meeting);
    }
    return NULL;
}

/* 1 if one of them failed. */
static int run(trainer trainers[], int n, int steps)
{
    pthread_t thread[MOST];
    pthread_barrier_t meeting;
    int failed = 0;
    if (pthread_barrier_init(&meeting, NULL, (unsigned)n))
        return 1;
    for (int i = 0; i < n; i++) {
        trainers[i].meeting = &meeting;
        trainers[i].steps = steps;
        if (pthread_create(&thread[i], NULL, train, &trainers[i]))
            abort(); /* the others would wait for it for ever */
    }
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        if (trainers[i].error[0])
            fprintf(stderr, "group_loop: %s\n", trainers[i].error);
        failed |= trainers[i].error[0] != 0;
    }
    pthread_barrier_destroy(&meeting);
    return failed;
}

static int resume(leat_data_layer_group *group, const char *text)
{
    if (strcmp(text, "-") == 0)
        return LEAT_OK;
    leat_token token;
    leat_token_init(&token);
    int status = leat_token_parse(&token, text);
    if (!status)
        status = leat_data_layer_group_restore(group, &token);
    leat_token_finish(&token);
    return status;
}

static int report(leat_data_layer_group *group, const trainer trainers[], int n)
{
    leat_token token;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += trainers[i].sum;
    leat_token_init(&token);
    int status = leat_data_layer_group_save(group, &token);
    if (!status)
        printf("sum of labels %g\nnext %s\n", sum, leat_token_text(&token));
    leat_token_finish(&token);
    return status;
}

int main(int argc, char **argv)
{
    int n = argc - 4;
    if (n < 1 || n > MOST) {
        fprintf(stderr, "usage: group_loop PIPELINE STEPS TOKEN|- DEVICE...\n");
        return 2;
    }
    trainer trainers[MOST] = {{.layer = NULL}};
    leat_pipeline *pipeline = NULL;
    leat_data_layer_group *group = NULL;
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = BATCH};
    int status = leat_pipeline_parse(&pipeline, argv[1]);
    if (!status)
        status = leat_data_layer_group_create(
            &group, pipeline, &options, (const char *const *)(argv + 4), n);
    if (!status)
        status = leat_data_layer_group_setup(group, NULL, 0);
    for (int i = 0; !status && i < n; i++)
        trainers[i].layer = leat_data_layer_group_member(group, i);
    if (!status)
        status = resume(group, argv[3]);
    int failed = !status && run(trainers, n, atoi(argv[2]));
    if (!status && !failed)
        status = report(group, trainers, n);
    if (status)
        fprintf(stderr, "group_loop: %s\n", leat_last_error());
    leat_data_layer_group_destroy(group);
    leat_pipeline_unref(pipeline);
    return status || failed;
}
