/* command_compare.c: `leat compare`, whether two sides deliver the same. */
#include "tools/command.h"
#include "tools/database/inspection.h"
#include "tools/delivery/side.h"

#include <math.h>
#include <stdarg.h>

struct comparison {
    struct layer_source_options source;
    double tolerance;
    bool keys;
    int64_t differences; /* to list */
    bool json;

    struct progress progress;
    struct side side[2];
    const char *name[2]; /* of the sides */
    int64_t compared;    /* records that both have */
    int64_t elements;    /* of their fields */
    int64_t different;   /* records */
    int64_t values;      /* that differ */
    double greatest;     /* difference of values */
    int64_t extra[2];    /* records that only this side has */
    int64_t listed;      /* differences so far */
    json_t *list;        /* those of the JSON object */
};

static void print_value(const json_t *value)
{
    if (json_is_string(value))
        printf("%s", plain_text(json_string_value(value)));
    else
        json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
}

/* "record 3, key 00000003: data[0, 5, 6]: 1 in A, 2 in B" */
static void print_difference(const json_t *one)
{
    const char *key = json_string_value(json_object_get(one, "key"));
    const json_t *field = json_object_get(one, "field");
    const json_t *reason = json_object_get(one, "reason");
    const json_t *at = json_object_get(one, "at");
    printf("record %lld%s%s: ",
           (long long)json_integer_value(json_object_get(one, "record")),
           key ? ", key " : "", key ? plain_text(key) : "");
    if (field)
        print_value(field);
    if (json_array_size(at))
        print_value(at);
    printf("%s", field ? ": " : "");
    print_value(reason ? reason : json_object_get(one, "a"));
    if (!reason) {
        printf(" in A, ");
        print_value(json_object_get(one, "b"));
        printf(" in B");
    }
    printf("\n");
}

/* Any number may be listed: text takes no memory for those before. */
static void put_difference(struct comparison *comparison, json_t *one)
{
    if (comparison->json) {
        json_array_append(comparison->list, one);
        output_require_json();
        return;
    }
    progress_clear(&comparison->progress);
    print_difference(one);
    if (output_has_failed())
        output_require(output_flush());
}

/*
 * Lists a difference of the current records, unless enough are listed: of
 * `field`, unless it is NULL, the members of `rest`, which it frees.
 */
static void list_difference(struct comparison *comparison, const char *field,
                            json_t *rest)
{
    const struct side_record *record = &comparison->side[0].record;
    char key[KEY_TEXT];
    if (comparison->listed < comparison->differences) {
        if (record->key)
            inspection_key(key, record->key, record->key_size, record->key_cut);
        json_t *one =
            json_pack("{s:I, s:s*, s:o*}", "record", (json_int_t)record->number,
                      "key", record->key ? key : NULL, "field",
                      field ? output_text(field) : NULL);
        json_object_update(one, rest);
        output_require_json();
        put_difference(comparison, one);
        comparison->listed++;
        json_decref(one);
    }
    json_decref(rest);
}

__attribute__((format(printf, 3, 4))) static void
list_reason(struct comparison *comparison, const char *field,
            const char *format, ...)
{
    char reason[2 * KEY_TEXT + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    list_difference(comparison, field,
                    json_pack("{s:o}", "reason", output_text(reason)));
}

/* "1x28x28"; returns `out`. */
static const char *write_shape(const struct npy_header *header, char out[256])
{
    int at = sprintf(out, "%s", header->ndim ? "" : "a number");
    for (int i = 0; i < header->ndim && at < 200; i++)
        at += sprintf(out + at, "%s%lld", i ? "x" : "",
                      (long long)header->dim[i]);
    return out;
}

/* Whether the shapes are the same but for leading ones. */
static bool is_same_shape(const struct npy_header *a,
                          const struct npy_header *b)
{
    int i = 0, k = 0;
    while (i < a->ndim && a->dim[i] == 1)
        i++;
    while (k < b->ndim && b->dim[k] == 1)
        k++;
    return a->ndim - i == b->ndim - k &&
           !memcmp(a->dim + i, b->dim + k,
                   (size_t)(a->ndim - i) * sizeof(a->dim[0]));
}

/* The indices of element `i`. */
static json_t *indices_of(const struct npy_header *header, size_t i)
{
    json_t *indices = json_array();
    for (int axis = header->ndim - 1; axis >= 0; axis--) {
        size_t dim = (size_t)header->dim[axis];
        json_array_insert_new(indices, 0, json_integer((json_int_t)(i % dim)));
        i /= dim;
    }
    return indices;
}

/* JSON has no infinities. */
static json_t *number(long double value)
{
    char text[32];
    if (isfinite(value) && fabsl(value) < 9e18L && value == rintl(value))
        return json_integer((json_int_t)value);
    if (isfinite(value))
        return json_real((double)value);
    snprintf(text, sizeof(text), "%Lg", value);
    return json_string(text);
}

/* Bytes, or values, that are compared between two looks for a signal. */
enum { COMPARED = 1 << 22 };

/* Whether the values differ by more than the tolerance, namely *by. NaN equals
   NaN. */
static bool differ(long double a, long double b, double tolerance, double *by)
{
    if (a == b || (isnan(a) && isnan(b)))
        return false;
    *by = isfinite(a) && isfinite(b) ? (double)fabsl(a - b) : INFINITY;
    return !(*by <= tolerance);
}

static bool is_same_bytes(const struct side_array *a,
                          const struct side_array *b)
{
    size_t size = a->header.count * (size_t)a->header.bytes;
    const char *one = (const char *)a->data, *other = (const char *)b->data;
    bool same =
        a->header.kind == b->header.kind && a->header.bytes == b->header.bytes;
    while (same && size > 0) {
        size_t bytes = size < COMPARED ? size : COMPARED;
        output_require(interrupt_check());
        same = !memcmp(one, other, bytes);
        one += bytes;
        other += bytes;
        size -= bytes;
    }
    return same;
}

/* An element of `one`. Files of bfloat16 hold whole numbers, its bits, and do
   not say so; beside what a layer delivers as bfloat16 they are decoded. */
static long double value_of(const struct side_array *one,
                            const struct side_array *other, size_t i)
{
    const struct npy_header *header = &one->header;
    bool is_bits = header->kind == 'u' && header->bytes == 2;
    return is_bits && (header->is_bfloat16 || other->header.is_bfloat16)
               ? npy_header_bfloat16(one->data, i)
               : npy_header_value(header, one->data, i);
}

/* Returns whether they differ, as the following do. */
static bool compare_values(struct comparison *comparison,
                           const struct side_array *a,
                           const struct side_array *b)
{
    int64_t before = comparison->values;
    comparison->elements += (int64_t)a->header.count;
    if (is_same_bytes(a, b))
        return false;
    for (size_t i = 0; i < a->header.count; i++) {
        long double x = value_of(a, b, i), y = value_of(b, a, i);
        double by;
        if (i % COMPARED == 0)
            output_require(interrupt_check());
        if (!differ(x, y, comparison->tolerance, &by))
            continue;
        comparison->greatest = fmax(comparison->greatest, by);
        if (comparison->values++ == before)
            list_difference(comparison, a->name,
                            json_pack("{s:o, s:o, s:o}", "at",
                                      indices_of(&a->header, i), "a", number(x),
                                      "b", number(y)));
    }
    return comparison->values > before;
}

static bool compare_arrays(struct comparison *comparison,
                           const struct side_array *a,
                           const struct side_array *b)
{
    char shape[2][256];
    if (is_same_shape(&a->header, &b->header))
        return compare_values(comparison, a, b);
    list_reason(comparison, a->name, "the shapes are %s and %s",
                write_shape(&a->header, shape[0]),
                write_shape(&b->header, shape[1]));
    return true;
}

static const struct side_array *find_array(const struct side_record *record,
                                           const char *name)
{
    for (int i = 0; i < record->arrays; i++)
        if (!strcmp(record->array[i].name, name))
            return &record->array[i];
    return NULL;
}

/* Compares the fields of both sides by name. */
static bool compare_fields(struct comparison *comparison)
{
    const struct side_record *a = &comparison->side[0].record;
    const struct side_record *b = &comparison->side[1].record;
    bool differs = false;
    for (int i = 0; i < a->arrays; i++) {
        const struct side_array *other = find_array(b, a->array[i].name);
        if (!other)
            list_reason(comparison, a->array[i].name, "only A has this field");
        differs |= !other || compare_arrays(comparison, &a->array[i], other);
    }
    for (int i = 0; i < b->arrays; i++)
        if (!find_array(a, b->array[i].name)) {
            list_reason(comparison, b->array[i].name, "only B has this field");
            differs = true;
        }
    return differs;
}

static bool compare_keys(struct comparison *comparison)
{
    char key[2][KEY_TEXT];
    const struct side_record *a = &comparison->side[0].record;
    const struct side_record *b = &comparison->side[1].record;
    if (!comparison->keys || !a->key || !b->key ||
        (a->key_size == b->key_size && !memcmp(a->key, b->key, a->key_size)))
        return false;
    list_reason(comparison, NULL, "the keys are %s and %s",
                inspection_key(key[0], a->key, a->key_size, a->key_cut),
                inspection_key(key[1], b->key, b->key_size, b->key_cut));
    return true;
}

/* A bad record differs from every other, bad ones too. */
static bool compare_bad(struct comparison *comparison)
{
    const char *a = comparison->side[0].record.bad,
               *b = comparison->side[1].record.bad;
    if (a[0])
        list_reason(comparison, NULL, "bad in A: %s", a);
    if (b[0])
        list_reason(comparison, NULL, "bad in B: %s", b);
    return a[0] || b[0];
}

static void compare_records(struct comparison *comparison)
{
    bool differs = compare_bad(comparison);
    if (!differs) {
        differs = compare_keys(comparison);
        differs |= compare_fields(comparison);
    }
    comparison->compared++;
    comparison->different += differs;
}

/* Reads on to the end of sides that have no more records: what follows the last
   one may still be damage. */
static void read_end(struct side side[2])
{
    for (int i = 0; i < 2; i++)
        if (side[i].step == side[i].count)
            (void)side_next(&side[i]);
}

/* A layer has no end, so a dump of it is compared with its beginning. */
static void compare_sides(struct comparison *comparison)
{
    struct side *side = comparison->side;
    int64_t a = side[0].count, b = side[1].count;
    int64_t total = a < 0 || (b >= 0 && b < a) ? b : a;
    struct progress *progress = &comparison->progress;
    progress_start(progress, "records", total, comparison->json);
    while (comparison->compared < total && side_next(&side[0]) &&
           side_next(&side[1])) {
        compare_records(comparison);
        output_require(interrupt_check());
        progress_update(progress, comparison->compared);
    }
    read_end(side);
    progress_finish(progress);
    if (a >= 0 && b >= 0)
        comparison->extra[a < b] = a < b ? b - a : a - b;
}

static bool is_same(const struct comparison *comparison)
{
    return !comparison->different && !comparison->extra[0] &&
           !comparison->extra[1];
}

/* Sides without values cannot be compared. */
static bool has_nothing(const struct comparison *comparison)
{
    return is_same(comparison) && !comparison->elements;
}

static int report_json(const struct comparison *comparison)
{
    json_t *same = has_nothing(comparison) ? json_null()
                                           : json_boolean(is_same(comparison));
    return output_json(json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:O}", "same", same, "compared",
        (json_int_t)comparison->compared, "different",
        (json_int_t)comparison->different, "values",
        (json_int_t)comparison->values, "greatest",
        number(comparison->greatest), "only_in_a",
        (json_int_t)comparison->extra[0], "only_in_b",
        (json_int_t)comparison->extra[1], "differences", comparison->list));
}

/* A layer that chose its seed itself differs from a dump of another seed. */
static void print_seed(const struct comparison *comparison)
{
    const leat_data_layer_options *asked = &comparison->source.layer;
    bool is_given = asked->has_random_seed && asked->random_seed >= 0;
    for (int side = 0; side < 2 && !is_given; side++) {
        const leat_data_layer *layer = comparison->side[side].source.layer;
        uint64_t seed = layer ? leat_data_layer_seed(layer) : 0;
        if (seed)
            printf("the layer of %s chose at random with seed %llu; give "
                   "--seed with the one that leat dump printed\n",
                   plain_text(comparison->name[side]),
                   (unsigned long long)seed);
    }
}

/* Where all differs, more than a record is another. */
static void print_options(const struct comparison *comparison)
{
    for (int side = 0; side < 2; side++)
        if (comparison->side[side].source.layer)
            printf("all differ: %s was read with the options given here; "
                   "give those of the dump\n",
                   plain_text(comparison->name[side]));
}

static int report_text(const struct comparison *comparison)
{
    if (has_nothing(comparison))
        return 0;
    for (int side = 0; side < 2; side++)
        if (comparison->extra[side] && !comparison->compared)
            printf("%s has no records, %s has %lld\n",
                   plain_text(comparison->name[!side]),
                   plain_text(comparison->name[side]),
                   (long long)comparison->extra[side]);
        else if (comparison->extra[side])
            printf("only %s has the last %s\n",
                   plain_text(comparison->name[side]),
                   output_count(comparison->extra[side], "record", "records"));
    if (!comparison->compared && !is_same(comparison))
        return 0;
    if (comparison->different)
        printf("%lld of %s %s", (long long)comparison->different,
               output_count(comparison->compared, "record", "records"),
               comparison->different == 1 ? "differs" : "differ");
    else
        printf("%s the same",
               output_count(comparison->compared, "record is", "records are"));
    if (comparison->values)
        printf(", in %s by up to %.6g",
               output_count(comparison->values, "value", "values"),
               comparison->greatest);
    printf("\n");
    if (comparison->different)
        print_seed(comparison);
    if (comparison->different && comparison->different == comparison->compared)
        print_options(comparison);
    return 0;
}

/* An option that would have no effect is refused. */
static void check_sides(const struct comparison *comparison,
                        const bool is_dump[2])
{
    int dumps = is_dump[0] + is_dump[1];
    bool has_layer = !comparison->name[0] || dumps == 1;
    if (!comparison->name[0] && !dumps)
        message_fail("%s: expected a directory of .npy files",
                     comparison->name[1]);
    if (!has_layer && layer_source_options_are_given(&comparison->source))
        message_misuse(
            "compare",
            "both sides are %s, and no layer is between them: --crop, "
            "--batch and the like are for a dump and a database",
            dumps ? "dumps" : "databases");
    if (dumps == 2 && comparison->source.layer.max_image_bytes)
        message_misuse("compare",
                       "--max-image-bytes is for databases: dumps have no "
                       "encoded images");
    if (comparison->keys && (dumps || has_layer))
        message_misuse("compare",
                       "--keys is for two databases: a dump has no keys");
}

/* A database beside a dump is read by a layer. */
static void open_sides(struct comparison *comparison)
{
    struct layer_source_options source = comparison->source;
    const char **name = comparison->name;
    bool is_dump[2];
    for (int i = 0; i < 2; i++)
        is_dump[i] = name[i] && side_is_dump(name[i]);
    check_sides(comparison, is_dump);
    if (!source.net && !source.layer.batch_size)
        source.layer.batch_size = 1;
    for (int i = 0; i < 2; i++) {
        struct side *side = &comparison->side[i];
        if (is_dump[i]) {
            side_open_dump(side, name[i]);
        } else if (name[i] && !is_dump[!i]) {
            side_open_database(side, name[i], source.layer.max_image_bytes);
        } else {
            if (name[i])
                source.reader = name[i];
            else
                name[i] = source.net ? source.net : source.reader;
            side_open_layer(side, &source);
        }
    }
}

static int compare(struct comparison *comparison)
{
    comparison->list = json_array();
    interrupt_catch_opening();
    open_sides(comparison);
    interrupt_catch();
    compare_sides(comparison);
    int exit_status =
        comparison->json ? report_json(comparison) : report_text(comparison);
    if (!exit_status && !is_same(comparison))
        exit_status = EXIT_FOUND;
    if (!exit_status && has_nothing(comparison))
        exit_status = message_error("%s and %s hold no values: there is "
                                    "nothing to compare",
                                    comparison->name[0], comparison->name[1]);
    side_close(&comparison->side[0]);
    side_close(&comparison->side[1]);
    json_decref(comparison->list);
    return exit_status;
}

int command_compare(int argc, char **argv)
{
    static struct comparison comparison = {.source = LAYER_SOURCE_OPTIONS_INIT,
                                           .differences = 10};
    static struct layer_source_options checked; /* large for a stack */
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &comparison.source);
    const struct option_spec specs[] = {
        {"tolerance", "X", "values may differ by up to X (0)", option_real,
         &comparison.tolerance, 0, INT32_MAX},
        option_flag("keys", "also compare the keys of two databases",
                    &comparison.keys),
        {"differences", "N", "how many to list (10)", option_int,
         &comparison.differences, 0, INT32_MAX},
        option_flag("json", "print one JSON object", &comparison.json),
        {0}};
    const struct usage usage = {
        .command = "compare",
        .arguments = "[options] A B",
        .about = "Compares two databases record by record: labels and\n"
                 "pixels, images decoded. Either may be a directory of .npy\n"
                 "files written by leat dump; the other one is then read by\n"
                 "a data layer, which needs the options of the dump. With\n"
                 "--net or --reader that layer is A. Status 0: the same; 1:\n"
                 "not; 2: nothing to compare, or an error.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 2,
        .shared = layer,
    };
    char **arguments = option_parse(&usage, argc, argv);
    bool is_layer = comparison.source.net || comparison.source.reader;
    if (is_layer == (arguments[1] != NULL))
        message_misuse("compare", "compare: give A and B, or B alone with "
                                  "--net or --reader");
    checked = comparison.source;
    if (!is_layer)
        checked.reader = arguments[0];
    if (!checked.net && !checked.layer.batch_size)
        checked.layer.batch_size = 1;
    layer_source_options_check(&checked, "compare");
    comparison.name[0] = is_layer ? NULL : arguments[0];
    comparison.name[1] = arguments[!is_layer];
    return compare(&comparison);
}
