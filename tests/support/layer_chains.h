/* layer_chains.h: pipelines with a decorator of each kind, for tests that save
 * and resume a layer. */
#ifndef LEAT_TESTS_LAYER_CHAINS_H
#define LEAT_TESTS_LAYER_CHAINS_H

#include <leat.h>

/* Kinds of chains: from LAYER_CHAINS_MARKED on, positions have a mark.
   LAYER_CHAINS_SHORT has marks and ends by itself after a few samples. */
enum { LAYER_CHAINS_MARKED = 4, LAYER_CHAINS_SHORT = 7, LAYER_CHAINS = 12 };

/* A pipeline of that kind; its samples have an image and a label. */
leat_pipeline *layer_chains_make(int kind);

#endif
