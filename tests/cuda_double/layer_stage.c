#include "layer_stage.h"
#include "living.h"
#include "sight.h"

#include <check.h>
#include <leat/cuda.h>
#include <string.h>

leat_pipeline *stage_pipeline;
leat_data_layer_options stage_options;
cudaStream_t stage_stream[STAGE_STREAMS];

void stage_set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    stage_options = defaults;
    stage_options.batch_size = STAGE_BATCH;
    stage_options.device = "cuda:0";
    stage_options.prefetch = 2;
    cuda_double_reset();
    for (int i = 0; i < STAGE_STREAMS; i++)
        stage_stream[i] = cuda_double_stream();
    stage_pipeline = layer_fixture_pipeline();
    cuda_double_forget();
}

void stage_tear_down(void)
{
    leat_pipeline_unref(stage_pipeline);
    for (int i = 0; i < STAGE_STREAMS; i++)
        ck_assert_int_eq(cudaStreamDestroy(stage_stream[i]), cudaSuccess);
    living_check_none();
    ck_assert_int_eq(cuda_double_count().destroyed_busy, 0);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}

void stage_forward(layer_fixture *fixture, cudaStream_t on)
{
    cuda_double_set_next(on);
    int status = leat_cuda_forward(fixture->layer, fixture->top, 2, on);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

int stage_is_call(const cuda_double_call *call, const char *name)
{
    return strcmp(call->name, name) == 0;
}

int stage_run_on(int streams)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++) {
        stage_forward(&fixture, stage_stream[i % streams]);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                     stage_stream[i % streams]);
    }
    for (int i = 0; i < streams; i++)
        ck_assert_int_eq(cudaStreamSynchronize(stage_stream[i]), cudaSuccess);
    layer_fixture_close(&fixture);
    return sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH);
}
