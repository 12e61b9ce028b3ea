/*
 * The format of LMDB 0.9 files, version 1, as written on 64-bit little-endian
 * machines.
 *
 *   page     number u64, pad u16, flags u16, then for branches and leaves
 *            lower u16 and upper u16, for overflow pages their number u32;
 *            then the offsets of the nodes, u16 each, up to lower; the nodes
 *            lie between upper and the end of the page, at even offsets
 *   branch   child's page number in 3 x u16 (low, middle, high), key size u16,
 *            key; the first key of a page has no meaning
 *   leaf     value size in 2 x u16 (low, high), flags u16, key size u16, key,
 *            then the value or the number of its first overflow page, u64
 *   meta     pages 0 and 1: page header, magic u32, version u32, address u64,
 *            map size u64, free database, main database, last page u64,
 *            transaction u64; transactions write them in turn
 *   database pad u32 (of the free database: page size), flags u16, depth u16,
 *            branch, leaf and overflow pages, entries, root, u64 each
 */
#include "readers/lmdb/lmdb_map.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

#define MAGIC 0xbeefc0deU

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "pages are read in the byte order of the machine");

enum {
    FIRST_PAGE = 2, /* after the meta pages */
    VERSION = 1,
    /* A node with a key of one byte, padded to an even size, and its offset. */
    RECORD_BYTES_MIN = 12
};

enum {
    PAGE_META = 0x08,
    /* Flags that are meaningful only to a running writer. */
    PAGE_TRANSIENT = 0x10 | 0x4000 | 0x8000
};

enum {
    DATABASE_REVERSE_KEY = 0x02,
    DATABASE_DUPLICATES = 0x04 | 0x10 | 0x20 | 0x40,
    DATABASE_INTEGER_KEY = 0x08
};

/* The magic at another offset or in another byte order identifies a file of
 * another machine, or of LMDB 1.0, whose pages have a longer header. */
static int foreign(const char *name, int number, const unsigned char *bytes)
{
    uint32_t magic = leat__lmdb_load32(bytes + 16);
    if (number == 0 && leat__lmdb_load32(bytes + 12) == MAGIC)
        return leat_error(LEAT_EFORMAT,
                          "%s: written by a 32-bit program; copy it with "
                          "mdb_dump there and mdb_load here",
                          name);
    if (number == 0 && magic == __builtin_bswap32(MAGIC))
        return leat_error(LEAT_EFORMAT,
                          "%s: written on a machine of the other byte order; "
                          "copy it with mdb_dump there and mdb_load here",
                          name);
    if (number == 0 && leat__lmdb_load32(bytes + 24) == MAGIC)
        return leat_error(LEAT_EFORMAT,
                          "%s: written by LMDB 1.0, expected the format of "
                          "0.9; copy it with mdb_dump of 1.0 and mdb_load of "
                          "0.9",
                          name);
    return leat_error(LEAT_EFORMAT,
                      "%s: %s: expected the magic 0x%x in meta page %d, found "
                      "0x%x",
                      name,
                      number ? "damaged" : "not an LMDB data file, or damaged",
                      MAGIC, number, magic);
}

int leat__lmdb_meta_check_page(const char *name, int number,
                               const unsigned char bytes[LEAT__LMDB_META_BYTES])
{
    if (leat__lmdb_load32(bytes + 16) != MAGIC)
        return foreign(name, number, bytes);
    uint32_t version = leat__lmdb_load32(bytes + 20);
    if (version != VERSION)
        return leat_error(LEAT_EFORMAT, "%s: LMDB format %u, expected %d", name,
                          version, VERSION);
    uint16_t flags = leat__lmdb_load16(bytes + 10);
    if (!(flags & PAGE_META))
        return leat_error(LEAT_EFORMAT,
                          "%s: page %d is damaged: expected a meta page, "
                          "its flags are 0x%x",
                          name, number, flags);
    uint64_t found = leat__lmdb_load64(bytes);
    if (found != (uint64_t)number)
        return leat_error(LEAT_EFORMAT,
                          "%s: page %d is damaged: it has the number %llu",
                          name, number, (unsigned long long)found);
    uint32_t page_size = leat__lmdb_load32(bytes + 40);
    if (page_size < 256 || page_size > 65536 || (page_size & (page_size - 1)))
        return leat_error(LEAT_EFORMAT,
                          "%s: page size %u in meta page %d, expected a power "
                          "of two from 256 to 65536",
                          name, page_size, number);
    return LEAT_OK;
}

int leat__lmdb_meta_parse(leat__lmdb_meta *out, const char *name, int number,
                          const unsigned char bytes[LEAT__LMDB_META_BYTES])
{
    const unsigned char *free_db = bytes + 40, *main_db = bytes + 88;
    int status = leat__lmdb_meta_check_page(name, number, bytes);
    if (status)
        return status;
    uint16_t db_flags = leat__lmdb_load16(main_db + 4);
    if (db_flags & DATABASE_DUPLICATES)
        return leat_error(LEAT_EFORMAT,
                          "%s: a database with several values a key (DUPSORT) "
                          "cannot be read",
                          name);
    if (db_flags & ~(DATABASE_REVERSE_KEY | DATABASE_INTEGER_KEY))
        return leat_error(LEAT_EFORMAT,
                          "%s: meta page %d is damaged: unknown database "
                          "flags 0x%x",
                          name, number, db_flags);
    out->page_size = leat__lmdb_load32(bytes + 40);
    out->backward = db_flags != 0;
    out->depth = leat__lmdb_load16(main_db + 6);
    out->branch_pages = leat__lmdb_load64(main_db + 8);
    out->leaf_pages = leat__lmdb_load64(main_db + 16);
    out->overflow_pages = leat__lmdb_load64(main_db + 24);
    out->entries = leat__lmdb_load64(main_db + 32);
    out->root = leat__lmdb_load64(main_db + 40);
    out->free_depth = leat__lmdb_load16(free_db + 6);
    out->free_entries = leat__lmdb_load64(free_db + 32);
    out->free_root = leat__lmdb_load64(free_db + 40);
    out->last_page = leat__lmdb_load64(bytes + 136);
    out->last_promised = out->last_page;
    out->txnid = leat__lmdb_meta_txnid(bytes);
    return LEAT_OK;
}

uint64_t leat__lmdb_meta_txnid(const unsigned char bytes[LEAT__LMDB_META_BYTES])
{
    return leat__lmdb_load64(bytes + 144);
}

int leat__lmdb_meta_check(const leat__lmdb_meta *meta, const char *name,
                          size_t size)
{
    uint64_t pages = size / meta->page_size;
    if (meta->last_page >= pages || meta->last_page < FIRST_PAGE - 1)
        return leat_error(LEAT_EFORMAT,
                          "%s: truncated: it has %zu bytes, pages 0 to %llu, "
                          "but its last page is %llu",
                          name, size, (unsigned long long)(pages - !!pages),
                          (unsigned long long)meta->last_page);
    uint64_t most =
        (meta->page_size - LEAT__LMDB_PAGE_HEADER) / RECORD_BYTES_MIN;
    if (meta->last_page >> 48 || meta->entries > (meta->last_page + 1) * most)
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: %llu records cannot be in %llu pages",
                          name, (unsigned long long)meta->entries,
                          (unsigned long long)meta->last_page + 1);
    if (meta->root == LEAT__LMDB_NO_PAGE && !meta->depth && !meta->entries)
        return LEAT_OK;
    if (meta->root < FIRST_PAGE || meta->root > meta->last_page ||
        meta->depth < 1 || meta->depth > LEAT__LMDB_DEPTH_MAX)
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: a tree of %d levels and %llu records "
                          "with its root on page %llu of %llu",
                          name, meta->depth, (unsigned long long)meta->entries,
                          (unsigned long long)meta->root,
                          (unsigned long long)meta->last_page + 1);
    return LEAT_OK;
}

int leat__lmdb_meta_check_pair(const leat__lmdb_meta meta[2], const char *name)
{
    if (meta[0].page_size != meta[1].page_size)
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: its meta pages have page sizes %zu "
                          "and %zu",
                          name, meta[0].page_size, meta[1].page_size);
    uint64_t first = meta[0].txnid, second = meta[1].txnid;
    /* A database that was never written to has 0 in both. */
    if ((first != 0 || second != 0) &&
        (first % 2 != 0 || (second != first + 1 && first != second + 1)))
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: its meta pages are of the transactions "
                          "%llu and %llu, expected two in a row",
                          name, (unsigned long long)first,
                          (unsigned long long)second);
    const leat__lmdb_meta *newer = &meta[first < second];
    const leat__lmdb_meta *older = &meta[first >= second];
    /* LMDB never gives a page back. */
    if (newer->last_page < older->last_page)
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: transaction %llu has %llu pages, the "
                          "one before it %llu",
                          name, (unsigned long long)newer->txnid,
                          (unsigned long long)newer->last_page + 1,
                          (unsigned long long)older->last_page + 1);
    return LEAT_OK;
}

int leat__lmdb_map_init(leat__lmdb_map *out, const char *name, const void *base,
                        size_t size, const leat__lmdb_meta *meta)
{
    int status = leat__lmdb_meta_check(meta, name, size);
    if (status)
        return status;
    *out = (leat__lmdb_map){name, base, size, *meta};
    return LEAT_OK;
}

int leat__lmdb_map_latest(leat__lmdb_map *out, const char *name,
                          const void *base, size_t size)
{
    leat__lmdb_meta meta[2] = {{0}};
    const unsigned char *bytes = base;
    if (size < LEAT__LMDB_META_BYTES)
        return leat_error(LEAT_EFORMAT, "%s: truncated: it has %zu bytes", name,
                          size);
    int status = leat__lmdb_meta_parse(&meta[0], name, 0, bytes);
    if (status)
        return status;
    size_t second = meta[0].page_size;
    if (size < second + LEAT__LMDB_META_BYTES)
        return leat_error(LEAT_EFORMAT, "%s: truncated: it has %zu bytes", name,
                          size);
    status = leat__lmdb_meta_parse(&meta[1], name, 1, bytes + second);
    if (status)
        return status;
    status = leat__lmdb_meta_check_pair(meta, name);
    if (status)
        return status;
    int latest = meta[0].txnid < meta[1].txnid;
    return leat__lmdb_map_init(out, name, base, size, &meta[latest]);
}

int leat__lmdb_map_check_number(const leat__lmdb_map *map, uint64_t number,
                                unsigned *flags)
{
    if (number < FIRST_PAGE || number > map->meta.last_page)
        return leat_error(
            LEAT_EFORMAT,
            "%s: damaged: a pointer to page %llu, the last one is "
            "%llu",
            map->name, (unsigned long long)number,
            (unsigned long long)map->meta.last_page);
    const unsigned char *bytes = leat__lmdb_map_page_at(map, number);
    uint64_t found = leat__lmdb_load64(bytes);
    if (found != number)
        return LEAT__LMDB_BAD_PAGE(map, number, "it has the number %llu",
                                   (unsigned long long)found);
    *flags = leat__lmdb_load16(bytes + 10) & ~(unsigned)PAGE_TRANSIENT;
    return LEAT_OK;
}

int leat__lmdb_map_page(const leat__lmdb_map *map, uint64_t number,
                        leat__lmdb_page_type type, leat__lmdb_page *out)
{
    unsigned flags = 0;
    int status = leat__lmdb_map_check_number(map, number, &flags);
    if (status)
        return status;
    if (flags != type)
        return LEAT__LMDB_BAD_PAGE(
            map, number, "expected a %s, its flags are 0x%x",
            type == LEAT__LMDB_LEAF ? "leaf" : "branch", flags);
    const unsigned char *bytes = leat__lmdb_map_page_at(map, number);
    uint32_t lower = leat__lmdb_load16(bytes + 12),
             upper = leat__lmdb_load16(bytes + 14);
    if (lower < LEAT__LMDB_PAGE_HEADER || lower > upper || lower % 2 ||
        upper > map->meta.page_size)
        return LEAT__LMDB_BAD_PAGE(
            map, number, "its offsets end at %u and its nodes begin at %u",
            lower, upper);
    uint32_t count = (lower - LEAT__LMDB_PAGE_HEADER) / 2;
    /* Only an emptied tree may keep a leaf without records, as its root: with
     * branches above it each would be visited as often as they say. */
    if (!count &&
        (type == LEAT__LMDB_BRANCH || map->meta.entries || map->meta.depth > 1))
        return LEAT__LMDB_BAD_PAGE(map, number, "expected %s, it is empty",
                                   "nodes");
    *out = (leat__lmdb_page){number, bytes, count, upper};
    return LEAT_OK;
}
