/* compare.c: `leat compare`, whether two sides deliver the same. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/option.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/command.h"
#include "tools/database/inspection.h"
#include "tools/delivery/delivery.h"
#include "tools/delivery/dump_reader.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct compare_options {
    struct layer_source_options source;
    double tolerance;
    int keys;
    int64_t listed; /* differences that are named */
    int json;
    int has_source; /* something is said of a layer */
};

struct comparison {
    const struct compare_options *options;
    struct delivery *side[2];
    const char *name[2]; /* of the sides */
    int64_t compared;    /* records that both have */
    int64_t elements;    /* of their fields, that were compared */
    int64_t different;   /* of them */
    int64_t values;      /* that differ */
    double greatest;     /* difference of values */
    int64_t extra[2];    /* records that only this side has */
    json_t *list;        /* the first differences */
};

/* Notes a difference of the record, if not enough are named already. Takes the
   rest of the object, which may be NULL where memory is short. */
static void note(struct comparison *self, const struct delivery_record *record,
                 json_t *rest)
{
    char key[KEY_TEXT];
    json_t *one = json_pack("{s:I}", "record", (json_int_t)record->number);
    if (record->key)
        json_object_set_new(
            one, "key",
            json_string(inspection_key(key, record->key, record->key_size,
                                       record->key_cut)));
    json_object_update(one, rest);
    json_decref(rest);
    json_array_append_new(self->list, one);
}

static int is_full(const struct comparison *self)
{
    return (int64_t)json_array_size(self->list) >= self->options->listed;
}

static json_t *what(const char *field, const char *reason)
{
    json_t *text = output_text(reason);
    return field ? json_pack("{s:o, s:o}", "field", output_text(field),
                             "reason", text)
                 : json_pack("{s:o}", "reason", text);
}

static void write_shape(char *out, size_t size,
                        const struct delivery_array *array)
{
    size_t at = 0;
    snprintf(out, size, "%s", array->ndim ? "" : "a number");
    for (int i = 0; i < array->ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "x" : "",
                               (long long)array->dim[i]);
}

/* Whether the shapes tell of the same; ones in front count for nothing. */
static int is_same_shape(const struct delivery_array *a,
                         const struct delivery_array *b)
{
    int i = 0, k = 0;
    while (i < a->ndim && a->dim[i] == 1)
        i++;
    while (k < b->ndim && b->dim[k] == 1)
        k++;
    if (a->ndim - i != b->ndim - k)
        return 0;
    for (; i < a->ndim; i++, k++)
        if (a->dim[i] != b->dim[k])
            return 0;
    return 1;
}

/* Where element `i` is, axis by axis. */
static json_t *place_of(const struct delivery_array *array, size_t i)
{
    json_t *place = json_array();
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        size_t dim = (size_t)array->dim[axis];
        json_array_insert_new(place, 0, json_integer((json_int_t)(i % dim)));
        i /= dim;
    }
    return place;
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

/* Whether the values are farther from one another than they may; by how much
   goes to *by. NaN is the same as NaN. */
static int differ(long double a, long double b, double tolerance, double *by)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    *by = isfinite(a) && isfinite(b) ? (double)fabsl(a - b) : INFINITY;
    return !(*by <= tolerance);
}

static int is_same_bytes(const struct delivery_array *a,
                         const struct delivery_array *b)
{
    return a->type.kind == b->type.kind && a->type.bytes == b->type.bytes &&
           a->interleaved == b->interleaved &&
           !memcmp(a->data, b->data, a->count * (size_t)a->type.bytes);
}

/* Returns whether they differ. */
static int compare_values(struct comparison *self,
                          const struct delivery_record *record,
                          const struct delivery_array *a,
                          const struct delivery_array *b)
{
    int64_t before = self->values;
    self->elements += (int64_t)a->count;
    if (is_same_bytes(a, b))
        return 0;
    for (size_t i = 0; i < a->count; i++) {
        long double x = delivery_value(a, i), y = delivery_value(b, i);
        double by;
        if (!differ(x, y, self->options->tolerance, &by))
            continue;
        self->values++;
        self->greatest = fmax(self->greatest, by);
        if (self->values == before + 1 && !is_full(self))
            note(self, record,
                 json_pack("{s:o, s:o, s:o, s:o}", "field",
                           output_text(a->name), "at", place_of(a, i), "a",
                           number(x), "b", number(y)));
    }
    return self->values > before;
}

static int compare_arrays(struct comparison *self,
                          const struct delivery_record *record,
                          const struct delivery_array *a,
                          const struct delivery_array *b)
{
    char shape[2][128], reason[320];
    if (is_same_shape(a, b))
        return compare_values(self, record, a, b);
    write_shape(shape[0], sizeof(shape[0]), a);
    write_shape(shape[1], sizeof(shape[1]), b);
    snprintf(reason, sizeof(reason), "the shapes are %s and %s", shape[0],
             shape[1]);
    if (!is_full(self))
        note(self, record, what(a->name, reason));
    return 1;
}

static const struct delivery_array *
find_array(const struct delivery_record *record, const char *name)
{
    for (int i = 0; i < record->arrays; i++)
        if (!strcmp(record->array[i].name, name))
            return &record->array[i];
    return NULL;
}

/* Each field of either side. Returns whether one differs. */
static int compare_fields(struct comparison *self,
                          const struct delivery_record *const record[2])
{
    int differs = 0;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < record[side]->arrays; i++) {
            const struct delivery_array *array = &record[side]->array[i];
            const struct delivery_array *other =
                find_array(record[!side], array->name);
            if (other && side == 0)
                differs |= compare_arrays(self, record[0], array, other);
            if (other)
                continue;
            differs = 1;
            if (!is_full(self))
                note(self, record[0],
                     what(array->name, side ? "only B has this field"
                                            : "only A has this field"));
        }
    return differs;
}

static int compare_keys(struct comparison *self,
                        const struct delivery_record *const record[2])
{
    char key[2][KEY_TEXT], reason[2 * KEY_TEXT + 32];
    const struct delivery_record *a = record[0], *b = record[1];
    if (!self->options->keys || !a->key || !b->key)
        return 0;
    if (a->key_size == b->key_size && !memcmp(a->key, b->key, a->key_size))
        return 0;
    snprintf(reason, sizeof(reason), "the keys are %s and %s",
             inspection_key(key[0], a->key, a->key_size, a->key_cut),
             inspection_key(key[1], b->key, b->key_size, b->key_cut));
    if (!is_full(self))
        note(self, a, what(NULL, reason));
    return 1;
}

/* A bad record is the same as nothing, not even as another bad one. */
static int compare_bad(struct comparison *self,
                       const struct delivery_record *const record[2])
{
    char reason[600];
    for (int side = 0; side < 2; side++)
        if (record[side]->bad[0] && !is_full(self)) {
            snprintf(reason, sizeof(reason), "bad in %c: %s", side ? 'B' : 'A',
                     record[side]->bad);
            note(self, record[0], what(NULL, reason));
        }
    return record[0]->bad[0] || record[1]->bad[0];
}

static void compare_records(struct comparison *self,
                            const struct delivery_record *const record[2])
{
    self->compared++;
    int differs = compare_bad(self, record);
    if (!differs) {
        differs = compare_keys(self, record);
        differs |= compare_fields(self, record);
    }
    self->different += differs;
}

/* A layer has no end: a dump of it is what it began with. */
static void count_extra(struct comparison *self)
{
    for (int side = 0; side < 2; side++) {
        int64_t count = delivery_count(self->side[side]);
        int64_t other = delivery_count(self->side[!side]);
        if (count >= 0 && other >= 0 && count > other)
            self->extra[side] = count - other;
    }
}

static int compare_sides(struct comparison *self)
{
    int64_t total = delivery_count(self->side[0]),
            other = delivery_count(self->side[1]);
    if (total < 0 || (other >= 0 && other < total))
        total = other;
    struct progress progress;
    progress_start(&progress, "records", total, self->options->json);
    int status = LEAT_OK;
    while (!status && self->compared < total) {
        const struct delivery_record *record[2];
        status = delivery_next(self->side[0], &record[0]);
        if (!status)
            status = delivery_next(self->side[1], &record[1]);
        if (!status)
            compare_records(self, record);
        if (!status)
            status = interrupt_check();
        progress_update(&progress, self->compared);
    }
    progress_finish(&progress);
    count_extra(self);
    return status == LEAT_END ? LEAT_OK : status;
}

static int is_same(const struct comparison *self)
{
    return !self->different && !self->extra[0] && !self->extra[1];
}

/* What holds no value is the same as nothing. */
static int has_nothing(const struct comparison *self)
{
    return is_same(self) && !self->elements;
}

static int report_json(const struct comparison *self)
{
    json_t *same =
        has_nothing(self) ? json_null() : json_boolean(is_same(self));
    return output_json(json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:O}", "same", same, "compared",
        (json_int_t)self->compared, "different", (json_int_t)self->different,
        "values", (json_int_t)self->values, "greatest", number(self->greatest),
        "only_in_a", (json_int_t)self->extra[0], "only_in_b",
        (json_int_t)self->extra[1], "differences", self->list));
}

static void print_number(const json_t *value)
{
    if (json_is_string(value))
        printf("%s", json_string_value(value));
    else if (json_is_integer(value))
        printf("%lld", (long long)json_integer_value(value));
    else
        printf("%.9g", json_number_value(value));
}

static void print_difference(const json_t *one)
{
    const char *key = json_string_value(json_object_get(one, "key"));
    const char *field = json_string_value(json_object_get(one, "field"));
    const char *reason = json_string_value(json_object_get(one, "reason"));
    const json_t *place = json_object_get(one, "at");
    printf("record %lld%s%s: %s",
           (long long)json_integer_value(json_object_get(one, "record")),
           key ? ", key " : "", key ? key : "", field ? plain_text(field) : "");
    for (size_t i = 0; i < json_array_size(place); i++)
        printf("%s%lld", i ? ", " : "[",
               (long long)json_integer_value(json_array_get(place, i)));
    if (json_array_size(place))
        printf("]");
    printf("%s", field ? ": " : "");
    if (reason) {
        printf("%s\n", plain_text(reason));
        return;
    }
    print_number(json_object_get(one, "a"));
    printf(" in A, ");
    print_number(json_object_get(one, "b"));
    printf(" in B\n");
}

/* A layer that drew its seed meets a dump's by chance alone. */
static void print_seed(const struct comparison *self)
{
    const leat_data_layer_options *layer = &self->options->source.layer;
    for (int side = 0; side < 2; side++) {
        uint64_t seed = delivery_seed(self->side[side]);
        if (seed && !(layer->has_random_seed && layer->random_seed >= 0))
            printf("the layer of %s chose at random with seed %llu; give "
                   "--seed with the one that leat dump told\n",
                   plain_text(self->name[side]), (unsigned long long)seed);
    }
}

static int report_text(const struct comparison *self)
{
    if (has_nothing(self))
        return 0;
    size_t listed = json_array_size(self->list);
    for (size_t i = 0; i < listed; i++)
        print_difference(json_array_get(self->list, i));
    for (int side = 0; side < 2; side++)
        if (self->extra[side] && !self->compared)
            printf("%s has no records, %s has %lld\n",
                   plain_text(self->name[!side]), plain_text(self->name[side]),
                   (long long)self->extra[side]);
        else if (self->extra[side])
            printf("only %s has the last %s\n", plain_text(self->name[side]),
                   output_count(self->extra[side], "record", "records"));
    if (!self->compared && !is_same(self))
        return 0;
    if (self->different)
        printf("%lld of %s %s", (long long)self->different,
               output_count(self->compared, "record", "records"),
               self->different == 1 ? "differs" : "differ");
    else
        printf("%s the same",
               output_count(self->compared, "record is", "records are"));
    if (self->values)
        printf(", in %s by up to %.6g",
               output_count(self->values, "value", "values"), self->greatest);
    printf("\n");
    if (self->different)
        print_seed(self);
    return 0;
}

/* Commas, bars and the like are part of the path. */
static char *reader_text(const char *path)
{
    char *text = malloc(2 * strlen(path) + 6);
    if (!text)
        return NULL;
    char *at = text + sprintf(text, "lmdb:");
    for (; *path; path++) {
        if (strchr(",|=\\", *path))
            *at++ = '\\';
        *at++ = *path;
    }
    *at = 0;
    return text;
}

/* A database beside a dump is what a layer over it delivers. */
static int open_layer_of(struct delivery **out, const char *path,
                         const struct layer_source_options *options)
{
    struct layer_source_options source = *options;
    char *text = reader_text(path);
    if (!text)
        return leat_error(LEAT_ENOMEM, "out of memory");
    source.reader = text;
    if (!source.layer.batch_size)
        source.layer.batch_size = 1;
    int status = delivery_open_layer(out, &source);
    free(text);
    return status;
}

/* What an option asks for happens, or it is refused. */
static int check_sides(const struct comparison *self, const int is_dump[2])
{
    int dumps = is_dump[0] + is_dump[1];
    int has_layer = !self->name[0] || dumps == 1;
    if (!self->name[0] && !dumps)
        return leat_error(LEAT_EINVAL, "%s: expected a directory of .npy files",
                          self->name[1]);
    if (!has_layer && self->options->has_source)
        return leat_error(LEAT_EINVAL,
                          "both sides are %s, and no layer is between them: "
                          "--crop, --batch and the like are for a dump and a "
                          "database",
                          dumps ? "dumps" : "databases");
    if (dumps == 2 && self->options->source.layer.max_image_bytes)
        return leat_error(LEAT_EINVAL, "--max-image-bytes is for databases: "
                                       "dumps have no encoded images");
    if (self->options->keys && (dumps || has_layer))
        return leat_error(LEAT_EINVAL,
                          "--keys is for two databases: a dump has no keys");
    return LEAT_OK;
}

static int open_sides(struct comparison *self)
{
    const struct layer_source_options *source = &self->options->source;
    int is_dump[2];
    for (int i = 0; i < 2; i++)
        is_dump[i] = self->name[i] && dump_reader_is_dump(self->name[i]);
    int status = check_sides(self, is_dump);
    for (int i = 0; i < 2 && !status; i++) {
        if (!self->name[i]) {
            status = delivery_open_layer(&self->side[i], source);
            self->name[i] = source->net ? source->net : source->reader;
        } else if (is_dump[i]) {
            status = delivery_open_dump(&self->side[i], self->name[i]);
        } else if (is_dump[!i]) {
            status = open_layer_of(&self->side[i], self->name[i], source);
        } else {
            status = delivery_open_database(&self->side[i], self->name[i],
                                            source->layer.max_image_bytes);
        }
    }
    return status;
}

static int compare(const struct compare_options *options, const char *a,
                   const char *b)
{
    struct comparison self = {
        .options = options, .name = {a, b}, .list = json_array()};
    int status = open_sides(&self);
    interrupt_catch();
    if (!status)
        status = compare_sides(&self);
    int exit_status = 0;
    if (status)
        exit_status = message_last_error();
    else
        exit_status = options->json ? report_json(&self) : report_text(&self);
    if (!exit_status && !is_same(&self))
        exit_status = EXIT_FOUND;
    if (!exit_status && has_nothing(&self))
        exit_status = message_error("%s and %s hold no values: there is "
                                    "nothing to compare",
                                    self.name[0], self.name[1]);
    delivery_close(self.side[0]);
    delivery_close(self.side[1]);
    json_decref(self.list);
    return exit_status;
}

int command_compare(int argc, char **argv)
{
    struct compare_options options = {
        LAYER_SOURCE_OPTIONS_INIT, 0, 0, 10, 0, 0};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &options.source);
    const struct option_spec specs[] = {
        {"tolerance", "X", "values may differ by so much (0)", option_real,
         &options.tolerance, 0, INT32_MAX},
        {"keys", NULL, "of two databases the keys, too", NULL, &options.keys, 0,
         0},
        {"differences", "N", "how many to name (10)", option_int,
         &options.listed, 0, INT32_MAX},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "compare",
        .arguments = "[options] A B",
        .about = "Says whether two databases deliver the same, record by\n"
                 "record: labels and pixels, images decoded. Either may be a\n"
                 "directory of the .npy files of leat dump; the other one is\n"
                 "then what a data layer makes of it with the options that\n"
                 "dump had. With --net or --reader that layer is A. Status\n"
                 "0: the same; 1: not; 2: nothing to compare, or an error.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 2,
        .shared = layer,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status != OPTION_GO)
        return status;
    struct layer_source_options *source = &options.source;
    if (!source->net == !source->reader && n == 1)
        return message_misuse("compare", "compare: give A and B, or one and "
                                         "either --net or --reader");
    if ((source->net || source->reader) && n == 2)
        return message_misuse("compare",
                              "compare: with --net or --reader give B alone");
    options.has_source = layer_source_options_are_given(source);
    struct layer_source_options checked = *source;
    if (!checked.net && !checked.reader)
        checked.reader = arguments[0];
    if (!checked.net && !checked.layer.batch_size)
        checked.layer.batch_size = source->layer.batch_size = 1;
    status = layer_source_options_check(&checked, "compare");
    if (status != OPTION_GO)
        return status;
    return n == 2 ? compare(&options, arguments[0], arguments[1])
                  : compare(&options, NULL, arguments[0]);
}
