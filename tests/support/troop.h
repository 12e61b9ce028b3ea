/* troop.h: a group of layers with their tops, for group tests. */
#ifndef LEAT_TESTS_TROOP_H
#define LEAT_TESTS_TROOP_H

#include <leat.h>

#define TROOP_MAX 4

/* Set up; aborts the test on failure. */
typedef struct troop {
    leat_data_layer_group *group;
    int n;
    leat_blob *top[TROOP_MAX][2];
} troop;

troop troop_open(const leat_pipeline *pipeline,
                 const leat_data_layer_options *options,
                 const char *const devices[], int n);
void troop_close(troop *troop);

/* The tops of all members on their devices; aborts the test on failure. */
void troop_make_tops(troop *troop, const char *const devices[], int n);
void troop_free_tops(troop *troop);

leat_data_layer *troop_member(const troop *troop, int i);

/* One forward of member `i` for the CPU; its status. */
int troop_forward(troop *troop, int i);

/* Label `k` of the batch that member `i` holds; a checksum of its tops. */
float troop_label(troop *troop, int i, int k);
uint32_t troop_digest(troop *troop, int i);

#endif
