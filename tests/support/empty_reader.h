/* empty_reader.h: the functions of a reader without samples, for tables. */
#ifndef LEAT_TESTS_EMPTY_READER_H
#define LEAT_TESTS_EMPTY_READER_H

#include <leat/ext/reader.h>

int empty_reader_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n);
int empty_reader_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got);
int empty_reader_seek(leat_reader *reader, leat_position position,
                      leat_token *mark);
void empty_reader_cancel(leat_reader *reader);

/* All but `name` and `close`. */
#define EMPTY_READER_OPS                                                       \
    .size = sizeof(leat_reader_ops), .fields = empty_reader_fields,            \
    .next = empty_reader_next, .seek = empty_reader_seek,                      \
    .cancel = empty_reader_cancel

#endif
