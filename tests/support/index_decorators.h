/*
 * index_decorators.h: decorators as a user of leat would write them, against
 * leat/ext/reader.h alone. They map indices, and stay random-access.
 */
#ifndef LEAT_TESTS_INDEX_DECORATORS_H
#define LEAT_TESTS_INDEX_DECORATORS_H

#include <leat/ext/reader.h>

/*
 * Registers `test_shuffle:seed=S`, all samples in another order,
 * `test_slice:skip=K,take=N`, those from K on, N at most, `test_turn:seed=S`,
 * whose order depends on the epoch, and `test_halves`, of which the first
 * epoch is the first half, and all later ones are the second. Once a process.
 */
void index_decorators_register(void);

/* Their types, for pipelines built by code. */
const leat_reader_type *index_decorators_shuffle(void);
const leat_reader_type *index_decorators_slice(void);
const leat_reader_type *index_decorators_turn(void);
const leat_reader_type *index_decorators_halves(void);

/* Where test_shuffle takes sample `index` of `count` from. */
int64_t index_decorators_shuffled(int64_t index, int64_t count, int64_t seed);

/* Where test_turn takes it from. */
int64_t index_decorators_turned(leat_position at, int64_t count, int64_t seed);

/* Indices that test_shuffle and test_slice were told of ahead, so far. */
int64_t index_decorators_advised(void);

#endif
