/* registry.h: finds reader types by name. */
#ifndef LEAT_PIPELINE_REGISTRY_H
#define LEAT_PIPELINE_REGISTRY_H

#include <leat/ext/reader.h>

/* The built-in types, NULL-terminated; see src/readers/readers.c and
 * src/decorators/decorators.c. */
extern const leat_reader_type *const leat__readers[];
extern const leat_reader_type *const leat__decorators[];

/* Finds the type of that name. Errors: LEAT_EINVAL, with the nearest name. */
int leat__registry_find(const leat_reader_type **out, const char *name);

#endif
