/*
 * Samples are views into the snapshot's map; labels and scattered floats alone
 * lie in their boxes.
 *
 * next takes records from the walker some at a time and hands them on; read_at
 * looks them up in the index, which the first call makes.
 */
#include "readers/lmdb.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/lmdb_snapshot.h"

#include <leat/datum.h>

#include <stdatomic.h>
#include <string.h>

#define AHEAD 32
#define LOCATED 256

typedef struct lmdb_reader {
    leat_reader reader;
    leat__lmdb_snapshot *snapshot; /* immutable, as the next two */
    const leat__lmdb_map *map;     /* the snapshot's */
    char *path;                    /* owned */
    atomic_int cancelled;

    /* Of the one caller at a time. */
    leat_field_spec spec[2];
    int nspec; /* 0: not yet known */
    leat__lmdb_walker walker;
    leat__lmdb_entry ahead[AHEAD]; /* taken from the walker */
    int at, end;                   /* those of them not yet given */
} lmdb_reader;

static int check_running(const lmdb_reader *self)
{
    if (!atomic_load_explicit(&self->cancelled, memory_order_relaxed))
        return LEAT_OK;
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

static int refill(lmdb_reader *self)
{
    int got = 0;
    int status =
        leat__lmdb_walker_next(&self->walker, self->ahead, AHEAD, &got);
    self->at = 0;
    self->end = got;
    return status;
}

static int lmdb_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int done = 0;
    *got = 0;
    int status = check_running(self);
    while (!status && done < n) {
        if (self->at == self->end && (status = refill(self)))
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

static int lmdb_read_at(leat_reader *reader, const int64_t index[],
                        leat_sample *const out[], int n, int *got)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    const leat__lmdb_index *places;
    int done = 0;
    *got = 0;
    int status = check_running(self);
    if (!status)
        status = leat__lmdb_snapshot_index(self->snapshot, &places);
    for (; !status && done < n; done += !status) {
        leat__lmdb_entry entry;
        if (index[done] < 0 || index[done] >= places->count)
            status = leat_error(
                LEAT_EINVAL, "%s: record %lld of %lld is wanted", self->path,
                (long long)index[done], (long long)places->count);
        else
            status = leat__lmdb_index_read(places, index[done], &entry);
        if (!status)
            status = fill(self, &entry, out[done]);
    }
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
    uint64_t places[LOCATED];
    *got = 0;
    int status = check_running(self);
    if (!status)
        status = give_back_ahead(self);
    if (status)
        return status;
    int64_t record = self->walker.record;
    status = leat__lmdb_walker_places(&self->walker, places,
                                      n < LOCATED ? n : LOCATED, got);
    for (int i = 0; i < *got; i++)
        out[i] = (leat_locator){record + i, places[i]};
    return status;
}

static int read_place(const lmdb_reader *self, const leat_locator *locator,
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
        status = read_place(self, &locator[done], out[done]);
        done += !status;
    }
    *got = done;
    return done ? LEAT_OK : status;
}

static int lmdb_seek(leat_reader *reader, int64_t index)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int status = leat__lmdb_walker_seek(&self->walker, index);
    if (status != LEAT_EINVAL)
        self->at = self->end = 0;
    return status;
}

static int lmdb_reset(leat_reader *reader)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    leat__lmdb_walker_init(&self->walker, self->map);
    self->at = self->end = 0;
    return LEAT_OK;
}

static int lmdb_count(leat_reader *reader, int64_t *out)
{
    *out = (int64_t)((lmdb_reader *)reader)->map->meta.entries;
    return LEAT_OK;
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

/* The first record tells what the others are like. */
static int look_at_first(lmdb_reader *self)
{
    leat__lmdb_entry entry;
    leat_sample sample;
    int got;
    leat__lmdb_walker *walker = leat__alloc(sizeof(*walker));
    if (!walker)
        return LEAT_ENOMEM;
    leat__lmdb_walker_init(walker, self->map);
    int status = leat__lmdb_walker_next(walker, &entry, 1, &got);
    leat__free(walker);
    if (status < 0)
        return status;
    leat_sample_init(&sample);
    if (!status)
        status = fill(self, &entry, &sample);
    if (status >= 0)
        describe(self, status == LEAT_END ? NULL : &sample.field[0]);
    leat_sample_finish(&sample);
    return status < 0 ? status : LEAT_OK;
}

static int lmdb_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    lmdb_reader *self = (lmdb_reader *)reader;
    int status = self->nspec ? LEAT_OK : look_at_first(self);
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
    int status = leat__lmdb_walker_first(self->map, &first);
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
};

static int lmdb_open(const leat_args *args, leat_reader *const upstream[],
                     int n, leat_reader **out)
{
    (void)upstream;
    (void)n;
    const char *path = leat_args_at(args, 0);
    lmdb_reader *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = &lmdb_ops;
    self->path = leat__strdup(path);
    int status = self->path ? LEAT_OK : LEAT_ENOMEM;
    if (!status)
        status = leat__lmdb_snapshot_open(&self->snapshot, path);
    if (status) {
        lmdb_close(&self->reader);
        return status;
    }
    self->map = leat__lmdb_snapshot_map(self->snapshot);
    leat__lmdb_walker_init(&self->walker, self->map);
    *out = &self->reader;
    return LEAT_OK;
}

const leat_reader_type leat__lmdb_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "lmdb",
    .least_args = 1,
    .most_args = 1,
    .open = lmdb_open,
};
