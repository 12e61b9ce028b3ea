/* range.h: the type of the reader of numbers. */
#ifndef LEAT_READERS_RANGE_H
#define LEAT_READERS_RANGE_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__range_type;

#endif
