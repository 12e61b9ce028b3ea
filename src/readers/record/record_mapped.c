/*
 * DESIGN
 *
 * Samples are views of the maps. next walks over headers; where a format has
 * work on the payload it defers the samples, and materialize finds each record
 * again by its address: the file's number and the offset in it. If the files
 * are not in memory, next has them read ahead of the walk, and awaits the
 * records that it returns, so that their users do not block.
 *
 * Everything but the walk and its read-ahead is immutable once open, or atomic.
 * The index is published by a release store and read without a lock;
 * index_lock is held while it is made, by the first call that needs it.
 */
#include "readers/record/record_mapped.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/reader_table.h"
#include "readers/record/record_ahead.h"
#include "readers/record/record_cursor.h"
#include "readers/record/record_requests.h"

#include <pthread.h>

/* The most records that one call of a format's `read` reads, but for next. */
#define READ_MAX 64

typedef struct mapped_reader {
    leat_reader reader;
    leat_reader_ops ops;         /* under the format's name */
    leat__record_format *format; /* immutable, as the next six */
    leat__file_list list;        /* owned, as the format is */
    leat__record_files files;
    size_t window; /* read-ahead in bytes; 0: none */
    bool drops;    /* drops pages after the walk */
    leat__record_index_options index_options;
    atomic_bool cancelled;
    atomic_bool advised;            /* advise is called before read_at */
    leat__record_requests requests; /* of random access */
    atomic_bool logged_drops; /* that drop_behind has no effect was logged */

    pthread_mutex_t index_lock; /* held while the index is made */
    _Atomic(leat__record_index *) index;

    /* Of one caller at a time: on a cache line apart from what all read. */
    _Alignas(LEAT__CACHE_LINE) leat__record_cursor cursor;
    leat__record_ahead ahead;
} mapped_reader;

static int check_running(const mapped_reader *mapped)
{
    if (!atomic_load_explicit(&mapped->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                      mapped->list.path[0]);
}

static void set_source(leat_sample *sample, const leat__record_source *source)
{
    leat_provenance *from = &sample->from;
    from->source = source->map.name;
    from->key = NULL;
    from->key_size = 0;
}

/* Names the record at which a step of the walk failed. */
static int name_step(const mapped_reader *mapped, const leat__record_step *step,
                     int status)
{
    if (status != LEAT_EDATA && status != LEAT_EFORMAT)
        return status;
    return leat__record_source_blame(&mapped->files.source[mapped->cursor.file],
                                     step->before.record, step->span[0].offset,
                                     status);
}

/* Records of one file, from[i].record of out[i] being their numbers. */
static int read_records(const mapped_reader *mapped, int file,
                        const leat__record_span span[],
                        leat_sample *const out[], int n, int *got)
{
    const leat__record_source *source = &mapped->files.source[file];
    const leat__record_format *format = mapped->format;
    leat__record_window window = leat__record_source_window(source);
    for (int i = 0; i < n; i++)
        set_source(out[i], source);
    int status =
        format->ops->read(format, &source->file, &window, span, out, n, got);
    return status ? leat__record_source_blame(source, out[*got]->from.record,
                                              span[*got].offset, status)
                  : LEAT_OK;
}

static void defer(const mapped_reader *mapped, const leat__record_step *step,
                  leat_sample *const out[])
{
    for (int i = 0; i < step->n; i++) {
        out[i]->locator = (leat_locator){
            step->before.record + i,
            leat__record_address(mapped->cursor.file, step->span[i].offset)};
        out[i]->deferred = 1;
    }
}

/* Reads what was found; the walk goes back to after a bad one. */
static int read_walked(mapped_reader *mapped, leat__record_step *step,
                       leat_sample *const out[], int *got)
{
    for (int i = 0; i < step->n; i++)
        out[i]->from.record = step->before.record + i;
    int status = read_records(mapped, mapped->cursor.file, step->span, out,
                              step->n, got);
    if (status && *got + 1 < step->n)
        leat__record_cursor_return(&mapped->cursor, step, *got + 1);
    return status;
}

static int mapped_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    leat__record_step step;
    int status = check_running(mapped);
    if (status)
        return status;
    leat__record_ahead_follow(&mapped->ahead,
                              leat__record_cursor_bytes(&mapped->cursor));
    bool awaits = mapped->ahead.is_cold;
    int most = awaits ? LEAT__RECORD_AWAIT_MAX : LEAT__RECORD_STEP_MAX;
    status = leat__record_cursor_step(&mapped->cursor, n < most ? n : most,
                                      awaits, &step);
    if (status == LEAT_EDATA || status == LEAT_EFORMAT) {
        out[0]->from.record = step.before.record;
        set_source(out[0], &mapped->files.source[mapped->cursor.file]);
        return name_step(mapped, &step, status);
    }
    if (status)
        return status;
    if (!mapped->format->defers)
        return read_walked(mapped, &step, out, got);
    defer(mapped, &step, out);
    *got = step.n;
    return LEAT_OK;
}

static int mapped_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    const mapped_reader *mapped = (const mapped_reader *)reader;
    leat__record_span span[READ_MAX];
    int status = check_running(mapped);
    for (*got = 0; !status && *got < n;) {
        int file = leat__record_address_file(out[*got]->locator.where);
        int k = 0, done;
        for (; k < READ_MAX && *got + k < n; k++) {
            leat_sample *sample = out[*got + k];
            uint64_t where = sample->locator.where;
            if (leat__record_address_file(where) != file)
                break;
            sample->from.record = sample->locator.record;
            span[k] =
                (leat__record_span){leat__record_address_offset(where), 0};
        }
        status = read_records(mapped, file, span, out + *got, k, &done);
        *got += done;
    }
    return status;
}

/* Made at the first need. */
static int get_index(mapped_reader *mapped, const leat__record_index **out)
{
    leat__record_index *index =
        atomic_load_explicit(&mapped->index, memory_order_acquire);
    int status = LEAT_OK;
    if (!index) {
        pthread_mutex_lock(&mapped->index_lock);
        index = atomic_load_explicit(&mapped->index, memory_order_relaxed);
        if (!index)
            status = leat__record_index_create(&index, &mapped->files,
                                               &mapped->index_options);
        if (!status)
            atomic_store_explicit(&mapped->index, index, memory_order_release);
        pthread_mutex_unlock(&mapped->index_lock);
    }
    if (!status)
        *out = index;
    return status;
}

static int mapped_count(leat_reader *reader, int64_t *out)
{
    const leat__record_index *index = NULL;
    int status = get_index((mapped_reader *)reader, &index);
    if (!status)
        *out = index->count;
    return status;
}

static int mapped_parts(leat_reader *reader, const int64_t **first, int64_t *n)
{
    const leat__record_index *index = NULL;
    int status = get_index((mapped_reader *)reader, &index);
    if (status)
        return status;
    *first = index->first;
    *n = index->files->n;
    return LEAT_OK;
}

static void mapped_advise(leat_reader *reader, const leat_position at[], int n)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    const leat__record_index *index;
    atomic_store_explicit(&mapped->advised, true, memory_order_relaxed);
    if (mapped->window && !get_index(mapped, &index))
        leat__record_requests_make(&mapped->requests, index, at, n);
}

/* Random access has no position to drop pages after. */
__attribute__((noinline)) static void
log_unused_drop_behind(mapped_reader *mapped)
{
    if (!atomic_exchange_explicit(&mapped->logged_drops, true,
                                  memory_order_relaxed))
        leat__log(LEAT_LOG_WARNING,
                  "%s: drop_behind has no effect on random access: only pages "
                  "that are read in order are dropped",
                  mapped->list.path[0]);
}

/*
 * Where the first of `n` records are that lie in one file, in one epoch: their
 * first bytes come while the others are looked up. Returns how many they are.
 */
static int find_records(const mapped_reader *mapped,
                        const leat__record_index *index,
                        const leat_position at[], leat_sample *const out[],
                        int n, int *file, leat__record_span span[])
{
    *file = leat__record_index_find(index, at[0].index);
    const unsigned char *base = mapped->files.source[*file].map.base;
    int64_t first = index->first[*file], end = index->first[*file + 1];
    int i = 0;
    for (; i < n && at[i].index >= first && at[i].index < end &&
           at[i].epoch == at[0].epoch;
         i++) {
        out[i]->from.record = at[i].index - first;
        span[i] = leat__record_index_span(index, *file, out[i]->from.record);
        __builtin_prefetch(base + span[i].offset);
    }
    return i;
}

static int mapped_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    const leat__record_index *index;
    int status = check_running(mapped);
    if (!status)
        status = get_index(mapped, &index);
    if (status)
        return status;
    if (mapped->drops &&
        !atomic_load_explicit(&mapped->logged_drops, memory_order_relaxed))
        log_unused_drop_behind(mapped);
    if (n > 1 && mapped->window &&
        !atomic_load_explicit(&mapped->advised, memory_order_relaxed))
        leat__record_requests_make(&mapped->requests, index, at, n);
    n = n < READ_MAX ? n : READ_MAX;
    for (*got = 0; !status && *got < n;) {
        leat__record_span span[READ_MAX];
        int file, done;
        int k = find_records(mapped, index, at + *got, out + *got, n - *got,
                             &file, span);
        status = leat__record_source_enter(&mapped->files.source[file],
                                           at[*got].epoch);
        if (status)
            break;
        status = read_records(mapped, file, span, out + *got, k, &done);
        *got += done;
    }
    return status;
}

/* A file that cannot be read to its end has no index: up to there it is walked.
 */
static int walk_to(mapped_reader *mapped, int64_t at)
{
    leat__record_step step = {.n = 0};
    int status = leat__record_cursor_enter(&mapped->cursor, 0);
    while (!status && at > 0) {
        int n = at < LEAT__RECORD_STEP_MAX ? (int)at : LEAT__RECORD_STEP_MAX;
        status = check_running(mapped);
        if (!status)
            status = leat__record_cursor_step(&mapped->cursor, n, false, &step);
        at -= step.n + (status == LEAT_EDATA);
        if (status == LEAT_EDATA) /* a bad record */
            status = LEAT_OK;
    }
    return name_step(mapped, &step, status);
}

static int find_position(mapped_reader *mapped, int64_t at)
{
    const leat__record_index *index;
    if (at == 0) {
        int status = leat__record_cursor_enter(&mapped->cursor, 0);
        return status == LEAT_END ? LEAT_OK : status;
    }
    int status = get_index(mapped, &index);
    if (status)
        return status == LEAT_EFORMAT ? walk_to(mapped, at) : status;
    if (at > index->count)
        return leat_error(
            LEAT_EINVAL, "%s: record %lld is out of range: there are %lld",
            mapped->list.path[0], (long long)at, (long long)index->count);
    if (at == index->count) {
        (void)leat__record_cursor_enter(&mapped->cursor, mapped->files.n);
        return LEAT_OK;
    }
    int file = leat__record_index_find(index, at);
    return leat__record_cursor_go_to(&mapped->cursor, index, file,
                                     at - index->first[file]);
}

static int mapped_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    uint64_t before = leat__record_cursor_bytes(&mapped->cursor);
    (void)mark;
    int status = find_position(mapped, position.index);
    if (!status)
        leat__record_ahead_restart(&mapped->ahead, before,
                                   leat__record_cursor_bytes(&mapped->cursor),
                                   position.index == 0);
    return status;
}

/* By an index that is there already; else by walking, some at a time. */
static int mapped_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    leat__record_step step;
    int status = check_running(mapped);
    if (status)
        return status;
    const leat__record_index *index =
        atomic_load_explicit(&mapped->index, memory_order_acquire);
    int64_t left =
        index && mapped->cursor.file < mapped->files.n
            ? index->of[mapped->cursor.file].count - mapped->cursor.walk.record
            : 0;
    if (n < left && n > LEAT__RECORD_STEP_MAX) {
        *skipped = n;
        return leat__record_cursor_go_to(&mapped->cursor, index,
                                         mapped->cursor.file,
                                         mapped->cursor.walk.record + n);
    }
    leat__record_ahead_follow(&mapped->ahead,
                              leat__record_cursor_bytes(&mapped->cursor));
    status = leat__record_cursor_step(
        &mapped->cursor,
        n < LEAT__RECORD_STEP_MAX ? (int)n : LEAT__RECORD_STEP_MAX, false,
        &step);
    *skipped = step.n;
    return name_step(mapped, &step, status);
}

static int mapped_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    const mapped_reader *mapped = (const mapped_reader *)reader;
    *out = mapped->format->spec;
    *n = mapped->format->nspec;
    return LEAT_OK;
}

static int mapped_save(leat_reader *reader, leat_token *token)
{
    return leat__record_files_save(&((mapped_reader *)reader)->files, token);
}

static int mapped_revision(leat_reader *reader, leat_token *token)
{
    const leat__record_files *files = &((mapped_reader *)reader)->files;
    return leat_token_put(token, &files->revision, sizeof(files->revision));
}

static int mapped_restore(leat_reader *reader, leat_token *token)
{
    int status =
        leat__record_files_check(&((mapped_reader *)reader)->files, token);
    return status ? status : mapped_seek(reader, (leat_position){0, 0}, NULL);
}

static int mapped_check(leat_reader *reader)
{
    return leat__record_files_check_versions(&((mapped_reader *)reader)->files);
}

static int mapped_may_block(leat_reader *reader)
{
    const mapped_reader *mapped = (const mapped_reader *)reader;
    return mapped->drops || leat__record_files_may_block(&mapped->files);
}

static int64_t mapped_memory(leat_reader *reader)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    const leat__record_index *index =
        atomic_load_explicit(&mapped->index, memory_order_acquire);
    return mapped->format->memory + (index ? index->bytes : 0);
}

static void mapped_cancel(leat_reader *reader)
{
    atomic_store_explicit(&((mapped_reader *)reader)->cancelled, true,
                          memory_order_relaxed);
}

static void mapped_close(leat_reader *reader)
{
    mapped_reader *mapped = (mapped_reader *)reader;
    leat__record_index_destroy(
        atomic_load_explicit(&mapped->index, memory_order_relaxed));
    pthread_mutex_destroy(&mapped->index_lock);
    leat__record_files_close(&mapped->files);
    leat__record_format_destroy(mapped->format);
    leat__file_list_close(&mapped->list);
    leat__free(mapped);
}

static const leat_reader_ops mapped_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "record",
    .fields = mapped_fields,
    .next = mapped_next,
    .seek = mapped_seek,
    .cancel = mapped_cancel,
    .close = mapped_close,
    .materialize = mapped_materialize,
    .count = mapped_count,
    .is_endless = leat__reader_no,
    .read_at = mapped_read_at,
    .advise = mapped_advise,
    .skip = mapped_skip,
    .save = mapped_save,
    .restore = mapped_restore,
    .may_block = mapped_may_block,
    .memory = mapped_memory,
    .parts = mapped_parts,
    .revision = mapped_revision,
    .check = mapped_check,
};

static void take_arguments(mapped_reader *mapped, const leat_open *open,
                           size_t *kept)
{
    const leat_args *args = open->args;
    int64_t window = leat_args_number(args, "read_ahead");
    int64_t keep = leat_args_number(args, "keep_behind");
    size_t kernel = mapped->files.source[0].map.kernel_ahead;
    mapped->drops = leat_args_has(args, "drop_behind")
                        ? leat_args_number(args, "drop_behind") != 0
                        : open->drop_behind;
    mapped->window = window < 0 ? 0 : (size_t)window;
    if (window == 0)
        mapped->window = LEAT__READ_AHEAD;
    mapped->index_options = (leat__record_index_options){
        mapped->format, mapped->window, leat_args_number(args, "index") != 0,
        &mapped->cancelled, open->max_memory};
    *kept = keep < 0 ? 0 : (size_t)keep;
    if (keep == 0)
        *kept = LEAT__KEEP_BEHIND;
    if (!mapped->drops)
        *kept = SIZE_MAX;
    /* A pass in order may leave it to such a kernel. */
    mapped->ahead.window =
        window == 0 && kernel >= LEAT__KERNEL_ENOUGH ? 0 : mapped->window;
}

int leat__record_mapped_open(const leat_open *open, leat__record_format *format,
                             leat__file_list *list, leat_reader **out)
{
    size_t kept;
    mapped_reader *mapped = leat__alloc_aligned_zero(sizeof(*mapped));
    if (!mapped)
        return LEAT_ENOMEM;
    int code = pthread_mutex_init(&mapped->index_lock, NULL);
    if (code) {
        leat__free(mapped);
        return leat__error_system(code, "%s: cannot make a lock",
                                  list->path[0]);
    }
    int status = leat__record_files_open(&mapped->files, list, format,
                                         &mapped->cancelled);
    if (status) {
        pthread_mutex_destroy(&mapped->index_lock);
        leat__free(mapped);
        return status;
    }
    mapped->format = format;
    take_arguments(mapped, open, &kept);
    leat__record_ahead_init(&mapped->ahead, &mapped->files,
                            mapped->ahead.window, kept);
    leat__record_cursor_init(&mapped->cursor, &mapped->files, format);
    mapped->ops = mapped_ops;
    mapped->ops.name = format->ops->name;
    mapped->reader.ops = &mapped->ops;
    mapped->list = *list;
    *list = (leat__file_list){0};
    *out = &mapped->reader;
    return LEAT_OK;
}
