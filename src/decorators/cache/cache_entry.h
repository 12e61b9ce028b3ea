/*
 * cache_entry.h: a sample, or the error of a bad record, as one block of bytes:
 * in memory, and in the file of a cache that is kept. Little-endian, as all
 * machines that leat runs on.
 */
#ifndef LEAT_DECORATORS_CACHE_CACHE_ENTRY_H
#define LEAT_DECORATORS_CACHE_CACHE_ENTRY_H

#include <leat/sample.h>
#include <leat/token.h>

#include <stddef.h>

/* No entry is shorter; all are a multiple of it, and aligned to it. */
#define LEAT__CACHE_ENTRY_UNIT 64

/* What an entry is made of. */
typedef struct leat__cache_item {
    const leat_sample *sample;
    int first;              /* of the sample's fields */
    const leat_token *mark; /* the upstream reader's before it; NULL: none */
    const char *line;       /* of a bad record, which has no fields; or NULL */
} leat__cache_item;

/* The bytes of an entry; 0: too many. */
size_t leat__cache_entry_size(const leat__cache_item *item);

/* Writes them, to aligned memory of that size. */
void leat__cache_entry_write(const leat__cache_item *item, void *entry);

/*
 * Appends the fields to a sample, and sets its provenance, as views of the
 * entry, which has `size` bytes; nothing in it is trusted. LEAT_EDATA with the
 * bad record's line; LEAT_EFORMAT for bytes that are no entry.
 */
int leat__cache_entry_view(const void *entry, size_t size, leat_sample *out);

/* Appends the mark to a token. Errors: LEAT_EFORMAT, LEAT_ENOMEM. */
int leat__cache_entry_mark(const void *entry, size_t size, leat_token *token);

#endif
