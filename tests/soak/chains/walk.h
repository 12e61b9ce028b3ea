/* walk.h: random calls of a chain's readers. */
#ifndef LEAT_TESTS_CHAINS_WALK_H
#define LEAT_TESTS_CHAINS_WALK_H

#include "chain_trial.h"
#include "model.h"

/* Two readers in turn, and a thread beside them; all give the model's. */
void walk_run(const model *from, trial_tally *tally);

/* Allocations fail; then all is as it was. */
void walk_without_memory(const model *from, trial_tally *tally);

#endif
