/* random_data.h: the type of the reader of random numbers. */
#ifndef LEAT_READERS_RANDOM_DATA_H
#define LEAT_READERS_RANDOM_DATA_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__random_type;

#endif
