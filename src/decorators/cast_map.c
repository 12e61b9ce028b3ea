/* cast:FIELD=TYPE, fields of other types. */
#include "base/error.h"
#include "base/memory.h"
#include "data/cast.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/decorators.h>

typedef struct cast_reader {
    leat__sample_map map;
    int n;
    int field[LEAT_MAX_FIELDS];
    leat_dtype dtype[LEAT_MAX_FIELDS];
} cast_reader;

/* Bytes are taken for uint8, and only these for bytes. */
static bool is_possible(leat_dtype from, leat_dtype to)
{
    return from == LEAT_BYTES || from == to ||
           (to == LEAT_BYTES && from == LEAT_UINT8) ||
           leat__cast_is_possible(from, to);
}

static int refuse(int status, const char *name, leat_dtype from, leat_dtype to)
{
    return leat_error(status, "field \"%s\": %s cannot become %s", name,
                      leat_dtype_name(from), leat_dtype_name(to));
}

/*
 * Bytes have one dimension: their number. Only those of a group, or of its
 * rows, have more, which stay. `ndim` below 0: varies.
 */
static bool has_bytes_shape(const leat_field_spec *spec, leat_dtype from,
                            leat_dtype to, int ndim)
{
    bool is_one = from != to && (from == LEAT_BYTES || to == LEAT_BYTES);
    bool may_have_more = from == LEAT_BYTES || spec->is_batch;
    return is_one && !(may_have_more && (ndim < 0 || ndim > 1));
}

static int cast_field(leat_sample *sample, int i, const leat_field_spec *spec,
                      leat_dtype to)
{
    leat_field *field = &sample->field[i];
    const char *name = spec->name;
    size_t count, bytes;
    if (field->dtype == to)
        return LEAT_OK;
    if (!is_possible(field->dtype, to))
        return refuse(LEAT_EDATA, name, field->dtype, to);
    int status = leat__field_count(field, &count);
    if (status)
        return leat__error_context(status, "field \"%s\"", name);
    if (leat__multiply(count, leat_dtype_size(to), &bytes))
        return leat_error(LEAT_EDATA, "field \"%s\": %zu elements are too many",
                          name, count);
    bool is_view =
        (field->dtype == LEAT_BYTES && to == LEAT_UINT8) || to == LEAT_BYTES;
    if (!is_view) {
        void *cast = leat__sample_map_take(sample, bytes);
        if (!cast)
            return LEAT_ENOMEM;
        leat__cast(cast, to, field->data, field->dtype, count);
        field->data = cast;
    }
    if (has_bytes_shape(spec, field->dtype, to, field->ndim)) {
        field->ndim = 1;
        field->shape[0] = (int64_t)count;
    }
    field->dtype = to;
    field->bytes = bytes;
    return LEAT_OK;
}

static int cast_work(leat__sample_map *map, leat__map_state *state,
                     leat_sample *sample, int first)
{
    const cast_reader *cast = (const cast_reader *)map;
    int status = LEAT_OK;
    (void)state;
    for (int i = 0; i < cast->n && !status; i++)
        status = cast_field(sample, first + cast->field[i],
                            &map->spec[cast->field[i]], cast->dtype[i]);
    return status;
}

static const leat__map_kind cast_kind = {.name = "cast", .work = cast_work};

static void set_spec(leat_field_spec *spec, leat_dtype to)
{
    int64_t count = leat__field_spec_count(spec);
    if (has_bytes_shape(spec, spec->dtype, to, spec->ndim)) {
        spec->ndim = 1;
        spec->shape[0] = count;
    }
    if (spec->dtype != to)
        spec->content = LEAT_CONTENT_ANY;
    spec->dtype = to;
}

static int add_field(cast_reader *cast, const char *pair)
{
    leat__sample_map *map = &cast->map;
    char name[LEAT__FIELD_NAME_MAX];
    const char *type;
    if (cast->n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "expected at most %d fields",
                          LEAT_MAX_FIELDS);
    int *field = &cast->field[cast->n];
    int status = leat__field_split_pair(pair, name, &type);
    if (!status && !type)
        status = leat_error(LEAT_EINVAL, "'%s': expected FIELD=TYPE", pair);
    if (!status)
        status = leat__field_find(map->spec, map->nspec, name, field);
    if (!status)
        status = leat_dtype_parse(&cast->dtype[cast->n], type);
    if (status)
        return status;
    leat_field_spec *spec = &map->spec[*field];
    if (!spec->varies && !is_possible(spec->dtype, cast->dtype[cast->n]))
        return refuse(LEAT_EINVAL, name, spec->dtype, cast->dtype[cast->n]);
    set_spec(spec, cast->dtype[cast->n++]);
    return LEAT_OK;
}

static int cast_open(const leat_open *open, leat_reader **out)
{
    const char *pair;
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &cast_kind, sizeof(cast_reader));
    if (status)
        return status;
    for (int i = 0; !status && map->ngiven > 0 &&
                    (pair = leat_args_at(open->args, i)) != NULL;
         i++)
        status = add_field((cast_reader *)map, pair);
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument cast_arguments[] = {
    {.name = "field",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "FIELD=TYPE, such as label=int64; floats become integers towards "
             "zero, and what does not fit the nearest value that does"},
    {0},
};

const leat_reader_type leat__cast_type = {
    .size = sizeof(leat_reader_type),
    .name = "cast",
    .help = "fields of other types",
    .arguments = cast_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = cast_open,
};

int leat_pipeline_cast(leat_pipeline **out, leat_pipeline *upstream,
                       const char *field, leat_dtype dtype)
{
    char *text;
    if (leat_dtype_size(dtype) == 0)
        return leat_error(LEAT_EINVAL, "cast: unknown dtype %d", (int)dtype);
    int status = leat__field_write_pair(&text, field, leat_dtype_name(dtype));
    if (status)
        return leat__error_context(status, "cast");
    status = leat_pipeline_create(out, &leat__cast_type, text, NULL, NULL,
                                  &upstream, 1);
    leat__free(text);
    return status;
}
