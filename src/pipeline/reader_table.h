/* reader_table.h: what leat relies on in the tables of a reader's author. */
#ifndef LEAT_PIPELINE_READER_TABLE_H
#define LEAT_PIPELINE_READER_TABLE_H

#include <leat/ext/reader.h>

#include <stddef.h>

/* Bytes that a table of any age has; optional operations follow. */
#define LEAT__READER_OPS_MIN offsetof(leat_reader_ops, count)

/* LEAT_EINVAL where the type lacks what it needs, by name. */
int leat__reader_type_check(const leat_reader_type *type);

/* The same for the operations of an open reader of type `name`. */
int leat__reader_ops_check(const leat_reader_ops *ops, const char *name);

#endif
