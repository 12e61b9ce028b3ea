/* record_set.h: a set of records, each once. */
#ifndef LEAT_LAYER_ON_ERROR_RECORD_SET_H
#define LEAT_LAYER_ON_ERROR_RECORD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record, and the position in the sequence at which it was met first. */
typedef struct leat__record_mark {
    uint64_t source; /* hash of its name */
    int64_t record;  /* its number there */
    int64_t epoch;
    int64_t position; /* in the epoch */
} leat__record_mark;

/* The most records of a set, unless it has a limit of its own: 60 MB. */
#define LEAT__RECORD_SET_MAX ((size_t)1 << 20)

/* A zeroed one is empty. One owner at a time. */
typedef struct leat__record_set {
    leat__record_mark *mark; /* in the order in which they came */
    size_t n;
    size_t limit;    /* of n; 0: LEAT__RECORD_SET_MAX */
    size_t *slot;    /* 1 + the index of a mark; 0: none */
    size_t capacity; /* of slot, a power of 2; of mark, half as many */
    uint64_t salt;   /* nobody can choose records that share slots */
} leat__record_set;

/* The hash of a source's name, of `size` bytes. */
uint64_t leat__record_set_source(const char *name, size_t size);

/*
 * 1: it was added, 0: the record is in the set. LEAT_ELIMIT, without a line: it
 * is not, and the set is full. LEAT_ENOMEM.
 */
int leat__record_set_add(leat__record_set *set, const leat__record_mark *mark);

bool leat__record_set_is_full(const leat__record_set *set);

bool leat__record_set_has(const leat__record_set *set,
                          const leat__record_mark *mark);

/* Forgets records met at this position or later. */
void leat__record_set_rewind(leat__record_set *set, int64_t epoch,
                             int64_t position);

void leat__record_set_finish(leat__record_set *set);

#endif
