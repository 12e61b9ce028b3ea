/* database.h: opens an LMDB by its path alone. */
#ifndef LEAT_TOOLS_DATABASE_DATABASE_H
#define LEAT_TOOLS_DATABASE_DATABASE_H

#include <leat/reader.h>

/* Owned by the caller: leat_reader_close. Errors: those of LMDBs. */
int database_open(leat_reader **out, const char *path);

/* LEAT_EINVAL where a file to be written is one of the database at `path`. */
int database_spare(const char *path, const char *output);

#endif
