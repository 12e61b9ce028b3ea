/*
 * bad_record_line.h: a line of a bad_record_file: source, record, key, epoch,
 * position, replacement and reason, with tabs between.
 */
#ifndef LEAT_LAYER_ON_ERROR_BAD_RECORD_LINE_H
#define LEAT_LAYER_ON_ERROR_BAD_RECORD_LINE_H

#include "layer/on_error/bad_list.h"
#include "layer/on_error/record_set.h"

#include <stdbool.h>
#include <stddef.h>

/* Four bytes for each of a path, a key and a reason, and the numbers. */
#define LEAT__BAD_RECORD_LINE_MAX                                              \
    (4 * (4096 + LEAT__KEY_MAX + LEAT__ERROR_MAX) + 256)

/* Writes the line, with its end; which record it lists, and the line's bytes.
 */
size_t leat__bad_record_line_format(char line[LEAT__BAD_RECORD_LINE_MAX],
                                    const leat__bad *bad,
                                    leat__record_mark *mark);

/* Which record the line up to `end` lists; 0: it is none of leat's. A table of
 * another program may have numbers in the same columns, but no replacement. */
bool leat__bad_record_line_read(const char *line, const char *end,
                                leat__record_mark *out);

#endif
