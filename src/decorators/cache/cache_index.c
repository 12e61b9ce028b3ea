/* A cache over random access: any threads read and keep what is missing. */
#include "base/error.h"
#include "decorators/cache/cache_reader.h"

/* Samples looked up in one go: 2 KiB of stack. */
enum { AT_ONCE = 64 };

/*
 * Reads up to `n` samples that are not kept, and keeps them, bad ones included.
 */
static int read_missing(leat__cache_reader *cache, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    leat_position from[AT_ONCE];
    int first[AT_ONCE];
    for (int i = 0; i < n; i++) {
        from[i] = (leat_position){0, at[i].index};
        first[i] = out[i]->nfields;
    }
    int status =
        leat_reader_pull_at(leat__cache_upstream(cache), from, out, n, got);
    for (int i = 0; i < *got; i++) {
        const leat__cache_item item = {.sample = out[i], .first = first[i]};
        (void)leat__cache_store(cache, at[i].index, &item);
    }
    if (status != LEAT_EDATA)
        return status;
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    const leat__cache_item item = {.sample = out[*got], .line = line};
    (void)leat__cache_store(cache, at[*got].index, &item);
    return leat_error(LEAT_EDATA, "%s", line);
}

int leat__cache_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (!status && n > 0)
        status = leat__cache_enter(cache, at[0].epoch);
    n = n < AT_ONCE ? n : AT_ONCE;
    while (!status && *got < n) {
        int first = *got, end = first, some = 0;
        leat__cache_kept kept;
        if (leat__cache_find(cache, at[first].index, &kept)) {
            status = leat__cache_give(&kept, out[first]);
            *got += !status;
            continue;
        }
        while (end < n && !leat__cache_find(cache, at[end].index, &kept))
            end++;
        if (end == first)
            continue; /* another thread has just stored it */
        status =
            read_missing(cache, at + first, out + first, end - first, &some);
        *got += some;
    }
    return status;
}

int leat__cache_seek_index(leat_reader *reader, leat_position position,
                           leat_token *mark)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    if (position.index == 0 &&
        atomic_load(&cache->checked) != LEAT__CACHE_SETTLED)
        atomic_store(&cache->checked, -1);
    return leat__index_map_seek(reader, position, mark);
}

void leat__cache_advise(leat_reader *reader, const leat_position at[], int n)
{
    const leat__cache_reader *cache = (const leat__cache_reader *)reader;
    leat_position missing[AT_ONCE];
    leat__cache_kept kept;
    int nmissing = 0;
    if (atomic_load(&cache->directory))
        return;
    for (int i = 0; i < n; i++) {
        if (!leat__cache_find(cache, at[i].index, &kept))
            missing[nmissing++] = (leat_position){0, at[i].index};
        if (nmissing == AT_ONCE || (i == n - 1 && nmissing > 0)) {
            leat_reader_advise(leat__cache_upstream(cache), missing, nmissing);
            nmissing = 0;
        }
    }
}

int leat__cache_skip_index(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat__index_map *map = (leat__index_map *)reader;
    int64_t left = map->count - map->next.index;
    int status = leat__decorator_check_running(&map->decorator);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    map->next.index += *skipped;
    return *skipped > 0 ? LEAT_OK : LEAT_END;
}
