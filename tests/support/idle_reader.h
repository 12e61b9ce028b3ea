/* idle_reader.h: what a reader's table must have, of one without samples. */
#ifndef LEAT_TESTS_IDLE_READER_H
#define LEAT_TESTS_IDLE_READER_H

#include <leat/ext/reader.h>

int idle_fields(leat_reader *reader, const leat_field_spec **out, int *n);
int idle_next(leat_reader *reader, leat_sample *const out[], int n, int *got);
int idle_reset(leat_reader *reader);
void idle_cancel(leat_reader *reader);

/* All but `name` and `close`. */
#define IDLE_READER_OPS                                                        \
    .size = sizeof(leat_reader_ops), .fields = idle_fields, .next = idle_next, \
    .reset = idle_reset, .cancel = idle_cancel

#endif
