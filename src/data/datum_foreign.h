/* datum_foreign.h: identifies records that are not valid Datums. */
#ifndef LEAT_DATA_DATUM_FOREIGN_H
#define LEAT_DATA_DATUM_FOREIGN_H

#include <leat/datum.h>

/*
 * Called for a record that was refused as a Datum with `status` and an error
 * line. If its bytes are of another program's format, the line is replaced by
 * one that names it and what leat expects. `datum` is what was parsed, or NULL.
 * Returns `status`.
 */
int leat__datum_foreign(const leat_datum *datum, const void *bytes, size_t size,
                        int status) __attribute__((cold));

#endif
