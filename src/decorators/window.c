/*
 * window:SIZE,SHIFT, samples that follow each other as one, each in several.
 *
 * Over random access a window reads its samples by index. Over a stream those
 * of the next windows are held, complete, and copied into each. Samples that
 * are held are not the upstream reader's any more: a mark is an older one of
 * its, from which they are read again.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/token.h"
#include "decorators/decorators.h"
#include "decorators/grouper.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* A sample that is held, or a bad record with its line. */
typedef struct held_sample {
    leat_sample sample;
    bool is_bad;
    char *line;    /* NULL until it is needed */
    int64_t bytes; /* as counted */
} held_sample;

/* A mark of the upstream reader, in front of sample `at`. */
typedef struct anchor {
    leat_token mark;
    int64_t at;
} anchor;

typedef struct window_reader {
    leat__grouper grouper; /* first */
    leat_position next;    /* over random access */
    /* Over a stream. Samples are counted from the last seek on. */
    int extent;         /* samples from a window's first one to its last */
    held_sample **held; /* a ring of `extent`; NULL from the first unused on */
    leat_sample **member; /* as many, for calls */
    int oldest;           /* in the ring */
    int nheld;
    int64_t first;  /* sample that the next window begins with */
    int64_t at;     /* sample that the upstream reader goes on with */
    bool is_at_end; /* it has none */
    anchor older;   /* at `first` or before */
    anchor newer;
} window_reader;

static window_reader *window_of(leat_reader *reader)
{
    return (window_reader *)reader;
}

static leat_reader *upstream_of(const window_reader *window)
{
    return window->grouper.decorator.upstream[0];
}

/*
 * The windows of an epoch over random access. Of one without an end those whose
 * samples all have a position: the promised shape has no shorter ones.
 */
static int64_t count_windows(const leat__grouper *grouper)
{
    int64_t extent = (grouper->size - 1) * grouper->stride + 1;
    return grouper->samples == LEAT_ENDLESS
               ? (LEAT_ENDLESS - extent) / grouper->shift + 1
               : leat__grouper_groups(grouper, grouper->samples);
}

static int refuse_index(int64_t index, int64_t count)
{
    return leat_error(LEAT_EINVAL,
                      "window: window %lld is out of range: there are %lld",
                      (long long)index, (long long)count);
}

static int window_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    int64_t count = count_windows(&window_of(reader)->grouper);
    return at[0].index < count ? leat__grouper_read_at(reader, at, out, n, got)
                               : refuse_index(at[0].index, count);
}

static int window_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    window_reader *window = window_of(reader);
    int status = leat__decorator_check_running(&window->grouper.decorator);
    if (status)
        return status;
    if (window->next.index >= count_windows(&window->grouper))
        return LEAT_END;
    status = leat__grouper_read_at(reader, &window->next, out, n, got);
    window->next.index += *got + (status == LEAT_EDATA);
    return status;
}

static int window_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    window_reader *window = window_of(reader);
    int64_t count = count_windows(&window->grouper);
    (void)mark;
    if (position.index > count)
        return refuse_index(position.index, count);
    window->next = position;
    return LEAT_OK;
}

static int window_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        window_of(reader)->next = (leat_position){0, 0};
    return status;
}

/* The place of the `i`th of the samples that are held, or of the next ones. */
static held_sample **slot_of(const window_reader *window, int i)
{
    return &window->held[(window->oldest + i) % window->extent];
}

static int set_anchor(window_reader *window, anchor *one)
{
    one->mark.size = 0;
    one->at = window->at;
    return leat_reader_mark(upstream_of(window), &one->mark);
}

/* Samples from `older` to the next window: less than a shift and an extent lie
 * between two anchors, and the window is not yet a shift after the newer. The
 * last windows, up to an extent of samples, have no anchors of their own. */
static int64_t most_between(const window_reader *window)
{
    return 2 * (window->grouper.shift + window->extent);
}

/* In time for the next window: `older` is never after its first sample. */
static int set_anchors(window_reader *window)
{
    int status = LEAT_OK;
    if (window->older.mark.size == 0)
        status = set_anchor(window, &window->older);
    else if (window->newer.at > window->first)
        return LEAT_OK;
    else if (window->newer.at > window->older.at) {
        anchor older = window->older;
        window->older = window->newer;
        window->newer = older;
    }
    return status ? status : set_anchor(window, &window->newer);
}

static void count_bytes(window_reader *window, held_sample *one)
{
    leat__group_pool *pool = &window->grouper.pool;
    int64_t bytes = (int64_t)(sizeof(*one) - sizeof(one->sample)) +
                    leat__group_pool_measure(pool, &one->sample);
    atomic_fetch_add_explicit(&pool->bytes, bytes - one->bytes,
                              memory_order_relaxed);
    one->bytes = bytes;
}

/* Slots `nheld` to `nheld` + n - 1, cleared, for a call. Errors: LEAT_ENOMEM,
 * LEAT_ELIMIT. */
static int clear_slots(window_reader *window, int n)
{
    leat__group_pool *pool = &window->grouper.pool;
    int64_t held = atomic_load_explicit(&pool->bytes, memory_order_relaxed);
    int more = *slot_of(window, window->nheld) ? 0 : n;
    int status =
        leat__group_pool_check(pool, window->nheld + n,
                               held + more * (int64_t)sizeof(*window->held[0]));
    if (status)
        return status;
    for (int i = window->nheld; i < window->nheld + n; i++) {
        held_sample **slot = slot_of(window, i);
        if (!*slot) {
            *slot = leat__alloc_zero(1, sizeof(**slot));
            if (!*slot)
                return LEAT_ENOMEM;
            (*slot)->sample.allocator = pool->allocator;
        }
        (*slot)->is_bad = false;
        window->member[i] = &(*slot)->sample;
        leat__group_pool_empty(pool, window->member[i]);
        count_bytes(window, *slot);
    }
    return LEAT_OK;
}

static int note_bad(held_sample *one)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    if (!one->line)
        one->line = leat__alloc(LEAT__ERROR_MAX);
    if (!one->line)
        return LEAT_ENOMEM;
    memcpy(one->line, line, sizeof(line));
    one->is_bad = true;
    return LEAT_OK;
}

static int complete(window_reader *window, held_sample *one)
{
    int got;
    leat_sample *only[] = {&one->sample};
    int status = leat_reader_materialize(upstream_of(window), only, 1, &got);
    count_bytes(window, one);
    return status == LEAT_EDATA ? note_bad(one) : status;
}

/* Holds up to `n` samples more. */
static int pull(window_reader *window, int n)
{
    int got;
    n = leat__group_pool_at_once(&window->grouper.pool, n);
    int status = clear_slots(window, n);
    if (status)
        return status;
    status = leat_reader_pull(upstream_of(window),
                              window->member + window->nheld, n, &got);
    bool is_bad = status == LEAT_EDATA;
    window->is_at_end = status == LEAT_END;
    if (is_bad)
        status = note_bad(*slot_of(window, window->nheld + got));
    else if (window->is_at_end)
        status = LEAT_OK;
    window->at += got + is_bad;
    for (; got > 0 && !status; got--)
        status = complete(window, *slot_of(window, window->nheld++));
    window->nheld += is_bad && !status;
    return status;
}

/* Goes to the first sample of the next window, and holds all of it. */
static int fill(window_reader *window)
{
    int64_t skipped = 0;
    int status = LEAT_OK;
    if (window->nheld == 0 && window->first > window->at)
        status = leat_reader_skip(upstream_of(window),
                                  window->first - window->at, &skipped);
    window->at += skipped;
    window->is_at_end |= status == LEAT_END;
    status = status == LEAT_END ? LEAT_OK : status;
    if (!status && !window->is_at_end)
        status = set_anchors(window);
    while (window->nheld < window->extent && !window->is_at_end && !status)
        status = pull(window, window->extent - window->nheld);
    return status;
}

/* Drops the samples before the next window. */
static void advance(window_reader *window)
{
    int64_t shift = window->grouper.shift;
    int drop = shift < window->nheld ? (int)shift : window->nheld;
    window->first += shift;
    window->nheld -= drop;
    window->oldest = (window->oldest + drop) % window->extent;
}

/* The window that begins with the first sample that is held. */
static int write_window(window_reader *window, leat_sample *out)
{
    const leat__grouper *grouper = &window->grouper;
    int n = 0, culprit = 0;
    for (int64_t i = 0; i < window->nheld && n < grouper->size;
         i += grouper->stride) {
        held_sample *one = *slot_of(window, (int)i);
        window->member[n++] = &one->sample;
        if (!one->is_bad)
            continue;
        int status = leat__grouping_name(&one->sample, false, out);
        return status ? status : leat_error(LEAT_EDATA, "%s", one->line);
    }
    int status = leat__grouping_write(&grouper->grouping, window->member, n, -1,
                                      out, &culprit);
    if (status == LEAT_EDATA)
        (void)leat__grouping_name(window->member[culprit], false, out);
    return status;
}

static int stream_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    window_reader *window = window_of(reader);
    (void)n;
    int status = leat__decorator_check_running(&window->grouper.decorator);
    if (!status)
        status = leat__grouper_plan(&window->grouper);
    if (!status)
        status = fill(window);
    if (status)
        return status;
    bool is_short = window->nheld < window->extent;
    if (window->nheld == 0 || (is_short && window->grouper.drops_last))
        return LEAT_END;
    status = write_window(window, out[0]);
    if (!status || status == LEAT_EDATA)
        advance(window);
    *got = !status;
    return status;
}

/* The next window begins `first` samples on. */
static void begin(window_reader *window, int64_t first)
{
    window->oldest = window->nheld = 0;
    window->at = 0;
    window->first = first;
    window->is_at_end = false;
    window->older.mark.size = window->newer.mark.size = 0;
}

static int stream_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    window_reader *window = window_of(reader);
    /* The last window's first sample may be the last one, and what comes after
       that no position. */
    bool is_later = !mark && position.index > 0;
    int64_t first = is_later ? window->grouper.shift : 0;
    const leat_position to = {
        position.epoch, mark ? 0
                             : leat__grouper_begin(&window->grouper,
                                                   position.index - is_later)};
    int status = leat_reader_seek(upstream_of(window), to, mark);
    if (!status && mark)
        status = leat__token_get_counts(mark, "window", &first, 1);
    if (!status && first > most_between(window))
        status =
            leat_error(LEAT_EINVAL, "window: the mark is of another chain");
    if (!status)
        begin(window, first);
    return status;
}

static int stream_mark(leat_reader *reader, leat_token *token)
{
    const window_reader *window = window_of(reader);
    const anchor *from = &window->older;
    bool is_fresh = from->mark.size == 0;
    int64_t first = window->first - (is_fresh ? window->at : from->at);
    int status = is_fresh
                     ? leat_reader_mark(upstream_of(window), token)
                     : leat_token_put(token, from->mark.bytes, from->mark.size);
    return status ? status : leat_token_put(token, &first, sizeof(first));
}

static int stream_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        begin(window_of(reader), 0);
    return status;
}

static void release(window_reader *window)
{
    for (int i = 0; window->held && i < window->extent && window->held[i];
         i++) {
        leat_sample_finish(&window->held[i]->sample);
        leat__free(window->held[i]->line);
        leat__free(window->held[i]);
    }
    leat__free(window->held);
    leat__free(window->member);
    leat_token_finish(&window->older.mark);
    leat_token_finish(&window->newer.mark);
}

static void window_close(leat_reader *reader)
{
    release(window_of(reader));
    leat__grouper_close(reader);
}

/* clang-format off */
#define WINDOW_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "window",                         \
    .fields = leat__grouper_fields, .cancel = leat__decorator_cancel,          \
    .close = window_close, .count = leat__grouper_count,                       \
    .can_seek = leat__decorator_can_seek, .save = leat__decorator_save,        \
    .may_block = leat__decorator_may_block, .memory = leat__grouper_memory
/* clang-format on */

static const leat_reader_ops window_ops = {
    WINDOW_OPS,
    .next = window_next,
    .seek = window_seek,
    .materialize = leat__grouper_materialize,
    .read_at = window_read_at,
    .advise = leat__grouper_advise,
    .restore = window_restore,
};

static const leat_reader_ops window_stream_ops = {
    WINDOW_OPS,          .next = stream_next,       .seek = stream_seek,
    .mark = stream_mark, .restore = stream_restore,
};

/* What only a stream needs: its slots. */
static int make_slots(window_reader *window)
{
    int64_t extent = (window->grouper.size - 1) * window->grouper.stride + 1;
    if (extent > LEAT__GROUP_MAX)
        return leat_error(LEAT_EINVAL,
                          "window: a window of %lld samples is held over a "
                          "stream: expected at most %d",
                          (long long)extent, LEAT__GROUP_MAX);
    window->extent = (int)extent;
    window->held = leat__alloc_zero((size_t)extent, sizeof(*window->held));
    window->member = leat__alloc_zero((size_t)extent, sizeof(*window->member));
    return window->held && window->member ? LEAT_OK : LEAT_ENOMEM;
}

static int window_open(const leat_open *open, leat_reader **out)
{
    bool is_random_access = leat_reader_is_random_access(open->upstream[0]);
    int64_t size = leat_args_number(open->args, "size");
    int64_t shift = leat_args_has(open->args, "shift")
                        ? leat_args_number(open->args, "shift")
                        : size;
    leat__grouper *grouper;
    int status = leat__grouper_new(
        open, is_random_access ? &window_ops : &window_stream_ops,
        sizeof(window_reader), (int)size, &grouper);
    if (status)
        return status;
    window_reader *window = (window_reader *)grouper;
    leat_token_init(&window->older.mark);
    leat_token_init(&window->newer.mark);
    grouper->drops_last = leat_args_number(open->args, "drop_last");
    status = leat__grouper_set_window(grouper, size, shift,
                                      leat_args_number(open->args, "stride"));
    if (!status && !is_random_access)
        status = make_slots(window);
    if (status) {
        release(window);
        leat__grouper_free(grouper);
        return status;
    }
    *out = &grouper->decorator.reader;
    return LEAT_OK;
}

static const leat_argument window_arguments[] = {
    {.name = "size",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .min = 1,
     .max = LEAT__GROUP_MAX,
     .help = "samples of a window"},
    {.name = "shift",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .min = 1,
     .max = INT32_MAX,
     .help = "samples from the first of a window to that of the next; else the "
             "size"},
    {.name = "stride",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "1",
     .min = 1,
     .max = INT32_MAX,
     .help = "samples from one of a window to the next"},
    LEAT__GROUPING_ARGUMENTS,
    LEAT__DROP_LAST_ARGUMENT,
    {0},
};

const leat_reader_type leat__window_type = {
    .size = sizeof(leat_reader_type),
    .name = "window",
    .help = "samples that follow each other as one, each in several windows",
    .arguments = window_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = window_open,
};

int leat_pipeline_window(leat_pipeline **out, leat_pipeline *upstream,
                         int64_t size, int64_t shift, int64_t stride,
                         const leat_group_options *options)
{
    char scalars[96];
    snprintf(scalars, sizeof(scalars), "%lld,%lld,stride=%lld", (long long)size,
             (long long)(shift ? shift : size),
             (long long)(stride ? stride : 1));
    return leat__grouper_create(out, &leat__window_type, upstream, scalars,
                                options);
}
