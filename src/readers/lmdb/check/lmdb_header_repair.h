/* lmdb_header_repair.h: opens the latest readable snapshot of a damaged LMDB
 * file. */
#ifndef LEAT_READERS_LMDB_HEADER_REPAIR_H
#define LEAT_READERS_LMDB_HEADER_REPAIR_H

#include "readers/lmdb/check/lmdb_recovery.h"

/* The most events that one call returns. */
#define LEAT__LMDB_HEADER_EVENTS 4

/*
 * Opens the snapshot of the better meta page, cut to the pages that the file
 * has. Damage found on the way is written to event[0..*n-1], which has room for
 * LEAT__LMDB_HEADER_EVENTS; `lost` counts records of the latest snapshot that
 * the opened one lacks. LEAT_EFORMAT: not repairable, or not an LMDB that leat
 * reads.
 */
int leat__lmdb_header_repair(leat__lmdb_map *out, const char *name,
                             const void *base, size_t size,
                             leat__lmdb_event event[], int *n);

#endif
