/*
 * Samples are views into the snapshot's map; labels and scattered floats alone
 * lie in their buffers.
 *
 * next takes records from the walker some at a time and hands them on; read_at
 * looks them up in the index, which the first call makes.
 *
 * Where the file is not in memory, next has the kernel read ahead of the walk
 * and waits for the values of what it gives, so that who uses them need not;
 * read_at and advise ask for all they are given at once, in the file's order.
 */
#include "readers/lmdb/lmdb.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_drop_behind.h"
#include "readers/lmdb/lmdb_snapshot.h"

#include <leat/datum.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define AHEAD 32
/* Records that fields looks at for one that is good. */
#define LOOKS_MAX 256
#define LOCATED 256

/* Records that a seek steps over between two looks ahead. */
#define STRIDE 1024

/* Records read in any order without a look at whether they are in memory,
   once some were. */
#define QUIET 4096

typedef struct lmdb_reader {
    leat_reader reader;
    leat__lmdb_snapshot *snapshot; /* immutable, as the next six */
    const leat__lmdb_map *map;     /* the snapshot's, as the next */
    const leat__lmdb_storage *storage;
    size_t window; /* bytes to read ahead; 0: none */
    int is_auto;   /* the kernel may do it in a walk */
    int drops;     /* pages behind the walk */
    char *path;    /* owned */
    atomic_int cancelled;
    atomic_int advised; /* somebody tells beforehand what read_at will read */
    atomic_int quiet;   /* records to read before the next look */
    atomic_int told;    /* that drops has no effect on them */

    /* Of the one caller at a time. */
    leat_field_spec spec[2];
    int nspec; /* 0: not yet known */
    /* What a walk writes, apart from what all read. */
    _Alignas(LEAT__CACHE_LINE) leat__lmdb_walker walker;
    leat__lmdb_entry ahead[AHEAD]; /* taken from the walker */
    int at, end;                   /* those of them not yet given */
    pthread_t located_by;          /* the last caller of locate */
    leat__lmdb_readahead readahead;
    leat__lmdb_drop_behind drop_behind;
} lmdb_reader;

/* A child does not share its parent's slot: its pages could be overwritten. */
static int check_process(const lmdb_reader *self)
{
    if (!leat__lmdb_snapshot_is_inherited(self->snapshot))
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: was opened before fork, and is the parent's; open "
                      "it anew in the child",
                      self->path);
}

static int check_running(const lmdb_reader *self)
{
    if (!atomic_load_explicit(&self->cancelled, memory_order_relaxed))
        return check_process(self);
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled", self->path);
}

static int bad_record(const lmdb_reader *self, const leat__lmdb_entry *entry,
                      int status)
{
    char text[LEAT__KEY_TEXT_MAX];
    leat__key_text(text, entry->key, entry->key_size);
    return leat__error_context(status, "%s: record %lld, key %s", self->path,
                               (long long)entry->record, text);
}

static inline int fill(const lmdb_reader *self, const leat__lmdb_entry *entry,
                       leat_sample *sample)
{
    leat_provenance *from = &sample->from;
    from->source = self->path;
    from->record = entry->record;
    from->key = entry->key;
    from->key_size = entry->key_size;
    int status = leat_datum_fields(sample, entry->value, entry->value_size);
    if (status)
        return bad_record(self, entry, status);
    uintptr_t data = (uintptr_t)sample->field[0].data;
    sample->stable = data - (uintptr_t)self->map->base < self->map->size;
    return LEAT_OK;
}

/* Waits for the values that the walker has found. */
static int await(lmdb_reader *self)
{
    leat__lmdb_span spans[AHEAD];
    for (int i = 0; i < self->end; i++) {
        const leat__lmdb_entry *entry = &self->ahead[i];
        spans[i].offset = (size_t)(entry->value - self->map->base);
        spans[i].bytes = entry->value_size;
    }
    int status = leat__lmdb_storage_await(self->storage, spans, self->end);
    if (!status)
        return LEAT_OK;
    self->end = 0;
    status = bad_record(self, &self->ahead[0], status);
    self->walker.failure = status;
    leat__error_save(self->walker.failure_line);
    return status;
}

/* From storage no more is taken than is `wanted`: all of it is waited for. */
__attribute__((noinline)) static int refill(lmdb_reader *self, int wanted)
{
    int got = 0;
    leat__lmdb_drop_behind_follow(&self->drop_behind, &self->walker);
    leat__lmdb_readahead_follow(&self->readahead, &self->walker);
    int is_cold = self->readahead.is_cold;
    int n = is_cold && wanted < AHEAD ? wanted : AHEAD;
    int status = leat__lmdb_walker_next(&self->walker, self->ahead, n, &got);
    self->at = 0;
    self->end = got;
    return !status && is_cold ? await(self) : status;
}

static int lmdb_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int done = 0;
    *got = 0;
    int status = check_running(self);
    while (!status && done < n) {
        if (self->at == self->end && (status = refill(self, n - done)))
            break;
        status = fill(self, &self->ahead[self->at], out[done]);
        if (!status) {
            self->at++;
            done++;
        }
    }
    *got = done;
    if (done)
        return LEAT_OK;
    /* A bad record is stepped over; memory may suffice the next time. */
    if (status == LEAT_EDATA)
        self->at++;
    return status;
}

static size_t ask_leaves(const lmdb_reader *self, const leat__lmdb_index *index,
                         const int64_t records[], int n)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    for (int i = 0; i < n; i++)
        spans[i] = leat__lmdb_storage_leaf(self->storage,
                                           index->address[records[i]] >> 16);
    return leat__lmdb_storage_ask(self->storage, spans, n);
}

/* The leaves are read for this, and waited for. */
static size_t ask_values(const lmdb_reader *self, const leat__lmdb_index *index,
                         const int64_t records[], int n)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    int used = 0;
    for (int i = 0; i < n; i++) {
        leat__lmdb_node node;
        uint64_t address = index->address[records[i]];
        /* Damage is reported by who reads the record. */
        if (!leat__lmdb_map_node_at(self->map, address, &node))
            spans[used++] = leat__lmdb_storage_value(self->storage, &node);
    }
    return leat__lmdb_storage_ask(self->storage, spans, used);
}

/* Asks for records in [0, count), some of which were not in memory lately. */
static void ask(lmdb_reader *self, const leat__lmdb_index *index,
                const int64_t records[], int n)
{
    size_t absent = 0;
    int quiet = atomic_load_explicit(&self->quiet, memory_order_relaxed);
    if (quiet > 0) {
        atomic_store_explicit(&self->quiet, quiet - n, memory_order_relaxed);
        return;
    }
    for (int done = 0; done < n; done += LEAT__LMDB_SPANS_MAX) {
        int more =
            n - done < LEAT__LMDB_SPANS_MAX ? n - done : LEAT__LMDB_SPANS_MAX;
        absent += ask_leaves(self, index, records + done, more);
        if (self->map->meta.overflow_pages)
            absent += ask_values(self, index, records + done, more);
    }
    if (absent == 0)
        atomic_store_explicit(&self->quiet, QUIET, memory_order_relaxed);
}

static void lmdb_advise(leat_reader *reader, const int64_t records[], int n)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    const leat__lmdb_index *index;
    atomic_store_explicit(&self->advised, 1, memory_order_relaxed);
    if (self->window && !leat__lmdb_snapshot_is_inherited(self->snapshot) &&
        !leat__lmdb_snapshot_index(self->snapshot, self->window, &index))
        ask(self, index, records, n);
}

static int check_indices(const lmdb_reader *self, const int64_t records[],
                         int n)
{
    int64_t count = (int64_t)self->map->meta.entries;
    int i = 0;
    while (i < n && records[i] >= 0 && records[i] < count)
        i++;
    return i;
}

/* There is no "behind" where records are read in any order. */
__attribute__((noinline)) static void tell_of_drops(lmdb_reader *self)
{
    if (!atomic_exchange_explicit(&self->told, 1, memory_order_relaxed))
        leat__log(LEAT_LOG_WARNING,
                  "%s: drop_behind has no effect on records that are not read "
                  "in order, one after the other: their pages stay in memory",
                  self->path);
}

static int lmdb_read_at(leat_reader *reader, const int64_t records[],
                        leat_sample *const out[], int n, int *got)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    const leat__lmdb_index *index;
    int done = 0;
    *got = 0;
    int status = check_running(self);
    if (!status)
        status =
            leat__lmdb_snapshot_index(self->snapshot, self->window, &index);
    if (status)
        return status;
    if (self->drops && !atomic_load_explicit(&self->told, memory_order_relaxed))
        tell_of_drops(self);
    int good = check_indices(self, records, n);
    if (good > 1 && self->window &&
        !atomic_load_explicit(&self->advised, memory_order_relaxed))
        ask(self, index, records, good);
    for (; !status && done < good; done += !status) {
        leat__lmdb_entry entry;
        status = leat__lmdb_index_read(index, records[done], &entry);
        if (!status)
            status = fill(self, &entry, out[done]);
    }
    if (!status && done < n)
        status = leat_error(LEAT_EINVAL, "%s: record %lld of %lld is wanted",
                            self->path, (long long)records[done],
                            (long long)index->count);
    *got = done;
    return done ? LEAT_OK : status;
}

/* Records taken ahead for next are given to whoever comes for them first. */
static int give_back_ahead(lmdb_reader *self)
{
    if (self->at == self->end)
        return LEAT_OK;
    int64_t record = self->ahead[self->at].record;
    self->at = self->end = 0;
    return leat__lmdb_walker_seek(&self->walker, record);
}

static int lmdb_locate(leat_reader *reader, leat_locator out[], int n, int *got)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    uint64_t addresses[LOCATED];
    *got = 0;
    int status = check_running(self);
    if (!status)
        status = give_back_ahead(self);
    if (status)
        return status;
    int64_t record = self->walker.record;
    leat__lmdb_drop_behind_follow(&self->drop_behind, &self->walker);
    leat__lmdb_readahead_follow(&self->readahead, &self->walker);
    /* Only a map that is in memory is located in. */
    self->walker.fetches = 1;
    if (!pthread_equal(self->located_by, pthread_self())) {
        self->located_by = pthread_self();
        leat__lmdb_walker_fetch(&self->walker);
    }
    status = leat__lmdb_walker_addresses(&self->walker, addresses,
                                         n < LOCATED ? n : LOCATED, got);
    for (int i = 0; i < *got; i++)
        out[i] = (leat_locator){record + i, addresses[i]};
    return status;
}

static int read_address(const lmdb_reader *self, const leat_locator *locator,
                        leat_sample *sample)
{
    leat__lmdb_node node;
    int status = leat__lmdb_map_node_at(self->map, locator->where, &node);
    if (!status)
        status = leat__lmdb_map_overflow(self->map, &node);
    if (status)
        return status;
    const leat__lmdb_entry entry = {locator->record, node.key, node.key_size,
                                    node.value, node.value_size};
    return fill(self, &entry, sample);
}

static int lmdb_read_located(leat_reader *reader, const leat_locator locator[],
                             leat_sample *const out[], int n, int *got)
{
    const lmdb_reader *self = (const lmdb_reader *)reader;
    int done = 0;
    int status = check_running(self);
    while (!status && done < n) {
        status = read_address(self, &locator[done], out[done]);
        done += !status;
    }
    *got = done;
    return done ? LEAT_OK : status;
}

static int lmdb_may_block(leat_reader *reader)
{
    const lmdb_reader *self = (lmdb_reader *)reader;
    return self->drops || leat__lmdb_storage_may_block(self->storage);
}

/* The walker's seek, with the leaves on the way read ahead. */
static int seek_ahead(lmdb_reader *self, int64_t record)
{
    leat__lmdb_walker *walker = &self->walker;
    leat__lmdb_readahead readahead;
    if (record < walker->record || walker->failure)
        leat__lmdb_walker_init(walker, self->map);
    leat__lmdb_readahead_init(&readahead, self->storage, self->window, 0);
    int status = LEAT_OK;
    while (!status && walker->record < record) {
        leat__lmdb_readahead_follow(&readahead, walker);
        int64_t left = record - walker->record;
        status = leat__lmdb_walker_seek(
            walker, walker->record + (left < STRIDE ? left : STRIDE));
    }
    return status;
}

static int lmdb_seek(leat_reader *reader, int64_t record)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int status = check_process(self);
    if (status)
        return status;
    if (record < 0 || (uint64_t)record > self->map->meta.entries)
        return leat__lmdb_walker_seek(&self->walker, record);
    leat__lmdb_readahead_restart(&self->readahead, &self->walker, 0);
    leat__lmdb_drop_behind_restart(&self->drop_behind, &self->walker, 0);
    self->at = self->end = 0;
    return seek_ahead(self, record);
}

static int lmdb_reset(leat_reader *reader)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int status = check_process(self);
    if (status)
        return status;
    leat__lmdb_readahead_restart(&self->readahead, &self->walker, 1);
    leat__lmdb_drop_behind_restart(&self->drop_behind, &self->walker, 1);
    leat__lmdb_walker_init(&self->walker, self->map);
    self->at = self->end = 0;
    return LEAT_OK;
}

static int lmdb_count(leat_reader *reader, int64_t *out)
{
    const lmdb_reader *self = (lmdb_reader *)reader;
    int status = check_process(self);
    if (!status)
        *out = (int64_t)self->map->meta.entries;
    return status;
}

static void describe(lmdb_reader *self, const leat_field *data)
{
    leat_field_spec *spec = self->spec;
    spec[0] =
        (leat_field_spec){.name = "data", .dtype = LEAT_BYTES, .ndim = -1};
    spec[1] = (leat_field_spec){.name = "label", .dtype = LEAT_INT32};
    if (data && data->dtype != LEAT_BYTES) {
        spec[0].dtype = data->dtype;
        spec[0].ndim = data->ndim;
        memcpy(spec[0].shape, data->shape, sizeof(spec[0].shape));
    }
    self->nspec = 2;
}

/* LEAT_END where there is none, LEAT_EDATA where none of the first is good. */
static int find_good(lmdb_reader *self, leat__lmdb_walker *walker,
                     leat_sample *sample)
{
    int first = LEAT_OK;
    char line[LEAT__ERROR_MAX];
    for (int n = 0; n < LOOKS_MAX; n++) {
        leat__lmdb_entry entry;
        int got;
        int status = leat__lmdb_walker_next(walker, &entry, 1, &got);
        if (status == LEAT_OK)
            status = fill(self, &entry, sample);
        if (status == LEAT_END && first)
            break;
        if (status != LEAT_EDATA)
            return status;
        if (first == LEAT_OK)
            leat__error_save(line);
        first = status;
    }
    return leat_error(first, "%s", line);
}

/* The first record tells what the others are like; a bad one tells nothing. */
static int look_at_first(lmdb_reader *self)
{
    leat_sample sample;
    leat__lmdb_walker *walker = leat__alloc(sizeof(*walker));
    if (!walker)
        return LEAT_ENOMEM;
    leat__lmdb_walker_init(walker, self->map);
    leat_sample_init(&sample);
    int status = find_good(self, walker, &sample);
    if (status >= 0)
        describe(self, status == LEAT_END ? NULL : &sample.field[0]);
    leat_sample_finish(&sample);
    leat__free(walker);
    return status < 0 ? status : LEAT_OK;
}

static int lmdb_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int status = check_process(self);
    if (!status && !self->nspec)
        status = look_at_first(self);
    if (status)
        return status;
    *out = self->spec;
    *n = self->nspec;
    return LEAT_OK;
}

/* FNV-1a of the key's length and bytes, on top of `hash`. */
static uint64_t hash_key(uint64_t hash, const void *key, size_t size)
{
    const unsigned char *bytes = key;
    hash = (hash ^ size) * 0x100000001b3;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

/* The data set's fingerprint: its records' number, its first and last key. */
static int fingerprint(const lmdb_reader *self, uint64_t out[2])
{
    leat__lmdb_node first, last;
    uint64_t hash = 0xcbf29ce484222325;
    int status = check_process(self);
    if (!status)
        status = leat__lmdb_walker_first(self->map, &first);
    if (!status)
        status = leat__lmdb_walker_last(self->map, &last);
    if (status < 0)
        return status;
    if (status == LEAT_OK) {
        hash = hash_key(hash, first.key, first.key_size);
        hash = hash_key(hash, last.key, last.key_size);
    }
    out[0] = self->map->meta.entries;
    out[1] = hash;
    return LEAT_OK;
}

static int lmdb_save(leat_reader *reader, leat_token *token)
{
    uint64_t mine[2];
    int status = fingerprint((lmdb_reader *)reader, mine);
    return status ? status : leat_token_put(token, mine, sizeof(mine));
}

static int lmdb_restore(leat_reader *reader, leat_token *token)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    uint64_t mine[2], theirs[2];
    int status = fingerprint(self, mine);
    if (!status)
        status = leat_token_get(token, theirs, sizeof(theirs));
    if (status)
        return status;
    if (theirs[0] != mine[0])
        return leat_error(LEAT_EINVAL,
                          "%s: has %llu records, the token is of a data set "
                          "of %llu",
                          self->path, (unsigned long long)mine[0],
                          (unsigned long long)theirs[0]);
    if (theirs[1] != mine[1])
        return leat_error(LEAT_EINVAL,
                          "%s: its first or last key is not that of the data "
                          "set the token is of",
                          self->path);
    return lmdb_reset(reader);
}

static void lmdb_cancel(leat_reader *reader)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    atomic_store_explicit(&self->cancelled, 1, memory_order_relaxed);
}

static void lmdb_close(leat_reader *reader)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    leat__lmdb_snapshot_close(self->snapshot);
    leat__free(self->path);
    leat__free(self);
}

static const leat_reader_ops lmdb_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "lmdb",
    .fields = lmdb_fields,
    .next = lmdb_next,
    .reset = lmdb_reset,
    .cancel = lmdb_cancel,
    .close = lmdb_close,
    .count = lmdb_count,
    .read_at = lmdb_read_at,
    .seek = lmdb_seek,
    .save = lmdb_save,
    .restore = lmdb_restore,
    .locate = lmdb_locate,
    .read_located = lmdb_read_located,
    .may_block = lmdb_may_block,
    .advise = lmdb_advise,
};

/* Bytes as options give them: 0 is the default, -1 none. */
static size_t value_or(int64_t bytes, size_t otherwise)
{
    if (bytes == 0)
        return otherwise;
    return bytes < 0 ? 0 : (size_t)bytes;
}

/* What the arguments say, and the defaults where they say nothing. */
static int take_options(lmdb_reader *self, const leat_args *args, size_t *kept)
{
    int64_t window = 0, behind = 0, drops = 0;
    int status = leat_args_int(args, "read_ahead", -1, INT64_MAX, &window);
    if (!status)
        status = leat_args_int(args, "drop_behind", 0, 1, &drops);
    if (!status)
        status = leat_args_int(args, "keep_behind", -1, INT64_MAX, &behind);
    if (status)
        return status;
    self->is_auto = window == 0;
    self->window = value_or(window, LEAT__LMDB_WINDOW);
    self->drops = (int)drops;
    *kept = value_or(behind, LEAT__LMDB_KEPT);
    return LEAT_OK;
}

/* Read-ahead and what follows the walk, from its beginning on. */
static void follow_walk(lmdb_reader *self, size_t kept)
{
    int kernel_does = self->is_auto &&
                      self->storage->kernel_ahead >= LEAT__LMDB_KERNEL_ENOUGH;
    leat__lmdb_readahead_init(&self->readahead, self->storage,
                              kernel_does ? 0 : self->window, 1);
    leat__lmdb_drop_behind_init(&self->drop_behind, self->storage, kept,
                                self->window);
    if (!self->drops)
        self->drop_behind.due = INT64_MAX;
}

static int lmdb_open(const leat_args *args, leat_reader *const upstream[],
                     int n, leat_reader **out)
{
    (void)upstream;
    (void)n;
    const char *path = leat_args_at(args, 0);
    size_t kept = 0;
    lmdb_reader *self = leat__alloc_aligned_zero(sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = &lmdb_ops;
    self->path = leat__strdup(path);
    int status = self->path ? take_options(self, args, &kept) : LEAT_ENOMEM;
    if (!status)
        status = leat__lmdb_snapshot_open(&self->snapshot, path);
    if (status) {
        lmdb_close(&self->reader);
        return status;
    }
    self->map = leat__lmdb_snapshot_map(self->snapshot);
    self->storage = leat__lmdb_snapshot_storage(self->snapshot);
    leat__lmdb_walker_init(&self->walker, self->map);
    follow_walk(self, kept);
    *out = &self->reader;
    return LEAT_OK;
}

static const char *const lmdb_keys[] = {"read_ahead", "drop_behind",
                                        "keep_behind", NULL};

const leat_reader_type leat__lmdb_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "lmdb",
    .keys = lmdb_keys,
    .min_args = 1,
    .max_args = 1,
    .open = lmdb_open,
};
