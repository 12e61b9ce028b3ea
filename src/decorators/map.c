/*
 * A function of the caller's that changes each sample.
 *
 * DESIGN. It is called in materialize, on any threads in parallel. In order it
 * is called in next, by one thread at a time; only so can it end the sequence.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/shape.h"
#include "data/sample.h"
#include "data/token.h"
#include "decorators/callable.h"
#include "decorators/sample_map.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* Owned by the pipeline. */
typedef struct map_object {
    leat__callable callable; /* first */
    leat_map_function *function;
    bool is_in_order;
    bool may_end;
    bool uses_position;
    int nfields; /* 0: those of the upstream reader */
    leat_field_spec spec[LEAT_MAX_FIELDS];
    char name[LEAT_MAX_FIELDS][LEAT__FIELD_NAME_MAX];
    char offsets_of[LEAT_MAX_FIELDS][LEAT__FIELD_NAME_MAX];
} map_object;

typedef struct map_reader {
    leat__sample_map map;
    const map_object *object; /* borrowed from the pipeline */
    bool has_ended; /* of one caller at a time: this epoch, by the function */
} map_reader;

/* A mark of a map that is called in order, after the upstream reader's. */
typedef struct map_mark {
    leat_position next;
    int64_t has_ended;
} map_mark;

/* Whether the field has the bytes of its type and shape. */
static bool is_whole(const leat_field *field)
{
    size_t count;
    if (!leat_dtype_size(field->dtype) || field->ndim < 0 ||
        field->ndim > LEAT_MAX_DIMS)
        return false;
    for (int i = 0; i < field->ndim; i++) {
        if (field->shape[i] < 0)
            return false;
    }
    return (field->data || field->bytes == 0) &&
           leat__field_count(field, &count) == LEAT_OK;
}

/* A field is what was declared. */
static int check_field(const leat_field *field, const leat_field_spec *spec)
{
    char has[LEAT__FIELD_TEXT_MAX], declared[LEAT__FIELD_TEXT_MAX];
    if (!is_whole(field))
        return leat_error(LEAT_EDATA,
                          "field \"%s\" has fewer bytes than its type and "
                          "shape need, or no type or shape",
                          spec->name);
    if (leat__field_fits(field, spec))
        return LEAT_OK;
    return leat_error(
        LEAT_EDATA, "field \"%s\" is %s, but %s was declared, with -1 for any",
        spec->name,
        leat__field_text(has, field->dtype, field->ndim, field->shape),
        leat__field_text(declared, spec->dtype, spec->ndim, spec->shape));
}

static int check_sample(const leat__sample_map *map, const leat_sample *sample,
                        int first)
{
    int status = LEAT_OK;
    if (sample->nfields - first != map->nspec)
        return leat_error(LEAT_EDATA,
                          "it has %d fields, but %d were declared%s",
                          sample->nfields - first, map->nspec,
                          sample->nfields - first < map->nspec
                              ? "; setting a field removes those after it"
                              : "");
    for (int i = 0; i < map->nspec && !status; i++)
        status = check_field(&sample->field[first + i], &map->spec[i]);
    return status;
}

static int map_work(leat__sample_map *map, leat__map_state *state,
                    leat_sample *sample, int first)
{
    const map_object *object = ((map_reader *)map)->object;
    leat__call call;
    (void)state;
    leat__call_begin(&call, sample, first);
    int status = object->function(object->callable.user, sample);
    if (sample->taken > 0)
        sample->stable = 0;
    status = leat__call_end(&call, &object->callable, &map->decorator, sample,
                            status, object->may_end);
    if (!status)
        status = check_sample(map, sample, first);
    return status;
}

static const leat__map_kind map_kind = {.name = "map", .work = map_work};

/* One sample, by the function, with its position. */
static int ordered_one(leat__sample_map *map, leat_sample *sample)
{
    leat_reader *reader = &map->decorator.reader;
    leat_reader *upstream = map->decorator.upstream[0];
    int got;
    int status = leat_reader_pull(upstream, &sample, 1, &got);
    if (!status && sample->deferred)
        status = leat_reader_materialize(upstream, &sample, 1, &got);
    if (status)
        return status;
    sample->deferred = 0;
    sample->at = map->next;
    got = 0;
    return leat__sample_map_materialize(reader, &sample, 1, &got);
}

static int ordered_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    leat__sample_map *map = (leat__sample_map *)reader;
    map_reader *own = (map_reader *)reader;
    int status = LEAT_OK;
    size_t bytes = 0;
    if (own->has_ended)
        return LEAT_END;
    while (!status && *got < n && bytes < LEAT__CALL_BYTES) {
        size_t before = out[*got]->buffer_size;
        status = ordered_one(map, out[*got]);
        bytes += leat__sample_added(out + *got, 1, before);
        map->next.index += !status || status == LEAT_EDATA;
        *got += !status;
    }
    own->has_ended = status == LEAT_END;
    return status;
}

static int take_mark(leat_token *mark, map_mark *out)
{
    int status = leat__token_get_position(mark, "map", &out->next);
    return status
               ? status
               : leat_token_get(mark, &out->has_ended, sizeof(out->has_ended));
}

static int ordered_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    leat__sample_map *map = (leat__sample_map *)reader;
    map_reader *own = (map_reader *)reader;
    map_mark to = {position, 0};
    if (own->object->may_end && position.index > 0 && !mark)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: it may end, so samples before are needed: "
                          "expected index 0, or a mark",
                          own->object->callable.name);
    int status = leat__decorator_seek(reader, position, mark);
    if (!status && mark)
        status = take_mark(mark, &to);
    if (status)
        return status;
    map->next = to.next;
    own->has_ended = to.has_ended != 0;
    return LEAT_OK;
}

static int ordered_mark(leat_reader *reader, leat_token *token)
{
    const map_reader *own = (const map_reader *)reader;
    const map_mark mark = {own->map.next, own->has_ended};
    int status = leat__decorator_mark(reader, token);
    return status ? status : leat_token_put(token, &mark, sizeof(mark));
}

static int ordered_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (status)
        return status;
    ((leat__sample_map *)reader)->next = (leat_position){0, 0};
    ((map_reader *)reader)->has_ended = false;
    return LEAT_OK;
}

static void map_cancel(leat_reader *reader)
{
    leat__decorator_cancel(reader);
    leat__callable_cancel(&((const map_reader *)reader)->object->callable);
}

/* What skips samples would not see the end. */
static void run_in_order(leat__sample_map *map, bool may_end)
{
    map->ops.next = ordered_next;
    map->ops.seek = ordered_seek;
    map->ops.restore = ordered_restore;
    map->ops.materialize = NULL;
    map->ops.read_at = NULL;
    map->ops.advise = NULL;
    if (may_end || map->ops.mark)
        map->ops.mark = ordered_mark;
    if (!may_end)
        return;
    map->ops.count = NULL;
    map->ops.skip = NULL;
    map->ops.can_seek = leat__reader_no;
    map->ops.is_endless = leat__reader_no;
}

static int map_open(const leat_open *open, leat_reader **out)
{
    const map_object *object = leat_args_object(open->args);
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &map_kind, sizeof(map_reader));
    if (status)
        return status;
    ((map_reader *)map)->object = object;
    map->ops.cancel = map_cancel;
    if (object->callable.may_block)
        map->ops.may_block = NULL; /* as the type says */
    if (object->nfields > 0) {
        map->nspec = object->nfields;
        memcpy(map->spec, object->spec, sizeof(object->spec));
    }
    if (object->is_in_order)
        run_in_order(map, object->may_end);
    else if (object->uses_position)
        leat__sample_map_note_positions(map);
    return leat__sample_map_opened(map, LEAT_OK, out);
}

#define MAP_TYPE                                                               \
    .size = sizeof(leat_reader_type), .name = "map", .min_upstream = 1,        \
    .max_upstream = 1, .keeps_order = 1, .object_id = leat__callable_id,       \
    .open = map_open

static const leat_reader_type map_type = {MAP_TYPE};
static const leat_reader_type blocking_type = {MAP_TYPE, .may_block = 1};

static int copy_fields(map_object *object, const leat_map_options *options)
{
    if (!options->fields)
        return LEAT_OK;
    if (options->nfields < 1 || options->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "map: expected 1 to %d fields, got %d",
                          LEAT_MAX_FIELDS, options->nfields);
    object->nfields = options->nfields;
    for (int i = 0; i < object->nfields; i++) {
        leat_field_spec *spec = &object->spec[i];
        *spec = options->fields[i];
        if (!leat_dtype_size(spec->dtype) || spec->ndim > LEAT_MAX_DIMS)
            return leat_error(LEAT_EINVAL,
                              "map: field %d: unknown dtype %d, or %d "
                              "dimensions, at most %d",
                              i, (int)spec->dtype, spec->ndim, LEAT_MAX_DIMS);
        snprintf(object->name[i], sizeof(object->name[i]), "%s",
                 spec->name ? spec->name : "");
        spec->name = object->name[i];
        if (!spec->offsets_of)
            continue;
        snprintf(object->offsets_of[i], sizeof(object->offsets_of[i]), "%s",
                 spec->offsets_of);
        spec->offsets_of = object->offsets_of[i];
    }
    return LEAT_OK;
}

int leat_pipeline_map(leat_pipeline **out, leat_pipeline *upstream,
                      leat_map_function *function, void *user, uint64_t id,
                      const leat_map_options *options)
{
    leat_map_options values = LEAT_MAP_OPTIONS_INIT;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    if (!function)
        status = leat_error(LEAT_EINVAL, "map: the function is NULL");
    map_object *object = status ? NULL : leat__alloc_zero(1, sizeof(*object));
    if (!object) {
        if (values.release)
            values.release(user);
        return status ? status : LEAT_ENOMEM;
    }
    leat__callable *callable = &object->callable;
    leat__callable_init(callable, "map", values.name, user, id);
    callable->may_block = values.may_block;
    callable->cancel = values.cancel;
    callable->release = values.release;
    object->function = function;
    object->is_in_order = values.in_order || values.may_end;
    object->may_end = values.may_end;
    object->uses_position = values.uses_position;
    status = copy_fields(object, &values);
    if (status) {
        leat__callable_release(object);
        return status;
    }
    return leat_pipeline_create(
        out, values.may_block ? &blocking_type : &map_type, NULL, object,
        leat__callable_release, &upstream, 1);
}

int leat_map_options_init(leat_map_options *options)
{
    const leat_map_options defaults = LEAT_MAP_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}
