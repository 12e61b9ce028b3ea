/* example_plan.c: from the text of each feature to the fields it becomes. */
#include "data/example_plan.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"

#include <stdio.h>
#include <string.h>

/* A part of a text. */
typedef struct part {
    const char *at;
    size_t size;
} part;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static part trim(part text)
{
    while (text.size > 0 && is_blank(text.at[0]))
        text = (part){text.at + 1, text.size - 1};
    while (text.size > 0 && is_blank(text.at[text.size - 1]))
        text.size--;
    return text;
}

static char *copy_part(part text)
{
    char *copy = leat__alloc(text.size + 1);
    if (copy) {
        memcpy(copy, text.at, text.size);
        copy[text.size] = 0;
    }
    return copy;
}

static int bad_feature(const char *text, const char *expected)
{
    return leat_error(LEAT_EINVAL, "feature \"%s\": expected %s", text,
                      expected);
}

/* Splits `name=type?default`, or name=[type]?, of steps; *initial NULL: there
 * is no default. */
static int split(const char *text, part *name, part *type, bool *is_step,
                 const char **initial)
{
    const char *equals = strchr(text, '=');
    const char *end = equals ? strchr(equals, '?') : NULL;
    *initial = end ? end + 1 : NULL;
    if (!end)
        end = text + strlen(text);
    *name = trim((part){text, equals ? (size_t)(equals - text) : 0});
    if (name->size == 0)
        return bad_feature(text, "name=type, such as label=int64, "
                                 "x=float32[3]?0 or, in a sequence, "
                                 "ids=[int64]");
    *type = trim((part){equals + 1, (size_t)(end - equals - 1)});
    *is_step = type->size > 0 && type->at[0] == '[';
    if (!*is_step)
        return LEAT_OK;
    if (type->at[type->size - 1] != ']')
        return bad_feature(text, "a closing bracket after the type");
    *type = trim((part){type->at + 1, type->size - 2});
    return LEAT_OK;
}

static int read_dtype(leat__planned_feature *feature, const char *text,
                      part name)
{
    static const struct {
        leat_dtype dtype;
        leat__feature_kind kind;
    } types[] = {{LEAT_BYTES, LEAT__FEATURE_BYTES},
                 {LEAT_UINT8, LEAT__FEATURE_BYTES},
                 {LEAT_FLOAT32, LEAT__FEATURE_FLOATS},
                 {LEAT_INT64, LEAT__FEATURE_INTS}};
    for (int i = 0; i < 4; i++) {
        const char *known = leat_dtype_name(types[i].dtype);
        if (strlen(known) != name.size ||
            strncmp(known, name.at, name.size) != 0)
            continue;
        feature->dtype = types[i].dtype;
        feature->kind = types[i].kind;
        return LEAT_OK;
    }
    return bad_feature(text, "a type of bytes, int64, float32 or uint8 (the "
                             "bytes of a string as numbers)");
}

/* Dimensions such as 3x4 or -1x3, up to the closing bracket. */
static int read_shape(leat__planned_feature *feature, const char *text, part in)
{
    static const char expected[] =
        "a shape such as [3], [3x4] or, varying, [-1] or [-1x4], of "
        "at most 7 dimensions";
    int ndim = -1;
    if (in.size > 0 && in.at[in.size - 1] == ']')
        ndim = leat__shape_parse(in.at, in.size - 1, feature->shape);
    bool is_bad = ndim < 0 || ndim == LEAT_MAX_DIMS;
    feature->row = 1;
    feature->ndim = ndim;
    feature->varies = ndim > 0 && feature->shape[0] == -1;
    for (int i = feature->varies; i < ndim && !is_bad; i++)
        is_bad = feature->shape[i] < 1 ||
                 leat__multiply(feature->row, (size_t)feature->shape[i],
                                &feature->row) ||
                 feature->row > SIZE_MAX / 64;
    return is_bad ? bad_feature(text, expected) : LEAT_OK;
}

static int read_type(leat__planned_feature *feature, const char *text,
                     part type)
{
    const char *bracket = memchr(type.at, '[', type.size);
    size_t size = bracket ? (size_t)(bracket - type.at) : type.size;
    int status = read_dtype(feature, text, trim((part){type.at, size}));
    feature->row = 1;
    if (!status && bracket)
        status = read_shape(feature, text,
                            (part){bracket + 1, type.size - size - 1});
    if (status)
        return status;
    if (feature->dtype == LEAT_BYTES && feature->ndim > 1)
        return bad_feature(text, "strings in at most one dimension");
    if (feature->dtype == LEAT_UINT8 && feature->ndim == 0)
        return bad_feature(text, "a shape after uint8");
    bool is_list = feature->dtype == LEAT_BYTES && feature->ndim == 1;
    feature->strings =
        is_list || (feature->dtype == LEAT_BYTES && feature->is_step);
    feature->groups = feature->is_step && (is_list || feature->varies);
    return LEAT_OK;
}

/* Reads a number of the feature's type. */
static bool read_number(const leat__planned_feature *feature, part text,
                        void *out)
{
    double number;
    int64_t integer;
    if (feature->dtype == LEAT_FLOAT32) {
        if (!leat__decimal_double(text.at, text.size, &number))
            return false;
        *(float *)out = (float)number;
        return true;
    }
    if (!leat__decimal_integer(text.at, text.size, &integer))
        return false;
    if (feature->dtype == LEAT_INT64) {
        *(int64_t *)out = integer;
        return true;
    }
    *(unsigned char *)out = (unsigned char)integer;
    return integer >= 0 && integer <= 255;
}

/* All numbers of a default. Their number, or -1. */
static int64_t read_numbers(const leat__planned_feature *feature,
                            const char *text, char *out)
{
    size_t size = leat_dtype_size(feature->dtype);
    int64_t n = 0;
    for (;;) {
        while (is_blank(*text))
            text++;
        if (!*text)
            return n;
        size_t length = strcspn(text, " \t\r\n");
        if (!read_number(feature, (part){text, length},
                         out + (size_t)n++ * size))
            return -1;
        text += length;
    }
}

/* One number is that of all elements. */
static int read_initial_numbers(leat__planned_feature *feature,
                                const char *text, const char *initial)
{
    size_t size = leat_dtype_size(feature->dtype);
    size_t most = strlen(initial) / 2 + 1;
    size_t all = feature->varies ? most : feature->row;
    char *values = leat__alloc_zero(all > most ? all : most, size);
    if (!values)
        return LEAT_ENOMEM;
    feature->initial = values;
    int64_t n = read_numbers(feature, initial, values);
    if (n == 1 && !feature->varies)
        for (; n < (int64_t)all; n++)
            memcpy(values + (size_t)n * size, values, size);
    bool fits = feature->varies ? n >= 0 && (size_t)n % feature->row == 0
                                : n == (int64_t)all;
    if (!fits)
        return bad_feature(text, "a default of one number for all elements, "
                                 "or as many as its shape has, with blanks "
                                 "between them");
    feature->initial_count = (size_t)n;
    feature->initial_bytes = (size_t)n * size;
    return LEAT_OK;
}

static int read_initial(leat__planned_feature *feature, const char *text,
                        const char *initial)
{
    feature->is_optional = true;
    if (feature->is_step || feature->strings) {
        if (!initial[0] && feature->is_step)
            return LEAT_OK;
        return bad_feature(text, "no default, as it has several strings, or "
                                 "for a sequence an empty one");
    }
    if (feature->dtype != LEAT_BYTES)
        return read_initial_numbers(feature, text, initial);
    feature->initial = leat__strdup(initial);
    feature->initial_count = 1;
    feature->initial_bytes = strlen(initial);
    return feature->initial ? LEAT_OK : LEAT_ENOMEM;
}

/* Errors: LEAT_EINVAL, LEAT_ENOMEM. */
static int add_field(leat__example_plan *plan, const char *name,
                     const char *suffix, leat_field_spec **out)
{
    size_t size = strlen(name) + strlen(suffix) + 1;
    if (plan->nfields == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "more than %d fields, offsets included",
                          LEAT_MAX_FIELDS);
    char *full = leat__alloc(size);
    if (!full)
        return LEAT_ENOMEM;
    snprintf(full, size, "%s%s", name, suffix);
    plan->field_name[plan->nfields] = full;
    *out = &plan->spec[plan->nfields++];
    **out = (leat_field_spec){.name = full};
    for (int i = 0; i < plan->nfields - 1; i++)
        if (strcmp(plan->field_name[i], full) == 0)
            return leat_error(LEAT_EINVAL, "there are two fields \"%s\"", full);
    return LEAT_OK;
}

static void set_shape(leat_field_spec *spec,
                      const leat__planned_feature *feature)
{
    spec->dtype = feature->strings ? LEAT_UINT8 : feature->dtype;
    spec->shape[0] = -1;
    spec->ndim = 1;
    if (feature->dtype == LEAT_BYTES)
        return;
    bool has_steps = feature->is_step && !feature->varies;
    spec->ndim = feature->ndim + has_steps;
    for (int i = 0; i < feature->ndim; i++)
        spec->shape[i + has_steps] = feature->shape[i];
}

/* Of the field before. */
static int add_offsets(leat__example_plan *plan, const char *name,
                       const char *suffix)
{
    leat_field_spec *spec;
    int status = add_field(plan, name, suffix, &spec);
    if (status)
        return status;
    spec->dtype = LEAT_INT64;
    spec->ndim = 1;
    spec->shape[0] = -1;
    spec->offsets_of = plan->field_name[plan->nfields - 2];
    return LEAT_OK;
}

/* The feature's field, and those of its offsets. */
static int add_fields(leat__example_plan *plan, leat__planned_feature *feature)
{
    leat_field_spec *spec;
    feature->first_field = plan->nfields;
    int status = add_field(plan, feature->name, "", &spec);
    if (status)
        return status;
    set_shape(spec, feature);
    if (feature->strings)
        status = add_offsets(plan, feature->name, ".offsets");
    if (!status && feature->groups)
        status = add_offsets(plan, feature->name,
                             feature->strings ? ".offsets.1" : ".offsets");
    return status;
}

int leat__example_plan_add(leat__example_plan *plan, const char *text)
{
    part name, type;
    const char *initial;
    bool is_step;
    int status = split(text, &name, &type, &is_step, &initial);
    if (status)
        return status;
    if (plan->n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "more than %d features",
                          LEAT_MAX_FIELDS);
    leat__planned_feature *feature = &plan->feature[plan->n++];
    *feature = (leat__planned_feature){.is_step = is_step};
    feature->name = copy_part(name);
    feature->type = copy_part(type);
    if (!feature->name || !feature->type)
        return LEAT_ENOMEM;
    plan->key[plan->n - 1] = (leat__feature_key){
        is_step ? LEAT__EXAMPLE_LISTS : LEAT__EXAMPLE_FEATURES, feature->name,
        name.size};
    status = read_type(feature, text, type);
    if (!status && initial)
        status = read_initial(feature, text, initial);
    return status ? status : add_fields(plan, feature);
}

void leat__example_plan_finish(leat__example_plan *plan)
{
    for (int i = 0; i < plan->n; i++) {
        leat__free(plan->feature[i].name);
        leat__free(plan->feature[i].type);
        leat__free(plan->feature[i].initial);
    }
    for (int i = 0; i < plan->nfields; i++)
        leat__free(plan->field_name[i]);
    *plan = (leat__example_plan){0};
}
