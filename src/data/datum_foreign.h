/* datum_foreign.h: what a record is that is not a sound Datum. */
#ifndef LEAT_DATA_DATUM_FOREIGN_H
#define LEAT_DATA_DATUM_FOREIGN_H

#include <leat/datum.h>

/*
 * A record was refused as a Datum for `status`, with a line. Where its bytes
 * show that another program's format was meant, the line says which, and what
 * leat wants; else it is left as it is. `datum` is what was parsed, or NULL.
 * Returns `status`.
 */
int leat__datum_foreign(const leat_datum *datum, const void *bytes, size_t size,
                        int status) __attribute__((cold));

#endif
