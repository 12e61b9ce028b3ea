/* What a cache keeps: entries in memory, within a budget, or a directory. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "decorators/cache/cache_reader.h"

static leat__cache_memory_entry *entry_at(const leat__cache_reader *cache,
                                          int64_t index)
{
    return index < cache->nentries ? atomic_load_explicit(&cache->entry[index],
                                                          memory_order_acquire)
                                   : NULL;
}

bool leat__cache_find(const leat__cache_reader *cache, int64_t index,
                      leat__cache_kept *out)
{
    leat__cache_directory *directory =
        atomic_load_explicit(&cache->directory, memory_order_acquire);
    out->status = LEAT_OK;
    if (directory) {
        out->status =
            leat__cache_directory_at(directory, index, &out->bytes, &out->size);
        return true;
    }
    const leat__cache_memory_entry *entry = entry_at(cache, index);
    if (!entry)
        return false;
    out->bytes = entry->bytes;
    out->size = entry->size;
    return true;
}

static void report_full(leat__cache_reader *cache, int64_t bytes)
{
    if (atomic_exchange(&cache->is_full, true))
        return;
    int64_t samples = leat__counter_get(&cache->samples);
    if (samples == 0)
        leat__log(LEAT_LOG_WARNING,
                  "cache: %lld bytes are too few for one sample, of %lld: "
                  "nothing is kept; give cache:BYTES more",
                  (long long)cache->budget, (long long)bytes);
    else if (!cache->is_repeatable)
        leat__log(LEAT_LOG_WARNING,
                  "cache: %lld bytes are too few for an epoch, and its order "
                  "does not come again: nothing is kept; give cache:BYTES more",
                  (long long)cache->budget);
    else
        leat__log(LEAT_LOG_WARNING,
                  "cache: %lld samples are kept in %lld bytes; the others are "
                  "read again in every epoch, unless cache:BYTES is more",
                  (long long)samples, (long long)cache->budget);
}

/* malloc aligns to 16 bytes, and puts 8 before each block. Larger blocks are
 * pages: malloc would map them first, but keep them later. */
#define BLOCK_ALIGNMENT 16
#define BLOCK_HEADER 16
#define PAGES_FROM ((size_t)128 << 10)
#define PAGE 4096

/* Bytes of a block that an entry of that size lies in, aligned to its unit. */
static size_t block_size(size_t size)
{
    return sizeof(leat__cache_memory_entry) + size + LEAT__CACHE_ENTRY_UNIT -
           BLOCK_ALIGNMENT;
}

/*
 * What an entry of that size takes of the budget: its block, and its pointer,
 * for which there may be room twice where the array has grown.
 */
static int64_t cost_of(size_t size)
{
    size_t block = block_size(size);
    return (int64_t)(block + (block < PAGES_FROM ? BLOCK_HEADER : PAGE) +
                     2 * sizeof(leat__cache_entry_pointer));
}

static leat__cache_memory_entry *alloc_entry(size_t size)
{
    size_t bytes = block_size(size);
    char *block =
        bytes < PAGES_FROM ? leat__alloc(bytes) : leat__alloc_pages(bytes);
    if (!block)
        return NULL;
    size_t unit = LEAT__CACHE_ENTRY_UNIT;
    size_t pad = (unit - (uintptr_t)block % unit) % unit;
    leat__cache_memory_entry *entry = (void *)(block + pad);
    entry->size = size;
    entry->block = block;
    return entry;
}

static void free_entry(leat__cache_memory_entry *entry)
{
    size_t bytes = block_size(entry->size);
    if (bytes < PAGES_FROM)
        leat__free(entry->block);
    else
        leat__free_pages(entry->block, bytes);
}

/* Room for an entry that takes so much; 0: there is none. */
static bool reserve(leat__cache_reader *cache, int64_t bytes)
{
    if (atomic_fetch_add(&cache->used, bytes) + bytes <= cache->budget)
        return true;
    atomic_fetch_sub(&cache->used, bytes);
    report_full(cache, bytes);
    return false;
}

/* A new entry within the budget; NULL: there is no memory for it. */
static leat__cache_memory_entry *make_entry(leat__cache_reader *cache,
                                            const leat__cache_item *item)
{
    size_t size = leat__cache_entry_size(item);
    if (size == 0 || size > INT64_MAX / 2)
        return NULL;
    int64_t cost = cost_of(size);
    if (!reserve(cache, cost))
        return NULL;
    leat__cache_memory_entry *entry = alloc_entry(size);
    if (!entry) {
        atomic_fetch_sub(&cache->used, cost);
        return NULL;
    }
    leat__cache_entry_write(item, entry->bytes);
    return entry;
}

static void stop_writing(leat__cache_reader *cache, const char *why)
{
    if (atomic_exchange(&cache->is_writing, false))
        leat__log(LEAT_LOG_WARNING,
                  "cache: %s %s, all is read again in every epoch: %s",
                  cache->path, why, leat_last_error());
}

int leat__cache_enter(leat__cache_reader *cache, int64_t epoch)
{
    int_fast64_t last =
        atomic_load_explicit(&cache->checked, memory_order_relaxed);
    if (last >= epoch ||
        atomic_load_explicit(&cache->directory, memory_order_relaxed))
        return LEAT_OK;
    int status = leat_reader_check(leat__cache_upstream(cache));
    /* Another thread may have found meanwhile that all is kept. */
    if (!status)
        atomic_compare_exchange_strong(&cache->checked, &last, epoch);
    return status;
}

/* After the last sample that was missing: where the data were written before,
 * the next epoch finds that. */
static void settle(leat__cache_reader *cache)
{
    if (!leat_reader_check(leat__cache_upstream(cache)))
        atomic_store(&cache->checked, LEAT__CACHE_SETTLED);
}

void leat__cache_give_up(leat__cache_reader *cache)
{
    stop_writing(cache, "is not made");
}

/* What was written. Its files may be others by now. */
static int open_written(leat__cache_reader *cache, leat__cache_directory **out)
{
    int64_t expected =
        cache->is_random_access ? cache->map.count : cache->taken;
    int status = leat__cache_writer_open(out, cache->writer);
    if (status)
        return status;
    int64_t found = leat__cache_directory_count(*out);
    if (found == expected)
        return LEAT_OK;
    leat__cache_directory_close(*out);
    return leat_error(LEAT_EIO,
                      "it has %lld samples, of %lld that were written",
                      (long long)found, (long long)expected);
}

bool leat__cache_complete(leat__cache_reader *cache)
{
    leat__cache_directory *directory = NULL;
    if (leat_reader_check(leat__cache_upstream(cache)) ||
        leat__cache_writer_finish(cache->writer)) {
        leat__cache_give_up(cache);
        return false;
    }
    if (open_written(cache, &directory)) {
        stop_writing(cache, "is made, but cannot be opened");
        return false;
    }
    atomic_store_explicit(&cache->directory, directory, memory_order_release);
    atomic_store(&cache->is_writing, false);
    return true;
}

static bool write_out(leat__cache_reader *cache, int64_t index,
                      const leat__cache_item *item)
{
    int64_t written;
    if (!atomic_load_explicit(&cache->is_writing, memory_order_relaxed))
        return false;
    if (leat__cache_writer_add(cache->writer, index, item, &written)) {
        leat__cache_give_up(cache);
        return false;
    }
    if (cache->is_random_access && written == cache->map.count)
        (void)leat__cache_complete(cache);
    return true;
}

bool leat__cache_store(leat__cache_reader *cache, int64_t index,
                       const leat__cache_item *item)
{
    if (cache->writer)
        return write_out(cache, index, item);
    if (index >= cache->nentries ||
        atomic_load_explicit(&cache->is_full, memory_order_relaxed))
        return false;
    leat__cache_memory_entry *none = NULL;
    leat__cache_memory_entry *entry = make_entry(cache, item);
    if (!entry)
        return false;
    if (atomic_compare_exchange_strong(&cache->entry[index], &none, entry)) {
        leat__counter_add(&cache->samples, 1);
        if (cache->is_random_access &&
            leat__counter_get(&cache->samples) == cache->map.count)
            settle(cache);
        return true;
    }
    atomic_fetch_sub(&cache->used, cost_of(entry->size));
    free_entry(entry);
    return true;
}

int leat__cache_give(const leat__cache_kept *kept, leat_sample *out)
{
    return kept->status ? kept->status
                        : leat__cache_entry_view(kept->bytes, kept->size, out);
}

static void free_entries(leat__cache_reader *cache)
{
    for (int64_t i = 0; cache->entry && i < cache->nentries; i++) {
        leat__cache_memory_entry *entry = entry_at(cache, i);
        if (entry)
            free_entry(entry);
    }
    leat__free(cache->entry);
    cache->entry = NULL;
    cache->nentries = 0;
}

void leat__cache_forget(leat__cache_reader *cache)
{
    cache->taken = 0;
    cache->kept = 0;
    if (cache->has_given) {
        atomic_store(&cache->is_full, true);
        return;
    }
    free_entries(cache);
    atomic_store(&cache->used, 0);
    atomic_store(&cache->samples, 0);
}

void leat__cache_free(leat__cache_reader *cache)
{
    free_entries(cache);
    leat__cache_directory_close(atomic_load(&cache->directory));
    leat__cache_writer_destroy(cache->writer);
    leat_token_finish(&cache->identity);
    leat_token_finish(&cache->kept_mark);
    leat_token_finish(&cache->next_mark);
    leat_sample_finish(&cache->passed);
}
