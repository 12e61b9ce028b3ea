#include "readers/lmdb/lmdb_index.h"
#include "base/memory.h"

#include <string.h>

/* Records between two read-ahead calls. */
#define STRIDE 1024

static int fill(leat__lmdb_index *index, leat__lmdb_walker *walker,
                leat__lmdb_readahead *ahead)
{
    int64_t done = 0;
    int status, got;
    /* One more address is requested, so that the walk checks its end. */
    for (;;) {
        int64_t left = index->count - done;
        uint64_t beyond;
        int n = left < STRIDE ? (int)left : STRIDE;
        if (ahead)
            leat__lmdb_readahead_follow(ahead, walker);
        status = leat__lmdb_walker_addresses(
            walker, n ? index->address + done : &beyond, n ? n : 1, &got);
        if (status)
            return status == LEAT_END ? LEAT_OK : status;
        done += got;
    }
}

/* The number of entries was checked against the number of pages. */
int64_t leat__lmdb_index_bytes(const leat__lmdb_map *map)
{
    return (int64_t)(sizeof(leat__lmdb_index) +
                     map->meta.entries * sizeof(uint64_t));
}

leat__lmdb_index *leat__lmdb_index_begin(const leat__lmdb_map *map)
{
    leat__lmdb_index *index = leat__alloc((size_t)leat__lmdb_index_bytes(map));
    if (index) {
        index->map = map;
        index->count = 0;
    }
    return index;
}

bool leat__lmdb_index_note(leat__lmdb_index *index, int64_t record,
                           const uint64_t addresses[], int n)
{
    int64_t known = index->count - record;
    if (known >= 0 && known < n) {
        memcpy(index->address + index->count, addresses + known,
               (size_t)(n - known) * sizeof(addresses[0]));
        index->count = record + n;
    }
    return (uint64_t)index->count == index->map->meta.entries;
}

int leat__lmdb_index_create(leat__lmdb_index **out, const leat__lmdb_map *map,
                            leat__lmdb_readahead *ahead)
{
    leat__lmdb_index *index = leat__lmdb_index_begin(map);
    leat__lmdb_walker *walker = leat__alloc(sizeof(*walker));
    int status = LEAT_ENOMEM;
    if (!index || !walker)
        goto fail;
    index->count = (int64_t)map->meta.entries;
    leat__lmdb_walker_init(walker, map);
    status = fill(index, walker, ahead);
    if (status)
        goto fail;
    leat__free(walker);
    *out = index;
    return LEAT_OK;

fail:
    leat__free(walker);
    leat__free(index);
    return status;
}

void leat__lmdb_index_destroy(leat__lmdb_index *index)
{
    leat__free(index);
}

int leat__lmdb_index_read(const leat__lmdb_index *index, int64_t record,
                          leat__lmdb_entry *out)
{
    leat__lmdb_node node;
    int status =
        leat__lmdb_map_node_at(index->map, index->address[record], &node);
    if (!status)
        status = leat__lmdb_map_overflow(index->map, &node);
    if (status)
        return status;
    *out = (leat__lmdb_entry){record,        node.address, node.key,
                              node.key_size, node.value,   node.value_size};
    return LEAT_OK;
}
