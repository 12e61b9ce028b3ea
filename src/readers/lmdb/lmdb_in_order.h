/*
 * lmdb_in_order.h: the operations of LMDB's reader that take records one after
 * another.
 */
#ifndef LEAT_READERS_LMDB_IN_ORDER_H
#define LEAT_READERS_LMDB_IN_ORDER_H

#include "readers/lmdb/lmdb_reader.h"

/* The reader's operations of these names; next defers every sample. */
int leat__lmdb_reader_next(leat_reader *reader, leat_sample *const out[], int n,
                           int *got);

int leat__lmdb_reader_materialize(leat_reader *reader, leat_sample *const out[],
                                  int n, int *got);

#endif
