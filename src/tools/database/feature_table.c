#include "tools/database/feature_table.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/database/inspection.h"

#include <leat/example.h>
#include <leat/ext/arguments.h>

#include <stdlib.h>
#include <string.h>

/* Of one record. */
enum { FEATURES = 256 };

static json_t *need(json_t *made)
{
    if (!made)
        message_fail("out of memory");
    return made;
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void set(json_t *object, const char *name, json_int_t value)
{
    if (json_object_set_new(object, name, json_integer(value)))
        message_fail("out of memory");
}

/* The figures of a feature; NULL: it is one too many. */
static json_t *find(struct feature_table *table,
                    const leat_example_feature *feature)
{
    char name[KEY_TEXT], key[KEY_TEXT + 32];
    const char *type = leat_dtype_name(feature->dtype);
    inspection_key(name, feature->name, feature->name_size, 0);
    snprintf(key, sizeof(key), "%s%s %s", feature->is_sequence ? "[]" : "",
             type, name);
    json_t *figures = json_object_get(table->feature, key);
    if (figures)
        return figures;
    table->has_more |= json_object_size(table->feature) == FEATURE_TABLE_MAX;
    if (table->has_more)
        return NULL;
    figures =
        need(json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I}", "name", name,
                       "type", type, "sequence", (int)feature->is_sequence,
                       "fewest", (json_int_t)INT64_MAX, "most", (json_int_t)0,
                       "records", (json_int_t)0, "last", (json_int_t)0));
    if (json_object_set_new(table->feature, key, figures))
        message_fail("out of memory");
    return figures;
}

static void add(struct feature_table *table,
                const leat_example_feature *feature)
{
    json_t *figures = find(table, feature);
    if (!figures)
        return;
    if (feature->steps > 0 && feature->fewest < number(figures, "fewest"))
        set(figures, "fewest", feature->fewest);
    if (feature->most > number(figures, "most"))
        set(figures, "most", feature->most);
    if (number(figures, "last") == table->records)
        return;
    set(figures, "last", table->records);
    set(figures, "records", number(figures, "records") + 1);
}

void feature_table_add(struct feature_table *table, const leat_field *record)
{
    static leat_example_feature feature[FEATURES];
    int64_t found;
    if (leat_example_features(feature, FEATURES, &found, record->data,
                              record->bytes) ||
        found == 0)
        return;
    if (!table->feature)
        table->feature = need(json_object());
    table->records++;
    table->has_more |= found > FEATURES;
    for (int64_t i = 0; i < found && i < FEATURES; i++)
        add(table, &feature[i]);
}

/* "label=int64", "x=float32[3]", "ids=[int64]?". */
static json_t *argument(const struct feature_table *table,
                        const json_t *figures)
{
    char name[2 * KEY_TEXT + 8], text[sizeof(name) + 64], shape[32] = "";
    bool is_sequence = json_is_true(json_object_get(figures, "sequence"));
    bool is_everywhere = number(figures, "records") == table->records;
    json_int_t most = number(figures, "most");
    bool is_fixed = number(figures, "fewest") == most && most > 0;
    if (!is_fixed || (!is_sequence && !is_everywhere))
        snprintf(shape, sizeof(shape), "[-1]");
    else if (most > 1)
        snprintf(shape, sizeof(shape), "[%lld]", (long long)most);
    leat_args_escape(json_string_value(json_object_get(figures, "name")), name,
                     sizeof(name));
    snprintf(text, sizeof(text), is_sequence ? "%s=[%s%s]%s" : "%s=%s%s%s",
             name, json_string_value(json_object_get(figures, "type")), shape,
             is_sequence && !is_everywhere ? "?" : "");
    return need(json_string(text));
}

static json_t *describe(const struct feature_table *table,
                        const json_t *figures)
{
    json_int_t most = number(figures, "most");
    json_int_t fewest = number(figures, "fewest");
    return need(json_pack("{s:O, s:O, s:O, s:[I, I], s:I, s:o}", "name",
                          json_object_get(figures, "name"), "type",
                          json_object_get(figures, "type"), "sequence",
                          json_object_get(figures, "sequence"), "values",
                          fewest < most ? fewest : most, most, "records",
                          number(figures, "records"), "argument",
                          argument(table, figures)));
}

static int compare(const void *a, const void *b)
{
    const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;
    int order = strverscmp(json_string_value(json_object_get(one, "name")),
                           json_string_value(json_object_get(other, "name")));
    return order ? order
                 : strcmp(json_string_value(json_object_get(one, "type")),
                          json_string_value(json_object_get(other, "type")));
}

json_t *feature_table_json(const struct feature_table *table)
{
    json_t *feature[FEATURE_TABLE_MAX], *array = need(json_array()), *figures;
    const char *key;
    size_t n = 0;
    json_object_foreach(table->feature, key, figures)
    {
        feature[n++] = figures;
    }
    qsort(feature, n, sizeof(feature[0]), compare);
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(array, describe(table, feature[i])))
            message_fail("out of memory");
    return array;
}

void feature_table_print(const struct feature_table *table)
{
    json_t *array = feature_table_json(table), *feature;
    bool has_sequence = false;
    size_t i;
    json_array_foreach(array, i, feature)
    {
        has_sequence |= json_is_true(json_object_get(feature, "sequence"));
    }
    if (json_array_size(array) > 0)
        printf("features, as %s takes them:\n",
               has_sequence ? "sequence_example" : "example");
    json_array_foreach(array, i, feature)
    {
        printf(
            "  %-12s %lld\n",
            plain_text(json_string_value(json_object_get(feature, "argument"))),
            (long long)number(feature, "records"));
    }
    if (table->has_more)
        printf("  ...\n");
    json_decref(array);
}

void feature_table_finish(struct feature_table *table)
{
    json_decref(table->feature);
}
