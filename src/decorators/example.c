/*
 * example and sequence_example: the features of a serialized tf.train.Example
 * or SequenceExample as fields.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/example_fields.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/decorators.h>

#include <string.h>

/* Immutable once open. */
typedef struct example_reader {
    leat__sample_map map;
    int message; /* the upstream reader's field that is parsed */
    leat__example_plan plan;
} example_reader;

static int example_work(leat__sample_map *map, leat__map_state *state,
                        leat_sample *sample, int first)
{
    const example_reader *example = (const example_reader *)map;
    (void)state;
    return leat__example_fields_read(&example->plan, sample, first,
                                     first + example->message);
}

static void example_finish(leat__sample_map *map)
{
    leat__example_plan_finish(&((example_reader *)map)->plan);
}

static const leat__map_kind example_kind = {
    .name = "example", .work = example_work, .finish = example_finish};

static const leat__map_kind sequence_example_kind = {
    .name = "sequence_example", .work = example_work, .finish = example_finish};

static int find_message(example_reader *example, const leat_args *args)
{
    const leat__sample_map *map = &example->map;
    int status =
        leat__field_find_bytes(map->given, map->ngiven,
                               leat_args_get(args, "field"), &example->message);
    if (status)
        return status;
    const leat_field_spec *spec = &map->given[example->message];
    if (spec->varies || spec->dtype == LEAT_BYTES || spec->dtype == LEAT_UINT8)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "field \"%s\" is of %s: expected bytes or uint8",
                      spec->name, leat_dtype_name(spec->dtype));
}

static int plan_features(example_reader *example, const leat_args *args)
{
    const leat__example_plan *plan = &example->plan;
    const char *text;
    for (int i = 0; (text = leat_args_at(args, i)) != NULL; i++) {
        int status = leat__example_plan_add(&example->plan, text);
        if (status)
            return status;
        if (plan->feature[i].is_step && example->map.kind == &example_kind)
            return leat_error(LEAT_EINVAL,
                              "feature \"%s\": a sequence's steps are read by "
                              "sequence_example",
                              text);
    }
    leat__sample_map *map = &example->map;
    memcpy(map->spec, plan->spec, sizeof(plan->spec));
    map->nspec = plan->nfields;
    return LEAT_OK;
}

static int open_kind(const leat_open *open, const leat__map_kind *kind,
                     leat_reader **out)
{
    leat__sample_map *map;
    int status = leat__sample_map_new(&map, open, kind, sizeof(example_reader));
    if (status)
        return status;
    example_reader *example = (example_reader *)map;
    status = plan_features(example, open->args);
    if (!status && map->ngiven > 0)
        status = find_message(example, open->args);
    return leat__sample_map_opened(map, status, out);
}

static int example_open(const leat_open *open, leat_reader **out)
{
    return open_kind(open, &example_kind, out);
}

static int sequence_example_open(const leat_open *open, leat_reader **out)
{
    return open_kind(open, &sequence_example_kind, out);
}

#define FIELD_ARGUMENT                                                         \
    {                                                                          \
        .name = "field", .kind = LEAT_ARGUMENT_TEXT,                           \
        .help = "the field that is parsed; unless given, the first of bytes"   \
    }

static const leat_argument example_arguments[] = {
    {.name = "feature",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "NAME=TYPE[SHAPE]?DEFAULT, such as label=int64 or "
             "x=float32[3x4]?0; types are bytes, int64, float32, uint8"},
    FIELD_ARGUMENT,
    {0},
};

static const leat_argument sequence_example_arguments[] = {
    {.name = "feature",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "of the context as in example; of each step in brackets, such as "
             "ids=[int64] or words=[bytes[-1]]?"},
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

/* Writes the arguments; `out` NULL: only their size, with the NUL. */
static size_t write_arguments(char *out, const char *const features[], int n,
                              const char *field)
{
    static const char key[] = ",field=";
    size_t used = 0, size = out ? SIZE_MAX : 0;
    for (int i = 0; i < n; i++) {
        used += leat_args_escape(features[i], out ? out + used : NULL, size);
        if (out && i + 1 < n)
            out[used - 1] = ',';
    }
    if (!field)
        return used;
    if (out)
        memcpy(out + used - 1, key, sizeof(key));
    used += sizeof(key) - 2;
    return used + leat_args_escape(field, out ? out + used : NULL, size);
}

static int make_pipeline(leat_pipeline **out, const leat_reader_type *type,
                         leat_pipeline *upstream, const char *const features[],
                         int n, const leat_example_options *options)
{
    leat_example_options values = LEAT_EXAMPLE_OPTIONS_INIT;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    for (int i = 0; i < n; i++)
        if (!features || !features[i])
            return leat_error(LEAT_EINVAL, "%s: feature %d is NULL", type->name,
                              i);
    if (n < 1)
        return leat_error(LEAT_EINVAL, "%s: expected 1 feature or more, got %d",
                          type->name, n);
    char *text = leat__alloc(write_arguments(NULL, features, n, values.field));
    if (!text)
        return LEAT_ENOMEM;
    write_arguments(text, features, n, values.field);
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
    return make_pipeline(out, &leat__example_type, upstream, features, n,
                         options);
}

int leat_pipeline_sequence_example(leat_pipeline **out, leat_pipeline *upstream,
                                   const char *const features[], int n,
                                   const leat_example_options *options)
{
    return make_pipeline(out, &leat__sequence_example_type, upstream, features,
                         n, options);
}
