/* record_cursor.h: where a pass in order over several mapped files is. */
#ifndef LEAT_READERS_RECORD_CURSOR_H
#define LEAT_READERS_RECORD_CURSOR_H

#include "readers/record/record_index.h"

/* Used by one caller at a time. */
typedef struct leat__record_cursor {
    const leat__record_files *files; /* borrowed, as the format is */
    const leat__record_format *format;
    int file; /* files->n: at the end */
    leat__record_walk walk;
    uint64_t awaited; /* the end of what is in memory; 0: unknown */
} leat__record_cursor;

/* The most records of one step. */
#define LEAT__RECORD_STEP_MAX 256

/* What a step found: records of one file. */
typedef struct leat__record_step {
    leat__record_walk before; /* the walk there */
    int n;
    leat__record_span span[LEAT__RECORD_STEP_MAX];
} leat__record_step;

/* At the beginning of the first file. */
void leat__record_cursor_init(leat__record_cursor *out,
                              const leat__record_files *files,
                              const leat__record_format *format);

/* The bytes of all files in front of it. */
static inline uint64_t
leat__record_cursor_bytes(const leat__record_cursor *cursor)
{
    const leat__record_files *files = cursor->files;
    return cursor->file < files->n
               ? files->source[cursor->file].begin + cursor->walk.offset
               : files->bytes;
}

/* Goes to the beginning of a file. Errors: LEAT_EIO for one that changed;
 * LEAT_END after the last. */
int leat__record_cursor_enter(leat__record_cursor *cursor, int file);

/*
 * Walks over the next records, at most `n`, of this file or the next ones.
 * `awaits`: has them in memory; `n` is at most LEAT__RECORD_AWAIT_MAX then.
 * LEAT_END after the last. Errors: those of the format's walk, the record being
 * the one at out->before, and out->span[0]; LEAT_EIO, LEAT_ECANCELLED.
 */
int leat__record_cursor_step(leat__record_cursor *cursor, int n, bool awaits,
                             leat__record_step *out);

/* Goes back to after the first `n` records of the last step. */
void leat__record_cursor_return(leat__record_cursor *cursor,
                                leat__record_step *step, int n);

/* Goes to a record of a file, in [0, count). Errors: those of enter and of the
 * format's resume. */
int leat__record_cursor_go_to(leat__record_cursor *cursor,
                              const leat__record_index *index, int file,
                              int64_t record);

#endif
