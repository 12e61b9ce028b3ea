/* fixed.h: files of records of one size. */
#ifndef LEAT_READERS_FIXED_H
#define LEAT_READERS_FIXED_H

#include "readers/record/record_format.h"

extern const leat_reader_type leat__fixed_reader_type;

#endif
