/*
 * Callers that read, write, push and give back their tops at random, on any of
 * their streams and on the host, as leat/blob.h and leat/data_layer.h allow,
 * against a model of what the tops have. The streams run only when somebody
 * waits for them, so that whatever comes too early or too late shows.
 */
#include "living.h"
#include "sight.h"
#include "soak/dice.h"
#include "support/layer_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIALS = IS_THREAD_SANITIZED ? 8 : 24, /* LEAT_TOPS: another number */
    MEMBERS = 2,
    BATCH = 4,
    STREAMS = 3,
    PAIRS = 2,
    SIGHTS = 300,
    TOKENS = 3
};

/* Of a batch: the label and the first pixel of each sample. */
typedef struct contents {
    sight sample[BATCH];
} contents;

/* Two tops of the caller's, and what they have. */
typedef struct pair {
    leat_blob *top[2];
    contents now;
    int has_contents;
    int is_written; /* by a kernel that may still run */
} pair;

/* What a kernel sees once its stream comes to it, and has to see. */
typedef struct look {
    contents seen;
    contents expected;
} look;

/* Who takes the batches of a layer. */
typedef struct caller {
    int device;
    leat_data_layer *layer;
    cudaStream_t stream[STREAMS];
    pair pair[PAIRS];
    pair *holds;          /* a batch; NULL: none */
    cudaStream_t given;   /* to forward; NULL: the host was */
    cudaStream_t latest;  /* after which all else comes; NULL: none */
    int is_used[STREAMS]; /* by this batch */
    int is_pushing;       /* the host's side may still be read */
    look look[SIGHTS];
    int nlooks;
} caller;

typedef struct trial {
    leat_data_layer_options options;
    leat_data_layer_group *group; /* NULL: a layer by itself */
    caller caller[MEMBERS];
    int n;
    int64_t position; /* of the next batch's first sample */
    leat_token token[TOKENS];
    int64_t saved[TOKENS]; /* their positions; -1: none */
} trial;

static trial now; /* of a process of its own, which Check forks */

static int is_lent(void)
{
    return now.options.top_mode == LEAT_TOP_LEND;
}

static contents contents_at(int64_t position)
{
    contents batch;
    for (int k = 0; k < BATCH; k++) {
        int i = (int)((position + k) % LAYER_FIXTURE_COUNT);
        batch.sample[k].label = (float)(1000 + i);
        batch.sample[k].pixel = (float)layer_fixture_pixel(i, 0, 0, 0);
    }
    return batch;
}

static void expect_equal(const contents *seen, const contents *expected)
{
    for (int k = 0; k < BATCH; k++) {
        ck_assert_float_eq(seen->sample[k].label, expected->sample[k].label);
        ck_assert_float_eq(seen->sample[k].pixel, expected->sample[k].pixel);
    }
}

static void wait_for_streams(caller *self)
{
    for (int i = 0; i < STREAMS; i++)
        ck_assert_int_eq(cudaStreamSynchronize(self->stream[i]), cudaSuccess);
    self->is_pushing = 0;
    for (int i = 0; i < PAIRS; i++)
        self->pair[i].is_written = 0;
}

static void check_looks(caller *self)
{
    wait_for_streams(self);
    for (int i = 0; i < self->nlooks; i++)
        expect_equal(&self->look[i].seen, &self->look[i].expected);
    self->nlooks = 0;
}

/* What `stream` is given from now on comes after what `other` has. */
static void order(cudaStream_t stream, cudaStream_t other)
{
    cudaEvent_t event;
    if (!other || stream == other)
        return;
    ck_assert_int_eq(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                     cudaSuccess);
    ck_assert_int_eq(cudaEventRecord(event, other), cudaSuccess);
    ck_assert_int_eq(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
    ck_assert_int_eq(cudaEventDestroy(event), cudaSuccess);
}

/* The stream that does something with the batch next, after all before it. */
static cudaStream_t choose_stream(caller *self)
{
    int i = below(STREAMS);
    order(self->stream[i], self->latest);
    self->is_used[i] = 1;
    return self->latest = self->stream[i];
}

/* A side that is newest on the host is copied when the device's is asked for,
   and no kernel may be at it then. */
static void settle_sides(caller *self, const pair *tops)
{
    for (int i = 0; i < 2; i++)
        if (leat_blob_head(tops->top[i]) == LEAT_HEAD_AT_CPU)
            wait_for_streams(self);
}

static void look_at(caller *self, pair *tops)
{
    settle_sides(self, tops);
    if (self->nlooks == SIGHTS)
        check_looks(self);
    look *one = &self->look[self->nlooks++];
    one->expected = tops->now;
    sight_launch(tops->top, BATCH, one->seen.sample, below(3) * 5.0,
                 choose_stream(self));
}

static void read_on_host(caller *self, pair *tops)
{
    contents seen;
    if (tops->is_written)
        wait_for_streams(self);
    const float *data = leat_blob_cpu_data(tops->top[0]);
    const float *label = leat_blob_cpu_data(tops->top[1]);
    ck_assert(data && label);
    for (int k = 0; k < BATCH; k++) {
        seen.sample[k].label = label[k];
        seen.sample[k].pixel = data[k * LAYER_FIXTURE_PIXELS];
    }
    expect_equal(&seen, &tops->now);
}

/* One top or both, with one value, which no record has. */
typedef struct change {
    int of[2];
    float value;
} change;

static change choose_change(void)
{
    int which = below(3);
    const change chosen = {{which != 1, which != 0}, -(float)below(1 << 20)};
    return chosen;
}

static void note_change(pair *tops, const change *made)
{
    for (int k = 0; k < BATCH; k++) {
        if (made->of[0])
            tops->now.sample[k].pixel = made->value;
        if (made->of[1])
            tops->now.sample[k].label = made->value;
    }
}

static void write_on_host(caller *self, pair *tops)
{
    const change made = choose_change();
    int is_pushed = !once_in(5);
    if (tops->is_written || self->is_pushing)
        wait_for_streams(self);
    for (int i = 0; i < 2; i++) {
        float *to =
            made.of[i] ? leat_blob_mutable_cpu_data(tops->top[i]) : NULL;
        ck_assert_int_eq(to != NULL, made.of[i]);
        for (int k = 0; k < BATCH && to; k++)
            to[i ? k : k * LAYER_FIXTURE_PIXELS] = made.value;
    }
    note_change(tops, &made);
    for (int i = 0; i < 2; i++)
        if (made.of[i] && is_pushed)
            ck_assert_int_eq(leat_cuda_push(tops->top[i], choose_stream(self)),
                             LEAT_OK);
    self->is_pushing |= is_pushed;
}

typedef struct write_arguments {
    float *to[2];
    float value;
} write_arguments;

static void write_kernel(void *argument)
{
    const write_arguments *self = argument;
    for (int i = 0; i < 2; i++) {
        float *to = self->to[i] ? cuda_double_bytes(self->to[i]) : NULL;
        for (int k = 0; k < BATCH && to; k++)
            to[i ? k : k * LAYER_FIXTURE_PIXELS] = self->value;
    }
}

static void write_on_device(caller *self, pair *tops)
{
    const change made = choose_change();
    write_arguments arguments = {{NULL, NULL}, made.value};
    settle_sides(self, tops);
    for (int i = 0; i < 2; i++) {
        if (made.of[i])
            arguments.to[i] = leat_blob_mutable_gpu_data(tops->top[i]);
        ck_assert_int_eq(arguments.to[i] != NULL, made.of[i]);
    }
    ck_assert_int_eq(cuda_double_launch(write_kernel, &arguments,
                                        sizeof(arguments), 5,
                                        choose_stream(self)),
                     cudaSuccess);
    note_change(tops, &made);
    tops->is_written = 1;
}

static void use_batch(caller *self)
{
    static void (*const actions[])(caller *, pair *) = {
        look_at, look_at, read_on_host, write_on_host, write_on_device};
    for (int n = below(6); n > 0; n--) {
        pair *tops = &self->pair[below(PAIRS)];
        if (!tops->has_contents)
            tops = self->holds;
        actions[below(sizeof(actions) / sizeof(actions[0]))](self, tops);
        if (once_in(20))
            check_looks(self);
    }
}

/* Where other streams than forward's used the batch, release is told. */
static void give_back(caller *self)
{
    leat_stream stream[STREAMS];
    int n = 0, must_tell = once_in(4);
    if (!self->holds || !is_lent())
        return;
    for (int i = 0; i < STREAMS; i++) {
        if (self->is_used[i])
            stream[n++] = leat_cuda_stream(self->stream[i]);
        must_tell |= self->is_used[i] && self->stream[i] != self->given;
    }
    /* It comes after the others. */
    if (n && once_in(2)) {
        stream[0] = leat_cuda_stream(self->latest);
        n = 1;
    }
    if (must_tell) {
        ck_assert_int_eq(leat_data_layer_release(self->layer, stream, n),
                         LEAT_OK);
        ck_assert_ptr_null(leat_blob_gpu_data(self->holds->top[0]));
    }
    self->holds->has_contents = 0;
    self->holds = NULL;
}

static void take_batch(caller *self)
{
    pair *tops = &self->pair[below(PAIRS)];
    give_back(self);
    self->given = once_in(5) ? NULL : self->stream[below(STREAMS)];
    if (is_lent()) {
        /* Other memory: nothing that was done before concerns it. */
        self->latest = NULL;
        self->is_pushing = 0;
    } else if (self->given) {
        order(self->given, self->latest);
    } else {
        wait_for_streams(self);
    }
    cuda_double_set_next(self->given);
    int status = leat_data_layer_forward(
        self->layer, tops->top, 2,
        self->given ? leat_cuda_stream(self->given) : LEAT_HOST);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    for (int i = 0; i < STREAMS; i++)
        self->is_used[i] = self->given && self->stream[i] == self->given;
    if (self->given)
        self->latest = self->given;
    tops->now = contents_at(now.position);
    tops->has_contents = 1;
    tops->is_written = 0;
    self->holds = tops;
    now.position += BATCH;
}

static void save(int i)
{
    leat_token_finish(&now.token[i]);
    leat_token_init(&now.token[i]);
    int status = now.group
                     ? leat_data_layer_group_save(now.group, &now.token[i])
                     : leat_data_layer_save(now.caller[0].layer, &now.token[i]);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    now.saved[i] = now.position;
}

static void restore(int i)
{
    for (int k = 0; k < now.n; k++)
        give_back(&now.caller[k]);
    int status =
        now.group ? leat_data_layer_group_restore(now.group, &now.token[i])
                  : leat_data_layer_restore(now.caller[0].layer, &now.token[i]);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    now.position = now.saved[i];
}

static void choose_options(void)
{
    leat_data_layer_options *options = &now.options;
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    *options = defaults;
    options->batch_size = BATCH;
    options->device = "cuda:0";
    options->prefetch = between(1, 6);
    options->workers = between(1, 3);
    options->transform_on =
        once_in(2) ? LEAT_TRANSFORM_ON_DEVICE : LEAT_TRANSFORM_ON_CPU;
    options->top_mode = once_in(3) ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options->caller_helps =
        once_in(2) ? LEAT_CALLER_HELPS_OFF : LEAT_CALLER_HELPS_AUTO;
    cuda_double_set_eager(once_in(3));
}

static const char *const devices[MEMBERS] = {"cuda:0", "cuda:1"};

static void open_caller(caller *self, int number)
{
    leat_device *device;
    self->device = number;
    ck_assert_int_eq(leat_device_find(&device, devices[number]), LEAT_OK);
    for (int i = 0; i < 2 * PAIRS; i++)
        ck_assert_int_eq(
            leat_blob_create(&self->pair[i / 2].top[i % 2], device), LEAT_OK);
    ck_assert_int_eq(cudaSetDevice(number), cudaSuccess);
    for (int i = 0; i < STREAMS; i++)
        self->stream[i] = cuda_double_stream();
}

static void close_caller(caller *self)
{
    for (int i = 0; i < 2 * PAIRS; i++)
        leat_blob_destroy(self->pair[i / 2].top[i % 2]);
    for (int i = 0; i < STREAMS; i++)
        ck_assert_int_eq(cudaStreamDestroy(self->stream[i]), cudaSuccess);
}

static int open_layers(const leat_pipeline *pipeline)
{
    leat_blob *tops[2 * MEMBERS];
    for (int i = 0; i < 2 * now.n; i++)
        tops[i] = now.caller[i / 2].pair[0].top[i % 2];
    if (now.n == 1) {
        int status = leat_data_layer_create(&now.caller[0].layer, pipeline,
                                            &now.options);
        return status ? status
                      : leat_data_layer_setup(now.caller[0].layer, tops, 2);
    }
    int status = leat_data_layer_group_create(&now.group, pipeline,
                                              &now.options, devices, now.n);
    for (int i = 0; i < now.n && !status; i++)
        now.caller[i].layer = leat_data_layer_group_member(now.group, i);
    return status ? status : leat_data_layer_group_setup(now.group, tops, 2);
}

static void close_layers(void)
{
    if (now.group)
        leat_data_layer_group_destroy(now.group);
    else
        leat_data_layer_destroy(now.caller[0].layer);
}

static void run_step(void)
{
    int i = below(TOKENS);
    if (once_in(9))
        save(i);
    else if (now.saved[i] >= 0 && once_in(12))
        restore(i);
    for (int k = 0; k < now.n; k++) {
        ck_assert_int_eq(cudaSetDevice(now.caller[k].device), cudaSuccess);
        take_batch(&now.caller[k]);
        use_batch(&now.caller[k]);
    }
}

START_TEST(tops_have_what_they_were_given)
{
    dice_begin(1, _i);
    cuda_double_reset();
    leat_pipeline *pipeline = layer_fixture_pipeline();
    now.n = between(1, MEMBERS);
    choose_options();
    for (int i = 0; i < TOKENS; i++) {
        leat_token_init(&now.token[i]);
        now.saved[i] = -1;
    }
    for (int i = 0; i < now.n; i++)
        open_caller(&now.caller[i], i);
    ck_assert_msg(open_layers(pipeline) == LEAT_OK, "%s", leat_last_error());
    for (int steps = between(20, 100); steps > 0; steps--)
        run_step();
    /* What the streams were given is still theirs to do. */
    close_layers();
    for (int i = 0; i < now.n; i++)
        check_looks(&now.caller[i]);
    for (int i = 0; i < now.n; i++)
        close_caller(&now.caller[i]);
    for (int i = 0; i < TOKENS; i++)
        leat_token_finish(&now.token[i]);
    leat_pipeline_unref(pipeline);
    living_check_none();
}
END_TEST

int main(void)
{
    const char *text = getenv("LEAT_TOPS");
    Suite *suite = suite_create("tops_cuda");
    TCase *tcase = tcase_create("tops_cuda");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, tops_have_what_they_were_given, 0,
                        text ? atoi(text) : TRIALS);
    return suite_run(suite);
}
