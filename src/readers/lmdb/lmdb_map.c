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

/* Approximate size of a node's header, its key and the beginning of a Datum. */
enum { HEAD_BYTES = 32 };

enum {
    PAGE_HEADER = 16,
    NODE_HEADER = 8,
    FIRST_PAGE = 2, /* after the meta pages */
    VERSION = 1,
    /* A node with a key of one byte, padded to an even size, and its offset. */
    RECORD_BYTES_MIN = 12
};

enum {
    PAGE_OVERFLOW = 0x04,
    PAGE_META = 0x08,
    /* Flags that are meaningful only to a running writer. */
    PAGE_TRANSIENT = 0x10 | 0x4000 | 0x8000
};

enum { NODE_OVERFLOW = 0x01, NODE_DATABASE = 0x02, NODE_DUPLICATES = 0x04 };

enum {
    DATABASE_REVERSE_KEY = 0x02,
    DATABASE_DUPLICATES = 0x04 | 0x10 | 0x20 | 0x40,
    DATABASE_INTEGER_KEY = 0x08
};

static uint16_t load16(const unsigned char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint32_t load32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t load64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* An error that names the file and page. */
#define BAD_PAGE(map, number, format, ...)                                     \
    leat_error(LEAT_EFORMAT, "%s: page %llu is damaged: " format, (map)->name, \
               (unsigned long long)(number), __VA_ARGS__)

/* The magic at another offset or in another byte order identifies a file of
 * another machine. */
static int foreign(const char *name, int number, const unsigned char *bytes)
{
    uint32_t magic = load32(bytes + 16);
    if (number == 0 && load32(bytes + 12) == MAGIC)
        return leat_error(LEAT_EFORMAT,
                          "%s: written by a 32-bit program; copy it with "
                          "mdb_dump there and mdb_load here",
                          name);
    if (number == 0 && magic == __builtin_bswap32(MAGIC))
        return leat_error(LEAT_EFORMAT,
                          "%s: written on a machine of the other byte order; "
                          "copy it with mdb_dump there and mdb_load here",
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
    if (load32(bytes + 16) != MAGIC)
        return foreign(name, number, bytes);
    uint32_t version = load32(bytes + 20);
    if (version != VERSION)
        return leat_error(LEAT_EFORMAT, "%s: LMDB format %u, expected %d", name,
                          version, VERSION);
    uint16_t flags = load16(bytes + 10);
    if (!(flags & PAGE_META))
        return leat_error(LEAT_EFORMAT,
                          "%s: page %d is damaged: expected a meta page, "
                          "its flags are 0x%x",
                          name, number, flags);
    uint64_t found = load64(bytes);
    if (found != (uint64_t)number)
        return leat_error(LEAT_EFORMAT,
                          "%s: page %d is damaged: it has the number %llu",
                          name, number, (unsigned long long)found);
    uint32_t page_size = load32(bytes + 40);
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
    uint16_t db_flags = load16(main_db + 4);
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
    out->page_size = load32(bytes + 40);
    out->backward = db_flags != 0;
    out->depth = load16(main_db + 6);
    out->branch_pages = load64(main_db + 8);
    out->leaf_pages = load64(main_db + 16);
    out->overflow_pages = load64(main_db + 24);
    out->entries = load64(main_db + 32);
    out->root = load64(main_db + 40);
    out->free_depth = load16(free_db + 6);
    out->free_entries = load64(free_db + 32);
    out->free_root = load64(free_db + 40);
    out->last_page = load64(bytes + 136);
    out->last_promised = out->last_page;
    out->txnid = load64(bytes + 144);
    return LEAT_OK;
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
    uint64_t most = (meta->page_size - PAGE_HEADER) / RECORD_BYTES_MIN;
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

static const unsigned char *page_at(const leat__lmdb_map *map, uint64_t number)
{
    return map->base + number * map->meta.page_size;
}

/* Checks the page's number and returns its flags. */
static int check_number(const leat__lmdb_map *map, uint64_t number,
                        unsigned *flags)
{
    if (number < FIRST_PAGE || number > map->meta.last_page)
        return leat_error(
            LEAT_EFORMAT,
            "%s: damaged: a pointer to page %llu, the last one is "
            "%llu",
            map->name, (unsigned long long)number,
            (unsigned long long)map->meta.last_page);
    const unsigned char *bytes = page_at(map, number);
    uint64_t found = load64(bytes);
    if (found != number)
        return BAD_PAGE(map, number, "it has the number %llu",
                        (unsigned long long)found);
    *flags = load16(bytes + 10) & ~(unsigned)PAGE_TRANSIENT;
    return LEAT_OK;
}

int leat__lmdb_map_page(const leat__lmdb_map *map, uint64_t number,
                        leat__lmdb_page_type type, leat__lmdb_page *out)
{
    unsigned flags = 0;
    int status = check_number(map, number, &flags);
    if (status)
        return status;
    if (flags != type)
        return BAD_PAGE(map, number, "expected a %s, its flags are 0x%x",
                        type == LEAT__LMDB_LEAF ? "leaf" : "branch", flags);
    const unsigned char *bytes = page_at(map, number);
    uint32_t lower = load16(bytes + 12), upper = load16(bytes + 14);
    if (lower < PAGE_HEADER || lower > upper || lower % 2 ||
        upper > map->meta.page_size)
        return BAD_PAGE(map, number,
                        "its offsets end at %u and its nodes begin at %u",
                        lower, upper);
    uint32_t count = (lower - PAGE_HEADER) / 2;
    /* Only an emptied tree may keep a leaf without records. */
    if (!count && (type == LEAT__LMDB_BRANCH || map->meta.entries))
        return BAD_PAGE(map, number, "expected %s, it is empty", "nodes");
    *out = (leat__lmdb_page){number, bytes, count, upper};
    return LEAT_OK;
}

/* The offset of a node whose header is inside the page. */
static int node_offset(const leat__lmdb_map *map, const leat__lmdb_page *page,
                       uint32_t slot, uint32_t *out)
{
    uint32_t offset = load16(page->bytes + PAGE_HEADER + 2 * (size_t)slot);
    if (offset < page->upper || offset % 2 ||
        offset + NODE_HEADER > map->meta.page_size)
        return BAD_PAGE(map, page->number, "node %u is at offset %u", slot,
                        offset);
    *out = offset;
    return LEAT_OK;
}

int leat__lmdb_map_child(const leat__lmdb_map *map, const leat__lmdb_page *page,
                         uint32_t slot, uint64_t *out)
{
    uint32_t offset = 0;
    int status = node_offset(map, page, slot, &offset);
    if (status)
        return status;
    uint64_t header = load64(page->bytes + offset);
    if ((header >> 48) > map->meta.page_size - offset - NODE_HEADER)
        return BAD_PAGE(map, page->number,
                        "the key of node %u goes beyond its end", slot);
    *out = header & 0xffffffffffff;
    return LEAT_OK;
}

void leat__lmdb_map_fetch_header(const leat__lmdb_map *map, uint64_t number)
{
    if (number <= map->meta.last_page)
        __builtin_prefetch(page_at(map, number));
}

void leat__lmdb_map_fetch_nodes(const leat__lmdb_map *map, uint64_t number)
{
    if (number > map->meta.last_page)
        return;
    const unsigned char *bytes = page_at(map, number);
    const unsigned char *offset = bytes + PAGE_HEADER;
    const unsigned char *end = bytes + load16(bytes + 12);
    if (end > bytes + LEAT__CACHE_LINE)
        end = bytes + LEAT__CACHE_LINE;
    for (; offset < end; offset += sizeof(uint16_t)) {
        const unsigned char *node = bytes + load16(offset);
        __builtin_prefetch(node - 1);
        __builtin_prefetch(node + HEAD_BYTES);
    }
    __builtin_prefetch(bytes + map->meta.page_size - 1);
}

int leat__lmdb_map_separator(const leat__lmdb_map *map,
                             const leat__lmdb_page *page, uint32_t slot,
                             const unsigned char **key, size_t *key_size)
{
    uint32_t offset = 0;
    int status = node_offset(map, page, slot, &offset);
    if (status)
        return status;
    size_t size = load64(page->bytes + offset) >> 48;
    if (size > map->meta.page_size - offset - NODE_HEADER)
        return BAD_PAGE(map, page->number,
                        "the key of node %u goes beyond its end", slot);
    *key = page->bytes + offset + NODE_HEADER;
    *key_size = size;
    return LEAT_OK;
}

size_t leat__lmdb_map_overflow_pages(const leat__lmdb_map *map,
                                     const leat__lmdb_node *node)
{
    return load32(page_at(map, node->overflow) + 12);
}

static int bad_node(const leat__lmdb_map *map, uint64_t address, unsigned flags)
{
    uint64_t number = address >> 16;
    unsigned offset = address & 0xffff;
    if (flags & NODE_DATABASE && !(flags & ~(NODE_DATABASE | NODE_DUPLICATES)))
        return leat_error(LEAT_EFORMAT,
                          "%s: it has named databases, which cannot be read; "
                          "expected Datums in the unnamed one",
                          map->name);
    return BAD_PAGE(map, number, "the node at offset %u has flags 0x%x", offset,
                    flags);
}

int leat__lmdb_map_node_at(const leat__lmdb_map *map, uint64_t address,
                           leat__lmdb_node *out)
{
    uint32_t offset = address & 0xffff;
    const unsigned char *node = page_at(map, address >> 16) + offset;
    uint64_t header = load64(node);
    size_t key_size = header >> 48, value_size = header & 0xffffffff;
    unsigned flags = (header >> 32) & 0xffff;
    size_t room = map->meta.page_size - offset - NODE_HEADER;
    if (flags & ~(unsigned)NODE_OVERFLOW)
        return bad_node(map, address, flags);
    size_t held = flags ? sizeof(uint64_t) : value_size;
    if (!key_size || key_size + held > room)
        return BAD_PAGE(map, address >> 16,
                        "the node at offset %u has a key of %zu bytes and "
                        "%zu bytes of value",
                        offset, key_size, held);
    const unsigned char *value = node + NODE_HEADER + key_size;
    out->address = address;
    out->key = node + NODE_HEADER;
    out->key_size = key_size;
    out->value_size = value_size;
    out->value = flags ? NULL : value;
    out->overflow = flags ? load64(value) : 0;
    return LEAT_OK;
}

int leat__lmdb_map_node(const leat__lmdb_map *map, const leat__lmdb_page *page,
                        uint32_t slot, leat__lmdb_node *out)
{
    uint32_t offset = 0;
    int status = node_offset(map, page, slot, &offset);
    if (status)
        return status;
    return leat__lmdb_map_node_at(map, page->number << 16 | offset, out);
}

__attribute__((noinline)) static int find_overflow(const leat__lmdb_map *map,
                                                   leat__lmdb_node *node)
{
    uint64_t number = node->overflow;
    unsigned flags = 0;
    int status = check_number(map, number, &flags);
    if (status)
        return status;
    if (flags != PAGE_OVERFLOW)
        return BAD_PAGE(map, number,
                        "expected an overflow page, its flags are 0x%x", flags);
    const unsigned char *bytes = page_at(map, number);
    /* A value overwritten by a shorter one keeps its pages. */
    uint64_t pages = load32(bytes + 12);
    uint64_t needs = (PAGE_HEADER - 1 + node->value_size) / map->meta.page_size;
    if (pages <= needs || pages - 1 > map->meta.last_page - number)
        return BAD_PAGE(map, number,
                        "%llu overflow pages for a value of %zu bytes, the "
                        "last page is %llu",
                        (unsigned long long)pages, node->value_size,
                        (unsigned long long)map->meta.last_page);
    node->value = bytes + PAGE_HEADER;
    return LEAT_OK;
}

int leat__lmdb_map_overflow(const leat__lmdb_map *map, leat__lmdb_node *node)
{
    return node->value ? LEAT_OK : find_overflow(map, node);
}

static bool ascends_backward(const unsigned char *a, size_t a_size,
                             const unsigned char *b, size_t b_size)
{
    while (a_size && b_size) {
        int difference = (int)b[--b_size] - a[--a_size];
        if (difference)
            return difference > 0;
    }
    return a_size < b_size;
}

bool leat__lmdb_map_ascends(const leat__lmdb_map *map, const void *a,
                            size_t a_size, const void *b, size_t b_size)
{
    if (map->meta.backward)
        return ascends_backward(a, a_size, b, b_size);
    if (a_size >= 8 && b_size >= 8) {
        uint64_t first = __builtin_bswap64(load64(a));
        uint64_t second = __builtin_bswap64(load64(b));
        if (first != second)
            return first < second;
    }
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order < 0 : a_size < b_size;
}
