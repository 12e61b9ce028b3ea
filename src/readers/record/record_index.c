/*
 * DESIGN
 *
 * An index is made by one call, whose threads take one file at a time by a
 * counter, and write nothing but that file's offsets. Afterwards it is
 * immutable.
 */
#include "readers/record/record_index.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel_for.h"
#include "base/thread.h"
#include "readers/record/record_ahead.h"

/* Records that a pass finds between two looks at the rest of the world. */
#define STRIDE 1024

/* Above this average a pass touches only few of the pages, and is no walk in
 * order of the storage that could be read ahead. */
#define AHEAD_BYTES_MAX ((uint64_t)64 << 10)

/* Fewer bytes of files than this are not worth a thread. */
#define THREAD_BYTES ((uint64_t)1 << 20)

/* Threads that wait for storage take no core. */
#define WAITING_THREADS 16

typedef struct build {
    const leat__record_index_options *options;
    leat__record_index *index;
    atomic_int next; /* file */
    leat__record_index_memory memory;
} build;

/* The header's room, in offsets. */
#define HEADER (LEAT__RECORD_INDEX_HEADER / sizeof(uint64_t))

/* Offsets while their number is not known; the header's room comes first. */
typedef struct offset_list {
    uint64_t *offset;
    size_t used;
    size_t capacity;
    size_t counted; /* of those used, in build.memory */
} offset_list;

int leat__record_index_add_memory(leat__record_index_memory *memory,
                                  const char *name, int64_t more)
{
    int64_t all = atomic_fetch_add(&memory->bytes, more) + more;
    if (memory->most == 0 || all <= memory->most)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "%s: the index of the records takes %lld bytes or more, "
                      "8 for each, but max_memory is %lld: expected a larger "
                      "one",
                      name, (long long)all, (long long)memory->most);
}

/* Counts what the list has got since. */
static int count_offsets(build *build, const char *name, offset_list *list)
{
    size_t more = (list->used - list->counted) * sizeof(uint64_t);
    list->counted = list->used;
    return leat__record_index_add_memory(&build->memory, name, (int64_t)more);
}

/* What is not written yet takes no pages, so that it need not be counted. */
static int make_room(build *build, const char *name, offset_list *list)
{
    int status = count_offsets(build, name, list);
    if (status || list->used + STRIDE <= list->capacity)
        return status;
    size_t capacity = list->capacity ? 2 * list->capacity : 4 * STRIDE;
    void *moved = leat__realloc(list->offset, capacity * sizeof(uint64_t));
    if (!moved)
        return LEAT_ENOMEM;
    list->offset = moved;
    list->capacity = capacity;
    return LEAT_OK;
}

static int check_running(const leat__record_index_options *options,
                         const char *name)
{
    if (!atomic_load_explicit(options->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled", name);
}

/* The next records, bad ones included. */
static int walk_some(const leat__record_index_options *options,
                     const leat__record_source *source, uint64_t *awaited,
                     leat__record_walk *walk, offset_list *list)
{
    leat__record_span found[STRIDE];
    int got = 0;
    int64_t record = walk->record;
    int status = leat__record_source_walk(source, options->format, awaited,
                                          walk, found, STRIDE, &got);
    if (status == LEAT_EFORMAT)
        return leat__error_context(status, "%s: record %lld at byte %llu",
                                   source->map.name, (long long)record,
                                   (unsigned long long)found[0].offset);
    if (status == LEAT_EDATA) {
        got = 1;
        status = LEAT_OK;
    }
    for (int i = 0; i < got; i++)
        list->offset[list->used++] = found[i].offset;
    return status;
}

/* LEAT_END after the last record. */
static int walk_file(build *build, int number, offset_list *list)
{
    const leat__record_index_options *options = build->options;
    const leat__record_files *files = build->index->files;
    const leat__record_source *source = &files->source[number];
    leat__record_walk walk = {.offset = source->file.first};
    leat__record_ahead ahead;
    leat__record_ahead_init(&ahead, files, options->window, SIZE_MAX);
    uint64_t awaited = 0;
    int status = LEAT_OK;
    while (!status) {
        bool is_dense = walk.offset <= AHEAD_BYTES_MAX * (uint64_t)walk.record;
        status = check_running(options, source->map.name);
        if (is_dense)
            leat__record_ahead_follow(&ahead, source->begin + walk.offset);
        if (!status)
            status = make_room(build, source->map.name, list);
        if (!status)
            status = walk_some(options, source,
                               is_dense && ahead.is_cold ? &awaited : NULL,
                               &walk, list);
    }
    return status;
}

/* Gives back what the list has too much, where that can be done. */
static void take_list(leat__record_offsets *out, const offset_list *list)
{
    void *less =
        list->used < list->capacity
            ? leat__realloc(list->offset, list->used * sizeof(uint64_t))
            : NULL;
    uint64_t *offset = less ? less : list->offset;
    out->memory = offset;
    out->offset = offset + HEADER;
    out->count = (int64_t)(list->used - HEADER);
}

static int index_file(build *build, int number, leat__record_offsets *out)
{
    const leat__record_index_options *options = build->options;
    const leat__record_source *source = &build->index->files->source[number];
    const char *name = options->format->ops->name;
    offset_list list = {.used = HEADER, .counted = HEADER};
    if (source->file.stride) {
        out->count = source->file.count;
        return LEAT_OK;
    }
    int status = leat__record_source_check(source);
    if (status)
        return status;
    if (options->keeps) {
        status = leat__record_index_load(source, name, &build->memory, out);
        if (!status || status == LEAT_ELIMIT)
            return status;
    }
    status = walk_file(build, number, &list);
    if (status == LEAT_END)
        status = count_offsets(build, source->map.name, &list);
    if (status) {
        leat__free(list.offset);
        return status;
    }
    take_list(out, &list);
    if (options->keeps)
        leat__record_index_keep(source, name, out);
    return LEAT_OK;
}

static int index_files(int i, void *context)
{
    build *build = context;
    const leat__record_files *files = build->index->files;
    int status = LEAT_OK;
    (void)i;
    while (!status) {
        int number = atomic_fetch_add(&build->next, 1);
        if (number >= files->n)
            break;
        status = index_file(build, number, &build->index->of[number]);
    }
    if (status)
        atomic_store(&build->next, files->n);
    return status;
}

static int count_threads(const leat__record_files *files)
{
    int n = leat__thread_cores();
    if (n < WAITING_THREADS && leat__record_files_may_block(files))
        n = WAITING_THREADS;
    n = files->n < n ? files->n : n;
    uint64_t worth = files->bytes / THREAD_BYTES + 1;
    return worth < (uint64_t)n ? (int)worth : n;
}

static void add_up(leat__record_index *index)
{
    int n = index->files->n;
    index->bytes =
        (int64_t)(sizeof(*index) + (size_t)n * (sizeof(*index->of) + 8));
    for (int i = 0; i < n; i++) {
        index->first[i] = index->count;
        index->count += index->of[i].count;
        if (index->of[i].offset)
            index->bytes += index->of[i].count * 8;
    }
    index->first[n] = index->count;
}

int leat__record_index_create(leat__record_index **out,
                              const leat__record_files *files,
                              const leat__record_index_options *options)
{
    leat__record_index *index = leat__alloc_zero(1, sizeof(*index));
    int status = LEAT_ENOMEM;
    if (!index)
        return status;
    index->files = files;
    index->of = leat__alloc_zero((size_t)files->n, sizeof(*index->of));
    index->first = leat__alloc((size_t)(files->n + 1) * sizeof(*index->first));
    if (index->of && index->first) {
        build build = {.options = options,
                       .index = index,
                       .memory = {.bytes = options->format->memory,
                                  .most = options->max_memory}};
        int threads = count_threads(files);
        status = threads > 1 ? leat__parallel_for("leat-index", threads,
                                                  index_files, &build)
                             : index_files(0, &build);
    }
    if (status) {
        leat__record_index_destroy(index);
        return status;
    }
    add_up(index);
    *out = index;
    return LEAT_OK;
}

void leat__record_index_destroy(leat__record_index *index)
{
    if (!index)
        return;
    for (int i = 0; index->of && i < index->files->n; i++)
        leat__free(index->of[i].memory);
    leat__free(index->of);
    leat__free(index->first);
    leat__free(index);
}

int leat__record_index_find(const leat__record_index *index, int64_t at)
{
    int first = 0, end = index->files->n;
    while (end - first > 1) {
        int middle = first + (end - first) / 2;
        if (index->first[middle] <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}
