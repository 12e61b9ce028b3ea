#include "readers/lmdb/lmdb_random_access.h"
#include "base/log.h"
#include "readers/lmdb/lmdb_reader.h"

/* Records read at random before residency is probed again, once a probe found
 * all of them resident. */
#define PROBE_INTERVAL 4096

static size_t ask_leaves(const leat__lmdb_reader *lmdb,
                         const leat__lmdb_index *index,
                         const leat_position at[], int n)
{
    leat__span spans[LEAT__SPANS_MAX];
    for (int i = 0; i < n; i++)
        spans[i] = leat__lmdb_storage_leaf(lmdb->storage,
                                           index->address[at[i].index] >> 16);
    return leat__mapped_file_ask(&lmdb->storage->file, spans, n);
}

/* This reads the leaves, and blocks on them. */
static size_t ask_values(const leat__lmdb_reader *lmdb,
                         const leat__lmdb_index *index,
                         const leat_position at[], int n)
{
    leat__span spans[LEAT__SPANS_MAX];
    int used = 0;
    for (int i = 0; i < n; i++) {
        leat__lmdb_node node;
        uint64_t address = index->address[at[i].index];
        /* Damage is reported when the record is read. */
        if (!leat__lmdb_map_node_at(lmdb->map, address, &node))
            spans[used++] = leat__lmdb_storage_value(lmdb->storage, &node);
    }
    return leat__mapped_file_ask(&lmdb->storage->file, spans, used);
}

/* Prefetches records in [0, count), unless all of a recent probe were resident.
 */
static void ask(leat__lmdb_reader *lmdb, const leat__lmdb_index *index,
                const leat_position at[], int n)
{
    size_t absent = 0;
    int64_t unprobed =
        atomic_load_explicit(&lmdb->unprobed, memory_order_relaxed);
    if (unprobed > 0) {
        atomic_store_explicit(&lmdb->unprobed, unprobed - n,
                              memory_order_relaxed);
        return;
    }
    for (int done = 0; done < n; done += LEAT__SPANS_MAX) {
        int more = n - done < LEAT__SPANS_MAX ? n - done : LEAT__SPANS_MAX;
        absent += ask_leaves(lmdb, index, at + done, more);
        if (lmdb->map->meta.overflow_pages)
            absent += ask_values(lmdb, index, at + done, more);
    }
    if (absent == 0)
        atomic_store_explicit(&lmdb->unprobed, PROBE_INTERVAL,
                              memory_order_relaxed);
}

void leat__lmdb_reader_advise(leat_reader *reader, const leat_position at[],
                              int n)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    const leat__lmdb_index *index;
    atomic_store_explicit(&lmdb->advised, 1, memory_order_relaxed);
    if (lmdb->window &&
        !leat__lmdb_snapshot_index(lmdb->snapshot, lmdb->window, &index))
        ask(lmdb, index, at, n);
}

static int check_indices(const leat__lmdb_reader *lmdb,
                         const leat_position at[], int n)
{
    int64_t count = (int64_t)lmdb->map->meta.entries;
    int i = 0;
    while (i < n && at[i].index >= 0 && at[i].index < count)
        i++;
    return i;
}

/* Random access has no position to drop pages after. */
__attribute__((noinline)) static void
log_unused_drop_behind(leat__lmdb_reader *lmdb)
{
    if (!atomic_exchange_explicit(&lmdb->logged_drops, 1, memory_order_relaxed))
        leat__log(LEAT_LOG_WARNING,
                  "%s: drop_behind has no effect on random access: only pages "
                  "that are read in order are dropped",
                  lmdb->path);
}

int leat__lmdb_reader_read_at(leat_reader *reader, const leat_position at[],
                              leat_sample *const out[], int n, int *got)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    const leat__lmdb_index *index;
    int done = 0;
    *got = 0;
    int status = leat__lmdb_reader_check_running(lmdb);
    if (!status)
        status =
            leat__lmdb_snapshot_index(lmdb->snapshot, lmdb->window, &index);
    if (status)
        return leat__lmdb_reader_explain(lmdb, status);
    if (lmdb->drops &&
        !atomic_load_explicit(&lmdb->logged_drops, memory_order_relaxed))
        log_unused_drop_behind(lmdb);
    int good = check_indices(lmdb, at, n);
    if (good > 1 && lmdb->window &&
        !atomic_load_explicit(&lmdb->advised, memory_order_relaxed))
        ask(lmdb, index, at, good);
    for (; !status && done < good; done += !status) {
        leat__lmdb_entry entry;
        status = leat__lmdb_index_read(index, at[done].index, &entry);
        if (!status)
            status = leat__lmdb_reader_fill(lmdb, &entry, out[done]);
    }
    if (!status && done < n)
        status = leat_error(
            LEAT_EINVAL, "%s: record %lld is out of range: there are %lld",
            lmdb->path, (long long)at[done].index, (long long)index->count);
    *got = done;
    return leat__lmdb_reader_finish(lmdb, out, got, status);
}
