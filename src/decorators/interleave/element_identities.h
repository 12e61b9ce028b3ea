/*
 * element_identities.h: what tells the data of each element of an epoch from
 * others, so that a later opening of one finds whether they are the same.
 */
#ifndef LEAT_DECORATORS_INTERLEAVE_ELEMENT_IDENTITIES_H
#define LEAT_DECORATORS_INTERLEAVE_ELEMENT_IDENTITIES_H

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdint.h>

/* Of one element. */
typedef struct leat__element_identity {
    uint64_t name; /* a hash */
    uint64_t data; /* a hash of its identity, and of those before it */
} leat__element_identity;

/* Zeroed: empty. */
typedef struct leat__element_identities {
    leat__element_identity *element;
    int64_t n, room;
    atomic_int_fast64_t bytes; /* any thread reads it */
} leat__element_identities;

/* Adds the next element; without a reader it has no data. Errors: LEAT_ENOMEM;
 * those of leat_reader_identify. */
int leat__element_identities_add(leat__element_identities *identities,
                                 const char *name, leat_reader *reader);

/* LEAT_EFORMAT: the reader of an element that was added has other data by now.
 * One of another name, as an epoch in another order has it, is not compared. */
int leat__element_identities_check(const leat__element_identities *identities,
                                   int64_t element, const char *name,
                                   leat_reader *reader);

/* Of all that were added. */
uint64_t
leat__element_identities_hash(const leat__element_identities *identities);
void leat__element_identities_finish(leat__element_identities *identities);

#endif
