/* reshape:FIELD=3x32x32, other shapes of the same elements. */
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* The shape that a field gets; one dimension may be -1. */
typedef struct new_shape {
    int field;
    int ndim;
    int64_t shape[LEAT_MAX_DIMS];
    int open;      /* the dimension that follows from the others; -1: none */
    int64_t fixed; /* the product of the others */
} new_shape;

typedef struct reshape_reader {
    leat__sample_map map;
    int n;
    new_shape to[LEAT_MAX_FIELDS];
} reshape_reader;

/* The dimension that is left open, for `count` elements; false: none fits. */
static bool find_open(const new_shape *to, int64_t count, int64_t *out)
{
    if (to->open < 0)
        return count == to->fixed;
    *out = to->fixed > 0 ? count / to->fixed : 0;
    return *out * to->fixed == count;
}

static int refuse(int status, const new_shape *to, const char *name,
                  const int ndim, const int64_t shape[])
{
    char from_text[LEAT__SHAPE_TEXT_MAX], to_text[LEAT__SHAPE_TEXT_MAX];
    return leat_error(status, "field \"%s\" of shape %s cannot have %s", name,
                      leat__shape_text(from_text, ndim, shape),
                      leat__shape_text(to_text, to->ndim, to->shape));
}

static int reshape_field(const new_shape *to, const char *name,
                         leat_field *field)
{
    size_t count;
    int64_t open = 0;
    if (field->dtype == LEAT_BYTES)
        return leat_error(LEAT_EDATA,
                          "field \"%s\" is of bytes: expected elements, as "
                          "cast:%s=uint8 makes them",
                          name, name);
    int status = leat__field_count(field, &count);
    if (status)
        return leat__error_context(status, "field \"%s\"", name);
    if (count > INT64_MAX || !find_open(to, (int64_t)count, &open))
        return refuse(LEAT_EDATA, to, name, field->ndim, field->shape);
    field->ndim = to->ndim;
    memcpy(field->shape, to->shape, sizeof(to->shape));
    if (to->open >= 0)
        field->shape[to->open] = open;
    return LEAT_OK;
}

static int reshape_work(leat__sample_map *map, leat__map_state *state,
                        leat_sample *sample, int first)
{
    const reshape_reader *reshape = (const reshape_reader *)map;
    int status = LEAT_OK;
    (void)state;
    for (int i = 0; i < reshape->n && !status; i++) {
        const new_shape *to = &reshape->to[i];
        status = reshape_field(to, map->spec[to->field].name,
                               &sample->field[first + to->field]);
    }
    return status;
}

static const leat__map_kind reshape_kind = {.name = "reshape",
                                            .work = reshape_work};

static int bad_shape(const char *text)
{
    return leat_error(LEAT_EINVAL,
                      "'%s' is no shape: expected up to %d dimensions, such "
                      "as 3x32x32, of which one may be -1, or scalar",
                      text, LEAT_MAX_DIMS);
}

/* "3x32x32", "-1" or "scalar". */
static int parse_shape(new_shape *to, const char *text)
{
    to->open = -1;
    to->fixed = 1;
    to->ndim = leat__shape_parse(text, strlen(text), to->shape);
    bool is_bad = to->ndim < 0;
    for (int i = 0; i < to->ndim && !is_bad; i++) {
        if (to->shape[i] >= 0)
            is_bad =
                __builtin_mul_overflow(to->fixed, to->shape[i], &to->fixed);
        else if (to->open < 0)
            to->open = i;
        else
            is_bad = true;
    }
    return is_bad ? bad_shape(text) : LEAT_OK;
}

static int check_spec(const new_shape *to, leat_field_spec *spec)
{
    int64_t open = -1, count = leat__field_spec_count(spec);
    if (spec->dtype == LEAT_BYTES && !spec->varies)
        return leat_error(LEAT_EINVAL,
                          "field \"%s\" is of bytes: expected elements, as "
                          "cast:%s=uint8 makes them",
                          spec->name, spec->name);
    if (count >= 0 && !find_open(to, count, &open))
        return refuse(LEAT_EINVAL, to, spec->name, spec->ndim, spec->shape);
    spec->ndim = to->ndim;
    memcpy(spec->shape, to->shape, sizeof(to->shape));
    if (to->open >= 0)
        spec->shape[to->open] = open;
    return LEAT_OK;
}

static int add_field(reshape_reader *reshape, const char *pair)
{
    leat__sample_map *map = &reshape->map;
    char name[LEAT__FIELD_NAME_MAX];
    const char *shape;
    if (reshape->n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "expected at most %d fields",
                          LEAT_MAX_FIELDS);
    new_shape *to = &reshape->to[reshape->n++];
    int status = leat__field_split_pair(pair, name, &shape);
    if (!status)
        status = leat__field_find(map->spec, map->nspec, name, &to->field);
    if (!status)
        status = parse_shape(to, shape ? shape : "");
    return status ? status : check_spec(to, &map->spec[to->field]);
}

static int reshape_open(const leat_open *open, leat_reader **out)
{
    const char *pair;
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &reshape_kind, sizeof(reshape_reader));
    if (status)
        return status;
    for (int i = 0; !status && map->ngiven > 0 &&
                    (pair = leat_args_at(open->args, i)) != NULL;
         i++)
        status = add_field((reshape_reader *)map, pair);
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument reshape_arguments[] = {
    {.name = "field",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "FIELD=SHAPE, such as data=3x32x32 or label=scalar; one dimension "
             "may be -1"},
    {0},
};

const leat_reader_type leat__reshape_type = {
    .size = sizeof(leat_reader_type),
    .name = "reshape",
    .help = "other shapes of the same elements, without a copy",
    .arguments = reshape_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = reshape_open,
};

int leat_pipeline_reshape(leat_pipeline **out, leat_pipeline *upstream,
                          const char *field, int ndim, const int64_t shape[])
{
    char value[LEAT__SHAPE_TEXT_MAX], *text;
    if (ndim < 0 || ndim > LEAT_MAX_DIMS || (ndim > 0 && !shape))
        return leat_error(LEAT_EINVAL,
                          "reshape: ndim is %d: expected 0 to %d dimensions",
                          ndim, LEAT_MAX_DIMS);
    new_shape to;
    int status = parse_shape(&to, leat__shape_text(value, ndim, shape));
    if (!status)
        status = leat__field_write_pair(&text, field, value);
    if (status)
        return leat__error_context(status, "reshape");
    status = leat_pipeline_create(out, &leat__reshape_type, text, NULL, NULL,
                                  &upstream, 1);
    leat__free(text);
    return status;
}
