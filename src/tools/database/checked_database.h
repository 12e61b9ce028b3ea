/* lmdb_check.h: that a database is fit for liblmdb, which trusts its pages. */
#ifndef LEAT_TOOLS_DATABASE_CHECKED_DATABASE_H
#define LEAT_TOOLS_DATABASE_CHECKED_DATABASE_H

#include <leat/reader.h>

/*
 * Has leat's own walker look at every page that leads to a record. As long as
 * the reader is open, the records stay as they are; liblmdb may then read them
 * without a lock of its own (MDB_RDONLY | MDB_NOLOCK).
 * Errors: LEAT_EFORMAT, LEAT_EUNSUPPORTED, LEAT_EIO, LEAT_ENOMEM.
 */
int checked_database_open(leat_reader **out, const char *path,
                          int64_t *records);

#endif
