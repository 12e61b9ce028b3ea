/* datum:FIELD, Caffe's Datum as `data` and `label`. */
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"
#include "data/sample.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/datum.h>
#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

typedef struct datum_reader {
    leat__sample_map map;
    int field;
} datum_reader;

/* What parsing takes of the buffer: a class, and floats in one place. */
static size_t memory_of(const leat_datum *datum)
{
    return 3 * (size_t)LEAT__ALIGNMENT + datum->float_count * sizeof(float);
}

/*
 * Appends `data` and `label`. They are views of the message, which may lie in
 * the sample's buffer, so that must not move meanwhile.
 */
static int append_fields(leat_sample *sample, int message)
{
    const leat_field *field = &sample->field[message];
    leat_datum datum;
    if (field->dtype != LEAT_BYTES)
        return leat_error(LEAT_EDATA, "it is %s, not a serialized Datum",
                          leat_dtype_name(field->dtype));
    int status = leat_datum_parse(&datum, field->data, field->bytes);
    if (!status)
        status =
            leat__sample_reserve(sample, sample->taken + memory_of(&datum));
    if (status)
        return status;
    sample->stable = 0;
    return leat_datum_fields(sample, field->data, field->bytes);
}

static int check_field(const leat_field *field, const leat_field_spec *spec,
                       const char *argument)
{
    char found[LEAT__FIELD_TEXT_MAX];
    if (leat__field_fits(field, spec))
        return LEAT_OK;
    return leat_error(
        LEAT_EDATA,
        "its %s is %s, and %s was expected: see the argument "
        "%s",
        spec->name,
        leat__field_text(found, field->dtype, field->ndim, field->shape),
        spec->dtype == LEAT_BYTES ? "an encoded image"
                                  : leat_dtype_name(spec->dtype),
        argument);
}

static int datum_work(leat__sample_map *map, leat__map_state *state,
                      leat_sample *sample, int first)
{
    const datum_reader *datum = (const datum_reader *)map;
    int n = sample->nfields, at = first + datum->field;
    leat_field *field = sample->field;
    (void)state;
    int status = append_fields(sample, at);
    if (!status)
        status = check_field(&field[n], &map->spec[datum->field], "type");
    if (!status)
        status =
            check_field(&field[n + 1], &map->spec[datum->field + 1], "labels");
    sample->nfields = n;
    if (status)
        return leat__error_context(status, "field \"%s\"",
                                   map->given[datum->field].name);
    const leat_field made[2] = {field[n], field[n + 1]};
    memmove(field + at + 2, field + at + 1,
            (size_t)(n - at - 1) * sizeof(*field));
    memcpy(field + at, made, sizeof(made));
    sample->nfields = n + 1;
    return LEAT_OK;
}

static const leat__map_kind datum_kind = {.name = "datum", .work = datum_work};

static const leat_dtype types[] = {LEAT_UINT8, LEAT_FLOAT32, LEAT_BYTES};

static leat_field_spec data_spec(leat_dtype dtype)
{
    bool is_encoded = dtype == LEAT_BYTES;
    return (leat_field_spec){.name = "data",
                             .dtype = dtype,
                             .ndim = is_encoded ? 1 : 3,
                             .shape = {-1, -1, -1},
                             .content = is_encoded ? LEAT_CONTENT_IMAGE
                                                   : LEAT_CONTENT_ANY};
}

static leat_field_spec label_spec(int64_t labels)
{
    return (leat_field_spec){.name = "label",
                             .dtype = labels ? LEAT_FLOAT32 : LEAT_INT32,
                             .ndim = labels != 0,
                             .shape = {labels}};
}

static int set_specs(datum_reader *datum, const leat_args *args)
{
    leat__sample_map *map = &datum->map;
    int n = map->nspec;
    if (map->ngiven == 0)
        return LEAT_OK;
    if (n > LEAT_MAX_FIELDS - 2)
        return leat_error(LEAT_EINVAL,
                          "a sample has %d fields: expected at most %d", n,
                          LEAT_MAX_FIELDS - 2);
    int status = leat__field_find_bytes(map->spec, n, leat_args_at(args, 0),
                                        &datum->field);
    for (int i = 0; i < n && !status; i++) {
        if (i != datum->field && (strcmp(map->spec[i].name, "data") == 0 ||
                                  strcmp(map->spec[i].name, "label") == 0))
            status = leat_error(LEAT_EINVAL,
                                "there is a field \"%s\" already: expected "
                                "another name, as select gives it",
                                map->spec[i].name);
    }
    if (status)
        return status;
    leat_field_spec *spec = &map->spec[datum->field];
    if (spec->dtype != LEAT_BYTES && !spec->varies)
        return leat_error(LEAT_EINVAL,
                          "field \"%s\" is %s: expected the bytes of a Datum",
                          spec->name, leat_dtype_name(spec->dtype));
    memmove(spec + 2, spec + 1, (size_t)(n - datum->field - 1) * sizeof(*spec));
    spec[0] = data_spec(types[leat_args_number(args, "type")]);
    spec[1] = label_spec(leat_args_number(args, "labels"));
    map->nspec++;
    return LEAT_OK;
}

static int datum_open(const leat_open *open, leat_reader **out)
{
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &datum_kind, sizeof(datum_reader));
    if (status)
        return status;
    status = set_specs((datum_reader *)map, open->args);
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument datum_arguments[] = {
    {.name = "field",
     .positional = 1,
     .help = "the serialized Datum; the first field of bytes"},
    {.name = "type",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "UINT8",
     .words = "UINT8|FLOAT32|ENCODED",
     .help = "of data: pixels of data, of float_data, or an encoded image"},
    {.name = "labels",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .min = -1,
     .max = INT32_MAX,
     .help = "how many labels are in float_data, -1 if it varies; 0: the "
             "class"},
    {0},
};

const leat_reader_type leat__datum_type = {
    .size = sizeof(leat_reader_type),
    .name = "datum",
    .help = "Caffe's Datum as data and label",
    .arguments = datum_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = datum_open,
};

int leat_pipeline_datum(leat_pipeline **out, leat_pipeline *upstream,
                        const char *field, leat_dtype type, int labels)
{
    static const char *const words[] = {"UINT8", "FLOAT32", "ENCODED"};
    char rest[64], *text;
    int i = 0;
    while (i < 3 && types[i] != type)
        i++;
    if (i == 3)
        return leat_error(LEAT_EINVAL,
                          "datum: type is %d: expected LEAT_UINT8, "
                          "LEAT_FLOAT32, or LEAT_BYTES for encoded images",
                          (int)type);
    snprintf(rest, sizeof(rest), "type=%s,labels=%d", words[i], labels);
    int status = leat__field_write_argument(&text, field, rest);
    if (status)
        return status;
    status = leat_pipeline_create(out, &leat__datum_type, text, NULL, NULL,
                                  &upstream, 1);
    leat__free(text);
    return status;
}
