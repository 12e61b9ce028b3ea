/*
 * CUDA graphs of what reads the tops: one for each slot with lent tops, one
 * for all with copied tops. Over the double, where nothing runs before it must,
 * and on a GPU, where each step is slow; the bytes are those of a layer on the
 * CPU.
 */
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <cuda_runtime_api.h>
#include <leat/cuda.h>
#include <leat/ext/device.h>
#include <stdio.h>
#include <string.h>

#define BATCH 4
#define STEPS 60
#define SLOTS 8
#define STEP_SECONDS 2e-4 /* that a step takes before it reads */

/* What is read of a batch: both tops, one after the other. */
#define PIXEL_BYTES (BATCH * LAYER_FIXTURE_PIXELS * sizeof(float))
#define LABEL_BYTES (BATCH * sizeof(float))
#define SEEN_BYTES (PIXEL_BYTES + LABEL_BYTES)

/* The addresses that a step was captured on. */
typedef struct captured_step {
    cudaGraphExec_t exec; /* NULL: none yet */
    const void *data;
    const void *label;
    int64_t n;
} captured_step;

/* A trainer, whose step copies the tops to `scratch` on the device. */
typedef struct trainer {
    leat_device *device;
    layer_fixture fixture;
    cudaStream_t stream[2];
    captured_step step[SLOTS];
    int captures;
    char *scratch; /* on the device */
    char *seen;    /* on the host, STEPS times */
} trainer;

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    pipeline = layer_fixture_pipeline();
    layer_fixture_options(&options, &transform);
    transform.mirror = 1;
    options.batch_size = BATCH;
    options.random_seed = 3;
    options.prefetch = 2;
    options.device = "cuda:0";
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static void check_cuda(cudaError_t error)
{
    ck_assert_msg(error == cudaSuccess, "%s", cudaGetErrorString(error));
}

static trainer open_trainer(void)
{
    trainer self;
    memset(&self, 0, sizeof(self));
    void *memory;
    ck_assert_int_eq(leat_device_find(&self.device, "cuda:0"), LEAT_OK);
    self.fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_le(leat_data_layer_slots(self.fixture.layer), SLOTS);
    for (int i = 0; i < 2; i++)
        check_cuda(
            cudaStreamCreateWithFlags(&self.stream[i], cudaStreamNonBlocking));
    ck_assert_int_eq(self.device->ops->alloc(self.device, SEEN_BYTES, &memory),
                     LEAT_OK);
    self.scratch = memory;
    ck_assert_int_eq(
        self.device->ops->host_alloc(self.device, STEPS * SEEN_BYTES, &memory),
        LEAT_OK);
    self.seen = memory;
    return self;
}

static void close_trainer(trainer *self)
{
    for (int i = 0; i < SLOTS; i++)
        if (self->step[i].exec)
            check_cuda(cudaGraphExecDestroy(self->step[i].exec));
    layer_fixture_close(&self->fixture);
    for (int i = 0; i < 2; i++)
        check_cuda(cudaStreamDestroy(self->stream[i]));
    self->device->ops->free(self->device, self->scratch, SEEN_BYTES);
    self->device->ops->host_free(self->device, self->seen, STEPS * SEEN_BYTES);
}

static void forward(trainer *self, cudaStream_t stream)
{
    int status =
        leat_cuda_forward(self->fixture.layer, self->fixture.top, 2, stream);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

/* The addresses of the batch that forward has just delivered. */
static captured_step tops_of(trainer *self)
{
    captured_step step = {
        .data = leat_blob_gpu_data(self->fixture.top[0]),
        .label = leat_blob_gpu_data(self->fixture.top[1]),
        .n = leat_blob_dim(self->fixture.top[0], 0),
    };
    ck_assert_ptr_nonnull(step.data);
    ck_assert_ptr_nonnull(step.label);
    return step;
}

/* The step on these tops, whose reads come late. */
static void capture(trainer *self, captured_step *step, cudaStream_t stream)
{
    const leat_device_ops *ops = self->device->ops;
    size_t rows = (size_t)step->n;
    cudaGraph_t graph;
    check_cuda(
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ck_assert_int_eq(
        ops->occupy(self->device, STEP_SECONDS, (leat_stream)stream), LEAT_OK);
    check_cuda(cudaMemcpyAsync(self->scratch, step->data,
                               rows * LAYER_FIXTURE_PIXELS * sizeof(float),
                               cudaMemcpyDeviceToDevice, stream));
    check_cuda(cudaMemcpyAsync(self->scratch + PIXEL_BYTES, step->label,
                               rows * sizeof(float), cudaMemcpyDeviceToDevice,
                               stream));
    check_cuda(cudaStreamEndCapture(stream, &graph));
    check_cuda(cudaGraphInstantiateWithFlags(&step->exec, graph, 0));
    check_cuda(cudaGraphDestroy(graph));
    self->captures++;
}

/* The step of the batch just delivered, captured where there is none yet. */
static void launch(trainer *self, int index, int i, cudaStream_t stream)
{
    captured_step *step = &self->step[index];
    if (!step->exec) {
        *step = tops_of(self);
        capture(self, step, stream);
    }
    check_cuda(cudaGraphLaunch(step->exec, stream));
    check_cuda(cudaMemcpyAsync(self->seen + (size_t)i * SEEN_BYTES,
                               self->scratch, SEEN_BYTES,
                               cudaMemcpyDeviceToHost, stream));
}

static int slot_of(const trainer *self)
{
    int slot = leat_data_layer_batch(self->fixture.layer)->slot;
    ck_assert_int_ge(slot, 0);
    ck_assert_int_lt(slot, leat_data_layer_slots(self->fixture.layer));
    return slot;
}

/* How many of the first `steps` batches were not seen as the CPU has them. */
static int count_wrong(trainer *self, int steps)
{
    leat_data_layer_options on_cpu = options;
    on_cpu.device = "cpu";
    on_cpu.transform_on = LEAT_TRANSFORM_ON_CPU;
    int wrong = 0;
    for (int i = 0; i < 2; i++)
        check_cuda(cudaStreamSynchronize(self->stream[i]));
    layer_fixture fixture = layer_fixture_open(pipeline, &on_cpu);
    for (int i = 0; i < steps; i++) {
        const char *seen = self->seen + (size_t)i * SEEN_BYTES;
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        wrong += memcmp(seen, leat_blob_cpu_data(fixture.top[0]),
                        leat_blob_bytes(fixture.top[0])) != 0 ||
                 memcmp(seen + PIXEL_BYTES, leat_blob_cpu_data(fixture.top[1]),
                        leat_blob_bytes(fixture.top[1])) != 0;
    }
    layer_fixture_close(&fixture);
    return wrong;
}

START_TEST(a_graph_for_each_slot_reads_every_lent_batch)
{
    options.prefetch = 1 + _i % 3;
    options.transform_on = (leat_transform_on)(_i / 3);
    trainer self = open_trainer();
    int slots = leat_data_layer_slots(self.fixture.layer);
    ck_assert_int_eq(slots, options.prefetch + 1);
    for (int i = 0; i < STEPS; i++) {
        forward(&self, self.stream[0]);
        launch(&self, slot_of(&self), i, self.stream[0]);
    }
    ck_assert_int_eq(count_wrong(&self, STEPS), 0);
    ck_assert_int_eq(self.captures, slots);
    close_trainer(&self);
}
END_TEST

START_TEST(batches_of_a_slot_have_its_addresses_until_restore)
{
    trainer self = open_trainer();
    leat_token token;
    leat_token_init(&token);
    for (int i = 0; i < STEPS; i++) {
        forward(&self, self.stream[0]);
        captured_step now = tops_of(&self);
        captured_step *first = &self.step[slot_of(&self)];
        if (!first->data)
            *first = now;
        ck_assert_ptr_eq(now.data, first->data);
        ck_assert_ptr_eq(now.label, first->label);
        for (int k = 0; k < SLOTS; k++)
            ck_assert(&self.step[k] == first || self.step[k].data != now.data);
    }
    ck_assert_int_eq(leat_data_layer_save(self.fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(self.fixture.layer, &token),
                     LEAT_OK);
    forward(&self, self.stream[0]);
    (void)slot_of(&self);
    leat_token_finish(&token);
    close_trainer(&self);
}
END_TEST

/* The slots are needed: a slot's graph does not see the others' batches. */
START_TEST(one_graph_for_all_slots_reads_other_batches)
{
    trainer self = open_trainer();
    for (int i = 0; i < STEPS; i++) {
        forward(&self, self.stream[0]);
        launch(&self, 0, i, self.stream[0]);
        /* The slot that it reads is not refilled meanwhile. */
        check_cuda(cudaStreamSynchronize(self.stream[0]));
    }
    ck_assert_int_gt(count_wrong(&self, STEPS), STEPS / 2);
    close_trainer(&self);
}
END_TEST

START_TEST(one_graph_reads_every_copied_batch)
{
    options.top_mode = LEAT_TOP_COPY;
    options.transform_on = (leat_transform_on)_i;
    trainer self = open_trainer();
    for (int i = 0; i < STEPS; i++) {
        forward(&self, self.stream[0]);
        launch(&self, 0, i, self.stream[0]);
    }
    ck_assert_int_eq(count_wrong(&self, STEPS), 0);
    ck_assert_int_eq(self.captures, 1);
    close_trainer(&self);
}
END_TEST

/* Launches of one graph do not overlap, but `scratch` is all graphs'. */
START_TEST(graphs_may_be_launched_on_any_stream)
{
    cudaEvent_t read;
    check_cuda(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
    trainer self = open_trainer();
    for (int i = 0; i < STEPS; i++) {
        cudaStream_t stream = self.stream[i % 2];
        forward(&self, stream);
        check_cuda(cudaStreamWaitEvent(stream, read, 0));
        launch(&self, slot_of(&self), i, stream);
        check_cuda(cudaEventRecord(read, stream));
        if (i % 3 == 0)
            ck_assert_int_eq(leat_cuda_release(self.fixture.layer, stream),
                             LEAT_OK);
    }
    ck_assert_int_eq(count_wrong(&self, STEPS), 0);
    check_cuda(cudaEventDestroy(read));
    close_trainer(&self);
}
END_TEST

/* A slot has one address, but a shorter batch is another shape. */
START_TEST(a_shorter_batch_has_its_slots_addresses)
{
    options.epoch_end = LEAT_EPOCH_END_PARTIAL;
    trainer self = open_trainer();
    int shorter = 0;
    for (int i = 0; i < STEPS; i++) {
        forward(&self, self.stream[0]);
        captured_step now = tops_of(&self);
        captured_step *step = &self.step[slot_of(&self)];
        if (step->exec && step->n != now.n) {
            ck_assert_ptr_eq(step->data, now.data);
            ck_assert_ptr_eq(step->label, now.label);
            check_cuda(cudaStreamSynchronize(self.stream[0]));
            check_cuda(cudaGraphExecDestroy(step->exec));
            step->exec = NULL;
            shorter++;
        }
        launch(&self, slot_of(&self), i, self.stream[0]);
    }
    ck_assert_int_eq(count_wrong(&self, STEPS), 0);
    ck_assert_int_gt(shorter, 0);
    close_trainer(&self);
}
END_TEST

/* In any mode: the workers go on, forward and release stay outside. */
START_TEST(a_capture_is_not_disturbed_and_takes_nothing_of_leats)
{
    trainer self = open_trainer();
    cudaGraph_t graph;
    forward(&self, self.stream[0]);
    check_cuda(
        cudaStreamBeginCapture(self.stream[0], (enum cudaStreamCaptureMode)_i));
    ck_assert_int_eq(leat_cuda_forward(self.fixture.layer, self.fixture.top, 2,
                                       self.stream[0]),
                     LEAT_ESTATE);
    ck_assert_int_eq(leat_cuda_release(self.fixture.layer, self.stream[0]),
                     LEAT_ESTATE);
    ck_assert_ptr_nonnull(leat_data_layer_batch(self.fixture.layer));
    captured_step now = tops_of(&self);
    check_cuda(cudaMemcpyAsync(self.scratch, now.data, PIXEL_BYTES,
                               cudaMemcpyDeviceToDevice, self.stream[0]));
    check_cuda(cudaMemcpyAsync(self.scratch + PIXEL_BYTES, now.label,
                               LABEL_BYTES, cudaMemcpyDeviceToDevice,
                               self.stream[0]));
    check_cuda(cudaStreamEndCapture(self.stream[0], &graph));
    check_cuda(cudaGraphInstantiateWithFlags(&self.step[slot_of(&self)].exec,
                                             graph, 0));
    check_cuda(cudaGraphDestroy(graph));
    launch(&self, slot_of(&self), 0, self.stream[0]);
    for (int i = 1; i < 12; i++) {
        forward(&self, self.stream[0]);
        launch(&self, slot_of(&self), i, self.stream[0]);
    }
    ck_assert_int_eq(count_wrong(&self, 12), 0);
    close_trainer(&self);
}
END_TEST

/* Nor by the question whose stream it is, which a driver does not answer. */
START_TEST(a_captured_stream_that_is_new_to_the_layer_is_not_disturbed)
{
    trainer self = open_trainer();
    cudaGraph_t graph;
    check_cuda(
        cudaStreamBeginCapture(self.stream[1], (enum cudaStreamCaptureMode)_i));
    ck_assert_int_eq(leat_cuda_forward(self.fixture.layer, self.fixture.top, 2,
                                       self.stream[1]),
                     LEAT_ESTATE);
    check_cuda(cudaStreamEndCapture(self.stream[1], &graph));
    check_cuda(cudaGraphDestroy(graph));
    forward(&self, self.stream[0]);
    check_cuda(
        cudaStreamBeginCapture(self.stream[1], (enum cudaStreamCaptureMode)_i));
    ck_assert_int_eq(leat_cuda_release(self.fixture.layer, self.stream[1]),
                     LEAT_ESTATE);
    check_cuda(cudaStreamEndCapture(self.stream[1], &graph));
    check_cuda(cudaGraphDestroy(graph));
    launch(&self, slot_of(&self), 0, self.stream[0]);
    forward(&self, self.stream[1]);
    ck_assert_int_eq(count_wrong(&self, 1), 0);
    close_trainer(&self);
}
END_TEST

static int find_device(void)
{
    leat_device *device;
    if (leat_device_find(&device, "cuda:0") == LEAT_OK)
        return 0;
    printf("skipped: %s\n", leat_last_error());
    return 77;
}

int main(void)
{
    int absent = suite_look_first(find_device);
    if (absent)
        return absent;
    Suite *suite = suite_create("graphs_cuda");
    TCase *tcase = tcase_create("graphs_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_graph_for_each_slot_reads_every_lent_batch, 0,
                        6);
    tcase_add_test(tcase, batches_of_a_slot_have_its_addresses_until_restore);
    tcase_add_test(tcase, one_graph_for_all_slots_reads_other_batches);
    tcase_add_loop_test(tcase, one_graph_reads_every_copied_batch, 0, 2);
    tcase_add_test(tcase, graphs_may_be_launched_on_any_stream);
    tcase_add_test(tcase, a_shorter_batch_has_its_slots_addresses);
    tcase_add_loop_test(
        tcase, a_capture_is_not_disturbed_and_takes_nothing_of_leats, 0, 3);
    tcase_add_loop_test(
        tcase, a_captured_stream_that_is_new_to_the_layer_is_not_disturbed, 0,
        3);
    return suite_run(suite);
}
