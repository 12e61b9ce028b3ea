/* trial.h: one layer, from setup to destroy, against the reference. */
#ifndef LEAT_TESTS_TRIAL_H
#define LEAT_TESTS_TRIAL_H

#include "configuration.h"

/* Runs it; the samples that were looked at. All failures end the process. */
int64_t trial_run(configuration *c);

#endif
