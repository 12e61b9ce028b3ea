#include "readers/lmdb/lmdb_node.h"
#include "base/error.h"
#include "base/memory.h"

/* Approximate size of a node's header, its key and the beginning of a Datum. */
enum { HEAD_BYTES = 32 };

enum { PAGE_OVERFLOW = 0x04 };

enum { NODE_DATABASE = 0x02, NODE_DUPLICATES = 0x04 };

void leat__lmdb_map_report_offset(const leat__lmdb_map *map,
                                  const leat__lmdb_page *page, uint32_t slot,
                                  uint32_t offset)
{
    (void)LEAT__LMDB_BAD_PAGE(map, page->number, "node %u is at offset %u",
                              slot, offset);
}

static void report_flags(const leat__lmdb_map *map, uint64_t address,
                         unsigned flags)
{
    if (flags & NODE_DATABASE && !(flags & ~(NODE_DATABASE | NODE_DUPLICATES)))
        (void)leat_error(LEAT_EFORMAT,
                         "%s: it has named databases, which cannot be read; "
                         "expected Datums in the unnamed one",
                         map->name);
    else
        (void)LEAT__LMDB_BAD_PAGE(map, address >> 16,
                                  "the node at offset %u has flags 0x%x",
                                  (unsigned)(address & 0xffff), flags);
}

void leat__lmdb_map_report_node(const leat__lmdb_map *map, uint64_t address,
                                uint64_t header)
{
    unsigned flags = (header >> 32) & 0xffff;
    size_t held = flags ? sizeof(uint64_t) : header & 0xffffffff;
    if (flags & ~(unsigned)LEAT__LMDB_NODE_OVERFLOW)
        report_flags(map, address, flags);
    else
        (void)LEAT__LMDB_BAD_PAGE(
            map, address >> 16,
            "the node at offset %u has a key of %zu bytes and "
            "%zu bytes of value",
            (unsigned)(address & 0xffff), (size_t)(header >> 48), held);
}

int leat__lmdb_map_child(const leat__lmdb_map *map, const leat__lmdb_page *page,
                         uint32_t slot, uint64_t *out)
{
    uint32_t offset = 0;
    int status = leat__lmdb_map_offset(map, page, slot, &offset);
    if (status)
        return status;
    uint64_t header = leat__lmdb_load64(page->bytes + offset);
    if ((header >> 48) > map->meta.page_size - offset - LEAT__LMDB_NODE_HEADER)
        return LEAT__LMDB_BAD_PAGE(
            map, page->number, "the key of node %u goes beyond its end", slot);
    *out = header & 0xffffffffffff;
    return LEAT_OK;
}

int leat__lmdb_map_separator(const leat__lmdb_map *map,
                             const leat__lmdb_page *page, uint32_t slot,
                             const unsigned char **key, size_t *key_size)
{
    uint32_t offset = 0;
    int status = leat__lmdb_map_offset(map, page, slot, &offset);
    if (status)
        return status;
    size_t size = leat__lmdb_load64(page->bytes + offset) >> 48;
    if (size > map->meta.page_size - offset - LEAT__LMDB_NODE_HEADER)
        return LEAT__LMDB_BAD_PAGE(
            map, page->number, "the key of node %u goes beyond its end", slot);
    *key = page->bytes + offset + LEAT__LMDB_NODE_HEADER;
    *key_size = size;
    return LEAT_OK;
}

void leat__lmdb_map_fetch_header(const leat__lmdb_map *map, uint64_t number)
{
    if (number <= map->meta.last_page)
        __builtin_prefetch(leat__lmdb_map_page_at(map, number));
}

void leat__lmdb_map_fetch_nodes(const leat__lmdb_map *map, uint64_t number)
{
    if (number > map->meta.last_page)
        return;
    const unsigned char *bytes = leat__lmdb_map_page_at(map, number);
    const unsigned char *offset = bytes + LEAT__LMDB_PAGE_HEADER;
    const unsigned char *end = bytes + leat__lmdb_load16(bytes + 12);
    if (end > bytes + LEAT__CACHE_LINE)
        end = bytes + LEAT__CACHE_LINE;
    for (; offset < end; offset += sizeof(uint16_t)) {
        const unsigned char *node = bytes + leat__lmdb_load16(offset);
        __builtin_prefetch(node - 1);
        __builtin_prefetch(node + HEAD_BYTES);
    }
    __builtin_prefetch(bytes + map->meta.page_size - 1);
}

int leat__lmdb_map_find_overflow(const leat__lmdb_map *map,
                                 leat__lmdb_node *node)
{
    uint64_t number = node->overflow;
    unsigned flags = 0;
    int status = leat__lmdb_map_check_number(map, number, &flags);
    if (status)
        return status;
    if (flags != PAGE_OVERFLOW)
        return LEAT__LMDB_BAD_PAGE(
            map, number, "expected an overflow page, its flags are 0x%x",
            flags);
    const unsigned char *bytes = leat__lmdb_map_page_at(map, number);
    /* A value overwritten by a shorter one keeps its pages. */
    uint64_t pages = leat__lmdb_load32(bytes + 12);
    uint64_t needs =
        (LEAT__LMDB_PAGE_HEADER - 1 + node->value_size) / map->meta.page_size;
    if (pages <= needs || pages - 1 > map->meta.last_page - number)
        return LEAT__LMDB_BAD_PAGE(
            map, number,
            "%llu overflow pages for a value of %zu bytes, the "
            "last page is %llu",
            (unsigned long long)pages, node->value_size,
            (unsigned long long)map->meta.last_page);
    node->value = bytes + LEAT__LMDB_PAGE_HEADER;
    return LEAT_OK;
}

size_t leat__lmdb_map_overflow_pages(const leat__lmdb_map *map,
                                     const leat__lmdb_node *node)
{
    return leat__lmdb_load32(leat__lmdb_map_page_at(map, node->overflow) + 12);
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

bool leat__lmdb_map_ascends_slowly(const leat__lmdb_map *map, const void *a,
                                   size_t a_size, const void *b, size_t b_size)
{
    if (map->meta.backward)
        return ascends_backward(a, a_size, b, b_size);
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order < 0 : a_size < b_size;
}
