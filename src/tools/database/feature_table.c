#include "tools/database/feature_table.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/database/inspection.h"

#include <leat/ext/arguments.h>

#include <stdlib.h>
#include <string.h>

/* Of one record. */
enum { FEATURES = 256 };

static void *need(void *made)
{
    if (!made)
        message_fail("out of memory");
    return made;
}

static bool is_same(const struct feature *one,
                    const leat_example_feature *feature)
{
    return one->name_size == feature->name_size &&
           one->dtype == feature->dtype &&
           one->is_sequence == feature->is_sequence &&
           memcmp(one->name, feature->name, one->name_size) == 0;
}

static struct feature *append(struct feature_table *table,
                              const leat_example_feature *feature)
{
    if (!table->feature)
        table->feature =
            need(calloc(FEATURE_TABLE_MAX, sizeof(*table->feature)));
    struct feature *one = &table->feature[table->n++];
    *one = (struct feature){
        .name = need(malloc(feature->name_size + 1)),
        .name_size = feature->name_size,
        .dtype = feature->dtype,
        .is_sequence = feature->is_sequence,
        .fewest = INT64_MAX,
    };
    memcpy(one->name, feature->name, feature->name_size);
    one->name[one->name_size] = 0;
    return one;
}

/* Records have their features in one order, as a rule. NULL: there is no room.
 */
static struct feature *find(struct feature_table *table,
                            const leat_example_feature *feature)
{
    for (int i = 0; i < table->n; i++) {
        int at = table->next + i;
        at -= at < table->n ? 0 : table->n;
        if (!is_same(&table->feature[at], feature))
            continue;
        table->next = at + 1 < table->n ? at + 1 : 0;
        return &table->feature[at];
    }
    bool has_room =
        table->n < FEATURE_TABLE_MAX && feature->name_size <= KEY_MOST;
    table->has_more |= !has_room;
    return has_room ? append(table, feature) : NULL;
}

static void add(struct feature_table *table,
                const leat_example_feature *feature)
{
    struct feature *one = find(table, feature);
    if (!one)
        return;
    if (feature->fewest < one->fewest)
        one->fewest = feature->fewest;
    if (feature->most > one->most)
        one->most = feature->most;
    one->records += one->last != table->records;
    one->last = table->records;
}

void feature_table_add(struct feature_table *table, const leat_field *record)
{
    static leat_example_feature feature[FEATURES];
    int64_t found;
    if (leat_example_features(feature, FEATURES, &found, record->data,
                              record->bytes))
        return;
    /* One without features lacks those of all others. */
    table->records++;
    table->has_more |= found > FEATURES;
    for (int64_t i = 0; i < found && i < FEATURES; i++)
        add(table, &feature[i]);
}

/* "label=int64", "x=float32[3]", "ids=[int64]?". */
static json_t *argument(const struct feature_table *table,
                        const struct feature *one, const char *name)
{
    char escaped[2 * KEY_TEXT + 8], text[sizeof(escaped) + 64], shape[32] = "";
    bool is_everywhere = one->records == table->records;
    bool is_fixed = one->fewest == one->most && one->most > 0;
    if (!is_fixed || (!one->is_sequence && !is_everywhere))
        snprintf(shape, sizeof(shape), "[-1]");
    else if (one->most > 1)
        snprintf(shape, sizeof(shape), "[%lld]", (long long)one->most);
    leat_args_escape(name, escaped, sizeof(escaped));
    snprintf(text, sizeof(text), one->is_sequence ? "%s=[%s%s]%s" : "%s=%s%s%s",
             escaped, leat_dtype_name(one->dtype), shape,
             one->is_sequence && !is_everywhere ? "?" : "");
    return need(json_string(text));
}

static json_t *describe(const struct feature_table *table,
                        const struct feature *one)
{
    char name[KEY_TEXT];
    inspection_key(name, one->name, one->name_size, 0);
    return need(json_pack(
        "{s:s, s:s, s:b, s:[I, I], s:I, s:o}", "name", name, "type",
        leat_dtype_name(one->dtype), "sequence", (int)one->is_sequence,
        "values", (json_int_t)one->fewest, (json_int_t)one->most, "records",
        (json_int_t)one->records, "argument", argument(table, one, name)));
}

/* By name, then by type. */
static int compare(const void *a, const void *b)
{
    const struct feature *one = a, *other = b;
    int order = strverscmp(one->name, other->name);
    if (order)
        return order;
    return one->dtype != other->dtype
               ? (int)one->dtype - (int)other->dtype
               : (int)one->is_sequence - (int)other->is_sequence;
}

json_t *feature_table_json(struct feature_table *table)
{
    json_t *array = need(json_array());
    if (table->n > 0)
        qsort(table->feature, (size_t)table->n, sizeof(*table->feature),
              compare);
    for (int i = 0; i < table->n; i++)
        if (json_array_append_new(array, describe(table, &table->feature[i])))
            message_fail("out of memory");
    return array;
}

void feature_table_print(struct feature_table *table)
{
    json_t *array = feature_table_json(table), *feature;
    bool has_sequence = false;
    size_t i;
    for (int k = 0; k < table->n; k++)
        has_sequence |= table->feature[k].is_sequence;
    if (table->n > 0)
        printf("features, as %s takes them:\n",
               has_sequence ? "sequence_example" : "example");
    json_array_foreach(array, i, feature)
    {
        printf(
            "  %-12s %lld\n",
            plain_text(json_string_value(json_object_get(feature, "argument"))),
            (long long)table->feature[i].records);
    }
    if (table->has_more)
        printf("  ...\n");
    json_decref(array);
}

void feature_table_finish(struct feature_table *table)
{
    for (int i = 0; i < table->n; i++)
        free(table->feature[i].name);
    free(table->feature);
}
