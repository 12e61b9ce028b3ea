/*
 * example and sequence_example: the features of a serialized tf.train.Example
 * or SequenceExample as fields.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/example_plan.h"
#include "decorators/decorator.h"
#include "decorators/decorators.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* Immutable once open. */
typedef struct example_reader {
    leat__decorator decorator;
    int nfields; /* of the upstream reader */
    int message; /* the one of them that is parsed */
    leat__example_plan plan;
} example_reader;

static int example_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    const example_reader *example = (const example_reader *)reader;
    *out = example->plan.spec;
    *n = example->plan.nfields;
    return LEAT_OK;
}

static int example_materialize(leat_reader *reader, leat_sample *const out[],
                               int n, int *got)
{
    const example_reader *example = (const example_reader *)reader;
    int status = leat__decorator_check_running(&example->decorator);
    for (; *got < n && !status; *got += !status) {
        leat_sample *sample = out[*got];
        int base = sample->nfields - example->nfields;
        if (base < 0)
            return leat_error(
                LEAT_ESTATE, "%s: a sample has %d fields, expected %d",
                reader->ops->name, sample->nfields, example->nfields);
        status = leat__example_plan_read(&example->plan, sample, base,
                                         example->message);
    }
    return status;
}

static int example_read_at(leat_reader *reader, const leat_position at[],
                           leat_sample *const out[], int n, int *got)
{
    example_reader *example = (example_reader *)reader;
    return leat_reader_pull_at(example->decorator.upstream[0], at, out, n, got);
}

static void example_advise(leat_reader *reader, const leat_position at[], int n)
{
    example_reader *example = (example_reader *)reader;
    leat_reader_advise(example->decorator.upstream[0], at, n);
}

static int example_count(leat_reader *reader, int64_t *out)
{
    example_reader *example = (example_reader *)reader;
    return leat_reader_count(example->decorator.upstream[0], out);
}

static int example_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    example_reader *example = (example_reader *)reader;
    return leat_reader_skip(example->decorator.upstream[0], n, skipped);
}

static void example_close(leat_reader *reader)
{
    leat__example_plan_finish(&((example_reader *)reader)->plan);
    leat__decorator_close(reader);
}

#define EXAMPLE_OPS                                                            \
    .size = sizeof(leat_reader_ops), .fields = example_fields,                 \
    .next = leat__decorator_next, .seek = leat__decorator_seek,                \
    .cancel = leat__decorator_cancel, .close = example_close,                  \
    .materialize = example_materialize, .skip = example_skip,                  \
    .can_seek = leat__decorator_can_seek, .save = leat__decorator_save,        \
    .restore = leat__decorator_restore, .may_block = leat__decorator_may_block
#define RANDOM_ACCESS                                                          \
    .count = example_count, .read_at = example_read_at, .advise = example_advise

/* By whether it is of sequences, and whether it has random access. */
static const leat_reader_ops example_ops[2][2] = {
    {{EXAMPLE_OPS, .name = "example", .mark = leat__decorator_mark},
     {EXAMPLE_OPS, .name = "example", RANDOM_ACCESS}},
    {{EXAMPLE_OPS, .name = "sequence_example", .mark = leat__decorator_mark},
     {EXAMPLE_OPS, .name = "sequence_example", RANDOM_ACCESS}},
};

static int add_features(example_reader *example, const leat_args *args,
                        const char *argument, bool is_step)
{
    const char *text;
    int status = LEAT_OK;
    for (int i = 0; (text = leat_args_list(args, argument, i)) && !status; i++)
        status = leat__example_plan_add(&example->plan, text, is_step);
    return status;
}

static bool is_message(const leat_field_spec *spec, const char *name)
{
    if (!name)
        return spec->dtype == LEAT_BYTES;
    return strcmp(spec->name, name) == 0 &&
           (spec->dtype == LEAT_BYTES || spec->dtype == LEAT_UINT8);
}

/* The field that is parsed: the named one, or the only one of bytes. */
static int find_message(example_reader *example, const leat_args *args)
{
    const char *name = leat_args_get(args, "field");
    const leat_field_spec *spec;
    int found = 0;
    int status = leat_reader_fields(example->decorator.upstream[0], &spec,
                                    &example->nfields);
    if (status)
        return status;
    for (int i = example->nfields - 1; i >= 0; i--) {
        if (!is_message(&spec[i], name))
            continue;
        example->message = i;
        found++;
    }
    if (found == 1)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: %s%s: there are %d fields of that name and of bytes "
                      "or uint8, expected one: field=NAME",
                      example->decorator.reader.ops->name,
                      name ? "field " : "no field is given", name ? name : "",
                      found);
}

static int plan_fields(example_reader *example, const leat_args *args,
                       bool is_sequence)
{
    int status = add_features(example, args,
                              is_sequence ? "context" : "features", false);
    if (!status && is_sequence)
        status = add_features(example, args, "sequence", true);
    if (!status && example->plan.n == 0)
        status = leat_error(LEAT_EINVAL, "no feature is given");
    return status ? leat__error_context(status, "%s",
                                        example->decorator.reader.ops->name)
                  : LEAT_OK;
}

static int open_example(const leat_open *open, bool is_sequence,
                        leat_reader **out)
{
    bool is_random_access = leat_reader_is_random_access(open->upstream[0]);
    example_reader *example = leat__decorator_new(
        open, &example_ops[is_sequence][is_random_access], sizeof(*example));
    if (!example)
        return LEAT_ENOMEM;
    int status = plan_fields(example, open->args, is_sequence);
    if (!status)
        status = find_message(example, open->args);
    if (status) {
        leat__example_plan_finish(&example->plan);
        leat__free(example);
        return status;
    }
    *out = &example->decorator.reader;
    return LEAT_OK;
}

static int example_open(const leat_open *open, leat_reader **out)
{
    return open_example(open, false, out);
}

static int sequence_example_open(const leat_open *open, leat_reader **out)
{
    return open_example(open, true, out);
}

#define FIELD_ARGUMENT                                                         \
    {                                                                          \
        .name = "field", .kind = LEAT_ARGUMENT_TEXT,                           \
        .help = "the field of bytes that is parsed; the only one of bytes "    \
                "unless given"                                                 \
    }

static const leat_argument example_arguments[] = {
    {.name = "features",
     .kind = LEAT_ARGUMENT_LIST,
     .positional = 1,
     .required = 1,
     .help = "features as (name:type[shape]=default,...); types are bytes, "
             "int64, float32 and uint8"},
    FIELD_ARGUMENT,
    {0},
};

static const leat_argument sequence_example_arguments[] = {
    {.name = "context",
     .kind = LEAT_ARGUMENT_LIST,
     .help = "features of the whole, as (name:type[shape]=default,...)"},
    {.name = "sequence",
     .kind = LEAT_ARGUMENT_LIST,
     .help = "features of each step, likewise; with = and nothing after it a "
             "missing one has no steps"},
    FIELD_ARGUMENT,
    {0},
};

const leat_reader_type leat__example_type = {
    .size = sizeof(leat_reader_type),
    .name = "example",
    .help = "the features of a tf.train.Example",
    .arguments = example_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = example_open,
};

const leat_reader_type leat__sequence_example_type = {
    .size = sizeof(leat_reader_type),
    .name = "sequence_example",
    .help = "the features of a tf.train.SequenceExample",
    .arguments = sequence_example_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = sequence_example_open,
};

/* Appends `key(a,b)` to the arguments, which `out` NULL only measures. Returns
 * their size, without the NUL. */
static size_t write_list(char *out, size_t used, const char *key,
                         const char *const features[], int n)
{
    if (n == 0)
        return used;
    const char *before = used > 0 ? "," : "";
    size_t size = out ? SIZE_MAX : 0;
    used += out ? (size_t)sprintf(out + used, "%s%s(", before, key)
                : strlen(before) + strlen(key) + 1;
    for (int i = 0; i < n; i++) {
        used += leat_args_escape(features[i], out ? out + used : NULL, size);
        if (out)
            out[used - 1] = i + 1 < n ? ',' : ')';
    }
    return used;
}

static size_t write_field(char *out, size_t used, const char *field)
{
    if (!field)
        return used;
    if (out)
        memcpy(out + used, ",field=", sizeof(",field="));
    used += sizeof(",field=") - 1;
    return used +
           leat_args_escape(field, out ? out + used : NULL,
                            out ? SIZE_MAX : 0) -
           1;
}

/* The two lists of features, of which one may be empty. */
typedef struct feature_lists {
    const char *key[2];
    const char *const *features[2];
    int n[2];
} feature_lists;

static int check_lists(const feature_lists *lists,
                       const leat_example_options *options)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lists->n[k]; i++)
            if (!lists->features[k] || !lists->features[k][i])
                return leat_error(LEAT_EINVAL, "feature %d is NULL", i);
    if (options && options->size < sizeof(size_t))
        return leat_error(LEAT_EINVAL,
                          "the options of example were not initialised with "
                          "LEAT_EXAMPLE_OPTIONS_INIT");
    return LEAT_OK;
}

static int make_pipeline(leat_pipeline **out, const leat_reader_type *type,
                         leat_pipeline *upstream, const feature_lists *lists,
                         const leat_example_options *options)
{
    int status = check_lists(lists, options);
    if (status)
        return status;
    bool has_field = options && options->size >= sizeof(*options);
    char *text = NULL;
    size_t size = 0;
    for (int pass = 0; pass < 2; pass++) {
        size = 0;
        for (int k = 0; k < 2; k++)
            size = write_list(text, size, lists->key[k], lists->features[k],
                              lists->n[k]);
        size = write_field(text, size, has_field ? options->field : NULL);
        if (!text && !(text = leat__alloc_zero(size + 1, 1)))
            return LEAT_ENOMEM;
    }
    text[size] = 0;
    status = leat_pipeline_create(out, type, text, NULL, NULL, &upstream, 1);
    leat__free(text);
    return status;
}

int leat_example_options_init(leat_example_options *options)
{
    const leat_example_options defaults = LEAT_EXAMPLE_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

int leat_pipeline_example(leat_pipeline **out, leat_pipeline *upstream,
                          const char *const features[], int n,
                          const leat_example_options *options)
{
    const feature_lists lists = {{"", ""}, {features, NULL}, {n, 0}};
    return make_pipeline(out, &leat__example_type, upstream, &lists, options);
}

int leat_pipeline_sequence_example(leat_pipeline **out, leat_pipeline *upstream,
                                   const char *const context[], int ncontext,
                                   const char *const sequence[], int nsequence,
                                   const leat_example_options *options)
{
    const feature_lists lists = {
        {"context=", "sequence="}, {context, sequence}, {ncontext, nsequence}};
    return make_pipeline(out, &leat__sequence_example_type, upstream, &lists,
                         options);
}
