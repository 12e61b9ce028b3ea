/*
 * fuzz_lmdb_walker.c: any bytes as an LMDB file, walked, indexed and sought,
 * every value read as a Datum; then with read-ahead.
 */
#include "base/memory.h"
#include "readers/lmdb/lmdb_freelist.h"
#include "readers/lmdb/lmdb_index.h"

#include <leat/datum.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

static void touch(const leat__lmdb_entry *entry)
{
    leat_datum datum;
    unsigned sum = 0;
    for (size_t i = 0; i < entry->key_size; i++)
        sum += entry->key[i];
    for (size_t i = 0; i < entry->value_size; i++)
        sum += entry->value[i];
    sum += (unsigned)leat_datum_parse(&datum, entry->value, entry->value_size);
    sink += sum;
}

/* Delivered to the end, a walk has as many records as were promised. */
static void walk(const leat__lmdb_map *map, int64_t from)
{
    static leat__lmdb_walker walker;
    leat__lmdb_entry entry[8];
    int64_t count = from;
    int status, got;
    leat__lmdb_walker_init(&walker, map);
    if (leat__lmdb_walker_seek(&walker, from))
        return;
    while (!(status = leat__lmdb_walker_next(&walker, entry, 8, &got))) {
        for (int i = 0; i < got; i++) {
            if (entry[i].record != count++)
                abort();
            touch(&entry[i]);
        }
    }
    if (status == LEAT_END && (uint64_t)count != map->meta.entries)
        abort();
}

/* Two laps of a file that, for want of one, counts as being on storage. */
static void walk_followed(const leat__lmdb_map *map)
{
    static leat__lmdb_walker walker;
    static leat__lmdb_readahead ahead;
    leat__lmdb_storage storage;
    leat__lmdb_entry entry[8];
    int got;
    leat__lmdb_storage_init(&storage, map, -1);
    leat__lmdb_readahead_init(&ahead, &storage, 4096, 1);
    leat__lmdb_walker_init(&walker, map);
    for (int lap = 0; lap < 2; lap++) {
        do {
            leat__lmdb_readahead_follow(&ahead, &walker);
        } while (!leat__lmdb_walker_next(&walker, entry, 8, &got));
        leat__lmdb_readahead_restart(&ahead, &walker, 1);
        leat__lmdb_walker_init(&walker, map);
    }
}

static void walk_free(const leat__lmdb_map *map)
{
    leat__lmdb_freelist list;
    leat__lmdb_freed freed;
    leat__lmdb_meta meta = map->meta;
    if (leat__lmdb_freelist_init(&list, map))
        return;
    while (!leat__lmdb_freelist_next(&list, &freed)) {
        for (size_t i = 0; i < freed.n; i++)
            sink += (unsigned char)leat__lmdb_freed_page(&freed, i);
    }
    /* As if the pages from the middle on had never been written. */
    size_t half = map->size / 2;
    if (half / meta.page_size >= 2)
        leat__lmdb_freelist_cut(&meta, map->name, map->base, half);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat__lmdb_map map;
    leat__lmdb_index *index;
    leat__lmdb_node node;
    leat__lmdb_entry entry;
    if (leat__lmdb_map_latest(&map, "fuzz", data, size))
        return 0;
    walk(&map, 0);
    walk(&map, (int64_t)(map.meta.entries / 2));
    walk_followed(&map);
    walk_free(&map);
    if (leat__lmdb_walker_last(&map, &node) == LEAT_OK)
        sink += node.key[node.key_size - 1];
    if (leat__lmdb_index_create(&index, &map, NULL))
        return 0;
    for (int64_t i = 0; i < index->count; i++) {
        if (leat__lmdb_index_read(index, i, &entry) == LEAT_OK)
            touch(&entry);
    }
    leat__lmdb_index_destroy(index);
    return 0;
}
