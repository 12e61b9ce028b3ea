/* database.h: opens an LMDB by its path alone. */
#ifndef LEAT_TOOLS_DATABASE_DATABASE_H
#define LEAT_TOOLS_DATABASE_DATABASE_H

#include <leat/pipeline.h>
#include <leat/reader.h>

/* Owned by the caller: leat_reader_close. Errors: those of LMDBs. */
int database_open(leat_reader **out, const char *path);

/*
 * The pipeline of a text, such as lmdb:PATH, or of an LMDB's path alone, behind
 * which options may stand as behind lmdb:PATH. Where a text is both, it is the
 * pipeline. Owned by the caller: leat_pipeline_unref. Errors: those of
 * leat_pipeline_parse.
 */
int database_pipeline(leat_pipeline **out, const char *text);

/* LEAT_EINVAL where a file to be written is one of the database at `path`. */
int database_spare(const char *path, const char *output);

#endif
