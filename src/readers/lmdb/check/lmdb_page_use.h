/* lmdb_page_use.h: which pages of an LMDB file are in use, and that none is
 * used twice. */
#ifndef LEAT_READERS_LMDB_PAGE_USE_H
#define LEAT_READERS_LMDB_PAGE_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages from `begin` to before `end`, which the overflow pages at `page` count
 * and their value does not need. */
typedef struct leat__lmdb_spare {
    uint64_t page, begin, end;
} leat__lmdb_spare;

typedef struct leat__lmdb_page_use {
    const char *name;    /* of the file, for errors; borrowed */
    unsigned char *bits; /* one for each page; owned unless borrowed */
    bool borrows_bits;
    leat__lmdb_spare *spare; /* owned */
    size_t spares, room;
} leat__lmdb_page_use;

/* Bits of the pages 0 to `last`, all 0; freed by leat__free. NULL: no memory.
 */
unsigned char *leat__lmdb_page_bits(uint64_t last);

static inline bool leat__lmdb_page_bit(const unsigned char *bits, uint64_t page)
{
    return bits[page / 8] >> (page % 8) & 1;
}

static inline void leat__lmdb_page_bit_set(unsigned char *bits, uint64_t page)
{
    bits[page / 8] |= (unsigned char)(1U << (page % 8));
}

/* Marks the pages, which lie inside the file, as in use. LEAT_EFORMAT where one
 * is already. */
int leat__lmdb_page_use_mark(leat__lmdb_page_use *use, uint64_t page,
                             uint64_t pages);

/*
 * Marks those that the value at `page` needs. Its count of pages may be
 * damaged, or that of a longer value which was there before: pages beyond the
 * value are its own only if no other record needs them, which is for check.
 * Errors: those of mark, LEAT_ENOMEM.
 */
int leat__lmdb_page_use_mark_value(leat__lmdb_page_use *use, uint64_t page,
                                   uint64_t needed, uint64_t pages);

/* Once all values are marked: LEAT_EFORMAT for the next one, at `*page`, whose
 * count has a page of another; LEAT_OK after the last. */
int leat__lmdb_page_use_check(leat__lmdb_page_use *use, uint64_t *page);

void leat__lmdb_page_use_finish(leat__lmdb_page_use *use);

#endif
