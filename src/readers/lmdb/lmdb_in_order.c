/*
 * next walks: it defers every sample with the address of its record, which
 * materialize looks up, checks and parses on any thread. If the file is not in
 * memory, next has the kernel read ahead of the walk and awaits the values of
 * the samples that it returns, so that their users do not block.
 *
 * A walk through memory notes the addresses, and those after it take them from
 * there: callers of next wait for each other, and each page that a walk touches
 * was another core's.
 */
#include "readers/lmdb/lmdb_in_order.h"
#include "base/error.h"
#include "pipeline/reader_chain.h"
#include "readers/lmdb/lmdb_reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The most records that one call of next walks over, */
#define WALKED_MAX 256
/* and whose values it awaits. */
#define AWAITED_MAX 32

/* The most bytes that the notes of a walk take. */
#define NOTES_MAX ((int64_t)32 << 20)

/* Records whose nodes are prefetched before they are read. */
#define FETCHED_AHEAD 8

/* Awaits the values of records that the walk has reached. */
static int await(leat__lmdb_reader *lmdb, const leat__lmdb_entry entries[],
                 int n)
{
    leat__span spans[AWAITED_MAX];
    for (int i = 0; i < n; i++) {
        spans[i].offset = (size_t)(entries[i].value - lmdb->map->base);
        spans[i].bytes = entries[i].value_size;
    }
    int status = leat__mapped_file_await(&lmdb->storage->file, spans, n,
                                         &lmdb->cancelled);
    return status == LEAT_EIO
               ? leat__lmdb_reader_bad_record(lmdb, &entries[0], status)
               : status;
}

static void defer(leat_sample *sample, int64_t record, uint64_t address)
{
    sample->locator = (leat_locator){record, address};
    sample->deferred = 1;
}

/* From cold storage only wanted records are taken: all of them are awaited. */
__attribute__((noinline)) static int
walk_cold(leat__lmdb_reader *lmdb, leat_sample *const out[], int n, int *got)
{
    leat__lmdb_entry entries[AWAITED_MAX];
    int walked = 0;
    int status = leat__lmdb_walker_next(
        &lmdb->walker, entries, n < AWAITED_MAX ? n : AWAITED_MAX, &walked);
    if (!status)
        status = await(lmdb, entries, walked);
    if (status)
        return status;
    for (int i = 0; i < walked; i++)
        defer(out[i], entries[i].record, entries[i].address);
    *got = walked;
    return LEAT_OK;
}

static void keep_count(leat__lmdb_reader *lmdb, int64_t bytes)
{
    atomic_store_explicit(&lmdb->notes_bytes, bytes, memory_order_relaxed);
}

/* Random access has made an index meanwhile. */
__attribute__((noinline)) static void drop_notes(leat__lmdb_reader *lmdb)
{
    leat__lmdb_index_destroy(lmdb->notes);
    lmdb->notes = NULL;
    keep_count(lmdb, 0);
}

/* Takes the addresses that an earlier walk has noted; no page is touched. */
static int follow(leat__lmdb_reader *lmdb, const leat__lmdb_index *index,
                  leat_sample *const out[], int n, int *got)
{
    int64_t record = lmdb->walker.record;
    int64_t left = index->count - record;
    if (lmdb->notes)
        drop_notes(lmdb);
    int taken = n < left ? n : (int)left;
    const uint64_t *address = index->address + record;
    for (int i = 0; i < taken; i++)
        defer(out[i], record + i, address[i]);
    leat__lmdb_walker_jump(&lmdb->walker, record + taken,
                           taken < left ? address[taken] : 0);
    *got = taken;
    return taken > 0 ? LEAT_OK : LEAT_END;
}

/* Notes are something to spare: without memory for them all walks go on. */
__attribute__((noinline)) static void begin_notes(leat__lmdb_reader *lmdb)
{
    int64_t bytes = leat__lmdb_index_bytes(lmdb->map);
    if (lmdb->drops || bytes > NOTES_MAX)
        return;
    if (lmdb->notes_taken == 0 &&
        leat__reader_chain_take_spare(lmdb->figures, bytes, lmdb->notes_most))
        lmdb->notes_taken = bytes;
    if (lmdb->notes_taken > 0)
        lmdb->notes = leat__lmdb_index_begin(lmdb->map);
    keep_count(lmdb, lmdb->notes ? bytes : 0);
}

/*
 * A walk from the first record to the last one notes their addresses, by which
 * the walks after it find them.
 */
static void note(leat__lmdb_reader *lmdb, int64_t record,
                 const uint64_t addresses[], int n, int status)
{
    if (!lmdb->notes && record == 0 && n > 0)
        begin_notes(lmdb);
    /* What the walk finds at its end may still be damage. */
    if (lmdb->notes &&
        leat__lmdb_index_note(lmdb->notes, record, addresses, n) &&
        status == LEAT_END) {
        leat__lmdb_snapshot_give_index(lmdb->snapshot, lmdb->notes);
        lmdb->notes = NULL;
        keep_count(lmdb, 0);
    }
}

static int walk_warm(leat__lmdb_reader *lmdb, leat_sample *const out[], int n,
                     int *got)
{
    uint64_t addresses[WALKED_MAX];
    int64_t record = lmdb->walker.record;
    int walked = 0;
    lmdb->walker.fetches = true;
    if (!pthread_equal(lmdb->walked_by, pthread_self())) {
        lmdb->walked_by = pthread_self();
        leat__lmdb_walker_fetch(&lmdb->walker);
    }
    int status = leat__lmdb_walker_addresses(
        &lmdb->walker, addresses, n < WALKED_MAX ? n : WALKED_MAX, &walked);
    for (int i = 0; i < walked; i++)
        defer(out[i], record + i, addresses[i]);
    note(lmdb, record, addresses, walked, status);
    *got = walked;
    return status;
}

int leat__lmdb_reader_next(leat_reader *reader, leat_sample *const out[], int n,
                           int *got)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    int status = leat__lmdb_reader_check_running(lmdb);
    if (status)
        return status;
    leat__lmdb_drop_behind_follow(&lmdb->drop_behind, &lmdb->walker);
    leat__lmdb_readahead_follow(&lmdb->readahead, &lmdb->walker);
    const leat__lmdb_index *index =
        leat__lmdb_snapshot_known_index(lmdb->snapshot);
    if (lmdb->readahead.is_cold)
        status = walk_cold(lmdb, out, n, got);
    else if (index && !lmdb->walker.failure)
        status = follow(lmdb, index, out, n, got);
    else
        status = walk_warm(lmdb, out, n, got);
    return leat__lmdb_reader_explain(lmdb, status);
}

static int read_address(const leat__lmdb_reader *lmdb, leat_sample *sample)
{
    leat__lmdb_node node;
    const leat_locator *locator = &sample->locator;
    int status = leat__lmdb_map_node_at(lmdb->map, locator->where, &node);
    if (!status)
        status = leat__lmdb_map_overflow(lmdb->map, &node);
    if (status)
        return status;
    const leat__lmdb_entry entry = {.record = locator->record,
                                    .key = node.key,
                                    .key_size = node.key_size,
                                    .value = node.value,
                                    .value_size = node.value_size};
    return leat__lmdb_reader_fill(lmdb, &entry, sample);
}

/* Prefetches the node of a record into this core's cache. */
static inline void fetch(const leat__lmdb_reader *lmdb,
                         const leat_sample *sample)
{
    uint64_t address = sample->locator.where;
    const unsigned char *node =
        leat__lmdb_map_page_at(lmdb->map, address >> 16) + (address & 0xffff);
    __builtin_prefetch(node);
    __builtin_prefetch(node + LEAT__CACHE_LINE);
}

int leat__lmdb_reader_materialize(leat_reader *reader, leat_sample *const out[],
                                  int n, int *got)
{
    const leat__lmdb_reader *lmdb = (const leat__lmdb_reader *)reader;
    int done = 0;
    int status = leat__lmdb_reader_check_running(lmdb);
    for (int i = 0; i < n && i < FETCHED_AHEAD; i++)
        fetch(lmdb, out[i]);
    while (!status && done < n) {
        if (done + FETCHED_AHEAD < n)
            fetch(lmdb, out[done + FETCHED_AHEAD]);
        status = read_address(lmdb, out[done]);
        done += !status;
    }
    *got = done;
    return leat__lmdb_reader_finish(lmdb, out, got, status);
}
