/* group_fixture.h: what group tests share: options, devices, a group under
 * test.
 */
#ifndef LEAT_TESTS_GROUP_FIXTURE_H
#define LEAT_TESTS_GROUP_FIXTURE_H

#include "support/scripted_source.h"

#include <leat.h>

#define GROUP_BATCHES 18
#define GROUP_SECONDS 100 /* then the watchdog tells all stacks */

/* Small batches, a fixed seed; each test begins with the same. */
extern leat_data_layer_options group_options;
extern leat_transform_options group_transform;
extern scripted_source group_source;

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

/* The records of layer_fixture.h in another order, with random access. */
leat_pipeline *group_shuffled_pipeline(void);

#define GROUP_FIXTURE_MAX 4

/* A group with its tops, set up; aborts the test on failure. */
typedef struct group_fixture {
    leat_data_layer_group *group;
    int n;
    leat_blob *top[GROUP_FIXTURE_MAX][2];
} group_fixture;

group_fixture group_fixture_open(const leat_pipeline *pipeline,
                                 const leat_data_layer_options *options,
                                 const char *const devices[], int n);
void group_fixture_close(group_fixture *group);

/* The tops of all members on their devices; aborts the test on failure. */
void group_fixture_make_tops(group_fixture *group, const char *const devices[],
                             int n);
void group_fixture_free_tops(group_fixture *group);

leat_data_layer *group_fixture_member(const group_fixture *group, int i);

/* One forward of member `i` for the CPU; its status. */
int group_fixture_forward(group_fixture *group, int i);

/* Label `k` of the batch that member `i` holds; a checksum of its tops. */
float group_fixture_label(group_fixture *group, int i, int k);
uint32_t group_fixture_digest(group_fixture *group, int i);

#endif
