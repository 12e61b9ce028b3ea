#include "decorators/sample_map.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"

#include <string.h>

static leat__sample_map *map_of(leat_reader *reader)
{
    return (leat__sample_map *)reader;
}

static leat_reader *upstream_of(const leat__sample_map *map)
{
    return map->decorator.upstream[0];
}

static int map_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    const leat__sample_map *map = map_of(reader);
    if (map->ngiven == 0)
        return leat__decorator_fields(reader, out, n);
    *out = map->spec;
    *n = map->nspec;
    return LEAT_OK;
}

/*
 * A position that a map further upstream noted is its work's. What fails there
 * fails again, in its turn, once the sample is materialized.
 */
static int note_position(leat_reader *upstream, leat_sample *sample,
                         leat_position at)
{
    int status = LEAT_OK, got;
    bool is_noted = sample->deferred && sample->at.epoch >= 0;
    if (is_noted &&
        (sample->at.epoch != at.epoch || sample->at.index != at.index)) {
        status = leat_reader_materialize(upstream, &sample, 1, &got);
        is_noted = status;
    }
    if (!is_noted)
        sample->at = at;
    return status == LEAT_EDATA ? LEAT_OK : status;
}

static int note_positions(leat__sample_map *map, leat_sample *const out[],
                          int *got)
{
    leat_position at = map->next;
    int status = LEAT_OK, n = *got;
    for (*got = 0; *got < n && !status; at.index++) {
        status = note_position(upstream_of(map), out[*got], at);
        *got += !status;
    }
    return status;
}

static int map_next(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    leat__sample_map *map = map_of(reader);
    int status = leat_reader_pull(upstream_of(map), out, n, got);
    if (map->notes_positions && *got > 0) {
        int noted = note_positions(map, out, got);
        status = noted ? noted : status;
    }
    map->next.index += *got + (status == LEAT_EDATA);
    return status;
}

static int map_seek(leat_reader *reader, leat_position position,
                    leat_token *mark)
{
    leat__sample_map *map = map_of(reader);
    int status = leat__decorator_seek(reader, position, mark);
    if (!status && mark && map->notes_positions)
        status = leat__token_get_position(mark, reader->ops->name, &position);
    if (!status)
        map->next = position;
    return status;
}

/* Its own position, too: the readers above may not know it. */
static int map_mark(leat_reader *reader, leat_token *token)
{
    const leat__sample_map *map = map_of(reader);
    int status = leat__decorator_mark(reader, token);
    if (status || !map->notes_positions)
        return status;
    return leat_token_put(token, &map->next, sizeof(map->next));
}

static int map_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat__sample_map *map = map_of(reader);
    int status = leat_reader_skip(upstream_of(map), n, skipped);
    map->next.index += *skipped;
    return status;
}

static int map_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        map_of(reader)->next = (leat_position){0, 0};
    return status;
}

static int map_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(upstream_of(map_of(reader)), out);
}

static int map_read_at(leat_reader *reader, const leat_position at[],
                       leat_sample *const out[], int n, int *got)
{
    const leat__sample_map *map = map_of(reader);
    int status = leat_reader_pull_at(upstream_of(map), at, out, n, got);
    for (int i = 0; i < *got && map->notes_positions; i++)
        out[i]->at = at[i];
    return status;
}

static void map_advise(leat_reader *reader, const leat_position at[], int n)
{
    leat_reader_advise(upstream_of(map_of(reader)), at, n);
}

static void free_states(leat__sample_map *map)
{
    while (map->idle) {
        leat__map_state *state = map->idle;
        map->idle = state->next;
        map->kind->finish_state(state);
        leat__free(state);
    }
}

static void finish(leat__sample_map *map)
{
    free_states(map);
    if (map->kind->finish)
        map->kind->finish(map);
    pthread_mutex_destroy(&map->lock);
}

static void map_close(leat_reader *reader)
{
    finish(map_of(reader));
    leat__decorator_close(reader);
}

static int64_t map_memory(leat_reader *reader)
{
    return (int64_t)atomic_load_explicit(&map_of(reader)->held,
                                         memory_order_relaxed);
}

/* An idle state, or a new one; `*out` is NULL where the map has none. */
static int take_state(leat__sample_map *map, leat__map_state **out)
{
    *out = NULL;
    if (!map->kind->state_size)
        return LEAT_OK;
    pthread_mutex_lock(&map->lock);
    leat__map_state *state = map->idle;
    if (state)
        map->idle = state->next;
    pthread_mutex_unlock(&map->lock);
    if (!state) {
        state = leat__alloc_zero(1, map->kind->state_size);
        int status = state ? map->kind->start_state(map, state) : LEAT_ENOMEM;
        if (status) {
            leat__free(state);
            return status;
        }
    }
    *out = state;
    return LEAT_OK;
}

static void give_state(leat__sample_map *map, leat__map_state *state,
                       int64_t bytes_before)
{
    if (!state)
        return;
    atomic_fetch_add_explicit(&map->held, state->bytes - bytes_before,
                              memory_order_relaxed);
    pthread_mutex_lock(&map->lock);
    state->next = map->idle;
    map->idle = state;
    pthread_mutex_unlock(&map->lock);
}

static int work_on(leat__sample_map *map, leat__map_state *state,
                   leat_sample *sample)
{
    const leat_provenance *from = &sample->from;
    int first = sample->nfields - map->ngiven;
    int status = LEAT_OK;
    if (first < 0)
        status = leat_error(LEAT_EDATA, "it has %d fields, expected %d",
                            sample->nfields, map->ngiven);
    if (!status)
        status = map->kind->work(map, state, sample, first);
    if (status != LEAT_EDATA)
        return status;
    return leat__error_context(status, "%s: %s: record %lld", map->ops.name,
                               from->source ? from->source : "?",
                               (long long)from->record);
}

int leat__sample_map_materialize(leat_reader *reader, leat_sample *const out[],
                                 int n, int *got)
{
    leat__sample_map *map = map_of(reader);
    leat__map_state *state;
    int status = take_state(map, &state);
    int64_t bytes = state ? state->bytes : 0;
    while (!status && *got < n) {
        status = leat__decorator_check_running(&map->decorator);
        if (!status)
            status = work_on(map, state, out[*got]);
        *got += !status;
    }
    give_state(map, state, bytes);
    return status;
}

void *leat__sample_map_take(leat_sample *sample, size_t bytes)
{
    sample->stable = 0;
    return leat__sample_take(sample, bytes);
}

static const leat_reader_ops map_ops = {
    .size = sizeof(leat_reader_ops),
    .fields = map_fields,
    .next = map_next,
    .seek = map_seek,
    .cancel = leat__decorator_cancel,
    .close = map_close,
    .materialize = leat__sample_map_materialize,
    .count = map_count,
    .skip = map_skip,
    .can_seek = leat__decorator_can_seek,
    .save = leat__decorator_save,
    .restore = map_restore,
    .may_block = leat__decorator_may_block,
    .is_endless = leat__decorator_is_any_endless,
};

static void choose_operations(leat__sample_map *map)
{
    map->ops = map_ops;
    map->ops.name = map->kind->name;
    if (map->kind->state_size)
        map->ops.memory = map_memory;
    if (leat_reader_is_random_access(upstream_of(map))) {
        map->ops.read_at = map_read_at;
        map->ops.advise = map_advise;
    } else {
        map->ops.mark = map_mark;
    }
    map->decorator.reader.ops = &map->ops;
}

/* What an empty reader has no fields of, nobody works on. */
static int take_fields(leat__sample_map *map)
{
    int status =
        leat_reader_fields(upstream_of(map), &map->given, &map->ngiven);
    if (status) {
        map->ngiven = 0;
        return status == LEAT_END ? LEAT_OK : status;
    }
    map->nspec = map->ngiven;
    memcpy(map->spec, map->given, (size_t)map->ngiven * sizeof(map->spec[0]));
    return LEAT_OK;
}

int leat__sample_map_new(leat__sample_map **out, const leat_open *open,
                         const leat__map_kind *kind, size_t size)
{
    leat__sample_map *map = leat__decorator_new(open, &map_ops, size);
    if (!map)
        return LEAT_ENOMEM;
    map->kind = kind;
    if (pthread_mutex_init(&map->lock, NULL)) {
        leat__free(map);
        return leat_error(LEAT_ENOMEM, "%s: no mutex", kind->name);
    }
    choose_operations(map);
    int status = take_fields(map);
    if (status) {
        leat__sample_map_free(map);
        return status;
    }
    *out = map;
    return LEAT_OK;
}

void leat__sample_map_free(leat__sample_map *map)
{
    if (!map)
        return;
    finish(map);
    leat__free(map);
}

int leat__sample_map_opened(leat__sample_map *map, int status,
                            leat_reader **out)
{
    if (!status) {
        *out = &map->decorator.reader;
        return LEAT_OK;
    }
    status = leat__error_context(status, "%s", map->ops.name);
    leat__sample_map_free(map);
    return status;
}

void leat__sample_map_note_positions(leat__sample_map *map)
{
    map->notes_positions = true;
}
