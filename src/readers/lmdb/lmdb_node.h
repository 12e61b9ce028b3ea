/*
 * lmdb_node.h: the records of a leaf, checked like the pages of lmdb_map.h.
 *
 * Inline, since a walk meets each record here, and reading it does once more.
 */
#ifndef LEAT_READERS_LMDB_NODE_H
#define LEAT_READERS_LMDB_NODE_H

#include "readers/lmdb/lmdb_map.h"

#include <string.h>

/* A node of a leaf. Its value is in the node or on overflow pages. */
typedef struct leat__lmdb_node {
    uint64_t address; /* page << 16 | offset in the page */
    const unsigned char *key;
    size_t key_size;
    const unsigned char *value; /* NULL: on overflow pages */
    size_t value_size;
    uint64_t overflow; /* the first of these pages */
} leat__lmdb_node;

enum {
    LEAT__LMDB_NODE_HEADER = 8,
    LEAT__LMDB_NODE_OVERFLOW = 0x01 /* the node's only known flag */
};

/* The lines of the LEAT_EFORMAT that the functions below return. */
void leat__lmdb_map_report_offset(const leat__lmdb_map *map,
                                  const leat__lmdb_page *page, uint32_t slot,
                                  uint32_t offset);
void leat__lmdb_map_report_node(const leat__lmdb_map *map, uint64_t address,
                                uint64_t header);

/* The offset of a node whose header is inside the page. */
static inline int leat__lmdb_map_offset(const leat__lmdb_map *map,
                                        const leat__lmdb_page *page,
                                        uint32_t slot, uint32_t *out)
{
    uint32_t offset = leat__lmdb_load16(page->bytes + LEAT__LMDB_PAGE_HEADER +
                                        2 * (size_t)slot);
    *out = offset;
    if (offset < page->upper || offset % 2 ||
        offset + LEAT__LMDB_NODE_HEADER > map->meta.page_size) {
        leat__lmdb_map_report_offset(map, page, slot, offset);
        return LEAT_EFORMAT;
    }
    return LEAT_OK;
}

/* The node at an address that leat__lmdb_map_node returned. */
static inline int leat__lmdb_map_node_at(const leat__lmdb_map *map,
                                         uint64_t address, leat__lmdb_node *out)
{
    uint32_t offset = address & 0xffff;
    const unsigned char *node =
        leat__lmdb_map_page_at(map, address >> 16) + offset;
    uint64_t header = leat__lmdb_load64(node);
    size_t key_size = header >> 48, value_size = header & 0xffffffff;
    unsigned flags = (header >> 32) & 0xffff;
    size_t room = map->meta.page_size - offset - LEAT__LMDB_NODE_HEADER;
    size_t held = flags ? sizeof(uint64_t) : value_size;
    if (flags & ~(unsigned)LEAT__LMDB_NODE_OVERFLOW || !key_size ||
        key_size + held > room) {
        leat__lmdb_map_report_node(map, address, header);
        return LEAT_EFORMAT;
    }
    const unsigned char *value = node + LEAT__LMDB_NODE_HEADER + key_size;
    out->address = address;
    out->key = node + LEAT__LMDB_NODE_HEADER;
    out->key_size = key_size;
    out->value_size = value_size;
    out->value = flags ? NULL : value;
    out->overflow = flags ? leat__lmdb_load64(value) : 0;
    return LEAT_OK;
}

/* Node `slot` of a leaf. Touches only the leaf. */
static inline int leat__lmdb_map_node(const leat__lmdb_map *map,
                                      const leat__lmdb_page *page,
                                      uint32_t slot, leat__lmdb_node *out)
{
    uint32_t offset = 0;
    int status = leat__lmdb_map_offset(map, page, slot, &offset);
    if (status)
        return status;
    return leat__lmdb_map_node_at(map, page->number << 16 | offset, out);
}

/* Finds the value on the overflow pages that the node names. */
int leat__lmdb_map_find_overflow(const leat__lmdb_map *map,
                                 leat__lmdb_node *node);

/* Finds the value on its overflow pages, if it has any. */
static inline int leat__lmdb_map_overflow(const leat__lmdb_map *map,
                                          leat__lmdb_node *node)
{
    return node->value ? LEAT_OK : leat__lmdb_map_find_overflow(map, node);
}

/* The number of overflow pages from node->overflow on, once the value is found.
 */
size_t leat__lmdb_map_overflow_pages(const leat__lmdb_map *map,
                                     const leat__lmdb_node *node);

/* leat__lmdb_map_ascends for all keys. */
bool leat__lmdb_map_ascends_slowly(const leat__lmdb_map *map, const void *a,
                                   size_t a_size, const void *b, size_t b_size);

/* Whether key `b` follows key `a` in the file's order. */
static inline bool leat__lmdb_map_ascends(const leat__lmdb_map *map,
                                          const void *a, size_t a_size,
                                          const void *b, size_t b_size)
{
    if (a_size >= 8 && b_size >= 8 && !map->meta.backward) {
        uint64_t first = __builtin_bswap64(leat__lmdb_load64(a));
        uint64_t second = __builtin_bswap64(leat__lmdb_load64(b));
        if (first != second)
            return first < second;
    }
    return leat__lmdb_map_ascends_slowly(map, a, a_size, b, b_size);
}

/* The child page of node `slot` of a branch. */
int leat__lmdb_map_child(const leat__lmdb_map *map, const leat__lmdb_page *page,
                         uint32_t slot, uint64_t *out);

/* The node's key, a lower bound of all keys below it. The first node has none.
 */
int leat__lmdb_map_separator(const leat__lmdb_map *map,
                             const leat__lmdb_page *page, uint32_t slot,
                             const unsigned char **key, size_t *key_size);

/*
 * Prefetch into the cache a page's header, and the beginnings of a leaf's nodes
 * and the ends of those before them. Nothing is checked; the second one reads
 * the header, so the page should be in memory.
 */
void leat__lmdb_map_fetch_header(const leat__lmdb_map *map, uint64_t number);
void leat__lmdb_map_fetch_nodes(const leat__lmdb_map *map, uint64_t number);

#endif
