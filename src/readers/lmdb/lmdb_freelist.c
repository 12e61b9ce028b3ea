#include "readers/lmdb/lmdb_freelist.h"
#include "base/error.h"

#include <stdbool.h>
#include <string.h>

/* A transaction's value is the number of its pages, then their numbers. */
enum { NUMBER = 8 };

static uint64_t load64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

int leat__lmdb_freelist_map(leat__lmdb_map *out, const char *name,
                            const leat__lmdb_map *map)
{
    leat__lmdb_meta meta = map->meta;
    meta.root = meta.free_root;
    meta.entries = meta.free_entries;
    meta.depth = meta.free_depth;
    meta.backward = true; /* keys are little-endian integers */
    return leat__lmdb_map_init(out, name, map->base, map->size, &meta);
}

int leat__lmdb_freelist_init(leat__lmdb_freelist *list,
                             const leat__lmdb_map *map)
{
    int status = leat__lmdb_freelist_map(&list->map, map->name, map);
    if (!status)
        leat__lmdb_walker_init(&list->walker, &list->map);
    return status;
}

int leat__lmdb_freed_read(leat__lmdb_freed *out, const char *name,
                          const unsigned char *key, size_t key_size,
                          const unsigned char *value, size_t value_size)
{
    uint64_t room = value_size / NUMBER;
    uint64_t n = room ? load64(value) : 0;
    /* liblmdb may reserve room for more pages than it then lists. */
    if (key_size != NUMBER || !room || n > room - 1)
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: a transaction number of %zu bytes has "
                          "%zu bytes for %llu pages",
                          name, key_size, value_size, (unsigned long long)n);
    *out = (leat__lmdb_freed){load64(key), value + NUMBER, (size_t)n};
    return LEAT_OK;
}

int leat__lmdb_freelist_next(leat__lmdb_freelist *list, leat__lmdb_freed *out)
{
    leat__lmdb_entry entry;
    int got;
    int status = leat__lmdb_walker_next(&list->walker, &entry, 1, &got);
    if (status)
        return status;
    return leat__lmdb_freed_read(out, list->map.name, entry.key, entry.key_size,
                                 entry.value, entry.value_size);
}

uint64_t leat__lmdb_freed_page(const leat__lmdb_freed *freed, size_t i)
{
    return load64(freed->pages + i * NUMBER);
}

/* The number of free pages from page `first` to page `last`, the last of all.
 * Lists of more pages than there are end it: damaged ones may share a value,
 * and be as long as the square of the file's size. */
static int count(const leat__lmdb_map *map, uint64_t first, uint64_t last,
                 uint64_t *out)
{
    leat__lmdb_freelist list;
    leat__lmdb_freed freed;
    uint64_t room = last;
    int status = leat__lmdb_freelist_init(&list, map);
    *out = 0;
    while (!status && !(status = leat__lmdb_freelist_next(&list, &freed))) {
        if (freed.n > room)
            return leat_error(LEAT_EFORMAT,
                              "%s: damaged: more than %llu pages are free",
                              map->name, (unsigned long long)last);
        room -= freed.n;
        for (size_t i = 0; i < freed.n; i++) {
            uint64_t page = leat__lmdb_freed_page(&freed, i);
            *out += page >= first && page <= last;
        }
    }
    return status == LEAT_END ? LEAT_OK : status;
}

int leat__lmdb_freelist_cut(leat__lmdb_meta *meta, const char *name,
                            const void *base, size_t size)
{
    uint64_t there = size / meta->page_size, last = meta->last_page, missing;
    if (last < there || there < 2)
        return LEAT_OK;
    leat__lmdb_meta cut = *meta;
    cut.last_page = there - 1;
    leat__lmdb_map map = {name, base, size, cut};
    if (count(&map, there, last, &missing) || missing != last - there + 1)
        return leat_error(LEAT_EFORMAT,
                          "%s: truncated: it has %zu bytes, pages 0 to %llu, "
                          "but its last page is %llu",
                          name, size, (unsigned long long)there - 1,
                          (unsigned long long)last);
    *meta = cut;
    return LEAT_OK;
}
