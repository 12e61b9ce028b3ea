/* registry.h: the types of readers, by name. */
#ifndef LEAT_READERS_REGISTRY_H
#define LEAT_READERS_REGISTRY_H

#include <leat/ext/reader.h>

/* The type of that name. Errors: LEAT_EINVAL, listing the names there are. */
int leat__registry_find(const leat_reader_type **out, const char *name);

#endif
