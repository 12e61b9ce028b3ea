/*
 * Samples are views into the snapshot's map; only labels and scattered floats
 * are in their buffers. The operations that read records one after another are
 * lmdb_in_order.c's, those by record number lmdb_random_access.c's.
 */
#include "readers/lmdb/lmdb.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "pipeline/reader_chain.h"
#include "pipeline/reader_state.h"
#include "readers/lmdb/lmdb_in_order.h"
#include "readers/lmdb/lmdb_random_access.h"
#include "readers/lmdb/lmdb_reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The part of max_memory that the notes of a chain's walks may take. */
#define NOTES_PART 8

/* The most bytes of a value that a revision looks at. */
#define VALUE_HASHED 4096

/* Records that a seek steps over between two read-ahead calls. */
#define STRIDE 1024

static int lmdb_may_block(leat_reader *reader)
{
    const leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    return lmdb->drops || leat__mapped_file_may_block(&lmdb->storage->file);
}

/* The walker's seek, with read-ahead of the leaves on the way. */
static int seek_ahead(leat__lmdb_reader *lmdb, int64_t record)
{
    leat__lmdb_walker *walker = &lmdb->walker;
    leat__lmdb_readahead readahead;
    if (record < walker->record || walker->failure)
        leat__lmdb_walker_init(walker, lmdb->map);
    leat__lmdb_readahead_init(&readahead, lmdb->storage, lmdb->window, 0);
    int status = LEAT_OK;
    while (!status && walker->record < record) {
        leat__lmdb_readahead_follow(&readahead, walker);
        int64_t left = record - walker->record;
        status = leat__lmdb_walker_seek(
            walker, walker->record + (left < STRIDE ? left : STRIDE));
    }
    return leat__lmdb_reader_explain(lmdb, status);
}

static int rewind_walk(leat__lmdb_reader *lmdb)
{
    leat__lmdb_readahead_restart(&lmdb->readahead, &lmdb->walker, 1);
    leat__lmdb_drop_behind_restart(&lmdb->drop_behind, &lmdb->walker, 1);
    leat__lmdb_walker_init(&lmdb->walker, lmdb->map);
    return LEAT_OK;
}

static int lmdb_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    int64_t record = position.index;
    (void)mark;
    if (record == 0)
        return rewind_walk(lmdb);
    if ((uint64_t)record > lmdb->map->meta.entries)
        return leat__lmdb_walker_seek(&lmdb->walker, record);
    leat__lmdb_readahead_restart(&lmdb->readahead, &lmdb->walker, 0);
    leat__lmdb_drop_behind_restart(&lmdb->drop_behind, &lmdb->walker, 0);
    return seek_ahead(lmdb, record);
}

/* A long way is a seek: values on the way are not read ahead. */
static int lmdb_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    int status = leat__lmdb_reader_check_running(lmdb);
    if (status)
        return status;
    int64_t from = lmdb->walker.record;
    int64_t left = (int64_t)lmdb->map->meta.entries - from;
    int64_t way = n < left ? n : left;
    if (way > STRIDE) {
        status = lmdb_seek(reader, (leat_position){0, from + way}, NULL);
    } else {
        leat__lmdb_drop_behind_follow(&lmdb->drop_behind, &lmdb->walker);
        leat__lmdb_readahead_follow(&lmdb->readahead, &lmdb->walker);
        status = leat__lmdb_walker_seek(&lmdb->walker, from + way);
        status = leat__lmdb_reader_explain(lmdb, status);
    }
    *skipped = lmdb->walker.record - from;
    return !status && n > left ? LEAT_END : status;
}

static int lmdb_count(leat_reader *reader, int64_t *out)
{
    const leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    *out = (int64_t)lmdb->map->meta.entries;
    return LEAT_OK;
}

/* FNV-1a of the length and the bytes, on top of `hash`. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    hash = (hash ^ size) * 0x100000001b3;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

/* The data set's fingerprint: the number of records, and a hash of the first
 * and last key. */
static int fingerprint(const leat__lmdb_reader *lmdb, uint64_t out[2])
{
    leat__lmdb_node first, last;
    uint64_t hash = 0xcbf29ce484222325;
    int status = leat__lmdb_walker_first(lmdb->map, &first);
    if (!status)
        status = leat__lmdb_walker_last(lmdb->map, &last);
    if (status < 0)
        return leat__lmdb_reader_explain(lmdb, status);
    if (!status) {
        hash = hash_bytes(hash, first.key, first.key_size);
        hash = hash_bytes(hash, last.key, last.key_size);
    }
    status = leat__lmdb_snapshot_check(lmdb->snapshot);
    if (status)
        return status;
    out[0] = lmdb->map->meta.entries;
    out[1] = hash;
    return LEAT_OK;
}

static int lmdb_save(leat_reader *reader, leat_token *token)
{
    uint64_t mine[2];
    int status = fingerprint((leat__lmdb_reader *)reader, mine);
    return status ? status : leat_token_put(token, mine, sizeof(mine));
}

/* Of a record that is damaged, nothing. */
static uint64_t hash_value(const leat__lmdb_reader *lmdb, uint64_t hash,
                           leat__lmdb_node *node)
{
    if (leat__lmdb_map_overflow(lmdb->map, node) != LEAT_OK)
        return hash;
    return hash_bytes(hash, node->value,
                      node->value_size < VALUE_HASHED ? node->value_size
                                                      : VALUE_HASHED);
}

/*
 * The snapshot's transaction, when the file was written last, and a hash of the
 * tree's pages and of the first and last value: archives and images of disks
 * may give two databases one time.
 */
static int lmdb_revision(leat_reader *reader, leat_token *token)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    const leat__lmdb_meta *meta = &lmdb->map->meta;
    const uint64_t pages[] = {meta->root, meta->last_page, meta->leaf_pages,
                              meta->overflow_pages};
    uint64_t hash = hash_bytes(0, pages, sizeof(pages));
    leat__lmdb_node node;
    struct stat about;
    if (fstat(lmdb->storage->file.fd, &about))
        return leat__error_system(errno, "%s", lmdb->path);
    if (leat__lmdb_walker_first(lmdb->map, &node) == LEAT_OK)
        hash = hash_value(lmdb, hash, &node);
    if (leat__lmdb_walker_last(lmdb->map, &node) == LEAT_OK)
        hash = hash_value(lmdb, hash, &node);
    const uint64_t mine[] = {meta->txnid, (uint64_t)leat__file_modified(&about),
                             hash};
    return leat_token_put(token, mine, sizeof(mine));
}

static int lmdb_check(leat_reader *reader)
{
    const leat__lmdb_reader *lmdb = (const leat__lmdb_reader *)reader;
    return leat__lmdb_snapshot_check(lmdb->snapshot);
}

static int lmdb_restore(leat_reader *reader, leat_token *token)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    uint64_t mine[2], theirs[2];
    int status = fingerprint(lmdb, mine);
    if (!status)
        status = leat_token_get(token, theirs, sizeof(theirs));
    if (status)
        return status;
    if (theirs[0] != mine[0])
        return leat_error(LEAT_EINVAL,
                          "%s: has %llu records, the token is of a data set "
                          "of %llu",
                          lmdb->path, (unsigned long long)mine[0],
                          (unsigned long long)theirs[0]);
    if (theirs[1] != mine[1])
        return leat_error(LEAT_EINVAL,
                          "%s: its first or last key is not that of the data "
                          "set the token is of",
                          lmdb->path);
    return rewind_walk(lmdb);
}

static int64_t lmdb_memory(leat_reader *reader)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    return leat__lmdb_snapshot_index_bytes(lmdb->snapshot) +
           atomic_load_explicit(&lmdb->notes_bytes, memory_order_relaxed);
}

/* The index that random access needs, not one that a walk has noted. */
static int64_t lmdb_reserves(leat_reader *reader)
{
    const leat__lmdb_reader *lmdb = (const leat__lmdb_reader *)reader;
    return leat__reader_is_random(reader) ? leat__lmdb_index_bytes(lmdb->map)
                                          : 0;
}

static void lmdb_cancel(leat_reader *reader)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    atomic_store_explicit(&lmdb->cancelled, 1, memory_order_relaxed);
}

static void lmdb_close(leat_reader *reader)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    leat__lmdb_index_destroy(lmdb->notes);
    leat__reader_chain_return_spare(lmdb->figures, lmdb->notes_taken);
    leat__lmdb_snapshot_close(lmdb->snapshot);
    leat__free(lmdb->path);
    leat__free(lmdb);
}

static const leat_reader_ops lmdb_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "lmdb",
    .fields = leat__lmdb_reader_fields,
    .next = leat__lmdb_reader_next,
    .seek = lmdb_seek,
    .cancel = lmdb_cancel,
    .close = lmdb_close,
    .materialize = leat__lmdb_reader_materialize,
    .count = lmdb_count,
    .read_at = leat__lmdb_reader_read_at,
    .skip = lmdb_skip,
    .save = lmdb_save,
    .restore = lmdb_restore,
    .may_block = lmdb_may_block,
    .advise = leat__lmdb_reader_advise,
    .memory = lmdb_memory,
    .reserves = lmdb_reserves,
    .revision = lmdb_revision,
    .check = lmdb_check,
};

/* Bytes as in the options: 0 is the default, -1 none. */
static size_t value_or(int64_t bytes, size_t otherwise)
{
    if (bytes == 0)
        return otherwise;
    return bytes < 0 ? 0 : (size_t)bytes;
}

/* Reads the arguments and completes them by the defaults. */
static void take_options(leat__lmdb_reader *lmdb, const leat_open *open,
                         size_t *kept)
{
    const leat_args *args = open->args;
    int64_t window = leat_args_number(args, "read_ahead");
    lmdb->is_auto = window == 0;
    lmdb->window = value_or(window, LEAT__READ_AHEAD);
    lmdb->drops = leat_args_has(args, "drop_behind")
                      ? leat_args_number(args, "drop_behind") != 0
                      : open->drop_behind;
    *kept = value_or(leat_args_number(args, "keep_behind"), LEAT__KEEP_BEHIND);
    lmdb->notes_most =
        open->max_memory > 0 ? open->max_memory / NOTES_PART : INT64_MAX;
}

/* Starts read-ahead and drop-behind at the beginning of the walk. */
static void start_walk(leat__lmdb_reader *lmdb, size_t kept)
{
    bool kernel_does = lmdb->is_auto &&
                       lmdb->storage->file.kernel_ahead >= LEAT__KERNEL_ENOUGH;
    leat__lmdb_readahead_init(&lmdb->readahead, lmdb->storage,
                              kernel_does ? 0 : lmdb->window, 1);
    leat__lmdb_drop_behind_init(&lmdb->drop_behind, lmdb->storage, kept,
                                lmdb->window);
    if (!lmdb->drops)
        lmdb->drop_behind.due = INT64_MAX;
}

static int lmdb_open(const leat_open *open, leat_reader **out)
{
    const char *path = leat_args_at(open->args, 0);
    size_t kept = 0;
    leat__lmdb_reader *lmdb = leat__alloc_aligned_zero(sizeof(*lmdb));
    if (!lmdb)
        return LEAT_ENOMEM;
    lmdb->reader.ops = &lmdb_ops;
    lmdb->path = leat__strdup(path);
    lmdb->figures = open->figures;
    take_options(lmdb, open, &kept);
    int status = lmdb->path ? leat__lmdb_snapshot_open(&lmdb->snapshot, path)
                            : LEAT_ENOMEM;
    if (status) {
        lmdb_close(&lmdb->reader);
        return status;
    }
    lmdb->map = leat__lmdb_snapshot_map(lmdb->snapshot);
    lmdb->storage = leat__lmdb_snapshot_storage(lmdb->snapshot);
    lmdb->is_exposed = leat__lmdb_snapshot_is_exposed(lmdb->snapshot);
    lmdb->copies =
        lmdb->is_exposed && leat__lmdb_snapshot_is_used(lmdb->snapshot);
    leat__lmdb_walker_init(&lmdb->walker, lmdb->map);
    start_walk(lmdb, kept);
    *out = &lmdb->reader;
    return LEAT_OK;
}

static const leat_argument lmdb_arguments[] = {
    {.name = "path",
     .positional = 1,
     .required = 1,
     .keeps_samples = 1,
     .help = "the database: a directory with data.mdb, or the file"},
    {.name = "read_ahead",
     .kind = LEAT_ARGUMENT_BYTES,
     .keeps_samples = 1,
     .initial = "0",
     .min = -1,
     .max = INT64_MAX,
     .help = "read ahead of a cold file; 0: 32 MiB or the kernel's, "
             "-1: the kernel's"},
    {.name = "drop_behind",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "0",
     .max = 1,
     .help = "1: pages that were read in order are dropped from memory"},
    {.name = "keep_behind",
     .kind = LEAT_ARGUMENT_BYTES,
     .keeps_samples = 1,
     .initial = "0",
     .min = -1,
     .max = INT64_MAX,
     .help = "kept by drop_behind; 0: 64 MiB, -1: none"},
    {0},
};

const leat_reader_type leat__lmdb_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "lmdb",
    .help = "Caffe's LMDB: the Datums of the unnamed database, in key order",
    .arguments = lmdb_arguments,
    .argument_size = sizeof(leat_argument),
    .open = lmdb_open,
};
