/* A cache over a stream: what is kept is a beginning of its epoch. */
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "decorators/cache/cache_reader.h"

/* Where the upstream reader has to wait while `index` comes next. */
static int go_upstream(leat__cache_reader *cache, int64_t index)
{
    leat_reader *upstream = leat__cache_upstream(cache);
    int64_t skipped, to = index > cache->kept ? index : cache->kept;
    leat_position position = {0, to};
    leat_token *mark = NULL;
    if (cache->is_whole || (cache->upstream_at == to && to > 0))
        return LEAT_OK;
    if (cache->kept > 0 && !cache->is_repeatable) {
        leat__cache_forget(cache);
        position.index = to = index;
    }
    if (to == cache->kept && cache->kept > 0 && cache->has_mark) {
        mark = &cache->kept_mark;
        mark->cursor = 0;
    } else if (to > 0 && to == cache->kept && !leat_reader_can_seek(upstream)) {
        position.index = 0;
    }
    int status = leat_reader_seek(upstream, position, mark);
    if (!status && !mark && position.index < to)
        status = leat_reader_skip(upstream, to, &skipped);
    cache->upstream_at = status ? -1 : to;
    return status;
}

/*
 * A mark does not tell which index it is of, so that what is kept is of no use
 * until the next seek without one.
 */
static int seek_mark(leat__cache_reader *cache, leat_position position,
                     leat_token *mark)
{
    const leat_position first = {0, position.index};
    int status = leat_reader_seek(leat__cache_upstream(cache), first, mark);
    cache->upstream_at = -1;
    cache->is_beside = !status;
    return status;
}

int leat__cache_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (status || mark)
        return status ? status : seek_mark(cache, position, mark);
    if (cache->is_whole && position.index > cache->kept)
        return leat_error(LEAT_EINVAL,
                          "cache: sample %lld is out of range: there are "
                          "%lld",
                          (long long)position.index, (long long)cache->kept);
    if (!cache->is_whole)
        status = leat_reader_check(leat__cache_upstream(cache));
    if (!status)
        status = go_upstream(cache, position.index);
    if (status)
        return status;
    cache->is_beside = false;
    cache->map.next = position;
    return LEAT_OK;
}

/* Room for one more entry. */
static bool grow(leat__cache_reader *cache)
{
    if (cache->writer || cache->taken < cache->nentries)
        return true;
    int64_t n = cache->nentries ? 2 * cache->nentries : 256;
    leat__cache_entry_pointer *more =
        leat__realloc(cache->entry, (size_t)n * sizeof(*more));
    if (!more)
        return false;
    cache->entry = more;
    for (int64_t i = cache->nentries; i < n; i++)
        atomic_init(&more[i], NULL);
    cache->nentries = n;
    return true;
}

/* Whether the next sample is one more to be kept. */
static bool is_next_kept(leat__cache_reader *cache)
{
    return cache->map.next.index == cache->taken &&
           (cache->writer ? atomic_load(&cache->is_writing)
                          : !atomic_load(&cache->is_full));
}

/* The upstream reader's mark, where it has one. */
static int note_mark(const leat__cache_reader *cache, leat_token *mark)
{
    mark->size = 0;
    return cache->has_mark ? leat_reader_mark(leat__cache_upstream(cache), mark)
                           : LEAT_OK;
}

/* Keeps one more sample, with the mark from before it. */
static void keep_one(leat__cache_reader *cache, const leat__cache_item *item)
{
    bool is_kept = !note_mark(cache, &cache->next_mark) && grow(cache) &&
                   leat__cache_store(cache, cache->taken, item);
    if (is_kept) {
        leat_token mark = cache->kept_mark;
        cache->kept_mark = cache->next_mark;
        cache->next_mark = mark;
        cache->taken++;
        cache->kept = cache->writer ? 0 : cache->taken;
    } else if (cache->writer) {
        leat__cache_give_up(cache);
    } else {
        atomic_store(&cache->is_full, true);
        if (!cache->is_repeatable)
            leat__cache_forget(cache);
    }
}

/* Reads one sample, whole, and keeps it; a bad one with its line. */
static int take_one(leat__cache_reader *cache, leat_sample *out)
{
    leat_reader *upstream = leat__cache_upstream(cache);
    int first = out->nfields, some, status = LEAT_OK;
    if (cache->taken == 0)
        status = note_mark(cache, &cache->kept_mark);
    if (!status)
        status = leat_reader_pull(upstream, &out, 1, &some);
    if (!status)
        status = leat_reader_materialize(upstream, &out, 1, &some);
    if (status && status != LEAT_EDATA)
        return status;
    char line[LEAT__ERROR_MAX];
    if (status)
        leat__error_save(line);
    const leat__cache_item item = {
        .sample = out,
        .first = first,
        .mark = cache->has_mark ? &cache->kept_mark : NULL,
        .line = status ? line : NULL,
    };
    keep_one(cache, &item);
    return status ? leat_error(status, "%s", line) : LEAT_OK;
}

/* Whether all that was kept is of the data that were opened; what is not is
 * found by the next seek. */
static bool is_settled(leat__cache_reader *cache)
{
    return cache->writer ? leat__cache_complete(cache)
                         : !leat_reader_check(leat__cache_upstream(cache));
}

/* What comes after all that is kept. */
static int read_on(leat__cache_reader *cache, leat_sample *const out[], int n,
                   int *got)
{
    int some = 0;
    int status;
    if (is_next_kept(cache)) {
        status = take_one(cache, out[*got]);
        some = !status;
        cache->is_whole = status == LEAT_END && is_settled(cache);
        if (cache->is_whole)
            cache->kept = cache->taken;
    } else {
        status = leat_reader_pull(leat__cache_upstream(cache), out + *got,
                                  n - *got, &some);
    }
    *got += some;
    some += status == LEAT_EDATA;
    cache->map.next.index += some;
    if (cache->upstream_at >= 0)
        cache->upstream_at += some;
    if (status && status != LEAT_EDATA)
        cache->upstream_at = -1;
    return status;
}

int leat__cache_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    int64_t *index = &cache->map.next.index;
    size_t bytes = 0;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (!status && cache->is_beside)
        return leat_reader_pull(leat__cache_upstream(cache), out, n, got);
    while (!status && *got < n && bytes < LEAT__CALL_BYTES) {
        leat__cache_kept kept;
        int first = *got;
        size_t before = out[first]->buffer_size;
        if (*index < cache->kept && leat__cache_find(cache, *index, &kept)) {
            ++*index;
            cache->has_given = true;
            status = leat__cache_give(&kept, out[*got]);
            *got += !status;
        } else if (cache->is_whole) {
            status = LEAT_END;
        } else if (*got > 0 &&
                   leat__block_probe_ask(&cache->probe,
                                         leat__cache_upstream(cache), 1)) {
            break;
        } else {
            status = read_on(cache, out, n, got);
        }
        if (*got - first > 1)
            break; /* the upstream reader's call ended where it had to */
        bytes += leat__sample_added(out + first, 1, before);
    }
    return status;
}

/* What is passed by, for a resume or other ranks, is kept like the rest: it may
   never come again. */
static int skip_and_keep(leat__cache_reader *cache, int64_t *skipped)
{
    leat_sample *out = &cache->passed;
    int some = 0;
    leat_sample_clear(out);
    int status = read_on(cache, &out, 1, &some);
    *skipped = some;
    return status;
}

int leat__cache_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    int64_t *index = &cache->map.next.index;
    int64_t more = 0;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (status)
        return status;
    if (cache->is_beside)
        return leat_reader_skip(leat__cache_upstream(cache), n, skipped);
    if (*index < cache->kept) {
        int64_t left = cache->kept - *index;
        *skipped = n < left ? n : left;
        *index += *skipped;
        return LEAT_OK;
    }
    if (cache->is_whole)
        return LEAT_END;
    if (is_next_kept(cache))
        return skip_and_keep(cache, skipped);
    status = leat_reader_skip(leat__cache_upstream(cache), n, &more);
    *index += more;
    *skipped = more;
    if (cache->upstream_at >= 0)
        cache->upstream_at = status ? -1 : cache->upstream_at + more;
    return status;
}

/* The upstream reader's, byte by byte: a run may resume without the cache. */
int leat__cache_mark(leat_reader *reader, leat_token *token)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    int64_t index = cache->map.next.index;
    leat__cache_kept kept;
    if (cache->is_beside)
        return leat_reader_mark(leat__cache_upstream(cache), token);
    if (index < cache->kept && leat__cache_find(cache, index, &kept))
        return kept.status
                   ? kept.status
                   : leat__cache_entry_mark(kept.bytes, kept.size, token);
    if (cache->is_whole)
        return leat_token_put(token, cache->kept_mark.bytes,
                              cache->kept_mark.size);
    return leat_reader_mark(leat__cache_upstream(cache), token);
}

int leat__cache_restore(leat_reader *reader, leat_token *token)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    int status = leat__index_map_restore(reader, token);
    cache->upstream_at = status ? -1 : 0;
    cache->is_beside = false;
    return !status && cache->kept > 0 ? go_upstream(cache, 0) : status;
}

int leat__cache_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(leat__cache_upstream((leat__cache_reader *)reader),
                             out);
}
