/*
 * DESIGN
 *
 * One snapshot of an environment is opened at a time, under its opening_lock,
 * so that those of one transaction take one slot.
 *
 * A snapshot is immutable but for its references, which the environment's
 * snapshots_lock protects together with the list of snapshots, and its index,
 * which is published by a release store and read without a lock; index_lock is
 * held while it is built and is taken alone. The last close unpins the
 * transaction under snapshots_lock and then frees the snapshot.
 */
#include "readers/lmdb/lmdb_snapshot.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_environment.h"
#include "readers/lmdb/lmdb_freelist.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

/* How often a writer may overtake the opening before it fails. */
#define TRIES_MAX 1000

struct leat__lmdb_snapshot {
    leat__lmdb_environment *environment; /* immutable, as are the next three */
    leat__lmdb_pin pin;                  /* protects the pages from writers */
    leat__lmdb_map map;
    leat__lmdb_storage storage;

    /* Protected by the environment's snapshots_lock. */
    leat__lmdb_snapshot *next;
    int references;

    pthread_mutex_t index_lock; /* held while the index is built */
    _Atomic(leat__lmdb_index *) index;
};

/* LEAT_OK while transaction `id`, which the file has a later one than, is the
 * latest all the same; else LEAT_AGAIN. */
static int check_overtaken(const leat__lmdb_environment *environment,
                           uint64_t id)
{
    uint64_t latest = 0;
    if (leat__lmdb_lock_is_held(environment->lock))
        return leat__lmdb_lock_check_overtaken(environment->lock,
                                               &environment->file, id);
    int status = leat__lmdb_environment_latest(environment, &latest);
    if (status)
        return status;
    return latest == id ? LEAT_OK : LEAT_AGAIN;
}

/*
 * Reads the meta page that transaction `id` wrote. Meta pages are written in
 * turn, so this one is overwritten only after the other one has a later
 * transaction and that transaction is committed; until both hold, the page read
 * is intact. LEAT_AGAIN: a writer was faster.
 */
static int read_meta(const leat__lmdb_environment *environment, uint64_t id,
                     leat__lmdb_meta *out)
{
    const leat__lmdb_file *file = &environment->file;
    leat__lmdb_meta meta[2] = {{0}};
    int status = leat__lmdb_file_meta(file, 0, 0, &meta[0]);
    size_t page_size = meta[0].page_size;
    if (!status)
        status = leat__lmdb_file_meta(file, 1, page_size, &meta[1]);
    if (status)
        return status;
    int mine = meta[0].txnid == id ? 0 : 1;
    if (meta[mine].txnid != id)
        return LEAT_AGAIN;
    if (mine == 1) {
        status = leat__lmdb_file_meta(file, 0, 0, &meta[0]);
        if (status)
            return status;
    }
    if (meta[!mine].page_size != page_size)
        return LEAT_AGAIN;
    if (meta[!mine].txnid > id)
        status = check_overtaken(environment, id);
    if (status)
        return status;
    *out = meta[mine];
    return LEAT_OK;
}

/* Maps the pages of the transaction, except those that were never written. */
static int map_pages(leat__lmdb_environment *environment, uint64_t id,
                     leat__lmdb_map *out)
{
    const leat__lmdb_file *file = &environment->file;
    leat__lmdb_meta meta = {0};
    size_t size = 0;
    int status = read_meta(environment, id, &meta);
    if (!status)
        status = leat__lmdb_file_size(file, &size);
    if (status)
        return status;
    if (meta.last_page < size / meta.page_size)
        size = (size_t)(meta.last_page + 1) * meta.page_size;
    void *base;
    status = leat__lmdb_file_map(file, &meta, size, &base);
    if (status)
        return status;
    status = leat__lmdb_freelist_cut(&meta, file->data, base, size);
    if (!status)
        status = leat__lmdb_map_init(out, file->data, base, size, &meta);
    if (status)
        munmap(base, size);
    return status;
}

static void unmap(const leat__lmdb_map *map)
{
    munmap((void *)(uintptr_t)map->base, map->size);
}

/* Transfers the pin and the environment's reference on success. */
static int create(leat__lmdb_snapshot **out,
                  leat__lmdb_environment *environment,
                  const leat__lmdb_pin *pin)
{
    leat__lmdb_map map;
    int status = map_pages(environment, pin->txnid, &map);
    if (status)
        return status;
    leat__lmdb_snapshot *snapshot = leat__alloc_zero(1, sizeof(*snapshot));
    if (!snapshot) {
        status = LEAT_ENOMEM;
        goto fail_map;
    }
    int code = pthread_mutex_init(&snapshot->index_lock, NULL);
    if (code) {
        status = leat__error_system(code, "%s: cannot make a lock",
                                    environment->file.path);
        goto fail_snapshot;
    }
    snapshot->environment = environment;
    snapshot->pin = *pin;
    snapshot->map = map;
    leat__lmdb_storage_init(&snapshot->storage, &snapshot->map,
                            environment->file.fd);
    snapshot->references = 1;
    snapshot->next = environment->snapshots;
    environment->snapshots = snapshot;
    *out = snapshot;
    return LEAT_OK;

fail_snapshot:
    leat__free(snapshot);
fail_map:
    unmap(&map);
    return status;
}

static bool is_same(const leat__lmdb_meta *a, const leat__lmdb_meta *b)
{
    return a->txnid == b->txnid && a->page_size == b->page_size &&
           a->last_promised == b->last_promised && a->root == b->root &&
           a->entries == b->entries && a->leaf_pages == b->leaf_pages &&
           a->overflow_pages == b->overflow_pages &&
           a->free_root == b->free_root;
}

/* Whether the file may still be that of the meta page: LMDB leaves it as it is,
 * or, unless it is the latest, writes a later transaction over it. */
static bool may_be_of(const leat__lmdb_file *file, const leat__lmdb_meta *own,
                      bool is_latest)
{
    leat__lmdb_meta meta[2] = {{0}};
    int status = leat__lmdb_file_meta(file, 0, 0, &meta[0]);
    if (!status)
        status = leat__lmdb_file_meta(file, 1, meta[0].page_size, &meta[1]);
    if (status)
        return status != LEAT_EFORMAT;
    for (int i = 0; i < 2; i++)
        if (meta[i].txnid == own->txnid)
            return is_same(&meta[i], own);
    return !is_latest &&
           (meta[0].txnid > own->txnid || meta[1].txnid > own->txnid);
}

/* Whether the file has the transaction that the lock file calls the latest. */
static bool has_latest(const leat__lmdb_environment *environment)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        leat__lmdb_meta meta;
        uint64_t latest = 0;
        if (leat__lmdb_environment_latest(environment, &latest) ||
            read_meta(environment, latest, &meta) != LEAT_AGAIN)
            return true;
    }
    return false;
}

/* The one of the latest transaction. One of a file that was overwritten, under
 * the same transaction or others, is not shared, nor one without a slot where
 * there is one now. */
static leat__lmdb_snapshot *find_locked(leat__lmdb_environment *environment,
                                        const leat__lmdb_pin *pin)
{
    leat__lmdb_snapshot *at = environment->snapshots;
    while (at && !(at->map.meta.txnid == pin->txnid &&
                   (at->pin.slot >= 0 || pin->slot < 0) &&
                   may_be_of(&environment->file, &at->map.meta, true)))
        at = at->next;
    return at;
}

/* Transfers the pin on success. LEAT_AGAIN when a writer was faster. */
static int share_or_create(leat__lmdb_snapshot **out,
                           leat__lmdb_environment *environment,
                           const leat__lmdb_pin *pin)
{
    leat__lmdb_snapshot *shared = find_locked(environment, pin);
    if (!shared)
        return create(out, environment, pin);
    leat__lmdb_environment_unpin(environment, pin);
    shared->references++;
    *out = shared;
    return LEAT_OK;
}

/* The one of the latest transaction, if it has a slot; *out is NULL if there is
 * none. A writer that commits meanwhile leaves what the slot protects. */
static int share_listed(leat__lmdb_snapshot **out,
                        leat__lmdb_environment *environment)
{
    leat__lmdb_pin latest = {0, 0};
    int status = leat__lmdb_environment_latest(environment, &latest.txnid);
    if (status)
        return status;
    pthread_mutex_lock(&environment->snapshots_lock);
    leat__lmdb_snapshot *shared = find_locked(environment, &latest);
    if (shared)
        shared->references++;
    pthread_mutex_unlock(&environment->snapshots_lock);
    *out = shared;
    return LEAT_OK;
}

/* No second slot is taken, not even for a moment: it may be the last one, and
 * another process's first. Waits for other processes hold no lock that closing
 * needs. *code: why there is no slot. LEAT_AGAIN when a writer was faster. */
static int try_open(leat__lmdb_snapshot **out,
                    leat__lmdb_environment *environment, int64_t began,
                    int *code)
{
    leat__lmdb_pin pin;
    int status = leat__lmdb_lock_check(environment->lock, began);
    if (!status)
        status = share_listed(out, environment);
    if (status || *out)
        return status;
    status = leat__lmdb_environment_pin(environment, began, &pin, code);
    if (status)
        return status;
    pthread_mutex_lock(&environment->snapshots_lock);
    status = share_or_create(out, environment, &pin);
    pthread_mutex_unlock(&environment->snapshots_lock);
    if (status)
        leat__lmdb_environment_unpin(environment, &pin);
    return status;
}

/* Why no try came to an end: the file lacks the lock file's transaction, or a
 * writer was faster. */
static int explain_tries(const leat__lmdb_environment *environment)
{
    int status =
        leat__lmdb_lock_check_latest(environment->lock, &environment->file);
    return status ? status
                  : leat_error(LEAT_EIO,
                               "%s: a writer changes it faster than it can be "
                               "opened",
                               environment->file.path);
}

int leat__lmdb_snapshot_open(leat__lmdb_snapshot **out, const char *path)
{
    leat__lmdb_environment *environment;
    leat__lmdb_snapshot *snapshot = NULL;
    int status = leat__lmdb_environment_open(&environment, path);
    if (status)
        return status;
    int code = 0;
    int64_t began = leat__clock_now();
    pthread_mutex_lock(&environment->opening_lock);
    status = LEAT_AGAIN;
    for (int i = 0; i < TRIES_MAX && status == LEAT_AGAIN; i++)
        status = try_open(&snapshot, environment, began, &code);
    pthread_mutex_unlock(&environment->opening_lock);
    if (status == LEAT_AGAIN)
        status = explain_tries(environment);
    if (status) {
        leat__lmdb_environment_close(environment);
        return status;
    }
    if (code && leat__lmdb_snapshot_is_exposed(snapshot))
        leat__lmdb_environment_warn(environment, code);
    *out = snapshot;
    return LEAT_OK;
}

static void destroy(leat__lmdb_snapshot *snapshot)
{
    leat__lmdb_index_destroy(
        atomic_load_explicit(&snapshot->index, memory_order_relaxed));
    pthread_mutex_destroy(&snapshot->index_lock);
    unmap(&snapshot->map);
    leat__free(snapshot);
}

void leat__lmdb_snapshot_close(leat__lmdb_snapshot *snapshot)
{
    if (!snapshot)
        return;
    leat__lmdb_environment *environment = snapshot->environment;
    if (leat__lmdb_environment_is_inherited(environment))
        return;
    pthread_mutex_lock(&environment->snapshots_lock);
    bool is_last = --snapshot->references == 0;
    if (is_last) {
        leat__lmdb_snapshot **at = &environment->snapshots;
        while (*at != snapshot)
            at = &(*at)->next;
        *at = snapshot->next;
        leat__lmdb_environment_unpin(environment, &snapshot->pin);
    }
    pthread_mutex_unlock(&environment->snapshots_lock);
    if (is_last)
        destroy(snapshot);
    /* Each reference to a snapshot holds one to its environment. */
    leat__lmdb_environment_close(environment);
}

bool leat__lmdb_snapshot_is_exposed(const leat__lmdb_snapshot *snapshot)
{
    return snapshot->pin.slot < 0;
}

bool leat__lmdb_snapshot_is_used(const leat__lmdb_snapshot *snapshot)
{
    return leat__lmdb_environment_is_used(snapshot->environment);
}

/* A writer of the transaction after the next one overwrites pages that the next
 * one has freed, unless a slot protects them. */
static int check_exposed(const leat__lmdb_snapshot *snapshot)
{
    uint64_t latest = 0;
    int status = leat__lmdb_environment_latest(snapshot->environment, &latest);
    if (status || latest <= snapshot->map.meta.txnid + 1)
        return status;
    return leat_error(LEAT_EIO,
                      "%s: a writer changed it while it was read without its "
                      "lock file; open it again, with the right to write to "
                      "the lock file and room for it",
                      snapshot->map.name);
}

/* Whether it is still the file of the snapshot. A meta page that is being
 * written may be read in part. */
static bool is_own(const leat__lmdb_snapshot *snapshot)
{
    int i = 0;
    while (i < TRIES_MAX &&
           !may_be_of(&snapshot->environment->file, &snapshot->map.meta, false))
        i++;
    return i < TRIES_MAX;
}

int leat__lmdb_snapshot_check(const leat__lmdb_snapshot *snapshot)
{
    if (is_own(snapshot))
        return leat__lmdb_snapshot_is_exposed(snapshot)
                   ? check_exposed(snapshot)
                   : LEAT_OK;
    return leat_error(LEAT_EIO,
                      "%s: was replaced or changed while it was read, but not "
                      "by LMDB; open it again",
                      snapshot->map.name);
}

int leat__lmdb_snapshot_explain(const leat__lmdb_snapshot *snapshot, int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    bool own = is_own(snapshot);
    if (own && leat__lmdb_snapshot_is_exposed(snapshot) &&
        check_exposed(snapshot) == LEAT_EIO)
        return LEAT_EIO;
    if (own && has_latest(snapshot->environment))
        return leat_error(status, "%s", line);
    return leat_error(LEAT_EFORMAT,
                      "%s: was replaced or changed while it was open, but not "
                      "by LMDB, and can no longer be read (%s)",
                      snapshot->map.name, line);
}

const leat__lmdb_map *
leat__lmdb_snapshot_map(const leat__lmdb_snapshot *snapshot)
{
    return &snapshot->map;
}

const leat__lmdb_storage *
leat__lmdb_snapshot_storage(const leat__lmdb_snapshot *snapshot)
{
    return &snapshot->storage;
}

int leat__lmdb_snapshot_index(leat__lmdb_snapshot *snapshot, size_t window,
                              const leat__lmdb_index **out)
{
    leat__lmdb_index *index =
        atomic_load_explicit(&snapshot->index, memory_order_acquire);
    if (index) {
        *out = index;
        return LEAT_OK;
    }
    int status = LEAT_OK;
    pthread_mutex_lock(&snapshot->index_lock);
    index = atomic_load_explicit(&snapshot->index, memory_order_relaxed);
    if (!index) {
        leat__lmdb_readahead ahead;
        leat__lmdb_readahead_init(&ahead, &snapshot->storage, window, 0);
        status = leat__lmdb_index_create(&index, &snapshot->map, &ahead);
        if (!status)
            atomic_store_explicit(&snapshot->index, index,
                                  memory_order_release);
    }
    pthread_mutex_unlock(&snapshot->index_lock);
    if (!status)
        *out = index;
    return status;
}

const leat__lmdb_index *
leat__lmdb_snapshot_known_index(leat__lmdb_snapshot *snapshot)
{
    return atomic_load_explicit(&snapshot->index, memory_order_acquire);
}

void leat__lmdb_snapshot_give_index(leat__lmdb_snapshot *snapshot,
                                    leat__lmdb_index *index)
{
    pthread_mutex_lock(&snapshot->index_lock);
    if (atomic_load_explicit(&snapshot->index, memory_order_relaxed))
        leat__lmdb_index_destroy(index);
    else
        atomic_store_explicit(&snapshot->index, index, memory_order_release);
    pthread_mutex_unlock(&snapshot->index_lock);
}

int64_t leat__lmdb_snapshot_index_bytes(leat__lmdb_snapshot *snapshot)
{
    return leat__lmdb_snapshot_known_index(snapshot)
               ? leat__lmdb_index_bytes(&snapshot->map)
               : 0;
}
