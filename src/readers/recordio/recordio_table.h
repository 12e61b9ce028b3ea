/*
 * recordio_table.h: where the chunks of a mapped RecordIO file are, and what is
 * known of their checksums.
 */
#ifndef LEAT_READERS_RECORDIO_TABLE_H
#define LEAT_READERS_RECORDIO_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    LEAT__RECORDIO_CHUNK_UNKNOWN,
    LEAT__RECORDIO_CHUNK_GOOD,
    LEAT__RECORDIO_CHUNK_BAD
};

/* Zeros are an empty one. */
typedef struct leat__recordio_table {
    uint64_t *offset;    /* of each header, ascending, and the last one's end */
    atomic_uchar *state; /* of each */
    int64_t n;
    int64_t capacity;
    atomic_int_fast64_t last; /* in which a record was found */
} leat__recordio_table;

/*
 * Adds a chunk, or the end of the last one. `*memory` is what the tables of all
 * files take, of at most `most` bytes; 0: no limit. Errors: LEAT_ELIMIT,
 * LEAT_ENOMEM.
 */
int leat__recordio_table_add(leat__recordio_table *table, uint64_t offset,
                             int64_t *memory, int64_t most);

/* What was added last is the end. Errors: LEAT_ENOMEM. */
int leat__recordio_table_end(leat__recordio_table *table);

/* The chunk that has the byte `at`, or the one before it; there is one. */
int64_t leat__recordio_table_find(leat__recordio_table *table, uint64_t at);

void leat__recordio_table_finish(leat__recordio_table *table);

#endif
