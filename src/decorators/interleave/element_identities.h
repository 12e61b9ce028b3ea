/*
 * element_identities.h: what tells the data of each element of an epoch from
 * others, so that a later opening of one finds whether they are the same.
 */
#ifndef LEAT_DECORATORS_INTERLEAVE_ELEMENT_IDENTITIES_H
#define LEAT_DECORATORS_INTERLEAVE_ELEMENT_IDENTITIES_H

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of one element. */
typedef struct leat__element_identity {
    uint64_t key;  /* 0: none */
    uint64_t data; /* a hash */
} leat__element_identity;

/* A hash table by key. Zeroed: empty. */
typedef struct leat__element_identities {
    leat__element_identity *element;
    int64_t n, room;           /* room: a power of two, at least 2 n, or 0 */
    uint64_t hash;             /* of the data, in the order they were added */
    atomic_int_fast64_t bytes; /* any thread reads it */
} leat__element_identities;

/* Of an element's name, and of a number. Never 0. */
uint64_t leat__element_key(const char *name, int64_t number);

void leat__element_identities_clear(leat__element_identities *identities);

/* Adds an element whose key was added before. False: it was not. */
bool leat__element_identities_repeat(leat__element_identities *identities,
                                     uint64_t key);

/* Adds an element whose key is new; without a reader it has no data. Errors:
 * LEAT_ENOMEM; those of leat_reader_identify. */
int leat__element_identities_add(leat__element_identities *identities,
                                 uint64_t key, leat_reader *reader);

/* LEAT_EFORMAT: the reader of an element that was added has other data by now.
 * One that was not is not compared. */
int leat__element_identities_check(const leat__element_identities *identities,
                                   uint64_t key, leat_reader *reader);

void leat__element_identities_finish(leat__element_identities *identities);

#endif
