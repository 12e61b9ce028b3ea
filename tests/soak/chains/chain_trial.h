/* chain_trial.h: every way to read a chain, against reading it a sample at a
 * time. */
#ifndef LEAT_TESTS_CHAINS_CHAIN_TRIAL_H
#define LEAT_TESTS_CHAINS_CHAIN_TRIAL_H

#include "random_chain.h"

#include <stdint.h>

/* What trials did, in all; shared by the processes. */
typedef struct trial_tally {
    int64_t chains, refused, ended_by_errors, known, samples, random_access,
        marks, faults, layers, kills, replaced, damaged;
} trial_tally;

void trial_run(chain *made, trial_tally *tally);

#endif
