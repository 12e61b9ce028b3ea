#include "readers/lmdb/lmdb_storage.h"

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    if (value < least)
        return least;
    return value < most ? value : most;
}

void leat__lmdb_storage_init(leat__lmdb_storage *out, const leat__lmdb_map *map,
                             int fd)
{
    /* The meta page's counts may be wrong; so are the averages then. */
    const leat__lmdb_meta *meta = &map->meta;
    uint64_t pages = meta->last_page + 1;
    uint64_t leaves = within(meta->leaf_pages, 1, pages);
    uint64_t bytes =
        within(leaves + within(meta->overflow_pages, 0, pages), 1, pages) *
        meta->page_size;
    *out = (leat__lmdb_storage){
        .map = map,
        .record_bytes = bytes / within(meta->entries, 1, bytes),
        .leaf_bytes = bytes / leaves,
    };
    leat__mapped_file_init(&out->file, map->name, map->base, map->size, fd);
}

static leat__span cut(const leat__lmdb_storage *storage, size_t offset,
                      size_t bytes)
{
    size_t size = storage->map->size;
    if (offset > size)
        offset = size;
    return (leat__span){offset, bytes < size - offset ? bytes : size - offset};
}

leat__span leat__lmdb_storage_leaf(const leat__lmdb_storage *storage,
                                   uint64_t page)
{
    const leat__lmdb_map *map = storage->map;
    if (page > map->meta.last_page)
        return (leat__span){0, 0};
    return cut(storage, (size_t)page * map->meta.page_size,
               map->meta.page_size);
}

leat__span leat__lmdb_storage_value(const leat__lmdb_storage *storage,
                                    const leat__lmdb_node *node)
{
    const leat__lmdb_map *map = storage->map;
    size_t page_size = map->meta.page_size;
    if (node->value || node->overflow > map->meta.last_page)
        return (leat__span){0, 0};
    /* Whole pages; sizes of values have 32 bits, so nothing overflows. */
    size_t bytes = (16 + node->value_size + page_size - 1) & ~(page_size - 1);
    return cut(storage, (size_t)node->overflow * page_size, bytes);
}
