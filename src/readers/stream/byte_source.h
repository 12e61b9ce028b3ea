/* byte_source.h: where a byte stream reads: a file, a pipe or standard input.
 */
#ifndef LEAT_READERS_BYTE_SOURCE_H
#define LEAT_READERS_BYTE_SOURCE_H

#include "base/file_version.h"

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of standard input. */
#define LEAT__STANDARD_INPUT "-"

/* One caller at a time; cancel on any thread between init and finish. */
typedef struct leat__byte_source {
    leat_reader *reader;        /* whose waiting is counted; NULL: no one's */
    const char *path;           /* borrowed while it is open */
    int fd;                     /* -1: none is open */
    unsigned input;             /* standard input: its reader; 0: a file */
    bool is_regular;            /* read by offset; else it is waited for */
    bool has_ended;             /* what is not */
    leat__file_version version; /* of what was opened, as of check */
    int64_t offset;             /* of the next byte to read */
    atomic_bool cancelled;
    atomic_int wake; /* eventfd that ends a wait; -1: none was needed yet */
    atomic_uint generation; /* of the process that made it */
} leat__byte_source;

void leat__byte_source_init(leat__byte_source *source, leat_reader *reader);
void leat__byte_source_finish(leat__byte_source *source);

/*
 * Opens a file, after closing the one before; a named pipe without waiting for
 * its writer. Standard input has a single reader in the process, which reads it
 * where it stands. Errors: LEAT_EIO; LEAT_ESTATE where standard input has a
 * reader already.
 */
int leat__byte_source_open(leat__byte_source *source, const char *path);
void leat__byte_source_close(leat__byte_source *source);

/*
 * Reads up to `n` bytes, at least one; *got is 0 at the end. Waits for a pipe,
 * woken by cancel. Errors: LEAT_EIO, LEAT_ECANCELLED.
 */
int leat__byte_source_read(leat__byte_source *source, void *out, size_t n,
                           size_t *got);

/*
 * Passes by up to `n` bytes of a regular file, as many as it has now: *skipped.
 * Others are read instead, and 0 are skipped. Errors: LEAT_EIO.
 */
int leat__byte_source_skip(leat__byte_source *source, int64_t n,
                           int64_t *skipped);

/* Makes waiting and all further reads LEAT_ECANCELLED. */
void leat__byte_source_cancel(leat__byte_source *source);

/* LEAT_ECANCELLED once it is. */
int leat__byte_source_check_running(const leat__byte_source *source);

/*
 * Checks that a path can be read later, without opening a pipe. *out: of a
 * regular file, which may be read from its beginning again; the size of any
 * other is -1. Errors: LEAT_EIO, for a directory or socket as well;
 * LEAT_ECANCELLED once this thread's opening is.
 */
int leat__byte_source_check(const char *path, leat__file_version *out);

/*
 * That nobody wrote the open file since it was opened; what is none that may be
 * read again passes. Errors: LEAT_EIO.
 */
int leat__byte_source_check_open(const leat__byte_source *source);

#endif
