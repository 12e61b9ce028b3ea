/* database.h: opens an LMDB by its path alone. */
#ifndef LEAT_TOOLS_DATABASE_DATABASE_H
#define LEAT_TOOLS_DATABASE_DATABASE_H

#include <leat/pipeline.h>
#include <leat/reader.h>

/* Owned by the caller: leat_reader_close. Errors: those of LMDBs. */
int database_open(leat_reader **out, const char *path);

/*
 * The pipeline of a text, such as lmdb:PATH, or of an LMDB's path alone, after
 * which options may stand as after lmdb:PATH. Where a text is both, it is the
 * pipeline. Owned by the caller: leat_pipeline_unref. Errors: those of
 * leat_pipeline_parse.
 */
int database_pipeline(leat_pipeline **out, const char *text);

/*
 * As leat_reader_fields; LEAT_OK too where the records that it looks at are all
 * bad, with the fields of a Datum: an LMDB alone has to look for them.
 */
int database_fields(leat_reader *reader, const leat_field_spec **out, int *n);

/*
 * Has leat's own walker check every page that leads to a record, since liblmdb
 * trusts all pages, and counts the records.
 * Errors: LEAT_EFORMAT, LEAT_EUNSUPPORTED, LEAT_EIO, LEAT_ENOMEM.
 */
int database_check(const char *path, int64_t *records);

#endif
