#include "support/example_oracle.h"

#include "data/example_fields.h"
#include "example.pb-c.h"

#include <leat/example.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that grow. */
typedef struct bytes {
    unsigned char *at;
    size_t size;
} bytes;

static void append(bytes *to, const void *from, size_t size)
{
    to->at = realloc(to->at, to->size + size + 1);
    if (!to->at)
        abort();
    if (size > 0)
        memcpy(to->at + to->size, from, size);
    to->size += size;
}

static void append_int(bytes *to, size_t value)
{
    int64_t number = (int64_t)value;
    append(to, &number, sizeof(number));
}

/* Appends a field of wire type bytes. */
static void append_field(bytes *to, int number, const bytes *content)
{
    unsigned char head[16];
    unsigned char *end = leat__wire_put_tag(head, number, LEAT__WIRE_BYTES);
    end = leat__wire_put_varint(end, content->size);
    append(to, head, (size_t)(end - head));
    append(to, content->at, content->size);
}

/* ---- The entries that the plan asks for --------------------------------- */

typedef struct entries {
    const leat__example_plan *plan;
    bytes last[LEAT_MAX_FIELDS]; /* of each feature's key; views */
    int is_malformed;
} entries;

static leat__wire wire_of(const void *at, size_t size)
{
    leat__wire wire;
    leat__wire_init(&wire, at, size);
    return wire;
}

static void note_entry(entries *all, int is_list, leat__wire_field *entry)
{
    leat__wire wire = wire_of(entry->bytes, entry->size);
    leat__wire_field field, key = {.size = 0};
    int status;
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        if (field.number != 1)
            continue;
        all->is_malformed |= field.type != LEAT__WIRE_BYTES;
        if (field.type == LEAT__WIRE_BYTES)
            key = field;
    }
    all->is_malformed |= status != LEAT_END;
    for (int i = 0; i < all->plan->n; i++) {
        const char *name = all->plan->feature[i].name;
        if (all->plan->feature[i].is_step == is_list &&
            strlen(name) == key.size && !memcmp(name, key.bytes, key.size))
            all->last[i] =
                (bytes){(unsigned char *)(uintptr_t)entry->bytes, entry->size};
    }
}

static void note_entries(entries *all, const void *message, size_t size,
                         int is_sequence)
{
    leat__wire wire = wire_of(message, size);
    leat__wire_field map, entry;
    int status, inner = LEAT_END;
    while ((status = leat__wire_next(&wire, &map)) == LEAT_OK) {
        if (map.number != 1 && (map.number != 2 || !is_sequence))
            continue;
        all->is_malformed |= map.type != LEAT__WIRE_BYTES;
        if (map.type != LEAT__WIRE_BYTES)
            continue;
        leat__wire in = wire_of(map.bytes, map.size);
        while ((inner = leat__wire_next(&in, &entry)) == LEAT_OK) {
            if (entry.number != 1)
                continue;
            all->is_malformed |= entry.type != LEAT__WIRE_BYTES;
            if (entry.type == LEAT__WIRE_BYTES)
                note_entry(all, map.number == 2, &entry);
        }
        all->is_malformed |= inner != LEAT_END;
    }
    all->is_malformed |= status != LEAT_END;
}

/* Whether a field's tag has more than the five bytes that protobuf-c reads. */
static int has_long_tag(const leat__wire *wire)
{
    int n = 0;
    while (n < 5 && wire->end - wire->at > n && wire->at[n] >= 0x80)
        n++;
    return n == 5;
}

/* Whether protobuf-c reads a message of this depth in its own way. 0: a map's
 * entry of a Feature; 1: of a FeatureList; 2: the list; 3: the Feature; 4: its
 * values. */
static int is_odd(int level, const void *at, size_t size)
{
    leat__wire wire = wire_of(at, size);
    leat__wire_field field;
    int kinds = 0, values = 0, odd = has_long_tag(&wire), status;
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        odd |= field.type == LEAT__WIRE_GROUP || has_long_tag(&wire);
        if (field.type != LEAT__WIRE_BYTES)
            continue;
        if (level <= 1 && field.number == 2) {
            values++;
            odd |= is_odd(level == 0 ? 3 : 2, field.bytes, field.size);
        }
        if (level == 2 && field.number == 1)
            odd |= is_odd(3, field.bytes, field.size);
        if (level == 3 && field.number <= 3) {
            kinds++;
            odd |= is_odd(4, field.bytes, field.size);
        }
    }
    odd |= status < 0 && strstr(leat_last_error(), "that number") != NULL;
    return odd || kinds > 1 || (values > 1 && level == 0);
}

/* ---- What the plan makes of protobuf-c's messages ----------------------- */

typedef struct model {
    bytes values, ends, groups;
    size_t steps;
} model;

static size_t row_of(const leat__planned_feature *feature)
{
    size_t row = 1;
    for (int i = feature->varies; i < feature->ndim; i++)
        row *= (size_t)feature->shape[i];
    return row;
}

static int fits(const leat__planned_feature *feature, size_t n)
{
    return feature->varies ? n % row_of(feature) == 0 : n == row_of(feature);
}

/* Whether the step, or feature, is as planned; appends it. */
static int add_step(model *to, const leat__planned_feature *feature,
                    const Tensorflow__Feature *from)
{
    size_t n = 0, before = to->values.size;
    switch (from->kind_case) {
    case TENSORFLOW__FEATURE__KIND_INT64_LIST:
        n = from->int64_list->n_value;
        if (feature->dtype != LEAT_INT64)
            return 0;
        append(&to->values, from->int64_list->value, n * 8);
        break;
    case TENSORFLOW__FEATURE__KIND_FLOAT_LIST:
        n = from->float_list->n_value;
        if (feature->dtype != LEAT_FLOAT32)
            return 0;
        append(&to->values, from->float_list->value, n * 4);
        break;
    case TENSORFLOW__FEATURE__KIND_BYTES_LIST:
        n = from->bytes_list->n_value;
        if (feature->dtype != LEAT_BYTES && feature->dtype != LEAT_UINT8)
            return 0;
        for (size_t i = 0; i < n; i++) {
            append(&to->values, from->bytes_list->value[i].data,
                   from->bytes_list->value[i].len);
            append_int(&to->ends, to->values.size);
        }
        break;
    default:
        if (!feature->varies || feature->dtype == LEAT_UINT8)
            return 0;
    }
    to->steps++;
    size_t size = feature->strings ? 1 : leat_dtype_size(feature->dtype);
    append_int(&to->groups, feature->strings
                                ? to->ends.size / 8 - 1
                                : to->values.size / size / row_of(feature));
    if (feature->dtype == LEAT_UINT8)
        return n == 1 && fits(feature, to->values.size - before);
    return fits(feature, n);
}

static int add_default(model *to, const leat__planned_feature *feature)
{
    if (!feature->is_optional && (feature->is_step || !feature->varies))
        return 0;
    append(&to->values, feature->initial, feature->initial_bytes);
    return 1;
}

static int add_lists(model *to, const leat__planned_feature *feature,
                     const Tensorflow__FeatureLists *lists)
{
    const Tensorflow__FeatureList *list = NULL;
    int is_found = 0;
    for (size_t i = 0; lists && i < lists->n_feature_list; i++)
        if (lists->feature_list[i]->key &&
            !strcmp(lists->feature_list[i]->key, feature->name)) {
            list = lists->feature_list[i]->value;
            is_found = 1;
        }
    if (!is_found)
        return add_default(to, feature);
    int good = 1;
    for (size_t i = 0; list && i < list->n_feature; i++)
        good &= add_step(to, feature, list->feature[i]);
    return good;
}

static int add_feature(model *to, const leat__planned_feature *feature,
                       const Tensorflow__Features *features)
{
    const Tensorflow__Feature *found = NULL;
    for (size_t i = 0; features && i < features->n_feature; i++)
        if (features->feature[i]->key &&
            !strcmp(features->feature[i]->key, feature->name))
            found = features->feature[i]->value;
    if (!found || !found->kind_case)
        return add_default(to, feature);
    return add_step(to, feature, found);
}

static int is_same(const leat_field *field, const bytes *expected, int as_ints)
{
    if (field->bytes != expected->size ||
        (expected->size && memcmp(field->data, expected->at, expected->size)))
        return 0;
    return !as_ints || field->shape[0] == (int64_t)(expected->size / 8);
}

/* Whether the shape is the field's, and its product the number of elements. */
static int has_shape(const leat_field *field, const leat_field_spec *spec)
{
    size_t bytes = leat_dtype_size(field->dtype);
    for (int i = 0; i < field->ndim; i++) {
        bytes *= (size_t)field->shape[i];
        if (spec->shape[i] >= 0 && spec->shape[i] != field->shape[i])
            return 0;
    }
    return field->dtype == spec->dtype && field->ndim == spec->ndim &&
           bytes == field->bytes;
}

static int compare_feature(const leat__example_plan *plan, int i,
                           const model *expected, const leat_sample *sample)
{
    const leat__planned_feature *feature = &plan->feature[i];
    int at = feature->first_field;
    const leat_field *field = &sample->field[at];
    int good = is_same(field, &expected->values, 0) &&
               has_shape(field, &plan->spec[at]);
    if (feature->strings) {
        good &= is_same(field + 1, &expected->ends, 1);
        good &= has_shape(field + 1, &plan->spec[at + 1]);
    }
    if (feature->groups)
        good &= is_same(field + 1 + feature->strings, &expected->groups, 1);
    return good;
}

/* Compares all fields with both maps. Whether protobuf-c's are as planned, or
 * below 0 where leat's differ. */
static int compare_all(const leat__example_plan *plan,
                       const Tensorflow__SequenceExample *oracle,
                       const leat_sample *sample, int status)
{
    int is_planned = 1;
    for (int i = 0; i < plan->n && is_planned; i++) {
        const leat__planned_feature *feature = &plan->feature[i];
        model expected = {0};
        append_int(&expected.ends, 0);
        append_int(&expected.groups, 0);
        is_planned = feature->is_step
                         ? add_lists(&expected, feature, oracle->feature_lists)
                         : add_feature(&expected, feature, oracle->context);
        if (is_planned && !status &&
            !compare_feature(plan, i, &expected, sample))
            is_planned = -1 - i;
        free(expected.values.at);
        free(expected.ends.at);
        free(expected.groups.at);
    }
    return is_planned;
}

static oracle_verdict judge(const leat__example_plan *plan, const bytes *kept,
                            const leat_sample *sample, int status,
                            const char **what)
{
    static char line[256];
    Tensorflow__SequenceExample *oracle =
        tensorflow__sequence_example__unpack(NULL, kept->size, kept->at);
    int planned = oracle ? compare_all(plan, oracle, sample, status) : 0;
    if (oracle)
        tensorflow__sequence_example__free_unpacked(oracle, NULL);
    if (planned < 0) {
        snprintf(line, sizeof(line), "feature %s has other values",
                 plan->feature[-1 - planned].name);
        *what = line;
        return ORACLE_DISAGREES;
    }
    if (planned == !status)
        return planned ? ORACLE_BOTH_READ : ORACLE_BOTH_REFUSE;
    snprintf(line, sizeof(line), "protobuf-c %s it, leat %.150s",
             planned ? "reads" : "refuses", status ? *what : "reads it");
    *what = line;
    return ORACLE_DISAGREES;
}

oracle_verdict example_oracle_compare(const leat__example_plan *plan,
                                      int is_sequence, const void *message,
                                      size_t size, const char **what)
{
    static leat_sample sample;
    entries all = {.plan = plan};
    bytes kept = {NULL, 0};
    int odd = 0;
    leat_sample_clear(&sample);
    const int64_t shape[] = {(int64_t)size};
    if (leat_sample_set(&sample, 0, LEAT_BYTES, 1, shape, message))
        abort();
    int status = leat__example_fields_read(plan, &sample, 0, 0);
    *what = status ? leat_last_error() : "it is read";
    if (status && strstr(*what, "that number"))
        return ORACLE_IS_NONE;
    note_entries(&all, message, size, is_sequence);
    append(&kept, "", 0);
    for (int i = 0; i < plan->n; i++) {
        bytes map = {NULL, 0};
        if (!all.last[i].at)
            continue;
        int is_step = plan->feature[i].is_step;
        odd |= is_odd(is_step, all.last[i].at, all.last[i].size);
        append_field(&map, 1, &all.last[i]);
        append_field(&kept, 1 + is_step, &map);
        free(map.at);
    }
    oracle_verdict verdict = ORACLE_IS_NONE;
    if (all.is_malformed && !status)
        *what = "leat reads a malformed message", verdict = ORACLE_DISAGREES;
    else if (all.is_malformed)
        verdict = ORACLE_BOTH_REFUSE;
    else if (!odd)
        verdict = judge(plan, &kept, &sample, status, what);
    free(kept.at);
    return verdict;
}

static int is_found(const leat_example_feature *feature, const void *message,
                    size_t size)
{
    const leat__feature_key key = {
        .map =
            feature->is_sequence ? LEAT__EXAMPLE_LISTS : LEAT__EXAMPLE_FEATURES,
        .name = feature->name,
        .size = feature->name_size,
    };
    leat__feature_entry entry;
    return key.size == 0 ||
           (!leat__example_find(message, size, &key, 1, &entry) &&
            entry.at + entry.size <= size && entry.size > key.size);
}

static int is_sound(const leat_example_feature *feature,
                    const unsigned char *message, size_t size)
{
    const unsigned char *name = (const unsigned char *)feature->name;
    int is_inside =
        feature->name_size == 0 ||
        (name >= message && name + feature->name_size <= message + size);
    int is_typed = feature->dtype == LEAT_BYTES ||
                   feature->dtype == LEAT_FLOAT32 ||
                   feature->dtype == LEAT_INT64;
    return is_inside && is_typed && feature->fewest >= 0 &&
           feature->fewest <= feature->most && feature->steps >= 1 &&
           (feature->is_sequence || feature->steps == 1);
}

int example_oracle_lists(const void *message, size_t size, const char **what)
{
    leat_example_feature feature[16];
    int64_t found, counted;
    *what = "the number of features depends on the room for them";
    int status = leat_example_features(feature, 16, &found, message, size);
    if (leat_example_features(NULL, 0, &counted, message, size) != status ||
        counted != found)
        return 0;
    *what = "a feature that cannot be is listed";
    for (int i = 0; i < 16 && i < found; i++)
        if (!is_sound(&feature[i], message, size) ||
            (!status && !is_found(&feature[i], message, size)))
            return 0;
    return 1;
}
