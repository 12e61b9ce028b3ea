/* argument_table.h: a type's table of arguments, and the values they take. */
#ifndef LEAT_PIPELINE_ARGUMENT_TABLE_H
#define LEAT_PIPELINE_ARGUMENT_TABLE_H

#include <leat/ext/reader.h>

#include <stdbool.h>

/* The argument at `i` of the type's table; NULL after the last. */
const leat_argument *leat__argument_at(const leat_reader_type *type, int i);

/* The argument of that name; NULL: there is none. */
const leat_argument *leat__argument_find(const leat_reader_type *type,
                                         const char *name);

/* The argument of the positional value at `i`; NULL: the type takes fewer. */
const leat_argument *leat__argument_positional(const leat_reader_type *type,
                                               int i);

/*
 * Writes "; did you mean NAME?" for a name that the type does not have, or ""
 * where none is near. Returns `out`.
 */
const char *leat__argument_nearest(const leat_reader_type *type,
                                   const char *name, char *out, int size);

/*
 * Reads a NUMBER, BYTES, a TIME in nanoseconds or the index of a WORD. False:
 * the text is none, or out of range.
 */
bool leat__argument_read(const leat_argument *argument, const char *text,
                         int64_t *out);

/* LEAT_EINVAL where `text` is no value of the argument. */
int leat__argument_check(const leat_reader_type *type,
                         const leat_argument *argument, const char *text);

/* LEAT_EINVAL names what is wrong with the type's table. */
int leat__argument_table_check(const leat_reader_type *type);

#endif
