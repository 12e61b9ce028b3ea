#include "readers/lmdb/lmdb_drop_behind.h"

#include <stdbool.h>
#include <string.h>

/* Bytes dropped at a time. */
#define STEP_BYTES ((size_t)2 << 20)

void leat__lmdb_drop_behind_init(leat__lmdb_drop_behind *out,
                                 const leat__lmdb_storage *storage, size_t kept,
                                 size_t ahead)
{
    int64_t entries = (int64_t)storage->map->meta.entries;
    size_t size = storage->map->size;
    kept = kept < size ? kept : size;
    ahead = ahead < size ? ahead : size;
    int64_t before = (int64_t)(ahead / storage->record_bytes) + 1;
    memset(out, 0, sizeof(*out));
    out->storage = storage;
    out->kept = (int64_t)(kept / storage->record_bytes) + 1;
    out->step = (int64_t)(STEP_BYTES / storage->record_bytes) + 1;
    if (out->kept >= entries || before >= entries - out->kept)
        out->due = INT64_MAX;
}

static void set_cursor(leat__lmdb_drop_behind *behind,
                       const leat__lmdb_walker *walk)
{
    behind->cursor = *walk;
    behind->cursor_past = behind->past;
    behind->leaf = 0;
    behind->is_positioned = true;
}

/* Advances the cursor by a record and writes the spans that it leaves: 0 to 2.
 */
static int step(leat__lmdb_drop_behind *behind, leat__span out[2])
{
    leat__lmdb_walker *cursor = &behind->cursor;
    leat__lmdb_node node;
    int n = 0;
    int status = leat__lmdb_walker_node(cursor, &node);
    uint64_t leaf = status ? 0 : node.address >> 16;
    if (leaf != behind->leaf && behind->leaf != 0)
        out[n++] = leat__lmdb_storage_leaf(behind->storage, behind->leaf);
    behind->leaf = leaf;
    if (!status) {
        out[n++] = leat__lmdb_storage_value(behind->storage, &node);
    } else if (status == LEAT_END) {
        behind->cursor_past += cursor->record;
        leat__lmdb_walker_init(cursor, behind->storage->map);
    }
    return status < 0 ? status : n;
}

void leat__lmdb_drop_behind_advance(leat__lmdb_drop_behind *behind,
                                    const leat__lmdb_walker *walk)
{
    leat__span spans[LEAT__SPANS_MAX];
    int64_t until = behind->past + walk->record - behind->kept;
    int n = 0;
    if (!behind->is_positioned)
        set_cursor(behind, walk);
    behind->due = walk->record + behind->step;
    while (behind->cursor_past + behind->cursor.record < until) {
        int more = step(behind, spans + n);
        if (more < 0) {
            /* The walk reports this damage itself. */
            behind->due = INT64_MAX;
            break;
        }
        n += more;
        if (n > LEAT__SPANS_MAX - 2) {
            leat__mapped_file_drop(&behind->storage->file, spans, n);
            n = 0;
        }
    }
    leat__mapped_file_drop(&behind->storage->file, spans, n);
}

void leat__lmdb_drop_behind_restart(leat__lmdb_drop_behind *behind,
                                    const leat__lmdb_walker *walk,
                                    int next_pass)
{
    if (behind->due == INT64_MAX)
        return;
    if (next_pass && leat__lmdb_walker_is_at_end(walk))
        behind->past += walk->record;
    else
        behind->is_positioned = false;
    behind->due = 0;
}
