/* group_stage.h: what the tests of groups start from, in variables of theirs.
 */
#ifndef LEAT_TESTS_GROUP_STAGE_H
#define LEAT_TESTS_GROUP_STAGE_H

#include "support/source.h"

#include <leat.h>

#define GROUP_BATCHES 18
#define GROUP_SECONDS 100 /* then the watchdog tells all stacks */

/* Small batches, a fixed seed; each test begins with the same. */
extern leat_data_layer_options group_options;
extern leat_transform_options group_transform;
extern source group_source;

/* Devices for up to four members. */
extern const char *const group_on_cpu[4];
extern const char *const group_on_late[4];
extern const char *const group_mixed[4];

/* Of a checked fixture. */
void group_set_up(void);
void group_tear_down(void);

void group_check_late_is_clean(void);

/* What one layer on the CPU delivers. */
void group_record(const leat_pipeline *pipeline, uint32_t digest[], int n);

void group_transform_at_random(void);

/* The feed's records in another order, with random access. */
leat_pipeline *group_shuffled_pipeline(void);

#endif
