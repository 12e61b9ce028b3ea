/* layer_stage.h: what the tests of a layer on cuda:0 start from. */
#ifndef LEAT_TESTS_LAYER_STAGE_H
#define LEAT_TESTS_LAYER_STAGE_H

#include "cuda_double.h"
#include "support/layer_fixture.h"

#include <leat.h>

#define STAGE_STEPS 40
#define STAGE_BATCH 4
#define STAGE_STREAMS 3

/* The fixture's records; a layer's options; streams of a caller. */
extern leat_pipeline *stage_pipeline;
extern leat_data_layer_options stage_options;
extern cudaStream_t stage_stream[STAGE_STREAMS];

/* Of a checked fixture. */
void stage_set_up(void);
void stage_tear_down(void);

/* A forward whose batch is for `on`; aborts the test on failure. */
void stage_forward(layer_fixture *fixture, cudaStream_t on);

/* Samples that a caller with so many streams, used in turn, sees wrongly. */
int stage_run_on(int streams);

int stage_is_call(const cuda_double_call *call, const char *name);

#endif
