/* lmdb_walk.h: all records of an LMDB in memory, as far as its bytes allow. */
#ifndef LEAT_TESTS_LMDB_WALK_H
#define LEAT_TESTS_LMDB_WALK_H

#include "lmdb_fixture.h"

/* Records with a few bytes, and with values of up to a few overflow pages. */
void lmdb_walk_small_record(int number, fixture_record *out);
void lmdb_walk_mixed_record(int number, fixture_record *out);

/* A database with branches, leaves, inline and overflow values, 360 records in
   all; the test frees it. */
unsigned char *lmdb_walk_small_database(size_t *size);

/*
 * Walks whatever the bytes hold, reading every key and value, by the walker and
 * by the index. LEAT_END, or the error; *count is what was delivered.
 */
int lmdb_walk_all(const unsigned char *bytes, size_t size, int64_t *count);

#endif
