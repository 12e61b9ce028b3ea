/* reader_table.h: checks the tables that the author of a reader provides, and
 * an operation that many of leat's own have. */
#ifndef LEAT_PIPELINE_READER_TABLE_H
#define LEAT_PIPELINE_READER_TABLE_H

#include <leat/ext/reader.h>

#include <stddef.h>

/* Bytes of the oldest table; optional operations follow. */
#define LEAT__READER_OPS_MIN offsetof(leat_reader_ops, materialize)

/* LEAT_EINVAL if the type lacks a required entry, which the error names. */
int leat__reader_type_check(const leat_reader_type *type);

/* The same for the operations of an open reader of type `name`. */
int leat__reader_ops_check(const leat_reader_ops *ops, const char *name);

/* 0, for operations that ask whether, such as can_seek. */
int leat__reader_no(leat_reader *reader);

#endif
