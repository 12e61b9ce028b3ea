/*
 * fuzz_survey.c: any bytes as an LMDB file, mended as far as they allow, walked
 * behind all damage, its free pages audited, and sampled.
 */
#include "readers/lmdb/check/lmdb_audit.h"
#include "readers/lmdb/check/lmdb_mend.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

/* Each page is read once, so there are not more records than room for them. */
static void walk(leat__lmdb_salvage *salvage, int64_t most)
{
    const leat__lmdb_event *event;
    int64_t n = 0;
    for (; n < most && !leat__lmdb_salvage_next(salvage, &event); n++) {
        const leat__lmdb_node *node = &event->node;
        unsigned sum = 0;
        for (size_t i = 0; node->key && i < node->key_size; i++)
            sum += node->key[i];
        for (size_t i = 0; !event->status && i < node->value_size; i++)
            sum += node->value[i];
        sink += sum;
    }
    if (n == most && !salvage->jumps)
        abort();
}

/* Each number in the list is told of at most once. */
static void audit(const leat__lmdb_salvage *salvage, int64_t most)
{
    static leat__lmdb_audit audit;
    const leat__lmdb_event *event;
    uint64_t used, listed;
    if (leat__lmdb_audit_init(&audit, salvage->map, NULL, salvage->met))
        return;
    while (!leat__lmdb_audit_next(&audit, &event))
        if (!event->status || most-- == 0)
            abort();
    leat__lmdb_audit_count(&audit, &used, &listed);
    if (used + listed > salvage->map->meta.last_page + 1)
        abort();
    leat__lmdb_audit_finish(&audit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat__lmdb_salvage salvage;
    leat__lmdb_event mended[LEAT__LMDB_MEND_EVENTS];
    leat__lmdb_map map;
    int n;
    if (leat__lmdb_mend(&map, "fuzz", data, size, mended, &n))
        return 0;
    if (leat__lmdb_salvage_init(&salvage, &map, NULL))
        return 0;
    walk(&salvage, (int64_t)size + 100);
    audit(&salvage, (int64_t)size + 100);
    for (int i = 0; i <= 4; i++) {
        leat__lmdb_salvage_jump(&salvage, i / 4.);
        walk(&salvage, 10);
    }
    leat__lmdb_salvage_finish(&salvage);
    return 0;
}
