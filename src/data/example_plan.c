#include "data/example_plan.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The text of a feature ---------------------------------------------- */

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

/* ---- Defaults ----------------------------------------------------------- */

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

/* ---- The plan ----------------------------------------------------------- */

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

/* ---- Reading a message -------------------------------------------------- */

/* A feature as it is in a message. */
typedef struct found_feature {
    leat__feature_entry entry; /* size 0: it is missing */
    size_t steps;
    size_t count; /* values of all steps */
    size_t bytes; /* of kind bytes, in all */
    bool is_view; /* all values lie in one piece, */
    size_t view;  /* at this offset of the message */
    /* Offsets in the memory taken; of what the feature does not have, none. */
    size_t values, ends, groups;
} found_feature;

/* One sample's reading. */
typedef struct reading {
    const leat__example_plan *plan;
    const unsigned char *message;
    found_feature found[LEAT_MAX_FIELDS];
} reading;

/* LEAT_EDATA: what the record has in place of the feature. step below 0: it is
 * not one of a sequence's. */
static int refuse(const leat__planned_feature *feature, int64_t step,
                  const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

static int refuse(const leat__planned_feature *feature, int64_t step,
                  const char *format, ...)
{
    char found[128], where[40] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(found, sizeof(found), format, list);
    va_end(list);
    if (step >= 0)
        snprintf(where, sizeof(where), "step %lld: ", (long long)step);
    return leat_error(LEAT_EDATA, "feature \"%s\": %sexpected %s, found %s",
                      feature->name, where, feature->type, found);
}

#ifdef __clang_analyzer__
#define refuse(...) ((void)refuse(__VA_ARGS__), LEAT_EDATA)
#endif

static int malformed(const leat__planned_feature *feature, int status)
{
    return leat__error_context(status, "feature \"%s\"", feature->name);
}

/* A string's bytes as numbers. */
static int check_raw(const leat__planned_feature *feature,
                     const leat__feature_values *values, int64_t step)
{
    if (values->count != 1)
        return refuse(feature, step, "%zu strings", values->count);
    if (feature->varies ? values->bytes % feature->row == 0
                        : values->bytes == feature->row)
        return LEAT_OK;
    return refuse(feature, step, "%zu bytes", values->bytes);
}

/* Whether the values of a feature, or of a step, are those that the plan
 * expects. */
static int check_values(const leat__planned_feature *feature,
                        const leat__feature_values *values, int64_t step)
{
    if (values->kind == LEAT__FEATURE_NONE && feature->varies &&
        feature->dtype != LEAT_UINT8)
        return LEAT_OK;
    if (values->kind != feature->kind)
        return refuse(feature, step, "%s",
                      leat__feature_kind_name(values->kind));
    if (feature->dtype == LEAT_UINT8)
        return check_raw(feature, values, step);
    if (feature->varies ? values->count % feature->row == 0
                        : values->count == feature->row)
        return LEAT_OK;
    return refuse(feature, step, "%zu %s of kind %s", values->count,
                  values->count == 1 ? "value" : "values",
                  leat__feature_kind_name(values->kind));
}

static uint32_t map_of(const leat__planned_feature *feature)
{
    return feature->is_step ? LEAT__EXAMPLE_LISTS : LEAT__EXAMPLE_FEATURES;
}

static int measure_list(const reading *in, const leat__planned_feature *feature,
                        found_feature *found)
{
    leat__feature_iterator iterator;
    leat__wire step;
    int status;
    leat__feature_begin(&iterator, in->message, &found->entry,
                        LEAT__EXAMPLE_LISTS);
    while ((status = leat__feature_next(&iterator, &step)) == LEAT_OK) {
        leat__feature_values values = {0};
        status = leat__feature_add(&values, step);
        if (status)
            return malformed(feature, status);
        status = check_values(feature, &values, (int64_t)found->steps);
        if (status)
            return status;
        found->steps++;
        found->count += values.count;
        found->bytes += values.bytes;
    }
    return status == LEAT_END ? LEAT_OK : malformed(feature, status);
}

static int missing(const leat__planned_feature *feature, found_feature *found)
{
    found->entry.size = 0;
    if (feature->is_optional || (feature->varies && !feature->is_step))
        return LEAT_OK;
    return refuse(feature, -1, "none in the record");
}

static int measure(const reading *in, const leat__planned_feature *feature,
                   found_feature *found)
{
    leat__feature_iterator iterator;
    leat__wire piece;
    leat__feature_values values = {0};
    int status;
    if (found->entry.size == 0)
        return missing(feature, found);
    if (feature->is_step)
        return measure_list(in, feature, found);
    leat__feature_begin(&iterator, in->message, &found->entry,
                        LEAT__EXAMPLE_FEATURES);
    while ((status = leat__feature_next(&iterator, &piece)) == LEAT_OK) {
        status = leat__feature_add(&values, piece);
        if (status)
            return malformed(feature, status);
    }
    if (status != LEAT_END)
        return malformed(feature, status);
    if (values.kind == LEAT__FEATURE_NONE)
        return missing(feature, found);
    found->count = values.count;
    found->bytes = values.bytes;
    found->is_view = values.view != NULL;
    if (values.view)
        found->view = (size_t)(values.view - in->message);
    return check_values(feature, &values, -1);
}

/* The bytes of the field's values. */
static size_t value_bytes(const leat__planned_feature *feature,
                          const found_feature *found)
{
    return feature->kind == LEAT__FEATURE_BYTES
               ? found->bytes
               : found->count * leat_dtype_size(feature->dtype);
}

/* `bytes` after `*taken`, aligned to int64. Returns where they begin. */
static size_t reserve(size_t *taken, size_t bytes)
{
    size_t at = *taken;
    *taken += (bytes + 7) & ~(size_t)7;
    return at;
}

/* Lays out what is not a view. Returns the bytes to be taken. */
static size_t lay_out(reading *in)
{
    size_t taken = 0;
    for (int i = 0; i < in->plan->n; i++) {
        const leat__planned_feature *feature = &in->plan->feature[i];
        found_feature *found = &in->found[i];
        if (!found->is_view)
            found->values = reserve(&taken, value_bytes(feature, found));
        if (feature->strings)
            found->ends = reserve(&taken, (found->count + 1) * sizeof(int64_t));
        if (feature->groups)
            found->groups =
                reserve(&taken, (found->steps + 1) * sizeof(int64_t));
    }
    return taken;
}

/* Where the values of all steps so far end. */
typedef struct written {
    size_t steps, count, bytes;
} written;

/* The strings' ends in a step are those in the field, from now on. */
static void end_step(const leat__planned_feature *feature,
                     const leat__feature_values *values, int64_t *groups,
                     written *done)
{
    for (size_t i = 0; values->ends && i < values->count; i++)
        values->ends[i] += (int64_t)done->bytes;
    done->steps++;
    done->count += values->count;
    done->bytes += values->kind == LEAT__FEATURE_BYTES
                       ? values->bytes
                       : values->count * leat_dtype_size(feature->dtype);
    if (!groups)
        return;
    size_t elements = feature->dtype == LEAT_UINT8 ? done->bytes : done->count;
    groups[done->steps] =
        (int64_t)(elements / (feature->strings ? 1 : feature->row));
}

/* Writes the values of a feature and their offsets into `memory`. */
static int fill(const reading *in, const leat__planned_feature *feature,
                const found_feature *found, char *memory)
{
    leat__feature_iterator iterator;
    leat__wire piece;
    written done = {0};
    char *values_at = memory + found->values;
    size_t room = found->is_view ? 0 : value_bytes(feature, found);
    int64_t *ends =
        feature->strings ? (int64_t *)(void *)(memory + found->ends) : NULL;
    int64_t *groups =
        feature->groups ? (int64_t *)(void *)(memory + found->groups) : NULL;
    leat__feature_values values = {.out = values_at, .room = room};
    if (found->is_view && !ends && !groups)
        return LEAT_OK;
    if (ends)
        ends[0] = 0;
    if (groups)
        groups[0] = 0;
    if (found->entry.size == 0)
        return LEAT_OK;
    leat__feature_begin(&iterator, in->message, &found->entry, map_of(feature));
    int status;
    do {
        if (feature->is_step)
            values = (leat__feature_values){.out = values_at + done.bytes,
                                            .room = room - done.bytes};
        values.ends = ends ? ends + 1 + done.count : NULL;
        values.max_ends = found->count - done.count;
        status = leat__feature_next(&iterator, &piece);
        if (!status)
            status = leat__feature_add(&values, piece);
        if (!status && feature->is_step)
            end_step(feature, &values, groups, &done);
    } while (!status);
    return status == LEAT_END ? LEAT_OK : malformed(feature, status);
}

static void set_offsets(leat_field *field, const char *at, size_t n)
{
    *field = (leat_field){.dtype = LEAT_INT64,
                          .ndim = 1,
                          .shape = {(int64_t)n},
                          .data = at,
                          .bytes = n * sizeof(int64_t)};
}

/* Sets the feature's fields; `field` is its first one. */
static void set_fields(const reading *in, const leat__planned_feature *feature,
                       const found_feature *found, const char *memory,
                       leat_field *field)
{
    const leat_field_spec *spec = &in->plan->spec[feature->first_field];
    bool is_default = found->entry.size == 0 && feature->initial;
    field->dtype = spec->dtype;
    field->ndim = spec->ndim;
    memcpy(field->shape, spec->shape, sizeof(spec->shape));
    field->data = memory ? memory + found->values : NULL;
    if (found->is_view)
        field->data = in->message + found->view;
    field->bytes = value_bytes(feature, found);
    if (is_default) {
        field->data = feature->initial;
        field->bytes = feature->initial_bytes;
    }
    if (feature->strings)
        set_offsets(field + 1, memory + found->ends, found->count + 1);
    if (feature->groups)
        set_offsets(field + 1 + feature->strings, memory + found->groups,
                    found->steps + 1);
    if (spec->ndim == 0 || spec->shape[0] >= 0)
        return;
    size_t row = leat_dtype_size(spec->dtype);
    for (int i = 1; i < spec->ndim; i++)
        row *= (size_t)spec->shape[i];
    field->shape[0] = (int64_t)(field->bytes / row);
}

static int measure_all(reading *in, size_t size)
{
    const leat__example_plan *plan = in->plan;
    leat__feature_entry entry[LEAT_MAX_FIELDS];
    int status =
        leat__example_find(in->message, size, plan->key, plan->n, entry);
    for (int i = 0; i < plan->n && !status; i++) {
        in->found[i] = (found_feature){.entry = entry[i]};
        status = measure(in, &plan->feature[i], &in->found[i]);
    }
    return status;
}

/* Takes the memory, which may move the message. */
static int read_message(reading *in, leat_sample *sample,
                        const leat_field *message, leat_field field[])
{
    const leat__example_plan *plan = in->plan;
    in->message = message->data;
    int status = measure_all(in, message->bytes);
    if (status)
        return status;
    size_t bytes = lay_out(in);
    char *memory = NULL;
    if (bytes > 0) {
        memory = leat_sample_take(sample, bytes);
        if (!memory)
            return LEAT_ENOMEM;
        sample->stable = 0;
        in->message = message->data;
    }
    for (int i = 0; i < plan->n && !status; i++) {
        const leat__planned_feature *feature = &plan->feature[i];
        if (memory)
            status = fill(in, feature, &in->found[i], memory);
        set_fields(in, feature, &in->found[i], memory,
                   field + feature->first_field);
    }
    return status;
}

int leat__example_plan_read(const leat__example_plan *plan, leat_sample *sample,
                            int base, int message)
{
    reading in; /* 3 KiB, of which only what the plan has is written */
    leat_field field[LEAT_MAX_FIELDS];
    if (base + plan->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "a sample has %d fields, and %d are added: expected "
                          "at most %d in sum",
                          base, plan->nfields, LEAT_MAX_FIELDS);
    in.plan = plan;
    int status = read_message(&in, sample, &sample->field[message], field);
    if (status)
        return status;
    memcpy(&sample->field[base], field,
           (size_t)plan->nfields * sizeof(field[0]));
    sample->nfields = base + plan->nfields;
    return LEAT_OK;
}
