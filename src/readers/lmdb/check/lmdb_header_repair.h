/* lmdb_header_repair.h: the latest snapshot of an LMDB file that may be
 * damaged. */
#ifndef LEAT_READERS_LMDB_HEADER_REPAIR_H
#define LEAT_READERS_LMDB_HEADER_REPAIR_H

#include "readers/lmdb/check/lmdb_recovery.h"

/* The most damage that it finds by itself. */
#define LEAT__LMDB_HEADER_EVENTS 4

/*
 * Takes what the better of the file's meta pages tells, cut to the pages that
 * are there. The damage that was found in doing so goes to event[0..*n-1], in
 * the order of its finding, room for LEAT__LMDB_HEADER_EVENTS; `lost` of them
 * are records that the snapshot taken does not have and the latest one had.
 * LEAT_EFORMAT: the file is beyond that, or no LMDB of ours.
 */
int leat__lmdb_header_repair(leat__lmdb_map *out, const char *name,
                             const void *base, size_t size,
                             leat__lmdb_event event[], int *n);

#endif
