/*
 * Two passes over the message: the first finds each feature, checks it and
 * measures its values, the second writes those that are no views of the message
 * into memory taken in one piece.
 */
#include "data/example_fields.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of the names that an error lists. */
enum { NAMES = 160 };

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
    size_t size; /* of the message */
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
    char found[NAMES + 64], where[40] = "";
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

static int missing(const reading *in, const leat__planned_feature *feature,
                   found_feature *found)
{
    char names[NAMES];
    found->entry.size = 0;
    if (feature->is_optional || (feature->varies && !feature->is_step))
        return LEAT_OK;
    leat__example_names(names, sizeof(names), in->message, in->size,
                        map_of(feature));
    return refuse(feature, -1, "none in the record, which has %s",
                  names[0] ? names : "no features");
}

static int measure(const reading *in, const leat__planned_feature *feature,
                   found_feature *found)
{
    leat__feature_iterator iterator;
    leat__wire piece;
    leat__feature_values values = {0};
    int status;
    if (found->entry.size == 0)
        return missing(in, feature, found);
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
        return missing(in, feature, found);
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

/* Whether a step has more than was measured, as what is mapped may change. */
static bool is_more(const leat__planned_feature *feature,
                    const found_feature *found, const written *done,
                    const leat__feature_values *values)
{
    size_t bytes = values->kind == LEAT__FEATURE_BYTES
                       ? values->bytes
                       : values->count * leat_dtype_size(feature->dtype);
    return done->steps == found->steps ||
           values->count > found->count - done->count ||
           bytes > value_bytes(feature, found) - done->bytes;
}

static bool is_as_measured(const leat__planned_feature *feature,
                           const found_feature *found, const written *done,
                           const leat__feature_values *values)
{
    if (feature->is_step)
        return done->steps == found->steps && done->count == found->count &&
               done->bytes == value_bytes(feature, found);
    return values->count == found->count && values->bytes == found->bytes;
}

static int changed(const leat__planned_feature *feature)
{
    return refuse(feature, -1, "other values than a moment before");
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
            values = (leat__feature_values){
                .out = values_at + done.bytes,
                .room = found->is_view ? 0 : room - done.bytes};
        values.ends = ends ? ends + 1 + done.count : NULL;
        values.max_ends = found->count - done.count;
        status = leat__feature_next(&iterator, &piece);
        if (!status)
            status = leat__feature_add(&values, piece);
        if (!status && feature->is_step &&
            is_more(feature, found, &done, &values))
            return changed(feature);
        if (!status && feature->is_step)
            end_step(feature, &values, groups, &done);
    } while (!status);
    if (status != LEAT_END)
        return malformed(feature, status);
    return is_as_measured(feature, found, &done, &values) ? LEAT_OK
                                                          : changed(feature);
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

static int measure_all(reading *in)
{
    const leat__example_plan *plan = in->plan;
    leat__feature_entry entry[LEAT_MAX_FIELDS];
    int status =
        leat__example_find(in->message, in->size, plan->key, plan->n, entry);
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
    in->size = message->bytes;
    int status = measure_all(in);
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

int leat__example_fields_read(const leat__example_plan *plan,
                              leat_sample *sample, int base, int message)
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
