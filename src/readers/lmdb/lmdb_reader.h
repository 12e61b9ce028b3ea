/*
 * lmdb_reader.h: what the parts of LMDB's reader share: its state, the checks
 * before each operation, and a sample or the field specs out of a record.
 */
#ifndef LEAT_READERS_LMDB_READER_H
#define LEAT_READERS_LMDB_READER_H

#include "base/error.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_drop_behind.h"
#include "readers/lmdb/lmdb_snapshot.h"

#include <leat/datum.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct leat__lmdb_reader {
    leat_reader reader;
    leat__lmdb_snapshot *snapshot; /* immutable, as the next ten */
    const leat__lmdb_map *map;     /* the snapshot's, as is the next */
    const leat__lmdb_storage *storage;
    size_t window;   /* read-ahead in bytes; 0: none */
    bool is_auto;    /* a walk may leave it to the kernel */
    bool drops;      /* drops pages after the walk */
    bool is_exposed; /* no slot protects the pages: see lmdb_snapshot.h */
    bool copies;     /* samples are copies, as a writer was there at opening */
    struct leat_reader_figures *figures; /* borrowed */
    int64_t notes_most; /* bytes that the notes of its chain's walks may take */
    char *path;         /* owned */
    atomic_bool cancelled;
    atomic_bool advised; /* advise is called before read_at */
    _Atomic int64_t
        unprobed; /* records to read before the next residency probe */
    _Atomic int64_t notes_bytes;
    atomic_bool logged_drops; /* that drop_behind has no effect was logged */

    /* Used by one caller at a time. */
    leat_field_spec spec[2];
    int nspec; /* 0: unknown yet */
    /* Written by a walk: on a cache line apart from what all threads read. */
    _Alignas(LEAT__CACHE_LINE) leat__lmdb_walker walker;
    pthread_t walked_by;     /* the latest caller of next */
    leat__lmdb_index *notes; /* of the walk, until it has noted all; or NULL */
    int64_t notes_taken;     /* of notes_most, until the reader is closed */
    leat__lmdb_readahead readahead;
    leat__lmdb_drop_behind drop_behind;
} leat__lmdb_reader;

/* LEAT_ECANCELLED after cancel, and LEAT_EIO once a writer may have
 * overwritten what was read of an exposed snapshot. */
static inline int leat__lmdb_reader_check_running(const leat__lmdb_reader *lmdb)
{
    if (atomic_load_explicit(&lmdb->cancelled, memory_order_relaxed))
        return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                          lmdb->path);
    return lmdb->is_exposed ? leat__lmdb_snapshot_check(lmdb->snapshot)
                            : LEAT_OK;
}

/* Returns `status` with the entry's record and key before its error line. */
int leat__lmdb_reader_bad_record(const leat__lmdb_reader *lmdb,
                                 const leat__lmdb_entry *entry, int status);

/* Of a status of the pages or records: with its cause, if that is another
 * program. */
static inline int leat__lmdb_reader_explain(const leat__lmdb_reader *lmdb,
                                            int status)
{
    if (status != LEAT_EFORMAT && status != LEAT_EDATA)
        return status;
    return leat__lmdb_snapshot_explain(lmdb->snapshot, status);
}

/* Makes the sample of an entry, a view into the map. */
static inline int leat__lmdb_reader_fill(const leat__lmdb_reader *lmdb,
                                         const leat__lmdb_entry *entry,
                                         leat_sample *sample)
{
    leat_provenance *from = &sample->from;
    from->source = lmdb->path;
    from->record = entry->record;
    from->key = entry->key;
    from->key_size = entry->key_size;
    const leat_field *field = &sample->field[sample->nfields];
    int status = leat_datum_fields(sample, entry->value, entry->value_size);
    if (status)
        return leat__lmdb_reader_bad_record(lmdb, entry, status);
    uintptr_t data = (uintptr_t)field->data;
    sample->stable &= data - (uintptr_t)lmdb->map->base < lmdb->map->size;
    return LEAT_OK;
}

/* Of a reader that copies: see leat__lmdb_reader_finish. */
int leat__lmdb_reader_copy(const leat__lmdb_reader *lmdb,
                           leat_sample *const out[], int *got, int status);

/*
 * Ends a call that read `*got` samples, with its status. A reader that copies
 * takes them out of the map, whose pages may be overwritten while a sample is
 * held; LEAT_EIO, and no samples, if a writer may have done that before.
 */
static inline int leat__lmdb_reader_finish(const leat__lmdb_reader *lmdb,
                                           leat_sample *const out[], int *got,
                                           int status)
{
    if (!lmdb->copies)
        return leat__lmdb_reader_explain(lmdb, status);
    return leat__lmdb_reader_copy(lmdb, out, got, status);
}

/* The reader's operation `fields`: those of the first good record. */
int leat__lmdb_reader_fields(leat_reader *reader, const leat_field_spec **out,
                             int *n);

#endif
