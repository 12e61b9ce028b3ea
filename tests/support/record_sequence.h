/* record_sequence.h: what every reader of files does with known records. */
#ifndef LEAT_TESTS_RECORD_SEQUENCE_H
#define LEAT_TESTS_RECORD_SEQUENCE_H

#include <leat.h>

#include <stddef.h>

/* What the first field of a sample holds. */
typedef struct known_record {
    const void *bytes;
    size_t size;
} known_record;

/*
 * That the pipeline `text` gives these records: in order for every number at a
 * time, twice, from every position by mark, skip, seek and read_at, and after
 * failing allocations. No record is bad.
 */
void record_sequence_check(const char *text, const known_record *records,
                           int n);

/*
 * Reads all, and returns the first status that is neither LEAT_OK nor
 * LEAT_EDATA; *good and *bad records came before.
 */
int record_sequence_read(const char *text, int *good, int *bad);

/* A folder of the test's own, in which it runs. */
void record_sequence_begin(void);
void record_sequence_end(void);

/* Files there: as they are, and by zlib, as gzip or zlib. */
void record_sequence_write(const char *name, const void *bytes, size_t size);
void record_sequence_pack(const char *name, const void *bytes, size_t size,
                          int is_zlib);

#endif
