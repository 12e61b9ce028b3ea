/* shuffle_marks.h: marks of a stream, from which the samples that a buffer
 * holds are read again. */
#ifndef LEAT_DECORATORS_SHUFFLE_SHUFFLE_MARKS_H
#define LEAT_DECORATORS_SHUFFLE_SHUFFLE_MARKS_H

#include <leat/ext/reader.h>

enum { LEAT__SHUFFLE_MARKS = 32 };

/* A mark of the stream, taken before an input. */
typedef struct leat__shuffle_mark {
    int64_t input;
    leat_token token;
} leat__shuffle_mark;

/*
 * Marks in the order of the inputs. The first is not later than the oldest
 * sample that is held. In the steady state their memory is used again.
 */
typedef struct leat__shuffle_marks {
    int64_t interval; /* inputs from one to the next, at least */
    int n;
    leat__shuffle_mark mark[LEAT__SHUFFLE_MARKS];
} leat__shuffle_marks;

void leat__shuffle_marks_init(leat__shuffle_marks *marks, int64_t interval);
void leat__shuffle_marks_finish(leat__shuffle_marks *marks);

/* Whether one is to be taken before `input`. */
int leat__shuffle_marks_are_due(const leat__shuffle_marks *marks,
                                int64_t input);

/*
 * Drops those that are not needed for inputs from `oldest` on, and returns a
 * new one with an empty token, for `input`. Where there are too many, every
 * second is dropped from then on.
 */
leat__shuffle_mark *leat__shuffle_marks_add(leat__shuffle_marks *marks,
                                            int64_t oldest, int64_t input);

#endif
