/*
 * record_limit.h: how long a record may be that is read in order, of a
 * compressed file or a pipe: it, or its chunk, is held in memory as a whole.
 */
#ifndef LEAT_READERS_RECORD_LIMIT_H
#define LEAT_READERS_RECORD_LIMIT_H

#include <leat/ext/reader.h>

#include <stdint.h>

typedef struct leat__record_limit {
    uint64_t bytes;      /* the smaller of the two */
    uint64_t max_record; /* the argument */
    int64_t max_memory;  /* 0: no limit */
} leat__record_limit;

/* Of a reader that has the argument max_record. */
leat__record_limit leat__record_limit_of(const leat_open *open);

/*
 * The error of a record that has more than limit->bytes: `bytes`, and `when` is
 * the rest of the sentence, or "". LEAT_ELIMIT where max_memory is what limits
 * it; else `status`.
 */
int leat__record_limit_refuse(const leat__record_limit *limit, int status,
                              uint64_t bytes, const char *when);

#endif
