/*
 * cache:BYTES keeps the samples of the upstream reader's first epoch in memory,
 * as many as fit, and gives them again in every epoch; cache:dir=PATH keeps all
 * of them on disk, for other processes too. Design: cache_reader.h.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/cache/cache_reader.h"
#include "decorators/decorators.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdio.h>

/* Kept where neither an argument nor the caller sets a limit. */
#define BUDGET ((int64_t)1 << 30)

/* Attempts fail by what other writers do meanwhile, but not all of them. */
enum { MAX_ATTEMPTS = 1000 };

static void cache_close(leat_reader *reader)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    leat__cache_free(cache);
    leat__decorator_close(reader);
}

/* Without the samples that it keeps: which those of setup are, and whether it
 * has a place for them, may depend on a seed. */
static int64_t cache_reserves(leat_reader *reader)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    leat__cache_directory *directory = atomic_load(&cache->directory);
    return (directory ? leat__cache_directory_memory(directory) : 0) +
           (cache->writer ? leat__cache_writer_memory(cache->writer) : 0);
}

static int64_t cache_memory(leat_reader *reader)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    return leat__counter_get(&cache->used) + cache_reserves(reader);
}

static int cache_may_block(leat_reader *reader)
{
    leat__cache_reader *cache = (leat__cache_reader *)reader;
    leat__cache_directory *directory = atomic_load(&cache->directory);
    return directory ? leat__cache_directory_may_block(directory)
                     : leat__decorator_may_block(reader);
}

#define CACHE_OPS                                                              \
    .size = sizeof(leat_reader_ops), .name = "cache",                          \
    .fields = leat__decorator_fields, .cancel = leat__decorator_cancel,        \
    .close = cache_close, .save = leat__decorator_save,                        \
    .may_block = cache_may_block, .memory = cache_memory,                      \
    .reserves = cache_reserves, .is_endless = leat__reader_no

static const leat_reader_ops random_access_ops = {
    CACHE_OPS,
    .restore = leat__index_map_restore,
    .next = leat__index_map_next,
    .seek = leat__cache_seek_index,
    .count = leat__index_map_count,
    .read_at = leat__cache_read_at,
    .advise = leat__cache_advise,
    .skip = leat__cache_skip_index,
};

#define STREAM_OPS                                                             \
    CACHE_OPS, .can_seek = leat__decorator_can_seek,                           \
               .restore = leat__cache_restore, .next = leat__cache_next,       \
               .seek = leat__cache_seek, .count = leat__cache_count,           \
               .skip = leat__cache_skip

static const leat_reader_ops stream_ops = {STREAM_OPS};

static const leat_reader_ops marked_ops = {STREAM_OPS,
                                           .mark = leat__cache_mark};

static int set_budget(leat__cache_reader *cache, const leat_open *open)
{
    cache->budget = leat_args_number(open->args, "bytes");
    cache->max_memory = open->max_memory;
    if (open->max_memory > 0 && cache->budget > open->max_memory)
        return leat_error(LEAT_ELIMIT,
                          "cache: bytes is %lld, but max_memory is %lld: "
                          "expected fewer",
                          (long long)cache->budget,
                          (long long)open->max_memory);
    if (cache->budget == 0)
        cache->budget = open->max_memory > 0 ? open->max_memory / 4 : BUDGET;
    return LEAT_OK;
}

static int check_end(leat_reader *upstream)
{
    if (!leat_reader_is_endless(upstream))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "cache: its epochs have no end; put it "
                                   "before repeat");
}

/* Pointers for as many samples as there are, or as could be kept. */
static int init_index(leat__cache_reader *cache)
{
    int64_t *count = &cache->map.count;
    int64_t most = cache->budget / LEAT__CACHE_COST_MIN;
    int status = leat_reader_count(leat__cache_upstream(cache), count);
    if (status || cache->path)
        return status ? status
                      : leat__cache_check_count(*count, cache->max_memory);
    cache->nentries = *count < most ? *count : most;
    cache->entry = leat__alloc_zero((size_t)cache->nentries,
                                    sizeof(leat__cache_entry_pointer));
    return cache->entry ? LEAT_OK : LEAT_ENOMEM;
}

/* What tells these samples from others: data, readers, arguments, seed. */
static int identify(leat__cache_reader *cache, const leat_open *open)
{
    const leat_pipeline *pipeline = open->pipeline[0];
    const uint64_t own[] = {
        leat__pipeline_hash(pipeline), (uint64_t)open->phase,
        leat__pipeline_draws_seed(pipeline) ? open->seed : 0};
    int status =
        leat_reader_identify(leat__cache_upstream(cache), &cache->identity);
    if (status == LEAT_EUNSUPPORTED)
        return leat_error(status,
                          "cache: dir: nothing tells its samples from others: "
                          "%s",
                          leat_last_error());
    return status ? status : leat_token_put(&cache->identity, own, sizeof(own));
}

/* A whole directory, or the beginning of one. */
static int open_directory(leat__cache_reader *cache, const leat_open *open)
{
    leat__cache_directory *directory = NULL;
    int status = identify(cache, open);
    if (status)
        return status;
    status = LEAT_AGAIN;
    for (int i = 0; i < MAX_ATTEMPTS && status == LEAT_AGAIN; i++) {
        status = leat__cache_directory_open(
            &directory, cache->path, &cache->identity, cache->max_memory);
        if (status == LEAT_AGAIN)
            status =
                leat__cache_writer_create(&cache->writer, cache->path,
                                          &cache->identity, cache->max_memory);
    }
    if (status == LEAT_AGAIN)
        status = leat_error(LEAT_EIO,
                            "%s: in %d attempts the cache could neither be "
                            "opened nor made; name another directory",
                            cache->path, MAX_ATTEMPTS);
    atomic_store(&cache->directory, directory);
    atomic_store(&cache->is_writing, cache->writer != NULL);
    return status;
}

/* A reader whose order does not come again refuses to save. */
static int find_repeatable(leat__cache_reader *cache)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_save(leat__cache_upstream(cache), &token);
    leat_token_finish(&token);
    cache->is_repeatable = status != LEAT_ESTATE;
    return status == LEAT_ENOMEM ? status : LEAT_OK;
}

/* Chooses the form, by what the upstream reader can, and what is there. */
static int init(leat__cache_reader *cache, const leat_open *open)
{
    leat_reader *upstream = leat__cache_upstream(cache);
    int status = set_budget(cache, open);
    if (!status)
        status = check_end(upstream);
    cache->path = leat_args_get(open->args, "dir");
    cache->has_mark = leat_reader_has_mark(upstream);
    cache->is_random_access =
        leat_reader_is_random_access(upstream) && !cache->has_mark;
    if (!status)
        status = find_repeatable(cache);
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
        (void)leat__cache_complete(cache);
    if (cache->is_random_access)
        cache->map.decorator.reader.ops = &random_access_ops;
    else if (cache->has_mark)
        cache->map.decorator.reader.ops = &marked_ops;
    return status;
}

static int cache_open(const leat_open *open, leat_reader **out)
{
    leat__cache_reader *cache =
        leat__decorator_new(open, &stream_ops, sizeof(*cache));
    if (!cache)
        return LEAT_ENOMEM;
    atomic_init(&cache->checked, -1);
    leat_token_init(&cache->identity);
    leat_token_init(&cache->kept_mark);
    leat_token_init(&cache->next_mark);
    leat_sample_init(&cache->passed);
    cache->passed.allocator = open->allocator;
    int status = init(cache, open);
    if (status) {
        leat__cache_free(cache);
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
             "first epoch that is read to its end; each takes 25 bytes of "
             "memory"},
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
    .passes_on = 2,
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
