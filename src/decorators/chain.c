/* chain, several readers one after the other in each epoch. */
#include "base/error.h"
#include "base/memory.h"
#include "data/token.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <string.h>

typedef struct chain_reader {
    leat__index_map map; /* over a stream, of it `next.epoch` alone is used */
    int64_t *first; /* index of each upstream reader's first sample, and the
                       count, over random access; else NULL */
    int64_t *begin; /* the epoch at whose begin each stands; -1: elsewhere */
    int current;    /* which is read */
    bool has_begun; /* it stands where it is read next: */
    int64_t taken;  /* after so many of its samples */
    int nspec;      /* 0: not known yet */
    leat_field_spec spec[LEAT_MAX_FIELDS];
} chain_reader;

static chain_reader *chain_of(leat_reader *reader)
{
    return (chain_reader *)reader;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What differs between fields that cannot come one after the other. */
static const char *difference(const leat_field_spec *a,
                              const leat_field_spec *b)
{
    if (!same_text(a->name, b->name))
        return "its name";
    if (!same_text(a->offsets_of, b->offsets_of))
        return "the field that its offsets divide";
    if (a->is_batch != b->is_batch)
        return "its first axis, which is a batch's in one of them,";
    if (a->dtype != b->dtype && !a->varies && !b->varies)
        return "its type";
    return NULL;
}

/* Makes `all` hold for both. */
static void widen(leat_field_spec *all, const leat_field_spec *more)
{
    if (all->ndim != more->ndim)
        all->ndim = -1;
    for (int i = 0; i < all->ndim; i++)
        if (all->shape[i] != more->shape[i])
            all->shape[i] = -1;
    if (all->content != more->content)
        all->content = LEAT_CONTENT_ANY;
    all->varies |= more->varies;
}

static int merge_spec(chain_reader *chain, int reader,
                      const leat_field_spec *spec, int n)
{
    if (n != chain->nspec)
        return leat_error(LEAT_EINVAL,
                          "chain: reader %d gives %d fields, reader 0 %d: "
                          "expected the same fields",
                          reader, n, chain->nspec);
    for (int i = 0; i < n; i++) {
        leat_field_spec *all = &chain->spec[i];
        const char *differs = difference(all, &spec[i]);
        if (differs)
            return leat_error(LEAT_EINVAL,
                              "chain: field %d is \"%s\" of %s in reader 0, "
                              "and \"%s\" of %s in reader %d: %s differs",
                              i, all->name, leat_dtype_name(all->dtype),
                              spec[i].name, leat_dtype_name(spec[i].dtype),
                              reader, differs);
        widen(all, &spec[i]);
    }
    return LEAT_OK;
}

static int read_specs(chain_reader *chain)
{
    const leat__decorator *decorator = &chain->map.decorator;
    const leat_field_spec *spec;
    int n;
    int status = leat_reader_fields(decorator->upstream[0], &spec, &n);
    if (status)
        return status;
    memcpy(chain->spec, spec, (size_t)n * sizeof(*spec));
    chain->nspec = n;
    for (int i = 1; i < decorator->nupstream && !status; i++) {
        status = leat_reader_fields(decorator->upstream[i], &spec, &n);
        if (!status)
            status = merge_spec(chain, i, spec, n);
    }
    if (status)
        chain->nspec = 0;
    return status;
}

static int chain_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    chain_reader *chain = chain_of(reader);
    int status = chain->nspec == 0 ? read_specs(chain) : LEAT_OK;
    if (status)
        return status;
    *out = chain->spec;
    *n = chain->nspec;
    return LEAT_OK;
}

/* The reader that has index `at`, or the last one for the end. */
static int find_reader(const chain_reader *chain, int64_t at)
{
    int low = 0;
    int high = chain->map.decorator.nupstream - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (at < chain->first[middle + 1])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void divide_positions(const leat__index_map *map,
                             const leat_position at[], int n,
                             leat_position from[], int upstream[])
{
    const chain_reader *chain = (const chain_reader *)map;
    int64_t begin = 0, end = 0;
    int reader = 0;
    for (int i = 0; i < n; i++) {
        int64_t index = at[i].index;
        if (index < begin || index >= end) {
            reader = find_reader(chain, index);
            begin = chain->first[reader];
            end = chain->first[reader + 1];
        }
        from[i] = (leat_position){at[i].epoch, index - begin};
        upstream[i] = reader;
    }
}

/* Moves an upstream reader. Where a failed seek has left it is not known. */
static int seek_upstream(chain_reader *chain, int i, leat_position to,
                         leat_token *mark)
{
    int64_t begin = chain->begin[i];
    chain->begin[i] = -1;
    int status = leat_reader_seek(chain->map.decorator.upstream[i], to, mark);
    if (status == LEAT_EUNSUPPORTED)
        chain->begin[i] = begin;
    return status;
}

/* Goes to the begin of the current reader's epoch, unless it is there. */
static int begin_reader(chain_reader *chain)
{
    const leat_position first = {chain->map.next.epoch, 0};
    int current = chain->current;
    int status = LEAT_OK;
    if (chain->has_begun)
        return LEAT_OK;
    if (chain->begin[current] != first.epoch)
        status = seek_upstream(chain, current, first, NULL);
    if (status)
        return status;
    chain->begin[current] = -1;
    chain->has_begun = true;
    chain->taken = 0;
    return LEAT_OK;
}

/* After the end of the current reader; LEAT_END after the last one's. */
static int next_reader(chain_reader *chain)
{
    if (chain->current + 1 == chain->map.decorator.nupstream)
        return LEAT_END;
    chain->current++;
    chain->has_begun = false;
    return LEAT_OK;
}

/* The number of a sample in its reader's epoch has no overflow, though skips
 * may be as long as they like. */
static void count_taken(chain_reader *chain, int64_t n)
{
    if (__builtin_add_overflow(chain->taken, n, &chain->taken))
        chain->taken = INT64_MAX;
}

static void note_route(const chain_reader *chain, leat_sample *const out[],
                       int n)
{
    for (int i = 0; i < n; i++)
        if (out[i]->deferred)
            leat_sample_push_route(out[i], chain->current,
                                   chain->map.decorator.nupstream);
}

static int chain_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    chain_reader *chain = chain_of(reader);
    const leat__decorator *decorator = &chain->map.decorator;
    int status;
    do {
        status = leat__decorator_check_running(decorator);
        if (!status)
            status = begin_reader(chain);
        if (status)
            return status;
        status =
            leat_reader_pull(decorator->upstream[chain->current], out, n, got);
        note_route(chain, out, *got);
        count_taken(chain, *got + (status == LEAT_EDATA));
        if (status != LEAT_END)
            return status;
        status = next_reader(chain);
    } while (!status);
    return status;
}

static int chain_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    chain_reader *chain = chain_of(reader);
    const leat__decorator *decorator = &chain->map.decorator;
    int status = LEAT_OK;
    while (!status && *skipped < n) {
        int64_t more = 0;
        status = leat__decorator_check_running(decorator);
        if (!status)
            status = begin_reader(chain);
        if (status)
            return status;
        status = leat_reader_skip(decorator->upstream[chain->current],
                                  n - *skipped, &more);
        *skipped += more;
        count_taken(chain, more);
        if (status == LEAT_END)
            status = next_reader(chain);
    }
    return status;
}

static int chain_materialize(leat_reader *reader, leat_sample *const out[],
                             int n, int *got)
{
    const leat__decorator *decorator = &chain_of(reader)->map.decorator;
    return leat_reader_materialize_routed(decorator->upstream,
                                          decorator->nupstream, out, n, got);
}

static int go_to(chain_reader *chain, int current, leat_position from,
                 leat_token *mark)
{
    int status = seek_upstream(chain, current, from, mark);
    if (status)
        return status;
    chain->map.next.epoch = from.epoch;
    chain->current = current;
    chain->has_begun = true;
    chain->taken = from.index;
    return LEAT_OK;
}

/*
 * Sends every reader to the begin of an epoch: one that is read once has to say
 * so before the others are read again. Other errors are met in their turn. The
 * current reader goes last, so that the chain stays where it is until then.
 */
static int begin_epoch(chain_reader *chain, int64_t epoch)
{
    const leat__decorator *decorator = &chain->map.decorator;
    for (int i = 1; i <= decorator->nupstream; i++) {
        int reader = (chain->current + i) % decorator->nupstream;
        if (chain->begin[reader] == epoch)
            continue;
        int status =
            seek_upstream(chain, reader, (leat_position){epoch, 0}, NULL);
        if (status && (status == LEAT_EUNSUPPORTED || reader == 0))
            return status;
        chain->begin[reader] = status ? -1 : epoch;
    }
    chain->map.next.epoch = epoch;
    chain->current = 0;
    chain->has_begun = false;
    chain->taken = 0;
    return LEAT_OK;
}

static int chain_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    chain_reader *chain = chain_of(reader);
    (void)mark;
    if (position.index > chain->map.count)
        return leat__index_map_seek(reader, position, NULL);
    int current = 0;
    if (position.index > 0) {
        current = find_reader(chain, position.index);
        position.index -= chain->first[current];
    }
    return go_to(chain, current, position, NULL);
}

/* Which reader it is, and the index there, stand before that one's mark. */
static int chain_stream_seek(leat_reader *reader, leat_position position,
                             leat_token *mark)
{
    chain_reader *chain = chain_of(reader);
    int64_t state[2] = {0, 0};
    int status = LEAT_OK;
    if (mark)
        status = leat__token_get_counts(mark, "chain", state, 2);
    else if (position.index > 0)
        status =
            leat_error(LEAT_EUNSUPPORTED,
                       "chain: sample %lld cannot be found by its index, over "
                       "readers without random access",
                       (long long)position.index);
    if (!status && state[0] >= chain->map.decorator.nupstream)
        status = leat_error(LEAT_EINVAL, "chain: there is no reader %lld",
                            (long long)state[0]);
    if (status)
        return status;
    if (!mark)
        return begin_epoch(chain, position.epoch);
    const leat_position from = {position.epoch, state[1]};
    return go_to(chain, (int)state[0], from, mark);
}

static int chain_mark(leat_reader *reader, leat_token *token)
{
    chain_reader *chain = chain_of(reader);
    int status = begin_reader(chain);
    const int64_t state[] = {chain->current, chain->taken};
    if (!status)
        status = leat_token_put(token, state, sizeof(state));
    return status ? status
                  : leat_reader_mark(
                        chain->map.decorator.upstream[chain->current], token);
}

static int chain_parts(leat_reader *reader, const int64_t **first, int64_t *n)
{
    *first = chain_of(reader)->first;
    *n = chain_of(reader)->map.decorator.nupstream;
    return LEAT_OK;
}

static int chain_restore(leat_reader *reader, leat_token *token)
{
    chain_reader *chain = chain_of(reader);
    int status = leat__index_map_restore(reader, token);
    if (status == LEAT_EUNSUPPORTED)
        return status;
    chain->current = 0;
    chain->has_begun = false;
    /* After a refusal each is sought. */
    for (int i = 0; i < chain->map.decorator.nupstream; i++)
        chain->begin[i] = status ? -1 : 0;
    return status;
}

static void chain_close(leat_reader *reader)
{
    leat__free(chain_of(reader)->first);
    leat__free(chain_of(reader)->begin);
    leat__decorator_close(reader);
}

static const leat_reader_ops chain_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "chain",
    .fields = chain_fields,
    .next = chain_next,
    .seek = chain_seek,
    .cancel = leat__decorator_cancel,
    .close = chain_close,
    .materialize = chain_materialize,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .skip = chain_skip,
    .can_seek = leat__decorator_can_seek,
    .save = leat__decorator_save,
    .restore = chain_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .parts = chain_parts,
};

static const leat_reader_ops chain_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "chain",
    .fields = chain_fields,
    .next = chain_next,
    .seek = chain_stream_seek,
    .cancel = leat__decorator_cancel,
    .close = chain_close,
    .materialize = chain_materialize,
    .skip = chain_skip,
    .can_seek = leat__reader_no,
    .is_endless = leat__decorator_is_any_endless,
    .mark = chain_mark,
    .save = leat__decorator_save,
    .restore = chain_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
};

/* An endless reader, or more samples than there are numbers, has no end. */
static int set_ends(chain_reader *chain)
{
    const leat__decorator *decorator = &chain->map.decorator;
    int64_t sum = 0;
    int status = LEAT_OK;
    chain->first = leat__alloc_zero((size_t)decorator->nupstream + 1,
                                    sizeof(*chain->first));
    if (!chain->first)
        return LEAT_ENOMEM;
    for (int i = 0; i < decorator->nupstream && !status; i++) {
        int64_t count;
        status = leat_reader_count(decorator->upstream[i], &count);
        if (!status)
            sum = sum < LEAT_ENDLESS - count ? sum + count : LEAT_ENDLESS;
        chain->first[i + 1] = sum;
    }
    chain->map.positions = divide_positions;
    chain->map.count = sum;
    return status;
}

static bool are_random_access(const leat_open *open)
{
    bool are = true;
    for (int i = 0; i < open->nupstream; i++)
        are &= leat_reader_is_random_access(open->upstream[i]);
    return are;
}

static int chain_open(const leat_open *open, leat_reader **out)
{
    bool is_map = are_random_access(open);
    chain_reader *chain = leat__decorator_new(
        open, is_map ? &chain_ops : &chain_stream_ops, sizeof(*chain));
    if (!chain)
        return LEAT_ENOMEM;
    chain->begin =
        leat__alloc_zero((size_t)open->nupstream, sizeof(*chain->begin));
    int status = chain->begin ? LEAT_OK : LEAT_ENOMEM;
    if (!status && is_map)
        status = set_ends(chain);
    if (status) {
        leat__free(chain->first);
        leat__free(chain->begin);
        leat__free(chain);
        return status;
    }
    *out = &chain->map.decorator.reader;
    return LEAT_OK;
}

const leat_reader_type leat__chain_type = {
    .size = sizeof(leat_reader_type),
    .name = "chain",
    .help = "several readers one after the other",
    .min_upstream = 1,
    .max_upstream = LEAT_MAX_UPSTREAM,
    .keeps_order = 1,
    .open = chain_open,
};

int leat_pipeline_chain(leat_pipeline **out, leat_pipeline *const upstream[],
                        int n)
{
    return leat_pipeline_create(out, &leat__chain_type, NULL, NULL, NULL,
                                upstream, n);
}
