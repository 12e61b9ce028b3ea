/*
 * lmdb_random_access.h: the operations of LMDB's reader by record number. They
 * look records up in the index, which the first call builds, and request all
 * records of a call at once, in the file's order, unless they are resident.
 */
#ifndef LEAT_READERS_LMDB_RANDOM_ACCESS_H
#define LEAT_READERS_LMDB_RANDOM_ACCESS_H

#include <leat/ext/reader.h>

/* The reader's operations of these names. */
void leat__lmdb_reader_advise(leat_reader *reader, const leat_position at[],
                              int n);

int leat__lmdb_reader_read_at(leat_reader *reader, const leat_position at[],
                              leat_sample *const out[], int n, int *got);

#endif
