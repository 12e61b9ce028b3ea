/* text.h: lines of text. */
#ifndef LEAT_READERS_TEXT_H
#define LEAT_READERS_TEXT_H

#include "readers/record/record_format.h"

extern const leat_reader_type leat__text_reader_type;

/* A format of lines of at most `max_line` bytes, for tests. */
int leat__text_format_create(leat__record_format **out, uint64_t max_line);

#endif
