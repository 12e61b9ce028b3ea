/* ranks.h: layers over a chain, of several ranks, resumed and killed. */
#ifndef LEAT_TESTS_CHAINS_RANKS_H
#define LEAT_TESTS_CHAINS_RANKS_H

#include "chain_trial.h"
#include "model.h"

/* Lives one after the other, each of other ranks, from the token of the one
   before; together they deliver the model's samples. */
void ranks_run(const model *from, trial_tally *tally);

#endif
