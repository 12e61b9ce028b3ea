/*
 * fuzz_lmdb_check.c: any bytes as an LMDB file: header repair, recovery scan,
 * freelist check, and jumps.
 */
#include "readers/lmdb/check/lmdb_freelist_check.h"
#include "readers/lmdb/check/lmdb_header_repair.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

/* Each page is read once, so there are not more records than room for them. */
static void walk(leat__lmdb_recovery *recovery, int64_t most)
{
    const leat__lmdb_event *event;
    int64_t n = 0;
    for (; n < most && !leat__lmdb_recovery_next(recovery, &event); n++) {
        const leat__lmdb_node *node = &event->node;
        unsigned sum = 0;
        for (size_t i = 0; node->key && i < node->key_size; i++)
            sum += node->key[i];
        for (size_t i = 0; !event->status && i < node->value_size; i++)
            sum += node->value[i];
        sink += sum;
    }
    if (n == most && !recovery->jumps)
        abort();
}

/* Each number in the list is told of at most once. */
static void freelist(const leat__lmdb_recovery *recovery, int64_t most)
{
    static leat__lmdb_freelist_check freelist;
    const leat__lmdb_event *event;
    uint64_t used, listed;
    if (leat__lmdb_freelist_check_init(&freelist, recovery->map, NULL,
                                       recovery->use.bits))
        return;
    while (!leat__lmdb_freelist_check_next(&freelist, &event))
        if (!event->status || most-- == 0)
            abort();
    leat__lmdb_freelist_check_count(&freelist, &used, &listed);
    if (used + listed > recovery->map->meta.last_page + 1)
        abort();
    leat__lmdb_freelist_check_finish(&freelist);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat__lmdb_recovery recovery;
    leat__lmdb_event header[LEAT__LMDB_HEADER_EVENTS];
    leat__lmdb_map map;
    int n;
    if (leat__lmdb_header_repair(&map, "fuzz", data, size, header, &n))
        return 0;
    if (leat__lmdb_recovery_init(&recovery, &map, NULL))
        return 0;
    walk(&recovery, (int64_t)size + 100);
    freelist(&recovery, (int64_t)size + 100);
    for (int i = 0; i <= 4; i++) {
        leat__lmdb_recovery_jump(&recovery, i / 4.);
        walk(&recovery, 10);
    }
    leat__lmdb_recovery_finish(&recovery);
    return 0;
}
