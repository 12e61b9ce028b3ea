#include "readers/lmdb/lmdb_reader.h"

#include <string.h>

/* Records that fields tries to find a good one. */
#define TRIES_MAX 256

int leat__lmdb_reader_bad_record(const leat__lmdb_reader *lmdb,
                                 const leat__lmdb_entry *entry, int status)
{
    char text[LEAT__KEY_TEXT_MAX];
    leat__key_text(text, entry->key, entry->key_size);
    return leat__error_context(status, "%s: record %lld, key %s", lmdb->path,
                               (long long)entry->record, text);
}

int leat__lmdb_reader_copy(const leat__lmdb_reader *lmdb,
                           leat_sample *const out[], int *got, int status)
{
    for (int i = 0; i < *got; i++) {
        int copied = leat_sample_own(out[i]);
        out[i]->stable = 0;
        if (copied) {
            *got = i;
            return copied;
        }
    }
    status = status ? leat__lmdb_reader_explain(lmdb, status)
                    : leat__lmdb_snapshot_check(lmdb->snapshot);
    if (status == LEAT_EIO)
        *got = 0;
    return status;
}

static void describe(leat__lmdb_reader *lmdb, const leat_field *data)
{
    leat_field_spec *spec = lmdb->spec;
    spec[0] =
        (leat_field_spec){.name = "data", .dtype = LEAT_BYTES, .ndim = -1};
    /* Datums of images that have several labels hold floats. */
    spec[1] =
        (leat_field_spec){.name = "label", .dtype = LEAT_INT32, .varies = true};
    if (data && data->dtype != LEAT_BYTES) {
        spec[0].varies = true;
        spec[0].dtype = data->dtype;
        spec[0].ndim = data->ndim;
        memcpy(spec[0].shape, data->shape, sizeof(spec[0].shape));
    }
    lmdb->nspec = 2;
}

/* LEAT_END if there are no records, LEAT_EDATA if none of the first ones is
 * good. */
static int find_good(leat__lmdb_reader *lmdb, leat__lmdb_walker *walker,
                     leat_sample *sample)
{
    int first = LEAT_OK;
    char line[LEAT__ERROR_MAX];
    for (int n = 0; n < TRIES_MAX; n++) {
        leat__lmdb_entry entry;
        int got;
        int status = leat__lmdb_walker_next(walker, &entry, 1, &got);
        leat_sample_clear(sample);
        if (!status)
            status = leat__lmdb_reader_fill(lmdb, &entry, sample);
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

/* Derives the field specs from the first good record. */
static int read_field_specs(leat__lmdb_reader *lmdb)
{
    leat_sample sample;
    leat__lmdb_walker *walker = leat__alloc(sizeof(*walker));
    if (!walker)
        return LEAT_ENOMEM;
    leat__lmdb_walker_init(walker, lmdb->map);
    leat_sample_init(&sample);
    int status = find_good(lmdb, walker, &sample);
    if (status >= 0)
        describe(lmdb, status == LEAT_END ? NULL : &sample.field[0]);
    leat_sample_finish(&sample);
    leat__free(walker);
    return status < 0 ? status : LEAT_OK;
}

int leat__lmdb_reader_fields(leat_reader *reader, const leat_field_spec **out,
                             int *n)
{
    leat__lmdb_reader *lmdb = (leat__lmdb_reader *)reader;
    int status = LEAT_OK;
    if (!lmdb->nspec)
        status = leat__lmdb_reader_explain(lmdb, read_field_specs(lmdb));
    if (!status)
        status = leat__lmdb_snapshot_check(lmdb->snapshot);
    if (status)
        return status;
    *out = lmdb->spec;
    *n = lmdb->nspec;
    return LEAT_OK;
}
