/* registry.h: the types of readers, by name. */
#ifndef LEAT_PIPELINE_REGISTRY_H
#define LEAT_PIPELINE_REGISTRY_H

#include <leat/ext/reader.h>

/* Those that come with leat, NULL after the last; src/readers/readers.c. */
extern const leat_reader_type *const leat__readers[];

/* The type of that name. Errors: LEAT_EINVAL, listing the names there are. */
int leat__registry_find(const leat_reader_type **out, const char *name);

#endif
