/*
 * cache:BYTES keeps the samples of the upstream reader's first epoch in memory,
 * as many as fit, and gives them again in every epoch; cache:dir=PATH keeps all
 * of them on disk, for other processes too.
 *
 * DESIGN. Every epoch is the upstream's epoch 0, wherever a sample is read, so
 * that what comes at a position depends neither on what was kept nor on when.
 *
 * Over random access an array has a pointer to the entry of each index. Any
 * threads read what is missing, and store it by exchanging NULL for their
 * entry; one that comes late frees its own. Entries stay until close, so that
 * samples are stable views of them.
 *
 * Over a stream the entries are those from index 0 on without a gap, and the
 * upstream reader waits where they end (`kept`), unless the epoch ended there
 * and it is needed no more. All of that is the one caller's.
 *
 * On disk samples are given from the directory once that is whole; until then
 * they are read from the upstream reader, and written on the way. A directory
 * that was whole at open gives random access, whatever the upstream reader has.
 */
#include "base/counter.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/cache/cache_directory.h"
#include "decorators/cache/cache_entry.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"
#include "pipeline/pipeline.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Samples looked up in one go: 2 KiB of stack. */
enum { AT_ONCE = 64 };

/* Kept where neither an argument nor the caller sets a limit. */
#define BUDGET ((int64_t)1 << 30)

typedef struct cache_entry {
    _Alignas(LEAT__CACHE_ENTRY_UNIT) size_t size; /* of what follows */
    _Alignas(LEAT__CACHE_ENTRY_UNIT) unsigned char bytes[];
} cache_entry;

typedef _Atomic(cache_entry *) entry_pointer;

typedef struct cache_reader {
    leat__index_map map; /* first; over a stream `count` is not used */

    /* Immutable. */
    bool is_random_access;
    bool has_mark;
    int64_t budget;

    entry_pointer *entry;        /* of each index; grows over a stream */
    int64_t nentries;            /* its length */
    atomic_int_fast64_t used;    /* bytes of entries */
    atomic_int_fast64_t samples; /* that they are */
    atomic_bool is_full;         /* a sample did not fit; said in the log */

    const char *path;           /* on disk; NULL: in memory */
    leat_token identity;        /* of the data set and what is done to it */
    leat__cache_writer *writer; /* NULL: it was whole at open */
    atomic_bool is_writing;
    _Atomic(leat__cache_directory *) directory; /* NULL: not whole yet */

    /* Over a stream; the caller's. */
    int64_t taken;        /* samples kept, from index 0 on */
    int64_t kept;         /* of these, what can be given: all, or none yet */
    bool is_whole;        /* the epoch ended there */
    bool is_beside;       /* the upstream reader alone is read, from a mark */
    int64_t upstream_at;  /* where the upstream reader goes on; -1: nowhere */
    leat_token kept_mark; /* the upstream's at `taken`, where it has one */
    leat_token next_mark; /* scratch: that after one more sample */
} cache_reader;

static leat_reader *upstream_of(const cache_reader *cache)
{
    return cache->map.decorator.upstream[0];
}

/* ---- Entries ------------------------------------------------------------ */

static cache_entry *entry_at(const cache_reader *cache, int64_t index)
{
    return index < cache->nentries ? atomic_load_explicit(&cache->entry[index],
                                                          memory_order_acquire)
                                   : NULL;
}

/* What is kept of a sample; false: nothing. */
typedef struct kept_bytes {
    const void *bytes;
    size_t size;
    int status; /* of finding them: LEAT_EDATA with a line */
} kept_bytes;

static bool find(const cache_reader *cache, int64_t index, kept_bytes *out)
{
    leat__cache_directory *directory =
        atomic_load_explicit(&cache->directory, memory_order_acquire);
    out->status = LEAT_OK;
    if (directory) {
        out->status =
            leat__cache_directory_at(directory, index, &out->bytes, &out->size);
        return true;
    }
    const cache_entry *entry = entry_at(cache, index);
    if (!entry)
        return false;
    out->bytes = entry->bytes;
    out->size = entry->size;
    return true;
}

static void report_full(cache_reader *cache, int64_t bytes)
{
    if (atomic_exchange(&cache->is_full, true))
        return;
    int64_t samples = leat__counter_get(&cache->samples);
    if (samples == 0)
        leat__log(LEAT_LOG_WARNING,
                  "cache: %lld bytes are too few for one sample, of %lld: "
                  "nothing is kept; give cache:BYTES more",
                  (long long)cache->budget, (long long)bytes);
    else
        leat__log(LEAT_LOG_WARNING,
                  "cache: %lld samples are kept in %lld bytes; the others are "
                  "read again in every epoch, unless cache:BYTES is more",
                  (long long)samples, (long long)cache->budget);
}

/* Room for an entry of that size; 0: there is none. */
static bool reserve(cache_reader *cache, int64_t bytes)
{
    if (atomic_fetch_add(&cache->used, bytes) + bytes <= cache->budget)
        return true;
    atomic_fetch_sub(&cache->used, bytes);
    report_full(cache, bytes);
    return false;
}

/* A new entry within the budget; NULL: there is no memory for it. */
static cache_entry *make_entry(cache_reader *cache,
                               const leat__cache_item *item)
{
    size_t size = leat__cache_entry_size(item);
    if (size == 0 || size > (size_t)INT64_MAX - sizeof(cache_entry))
        return NULL;
    int64_t bytes = (int64_t)(sizeof(cache_entry) + size);
    if (!reserve(cache, bytes))
        return NULL;
    cache_entry *entry = leat__alloc_aligned((size_t)bytes);
    if (!entry) {
        atomic_fetch_sub(&cache->used, bytes);
        return NULL;
    }
    entry->size = size;
    leat__cache_entry_write(item, entry->bytes);
    return entry;
}

/* The cache on disk is not made after all; reading goes on. */
static void give_up(cache_reader *cache)
{
    if (atomic_exchange(&cache->is_writing, false))
        leat__log(LEAT_LOG_WARNING,
                  "cache: %s is not made, all is read again in every epoch: "
                  "%s",
                  cache->path, leat_last_error());
}

/* All samples are written: from now on they are given from the directory. */
static bool complete_directory(cache_reader *cache)
{
    leat__cache_directory *directory = NULL;
    int status = leat__cache_writer_finish(cache->writer);
    if (!status)
        status = leat__cache_directory_open(&directory, cache->path,
                                            &cache->identity);
    if (status) {
        give_up(cache);
        return false;
    }
    atomic_store_explicit(&cache->directory, directory, memory_order_release);
    atomic_store(&cache->is_writing, false);
    return true;
}

static bool write_out(cache_reader *cache, int64_t index,
                      const leat__cache_item *item)
{
    int64_t written;
    if (!atomic_load_explicit(&cache->is_writing, memory_order_relaxed))
        return false;
    if (leat__cache_writer_add(cache->writer, index, item, &written)) {
        give_up(cache);
        return false;
    }
    if (cache->is_random_access && written == cache->map.count)
        (void)complete_directory(cache);
    return true;
}

/* Keeps a sample if there is room; another thread's stays. */
static bool store(cache_reader *cache, int64_t index,
                  const leat__cache_item *item)
{
    if (cache->writer)
        return write_out(cache, index, item);
    if (index >= cache->nentries ||
        atomic_load_explicit(&cache->is_full, memory_order_relaxed))
        return false;
    cache_entry *none = NULL;
    cache_entry *entry = make_entry(cache, item);
    if (!entry)
        return false;
    if (atomic_compare_exchange_strong(&cache->entry[index], &none, entry)) {
        leat__counter_add(&cache->samples, 1);
        return true;
    }
    atomic_fetch_sub(&cache->used,
                     (int64_t)(sizeof(cache_entry) + entry->size));
    leat__free(entry);
    return true;
}

static int give(const kept_bytes *kept, leat_sample *out)
{
    return kept->status ? kept->status
                        : leat__cache_entry_view(kept->bytes, kept->size, out);
}

/* ---- Over random access ------------------------------------------------- */

/*
 * Reads up to `n` samples that are not kept, and keeps them, bad ones included.
 */
static int read_missing(cache_reader *cache, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    leat_position from[AT_ONCE];
    int first[AT_ONCE];
    for (int i = 0; i < n; i++) {
        from[i] = (leat_position){0, at[i].index};
        first[i] = out[i]->nfields;
    }
    int status = leat_reader_pull_at(upstream_of(cache), from, out, n, got);
    for (int i = 0; i < *got; i++) {
        const leat__cache_item item = {.sample = out[i], .first = first[i]};
        (void)store(cache, at[i].index, &item);
    }
    if (status != LEAT_EDATA)
        return status;
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    const leat__cache_item item = {.sample = out[*got], .line = line};
    (void)store(cache, at[*got].index, &item);
    return leat_error(LEAT_EDATA, "%s", line);
}

static int cache_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    cache_reader *cache = (cache_reader *)reader;
    int status = leat__decorator_check_running(&cache->map.decorator);
    n = n < AT_ONCE ? n : AT_ONCE;
    while (!status && *got < n) {
        int first = *got, end = first, some = 1;
        kept_bytes kept;
        if (find(cache, at[first].index, &kept)) {
            status = give(&kept, out[first]);
            *got += !status;
            continue;
        }
        while (end < n && !find(cache, at[end].index, &kept))
            end++;
        if (end == first)
            continue; /* another thread has just stored it */
        status =
            read_missing(cache, at + first, out + first, end - first, &some);
        *got += some;
    }
    return status;
}

static void cache_advise(leat_reader *reader, const leat_position at[], int n)
{
    const cache_reader *cache = (const cache_reader *)reader;
    leat_position missing[AT_ONCE];
    int nmissing = 0;
    if (atomic_load(&cache->directory))
        return;
    for (int i = 0; i < n; i++) {
        if (!entry_at(cache, at[i].index))
            missing[nmissing++] = (leat_position){0, at[i].index};
        if (nmissing == AT_ONCE || (i == n - 1 && nmissing > 0)) {
            leat_reader_advise(upstream_of(cache), missing, nmissing);
            nmissing = 0;
        }
    }
}

static int cache_skip_index(leat_reader *reader, int64_t n, int64_t *skipped)
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

/* ---- Over a stream ------------------------------------------------------ */

/* Where the upstream reader has to wait while `index` comes next. */
static int go_upstream(cache_reader *cache, int64_t index)
{
    leat_reader *upstream = upstream_of(cache);
    int64_t skipped, to = index > cache->kept ? index : cache->kept;
    leat_position position = {0, to};
    leat_token *mark = NULL;
    if (cache->is_whole || (cache->upstream_at == to && to > 0))
        return LEAT_OK;
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
static int seek_mark(cache_reader *cache, leat_position position,
                     leat_token *mark)
{
    const leat_position first = {0, position.index};
    int status = leat_reader_seek(upstream_of(cache), first, mark);
    cache->upstream_at = -1;
    cache->is_beside = !status;
    return status;
}

static int seek_stream(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    cache_reader *cache = (cache_reader *)reader;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (status || mark)
        return status ? status : seek_mark(cache, position, mark);
    if (cache->is_whole && position.index > cache->kept)
        return leat_error(LEAT_EINVAL,
                          "cache: sample %lld is out of range: there are "
                          "%lld",
                          (long long)position.index, (long long)cache->kept);
    status = go_upstream(cache, position.index);
    if (status)
        return status;
    cache->is_beside = false;
    cache->map.next = position;
    return LEAT_OK;
}

/* Room for one more entry. */
static bool grow(cache_reader *cache)
{
    if (cache->writer || cache->taken < cache->nentries)
        return true;
    int64_t n = cache->nentries ? 2 * cache->nentries : 256;
    entry_pointer *more =
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
static bool is_next_kept(cache_reader *cache)
{
    return cache->map.next.index == cache->taken &&
           (cache->writer ? atomic_load(&cache->is_writing)
                          : !atomic_load(&cache->is_full));
}

/* The upstream reader's mark, where it has one. */
static int note_mark(const cache_reader *cache, leat_token *mark)
{
    mark->size = 0;
    return cache->has_mark ? leat_reader_mark(upstream_of(cache), mark)
                           : LEAT_OK;
}

/* Keeps one more sample, with the mark from before it. */
static void keep_one(cache_reader *cache, const leat__cache_item *item)
{
    bool is_kept = !note_mark(cache, &cache->next_mark) && grow(cache) &&
                   store(cache, cache->taken, item);
    if (is_kept) {
        leat_token mark = cache->kept_mark;
        cache->kept_mark = cache->next_mark;
        cache->next_mark = mark;
        cache->taken++;
        cache->kept = cache->writer ? 0 : cache->taken;
    } else if (cache->writer) {
        give_up(cache);
    } else {
        atomic_store(&cache->is_full, true);
    }
}

/* Reads one sample, whole, and keeps it; a bad one with its line. */
static int take_one(cache_reader *cache, leat_sample *out)
{
    leat_reader *upstream = upstream_of(cache);
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

/* What comes after all that is kept. */
static int read_on(cache_reader *cache, leat_sample *const out[], int n,
                   int *got)
{
    int some = 0;
    int status;
    if (is_next_kept(cache)) {
        status = take_one(cache, out[*got]);
        some = !status;
        cache->is_whole =
            status == LEAT_END && (!cache->writer || complete_directory(cache));
        if (cache->is_whole)
            cache->kept = cache->taken;
    } else {
        status =
            leat_reader_pull(upstream_of(cache), out + *got, n - *got, &some);
    }
    *got += some;
    some += status == LEAT_EDATA;
    cache->map.next.index += some;
    cache->upstream_at += some;
    if (status && status != LEAT_EDATA)
        cache->upstream_at = -1;
    return status;
}

static int next_stream(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    cache_reader *cache = (cache_reader *)reader;
    int64_t *index = &cache->map.next.index;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (!status && cache->is_beside)
        return leat_reader_pull(upstream_of(cache), out, n, got);
    while (!status && *got < n) {
        kept_bytes kept;
        if (*index < cache->kept && find(cache, *index, &kept)) {
            ++*index;
            status = give(&kept, out[*got]);
            *got += !status;
        } else if (cache->is_whole) {
            status = LEAT_END;
        } else if (*got > 0 && leat_reader_may_block(upstream_of(cache))) {
            break;
        } else {
            status = read_on(cache, out, n, got);
        }
    }
    return status;
}

static int skip_stream(leat_reader *reader, int64_t n, int64_t *skipped)
{
    cache_reader *cache = (cache_reader *)reader;
    int64_t *index = &cache->map.next.index;
    int64_t more = 0;
    int status = leat__decorator_check_running(&cache->map.decorator);
    if (status)
        return status;
    if (cache->is_beside)
        return leat_reader_skip(upstream_of(cache), n, skipped);
    if (*index < cache->kept) {
        int64_t left = cache->kept - *index;
        *skipped = n < left ? n : left;
        *index += *skipped;
        return LEAT_OK;
    }
    if (cache->is_whole)
        return LEAT_END;
    status = leat_reader_skip(upstream_of(cache), n, &more);
    *index += more;
    *skipped = more;
    cache->upstream_at = status ? -1 : cache->upstream_at + more;
    return status;
}

/* The upstream reader's, byte by byte: a run may resume without the cache. */
static int mark_stream(leat_reader *reader, leat_token *token)
{
    cache_reader *cache = (cache_reader *)reader;
    int64_t index = cache->map.next.index;
    kept_bytes kept;
    if (cache->is_beside)
        return leat_reader_mark(upstream_of(cache), token);
    if (index < cache->kept && find(cache, index, &kept))
        return kept.status
                   ? kept.status
                   : leat__cache_entry_mark(kept.bytes, kept.size, token);
    if (cache->is_whole)
        return leat_token_put(token, cache->kept_mark.bytes,
                              cache->kept_mark.size);
    return leat_reader_mark(upstream_of(cache), token);
}

static int restore_stream(leat_reader *reader, leat_token *token)
{
    cache_reader *cache = (cache_reader *)reader;
    int status = leat__index_map_restore(reader, token);
    cache->upstream_at = status ? -1 : 0;
    cache->is_beside = false;
    return !status && cache->kept > 0 ? go_upstream(cache, 0) : status;
}

static int count_stream(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(upstream_of((cache_reader *)reader), out);
}

/* ---- Both --------------------------------------------------------------- */

static void free_own(cache_reader *cache)
{
    leat__free(cache->entry);
    leat__cache_directory_close(atomic_load(&cache->directory));
    leat__cache_writer_destroy(cache->writer);
    leat_token_finish(&cache->identity);
    leat_token_finish(&cache->kept_mark);
    leat_token_finish(&cache->next_mark);
}

static void cache_close(leat_reader *reader)
{
    cache_reader *cache = (cache_reader *)reader;
    for (int64_t i = 0; i < cache->nentries; i++)
        leat__free(entry_at(cache, i));
    free_own(cache);
    leat__decorator_close(reader);
}

static int64_t cache_memory(leat_reader *reader)
{
    cache_reader *cache = (cache_reader *)reader;
    leat__cache_directory *directory = atomic_load(&cache->directory);
    return leat__counter_get(&cache->used) +
           (directory ? leat__cache_directory_memory(directory) : 0);
}

static int cache_may_block(leat_reader *reader)
{
    cache_reader *cache = (cache_reader *)reader;
    leat__cache_directory *directory = atomic_load(&cache->directory);
    return directory ? leat__cache_directory_may_block(directory)
                     : leat__decorator_may_block(reader);
}

#define CACHE_OPS                                                              \
    .size = sizeof(leat_reader_ops), .name = "cache",                          \
    .fields = leat__decorator_fields, .cancel = leat__decorator_cancel,        \
    .close = cache_close, .save = leat__decorator_save,                        \
    .may_block = cache_may_block, .memory = cache_memory

static const leat_reader_ops random_access_ops = {
    CACHE_OPS,
    .restore = leat__index_map_restore,
    .next = leat__index_map_next,
    .seek = leat__index_map_seek,
    .count = leat__index_map_count,
    .read_at = cache_read_at,
    .advise = cache_advise,
    .skip = cache_skip_index,
};

#define STREAM_OPS                                                             \
    CACHE_OPS, .can_seek = leat__decorator_can_seek,                           \
               .restore = restore_stream, .next = next_stream,                 \
               .seek = seek_stream, .count = count_stream, .skip = skip_stream

static const leat_reader_ops stream_ops = {STREAM_OPS};

static const leat_reader_ops marked_ops = {STREAM_OPS, .mark = mark_stream};

static int set_budget(cache_reader *cache, const leat_open *open)
{
    cache->budget = leat_args_number(open->args, "bytes");
    if (open->max_memory > 0 && cache->budget > open->max_memory)
        return leat_error(LEAT_ELIMIT,
                          "cache: bytes is %lld, more than the caller's limit "
                          "of memory, %lld",
                          (long long)cache->budget,
                          (long long)open->max_memory);
    if (cache->budget == 0)
        cache->budget = open->max_memory > 0 ? open->max_memory / 4 : BUDGET;
    return LEAT_OK;
}

static int check_count(int64_t count)
{
    if (count != LEAT_ENDLESS)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "cache: its epochs have no end; put it "
                                   "before repeat");
}

/* Pointers for as many samples as there are, or as could be kept. */
static int init_index(cache_reader *cache)
{
    int64_t *count = &cache->map.count;
    int64_t most = cache->budget / LEAT__CACHE_ENTRY_UNIT;
    int status = leat_reader_count(upstream_of(cache), count);
    if (!status)
        status = check_count(*count);
    if (status || cache->path)
        return status;
    cache->nentries = *count < most ? *count : most;
    cache->entry =
        leat__alloc_zero((size_t)cache->nentries, sizeof(entry_pointer));
    return cache->entry ? LEAT_OK : LEAT_ENOMEM;
}

/* What tells these samples from others: data, readers, arguments, seed. */
static int identify(cache_reader *cache, const leat_open *open)
{
    const leat_pipeline *pipeline = open->pipeline[0];
    const uint64_t own[] = {
        leat__pipeline_hash(pipeline), (uint64_t)open->phase,
        leat__pipeline_draws_seed(pipeline) ? open->seed : 0};
    int status = leat_reader_save(upstream_of(cache), &cache->identity);
    if (status == LEAT_EUNSUPPORTED)
        return leat_error(status,
                          "cache: dir: nothing tells the samples of the reader "
                          "\"%s\" from others, as it saves no identity",
                          upstream_of(cache)->ops->name);
    return status ? status : leat_token_put(&cache->identity, own, sizeof(own));
}

/* A whole directory, or the beginning of one. */
static int open_directory(cache_reader *cache, const leat_open *open)
{
    leat__cache_directory *directory = NULL;
    int status = identify(cache, open);
    if (status)
        return status;
    status =
        leat__cache_directory_open(&directory, cache->path, &cache->identity);
    atomic_store(&cache->directory, directory);
    if (status != LEAT_AGAIN)
        return status;
    atomic_store(&cache->is_writing, true);
    return leat__cache_writer_create(&cache->writer, cache->path,
                                     &cache->identity);
}

/* Chooses the form, by what the upstream reader can, and what is there. */
static int init(cache_reader *cache, const leat_open *open)
{
    leat_reader *upstream = upstream_of(cache);
    int status = set_budget(cache, open);
    cache->path = leat_args_get(open->args, "dir");
    cache->has_mark = leat_reader_has_mark(upstream);
    cache->is_random_access =
        leat_reader_is_random_access(upstream) && !cache->has_mark;
    if (!status && cache->path)
        status = open_directory(cache, open);
    leat__cache_directory *directory = atomic_load(&cache->directory);
    cache->is_random_access |= directory != NULL;
    if (!status && directory)
        cache->map.count = leat__cache_directory_count(directory);
    else if (!status && cache->is_random_access)
        status = init_index(cache);
    if (!status && cache->writer && cache->is_random_access &&
        cache->map.count == 0)
        (void)complete_directory(cache);
    if (cache->is_random_access)
        cache->map.decorator.reader.ops = &random_access_ops;
    else if (cache->has_mark)
        cache->map.decorator.reader.ops = &marked_ops;
    return status;
}

static int cache_open(const leat_open *open, leat_reader **out)
{
    cache_reader *cache =
        leat__decorator_new(open, &stream_ops, sizeof(*cache));
    if (!cache)
        return LEAT_ENOMEM;
    leat_token_init(&cache->identity);
    leat_token_init(&cache->kept_mark);
    leat_token_init(&cache->next_mark);
    int status = init(cache, open);
    if (status) {
        free_own(cache);
        leat__free(cache);
        return status;
    }
    *out = &cache->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument cache_arguments[] = {
    {.name = "bytes",
     .kind = LEAT_ARGUMENT_BYTES,
     .positional = 1,
     .keeps_samples = 1,
     .initial = "0",
     .max = INT64_MAX,
     .help = "memory for samples; what does not fit is read in every epoch; 0: "
             "a quarter of the caller's limit, or 1G"},
    {.name = "dir",
     .kind = LEAT_ARGUMENT_TEXT,
     .keeps_samples = 1,
     .help = "directory in which all samples are kept instead; made by the "
             "first epoch that is read to its end"},
    {0},
};

const leat_reader_type leat__cache_type = {
    .size = sizeof(leat_reader_type),
    .name = "cache",
    .help = "the first epoch's samples in every epoch, from memory or disk",
    .arguments = cache_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 1,
    .open = cache_open,
};

int leat_cache_options_init(leat_cache_options *options)
{
    const leat_cache_options defaults = LEAT_CACHE_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

int leat_pipeline_cache(leat_pipeline **out, leat_pipeline *upstream,
                        const leat_cache_options *options)
{
    leat_cache_options values = LEAT_CACHE_OPTIONS_INIT;
    char *text;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    size_t escaped = leat_args_escape(values.dir ? values.dir : "", NULL, 0);
    text = leat__alloc(escaped + 32);
    if (!text)
        return LEAT_ENOMEM;
    int used = 0;
    text[0] = 0;
    if (values.bytes != 0)
        used = sprintf(text, "%lld%s", (long long)values.bytes,
                       values.dir ? "," : "");
    if (values.dir) {
        used += sprintf(text + used, "dir=");
        leat_args_escape(values.dir, text + used, escaped);
    }
    status = leat_pipeline_create(out, &leat__cache_type, text, NULL, NULL,
                                  &upstream, 1);
    leat__free(text);
    return status;
}
