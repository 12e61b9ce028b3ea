#include "config/net_param.h"
#include "base/error.h"
#include "base/log.h"
#include "config/net_choice.h"
#include "config/net_schema.h"
#include "data/transform.h"
#include "layer/data_layer_options.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

/* The data layer's own limits, named here with their place in the file. */
#define BATCH_SIZE_MAX (INT_MAX / 2)
#define PREFETCH_MAX (1 << 20)
#define WORKERS_MAX 1024

typedef leat__prototxt_field field;

/*
 * The layer being read: its messages, NULL where they are missing. All of them
 * passed their schema.
 */
typedef struct reading {
    leat__net_param *out;
    const leat__prototxt *file;
    const field *layer;     /* has the tops */
    const field *described; /* has the name: the layer, or V0's within it */
    const field *data;      /* data_param; V0: the same as described */
    const field *transform; /* transform_param */
    const field *own;       /* leat_param */
    leat__net_form form;
} reading;

static const field *find(const field *message, const char *name)
{
    return message ? leat__prototxt_find(message, name) : NULL;
}

/* Copies a text of the caller's, NULL included. */
static int keep(leat__net_param *out, const char **text)
{
    if (!*text)
        return LEAT_OK;
    size_t bytes = strlen(*text) + 1;
    char *copy = leat__prototxt_alloc(&out->file, bytes);
    if (!copy)
        return LEAT_ENOMEM;
    *text = memcpy(copy, *text, bytes);
    return LEAT_OK;
}

/* A string that will be used as a C string. */
static int read_text(const reading *in, const field *value, const char **out)
{
    int status = leat__prototxt_string(in->file, value, out);
    if (!status && memchr(value->text, 0, value->text_size))
        return leat__prototxt_error(in->file, value->value_at,
                                    "%s: expected no NUL byte, found one",
                                    value->name);
    return status;
}

static int read_path(const reading *in, const field *value, const char **out)
{
    int status = read_text(in, value, out);
    if (!status && !value->text_size)
        return leat__prototxt_error(in->file, value->value_at,
                                    "%s: expected a text, found an empty one",
                                    value->name);
    return status;
}

static int read_int(const reading *in, const field *value, int min, int max,
                    int *out)
{
    int64_t read;
    int status = leat__prototxt_int64(in->file, value, &read);
    if (!status && (read < min || read > max))
        return leat__prototxt_error(
            in->file, value->value_at,
            "%s: expected an integer from %d to %d, found %lld", value->name,
            min, max, (long long)read);
    if (!status)
        *out = (int)read;
    return status;
}

static void warn(const reading *in, const field *value, const char *what)
{
    leat__log(LEAT_LOG_WARNING, "%s:%d:%d: %s %s", in->file->name,
              value->at.line, value->at.column, value->name, what);
}

/* Copies the caller's hooks, which may be an older leat's; NULL: none. */
static void keep_allocator(leat_allocator *out, const leat_allocator **given)
{
    if (!*given)
        return;
    size_t size = (*given)->size;
    memcpy(out, *given, size < sizeof(*out) ? size : sizeof(*out));
    *given = out;
}

/*
 * The caller's options without what only chooses the layer. They may be those
 * of an older leat: what they do not reach keeps its default.
 */
static int start_options(leat__net_param *out,
                         const leat_data_layer_options *choice)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    size_t size = sizeof(options);
    if (choice)
        memcpy(&options, choice, choice->size < size ? choice->size : size);
    options.size = size;
    options.layer = NULL;
    options.stages = NULL;
    options.tops = NULL;
    out->source = options.source;
    options.source = NULL;
    out->options = options;
    keep_allocator(&out->host_allocator, &out->options.host_allocator);
    keep_allocator(&out->pinned_allocator, &out->options.pinned_allocator);
    int status = keep(out, &out->source);
    if (!status)
        status = keep(out, &out->options.name);
    if (!status)
        status = keep(out, &out->options.device);
    return status ? status : keep(out, &out->options.bad_record_file);
}

static int start_transform(leat__net_param *out)
{
    leat_transform_options *transform = &out->transform;
    int status =
        leat__transform_options_copy(transform, out->options.transform);
    if (status)
        return status;
    out->options.transform = transform;
    if (transform->mean_value && transform->mean_values > 0) {
        size_t bytes = (size_t)transform->mean_values * sizeof(float);
        float *copy = leat__prototxt_alloc(&out->file, bytes);
        if (!copy)
            return LEAT_ENOMEM;
        memcpy(copy, transform->mean_value, bytes);
        transform->mean_value = copy;
    }
    return keep(out, &transform->mean_file);
}

/* The layer's own name, tops and phase. */
static int read_layer(const reading *in)
{
    leat__net_param *out = in->out;
    const field *value = find(in->described, "name");
    int status = value ? read_text(in, value, &out->options.name) : LEAT_OK;
    if (status)
        return status;
    value = find(in->layer, "bottom");
    if (value)
        return leat__prototxt_error(in->file, value->at,
                                    "a data layer takes no bottom");
    value = find(in->layer, "top");
    for (; value; value = leat__prototxt_find_next(value)) {
        if (out->ntops == LEAT__NET_PARAM_TOPS)
            return leat__prototxt_error(
                in->file, value->at,
                "a data layer gives at most 2 tops, data and label");
        status = read_text(in, value, &out->tops[out->ntops]);
        if (status)
            return status;
        if (out->ntops && !strcmp(out->tops[0], out->tops[1]))
            return leat__prototxt_error(in->file, value->value_at,
                                        "both tops have the same name");
        out->ntops++;
    }
    if (!out->ntops)
        return leat__prototxt_error(in->file, in->layer->at,
                                    "a data layer needs a top, found none");
    out->options.tops = out->tops;
    int phase = (int)out->options.phase;
    value = find(in->layer, "phase");
    if (value)
        status = leat__prototxt_enum_value(in->file, value,
                                           leat__net_schema_phase, &phase);
    out->options.phase = (leat_phase)phase;
    return status;
}

static int read_mean_values(const reading *in, const field *value)
{
    leat__net_param *out = in->out;
    size_t n = 0;
    for (const field *f = value; f; f = leat__prototxt_find_next(f))
        n++;
    if (n > INT_MAX / sizeof(float))
        return leat__prototxt_error(in->file, value->at,
                                    "expected fewer mean values");
    float *values = leat__prototxt_alloc(&out->file, n * sizeof(float));
    if (!values)
        return LEAT_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int status = leat__prototxt_float(in->file, value, &values[i]);
        if (status)
            return status;
        value = leat__prototxt_find_next(value);
    }
    out->transform.mean_value = values;
    out->transform.mean_values = (int)n;
    return LEAT_OK;
}

/* A field of data_param, three of which had other names in V0. */
static const field *find_data(const reading *in, const char *name)
{
    static const char *const renamed[][2] = {{"batch_size", "batchsize"},
                                             {"crop_size", "cropsize"},
                                             {"mean_file", "meanfile"}};
    for (size_t i = 0; i < sizeof(renamed) / sizeof(*renamed); i++)
        if (in->form == LEAT__NET_V0 && !strcmp(name, renamed[i][0]))
            name = renamed[i][1];
    return find(in->data, name);
}

/*
 * A field of transform_param. Old files carry four of them in data_param, where
 * they win: Caffe's upgrade of such files moves them over.
 */
static const field *find_transform(const reading *in, const char *name)
{
    const field *old = in->form == LEAT__NET_V2 ? NULL : find_data(in, name);
    return old ? old : find(in->transform, name);
}

static int read_mean(const reading *in)
{
    leat_transform_options *transform = &in->out->transform;
    const field *file = find_transform(in, "mean_file");
    const field *values = find(in->transform, "mean_value");
    if (file && values)
        return leat__prototxt_error(
            in->file, values->at,
            "expected mean_file or mean_value, found both");
    if (!file && !values)
        return LEAT_OK;
    transform->mean_file = NULL;
    transform->mean_value = NULL;
    transform->mean_values = 0;
    if (!file)
        return read_mean_values(in, values);
    in->out->mean_at = file->value_at;
    return read_path(in, file, &transform->mean_file);
}

static int read_force(const reading *in)
{
    leat_transform_options *transform = &in->out->transform;
    const field *color = find(in->transform, "force_color");
    const field *gray = find(in->transform, "force_gray");
    int status = LEAT_OK;
    if (color) {
        status = leat__prototxt_bool(in->file, color, &transform->force_color);
        if (!gray && transform->force_color)
            transform->force_gray = 0;
    }
    if (!status && gray) {
        status = leat__prototxt_bool(in->file, gray, &transform->force_gray);
        if (!color && transform->force_gray)
            transform->force_color = 0;
    }
    if (!status && color && gray && transform->force_color &&
        transform->force_gray)
        return leat__prototxt_error(
            in->file, gray->at,
            "expected force_color or force_gray, found both");
    return status;
}

static int read_transform(const reading *in)
{
    leat_transform_options *transform = &in->out->transform;
    const field *value = find_transform(in, "scale");
    int status = LEAT_OK;
    if (value)
        status = leat__prototxt_float(in->file, value, &transform->scale);
    if (value)
        transform->has_scale = 1;
    if (!status && (value = find_transform(in, "mirror")))
        status = leat__prototxt_bool(in->file, value, &transform->mirror);
    if (!status && (value = find_transform(in, "crop_size")))
        status = read_int(in, value, 0, INT_MAX, &transform->crop_size);
    if (!status)
        status = read_mean(in);
    return status ? status : read_force(in);
}

/* What Caffe reads in a new file's data_param and then makes nothing of. */
static void warn_of_old_fields(const reading *in)
{
    static const char *const old[] = {"scale", "mean_file", "crop_size",
                                      "mirror"};
    for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++) {
        const field *value =
            in->form == LEAT__NET_V2 ? find(in->data, old[i]) : NULL;
        if (value)
            warn(in, value,
                 "in data_param is ignored, as by Caffe: it belongs into "
                 "transform_param");
    }
}

/* Caffe's upgrade of a V0 file takes no more than these from layers { }. */
static void warn_of_dropped_fields(const reading *in)
{
    static const char *const taken[] = {"layer", "bottom", "top", "leat_param"};
    for (const field *value = in->layer->first; value; value = value->next) {
        int is_taken = in->form != LEAT__NET_V0;
        for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
            is_taken |= !strcmp(value->name, taken[i]);
        if (!is_taken)
            warn(in, value, "beside layer { } is ignored, as by Caffe");
    }
}

static void warn_of_idle(const reading *in)
{
    warn_of_old_fields(in);
    warn_of_dropped_fields(in);
    leat__net_schema_warn(in->file, in->layer,
                          in->form == LEAT__NET_V2
                              ? &leat__net_schema_layer
                              : &leat__net_schema_v1_layer);
}

/*
 * V0 files have no word for the backend. LEVELDB was meant; what is there now
 * may as well be an LMDB, and opening anything else says what it is.
 */
static int check_backend(const reading *in, const field *source)
{
    int backend = 0;
    if (in->form == LEAT__NET_V0) {
        warn(in, source, "of a V0 file is a LevelDB to Caffe, an LMDB to leat");
        return LEAT_OK;
    }
    const field *value = find(in->data, "backend");
    int status = LEAT_OK;
    if (value)
        status = leat__prototxt_enum_value(in->file, value,
                                           leat__net_schema_backend, &backend);
    if (status || backend == 1)
        return status;
    return leat__prototxt_error(
        in->file, value ? value->at : source->at,
        value ? "backend: expected LMDB, found LEVELDB, which leat does not "
                "read: convert the database"
              : "data_param has no backend, which means LEVELDB, and leat does "
                "not read it: if the source is an LMDB, add `backend: LMDB`");
}

static int read_source(const reading *in)
{
    leat__net_param *out = in->out;
    if (out->source) /* the caller's */
        return LEAT_OK;
    const field *source = find(in->data, "source");
    const field *reader = find(in->own, "reader");
    if (source && reader)
        return leat__prototxt_error(
            in->file, reader->at,
            "expected data_param.source or leat_param.reader, found both");
    if (reader) {
        out->source_at = reader->value_at;
        return read_path(in, reader, &out->reader);
    }
    if (!source)
        return leat__prototxt_error(
            in->file, in->data ? in->data->at : in->layer->at,
            in->form == LEAT__NET_V0
                ? "expected a source in layer, found none"
                : "expected a source in data_param, found none");
    int status = check_backend(in, source);
    if (status)
        return status;
    out->source_at = source->value_at;
    return read_path(in, source, &out->source);
}

/*
 * The size of the batch: this rank's in data_param, or that of all ranks. The
 * layer, which knows the ranks, checks whether both agree.
 */
static int read_batch(const reading *in)
{
    leat_data_layer_options *options = &in->out->options;
    const field *mine = find_data(in, "batch_size");
    const field *all = find(in->own, "global_batch_size");
    int batch = 0;
    int global = 0;
    int status = mine ? read_int(in, mine, 1, BATCH_SIZE_MAX, &batch) : LEAT_OK;
    if (!status && all)
        status = read_int(in, all, 1, BATCH_SIZE_MAX, &global);
    if (status)
        return status;
    if (mine || all) {
        options->batch_size = batch;
        options->global_batch_size = global;
    }
    if (!options->batch_size && !options->global_batch_size)
        return leat__prototxt_error(
            in->file, in->data ? in->data->at : in->layer->at,
            in->form == LEAT__NET_V0
                ? "expected a batchsize in layer, found none"
                : "expected a batch_size in data_param, found none");
    return LEAT_OK;
}

static int read_prefetch(const reading *in)
{
    const field *value = find(in->data, "prefetch");
    const field *own = find(in->own, "prefetch");
    if (value && own)
        return leat__prototxt_error(
            in->file, own->at,
            "expected prefetch in data_param or in leat_param, found both");
    if (own && own->text && !strcasecmp(own->text, "AUTO")) {
        in->out->options.prefetch = LEAT_PREFETCH_AUTO;
        return LEAT_OK;
    }
    if (!value)
        value = own;
    return value ? read_int(in, value, LEAT_PREFETCH_AUTO, PREFETCH_MAX,
                            &in->out->options.prefetch)
                 : LEAT_OK;
}

/* leat's enums: by name in any case, quoted or not, or by number. */
static int read_word(const reading *in, const char *name,
                     const leat__prototxt_enum words[], int *out)
{
    const field *value = find(in->own, name);
    if (!value)
        return LEAT_OK;
    for (int i = 0; words[i].name; i++)
        if ((value->type == LEAT__PROTOTXT_IDENTIFIER ||
             value->type == LEAT__PROTOTXT_STRING) &&
            !strcasecmp(value->text, words[i].name)) {
            *out = words[i].number;
            return LEAT_OK;
        }
    return leat__prototxt_enum_value(in->file, value, words, out);
}

/* The word of leat 0.1.0, which did not say that it repeats a neighbour. */
static int refuse_skip(const reading *in)
{
    const field *value = find(in->own, "on_error");
    if (!value || !value->text || strcasecmp(value->text, "SKIP") != 0)
        return LEAT_OK;
    return leat__prototxt_error(in->file, value->value_at,
                                "on_error: SKIP is called REPLACE now; "
                                "expected one of FAIL, ZERO, REPLACE");
}

static int read_words(const reading *in)
{
    static const leat__prototxt_enum rng[] = {
        {"LEAT", LEAT_RNG_LEAT}, {"CAFFE", LEAT_RNG_CAFFE}, {NULL, 0}};
    static const leat__prototxt_enum reader_thread[] = {
        {"AUTO", LEAT_READER_AUTO},
        {"ON", LEAT_READER_ON},
        {"OFF", LEAT_READER_OFF},
        {NULL, 0}};
    static const leat__prototxt_enum caller_helps[] = {
        {"AUTO", LEAT_CALLER_HELPS_AUTO},
        {"OFF", LEAT_CALLER_HELPS_OFF},
        {NULL, 0}};
    static const leat__prototxt_enum layout[] = {
        {"NCHW", LEAT_NCHW}, {"NHWC", LEAT_NHWC}, {NULL, 0}};
    static const leat__prototxt_enum top_mode[] = {
        {"LEND", LEAT_TOP_LEND}, {"COPY", LEAT_TOP_COPY}, {NULL, 0}};
    static const leat__prototxt_enum top_type[] = {
        {"FLOAT32", LEAT_FLOAT32}, {"FLOAT64", LEAT_FLOAT64},
        {"FLOAT16", LEAT_FLOAT16}, {"BFLOAT16", LEAT_BFLOAT16},
        {"UINT8", LEAT_UINT8},     {NULL, 0}};
    static const leat__prototxt_enum label_type[] = {
        {"FLOAT32", LEAT_FLOAT32}, {"FLOAT64", LEAT_FLOAT64},
        {"INT32", LEAT_INT32},     {"INT64", LEAT_INT64},
        {"UINT8", LEAT_UINT8},     {NULL, 0}};
    static const leat__prototxt_enum on_error[] = {
        {"FAIL", LEAT_ON_ERROR_FAIL},
        {"ZERO", LEAT_ON_ERROR_ZERO},
        {"REPLACE", LEAT_ON_ERROR_REPLACE},
        {NULL, 0}};
    static const leat__prototxt_enum transform_on[] = {
        {"CPU", LEAT_TRANSFORM_ON_CPU},
        {"DEVICE", LEAT_TRANSFORM_ON_DEVICE},
        {NULL, 0}};
    leat_data_layer_options *options = &in->out->options;
    int words[] = {(int)options->rng,         (int)options->reader_thread,
                   (int)options->layout,      (int)options->top_mode,
                   (int)options->top_type,    (int)options->label_type,
                   (int)options->on_error,    (int)options->transform_on,
                   (int)options->caller_helps};
    int status = read_word(in, "rng", rng, &words[0]);
    if (!status)
        status = read_word(in, "reader_thread", reader_thread, &words[1]);
    if (!status)
        status = read_word(in, "layout", layout, &words[2]);
    if (!status)
        status = read_word(in, "top_mode", top_mode, &words[3]);
    if (!status)
        status = read_word(in, "top_type", top_type, &words[4]);
    if (!status)
        status = read_word(in, "label_type", label_type, &words[5]);
    if (!status)
        status = refuse_skip(in);
    if (!status)
        status = read_word(in, "on_error", on_error, &words[6]);
    if (!status)
        status = read_word(in, "transform_on", transform_on, &words[7]);
    if (!status)
        status = read_word(in, "caller_helps", caller_helps, &words[8]);
    options->rng = (leat_rng)words[0];
    options->reader_thread = (leat_reader_thread)words[1];
    options->layout = (leat_layout)words[2];
    options->top_mode = (leat_top_mode)words[3];
    options->top_type = (leat_dtype)words[4];
    options->label_type = (leat_dtype)words[5];
    options->on_error = (leat_on_error)words[6];
    options->transform_on = (leat_transform_on)words[7];
    options->caller_helps = (leat_caller_helps)words[8];
    return status;
}

static int read_bytes(const reading *in, const char *name, size_t *out)
{
    uint64_t bytes;
    const field *value = find(in->own, name);
    int status = value ? leat__prototxt_uint64(in->file, value, &bytes) : 0;
    if (value && !status)
        *out = bytes < SIZE_MAX ? bytes : SIZE_MAX;
    return status;
}

/* What becomes of bad records; on_error is read. */
static int read_errors(const reading *in)
{
    leat_data_layer_options *options = &in->out->options;
    const field *most = find(in->own, "max_errors");
    const field *list = find(in->own, "bad_record_file");
    int status = LEAT_OK;
    if (most)
        status = leat__prototxt_int64(in->file, most, &options->max_errors);
    if (most)
        options->has_max_errors = 1;
    if (!status && most && options->max_errors < -1)
        return leat__prototxt_error(
            in->file, most->value_at,
            "max_errors: expected 0 or more, or -1 for no limit, found %lld",
            (long long)options->max_errors);
    if (!status && most && options->max_errors >= 0 &&
        options->on_error == LEAT_ON_ERROR_FAIL)
        return leat__prototxt_error(in->file, most->at,
                                    "max_errors: expected on_error ZERO or "
                                    "REPLACE beside it, found FAIL");
    if (!status && list)
        status = read_path(in, list, &options->bad_record_file);
    return status;
}

/* The numbers of leat_param. */
static int read_own(const reading *in)
{
    leat_data_layer_options *options = &in->out->options;
    const field *value;
    int status = read_bytes(in, "max_memory", &options->max_memory);
    if (!status)
        status = read_bytes(in, "max_image_bytes", &options->max_image_bytes);
    if (!status && (value = find(in->own, "random_seed"))) {
        status = leat__prototxt_int64(in->file, value, &options->random_seed);
        options->has_random_seed = 1;
    }
    if (!status && (value = find(in->own, "workers")))
        status = read_int(in, value, 0, WORKERS_MAX, &options->workers);
    if (!status && (value = find(in->own, "rank")))
        status = read_int(in, value, 0, INT_MAX, &options->rank);
    if (!status && (value = find(in->own, "world_size")))
        status = read_int(in, value, 0, LEAT__WORLD_MAX, &options->world_size);
    if (!status && (value = find(in->own, "shard_test")))
        status = leat__prototxt_bool(in->file, value, &options->shard_test);
    if (!status)
        status = read_words(in);
    return status ? status : read_errors(in);
}

static int read_all(const reading *in)
{
    int status = start_transform(in->out);
    if (!status)
        status = read_layer(in);
    if (!status)
        status = read_transform(in);
    if (!status)
        status = read_source(in);
    if (!status)
        status = read_batch(in);
    if (!status)
        status = read_prefetch(in);
    if (!status)
        status = read_own(in);
    if (!status)
        warn_of_idle(in);
    return status;
}

static int read_net(leat__net_param *out, leat_phase phase,
                    const leat_data_layer_options *choice)
{
    leat__net_state state;
    leat__net_choice chosen;
    reading in = {.out = out, .file = &out->file};
    leat_data_layer_options asked = LEAT_DATA_LAYER_OPTIONS_INIT;
    if (choice)
        memcpy(&asked, choice,
               choice->size < sizeof(asked) ? choice->size : sizeof(asked));
    int status = start_options(out, choice);
    if (!status)
        status = leat__net_state_read(&state, in.file, phase, asked.stages,
                                      asked.level);
    if (!status)
        status = leat__net_choice_find(&chosen, &state, asked.layer);
    if (status)
        return status;
    out->options.phase = phase;
    out->options.level = state.level;
    in.form = chosen.form;
    in.layer = chosen.layer;
    in.described = chosen.v0 ? chosen.v0 : chosen.layer;
    in.data = chosen.v0 ? chosen.v0 : find(in.layer, "data_param");
    in.transform = chosen.v0 ? NULL : find(in.layer, "transform_param");
    in.own = find(in.layer, "leat_param");
    return read_all(&in);
}

int leat__net_param_parse(leat__net_param *out, const char *name,
                          const char *text, size_t size, leat_phase phase,
                          const leat_data_layer_options *choice)
{
    memset(out, 0, sizeof(*out));
    int status = leat__prototxt_parse(&out->file, name, text, size);
    if (status)
        return status;
    status = keep(out, &out->file.name);
    if (!status)
        status = read_net(out, phase, choice);
    if (status)
        leat__prototxt_finish(&out->file);
    return status;
}

void leat__net_param_finish(leat__net_param *param)
{
    leat__prototxt_finish(&param->file);
}
