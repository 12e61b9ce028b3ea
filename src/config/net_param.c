#include "config/net_param.h"
#include "base/error.h"
#include "base/log.h"
#include "base/option_list.h"
#include "base/options.h"
#include "config/net_choice.h"
#include "config/net_option.h"
#include "config/net_schema.h"
#include "config/net_transform.h"
#include "data/transform.h"
#include "layer/options/data_layer_options.h"

#include <string.h>

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

/* Stores what a field says of the data layer's option of that name. */
static int read_named(const reading *in, const char *name, const field *value)
{
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    return leat__net_option_read(in->file, leat__option_find(list, n, name),
                                 value, &in->out->options);
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

/* The caller's options without what only chooses the layer. */
static int start_options(leat__net_param *out,
                         const leat_data_layer_options *asked)
{
    leat_data_layer_options options = *asked;
    options.layer = NULL;
    options.stages = NULL;
    options.tops = NULL;
    options.top = NULL;
    options.ntop = 0;
    out->source = options.source;
    options.source = NULL;
    out->mean_file = options.mean_file;
    options.mean_file = NULL;
    out->options = options;
    keep_allocator(&out->host_allocator, &out->options.host_allocator);
    keep_allocator(&out->pinned_allocator, &out->options.pinned_allocator);
    int n, status = keep(out, &out->source);
    if (!status)
        status = keep(out, &out->mean_file);
    const leat_option *list = leat_data_layer_option_list(&n);
    for (int i = 0; i < n && !status; i++)
        if (list[i].type == LEAT_OPTION_TEXT)
            status = keep(
                out, (const char **)((char *)&out->options + list[i].offset));
    return status;
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

/* Caffe's tops, of which there are two at most. */
static int read_top_names(const reading *in)
{
    leat__net_param *out = in->out;
    const field *value = find(in->layer, "top");
    for (; value; value = leat__prototxt_find_next(value)) {
        if (out->ntops == 2)
            return leat__prototxt_error(
                in->file, value->at,
                "a data layer gives at most 2 tops, data and label");
        int status =
            leat__net_option_text(in->file, value, &out->tops[out->ntops]);
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
    return LEAT_OK;
}

/* The layer's own name, tops and phase. */
static int read_layer(const reading *in)
{
    leat__net_param *out = in->out;
    const field *value = find(in->described, "name");
    int status =
        value ? leat__net_option_text(in->file, value, &out->options.name)
              : LEAT_OK;
    if (status)
        return status;
    value = find(in->layer, "bottom");
    if (value)
        return leat__prototxt_error(in->file, value->at,
                                    "a data layer takes no bottom");
    status = find(in->own, "top") ? LEAT_OK : read_top_names(in);
    if (status)
        return status;
    int phase = (int)out->options.phase;
    value = find(in->layer, "phase");
    if (value)
        status = leat__prototxt_enum_value(in->file, value,
                                           leat__net_schema_phase, &phase);
    out->options.phase = (leat_phase)phase;
    return status;
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
        return leat__net_option_path(in->file, reader, &out->reader);
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
    return leat__net_option_path(in->file, source, &out->source);
}

/* Intel's Caffe shuffles where it is written, in TEST as in TRAIN. */
static int read_shuffle(const reading *in)
{
    const field *value = find(in->data, "shuffle");
    return value ? leat__prototxt_bool(in->file, value, &in->out->shuffle)
                 : LEAT_OK;
}

/*
 * The size of the batch: this rank's in data_param, or that of all ranks. The
 * layer, which knows the ranks, checks whether both agree.
 */
static int read_batch(const reading *in)
{
    leat_data_layer_options *options = &in->out->options;
    const field *mine =
        leat__net_data_find(in->data, in->form == LEAT__NET_V0, "batch_size");
    const field *all = find(in->own, "global_batch_size");
    int status = LEAT_OK;
    if (mine || all)
        options->batch_size = options->global_batch_size = 0;
    if (mine)
        status = read_named(in, "batch_size", mine);
    if (!status && all)
        status = read_named(in, "global_batch_size", all);
    if (status || options->batch_size || options->global_batch_size)
        return status;
    return leat__prototxt_error(
        in->file, in->data ? in->data->at : in->layer->at,
        in->form == LEAT__NET_V0
            ? "expected a batchsize in layer, found none"
            : "expected a batch_size in data_param, found none");
}

static int read_prefetch(const reading *in)
{
    const field *value = find(in->data, "prefetch");
    const field *own = find(in->own, "prefetch");
    if (value && own)
        return leat__prototxt_error(
            in->file, own->at,
            "expected prefetch in data_param or in leat_param, found both");
    return value ? read_named(in, "prefetch", value) : LEAT_OK;
}

/* All that leat_param says but for the reader, and the defaults. */
static int read_own(const reading *in)
{
    leat_data_layer_options *options = &in->out->options;
    int n, status = LEAT_OK;
    const leat_option *list = leat_data_layer_option_list(&n);
    for (int i = 0; i < n && !status; i++) {
        const field *value = list[i].field ? find(in->own, list[i].name) : NULL;
        if (value)
            status = leat__net_option_read(in->file, &list[i], value, options);
    }
    const field *most = find(in->own, "max_errors");
    if (!status && most && options->max_errors >= 0 &&
        options->on_error == LEAT_ON_ERROR_FAIL)
        return leat__prototxt_error(in->file, most->at,
                                    "max_errors: expected on_error ZERO or "
                                    "REPLACE beside it, found FAIL");
    leat__data_layer_options_complete(options);
    return status;
}

/* The caller's mean, in place of the file's. */
static void replace_mean(leat__net_param *out)
{
    out->transform.mean_file = out->mean_file;
    out->transform.mean_value = NULL;
    out->transform.mean_values = 0;
    out->mean_at = (leat__prototxt_location){0};
}

/* transform_param, four of whose fields old files have in data_param. */
static int read_transform(const reading *in)
{
    leat__net_param *out = in->out;
    const leat__net_transform from = {
        .file = &out->file,
        .message = in->transform,
        .old = in->form == LEAT__NET_V2 ? NULL : in->data,
        .is_v0 = in->form == LEAT__NET_V0,
        .mean_at = &out->mean_at,
    };
    int status = leat__net_transform_read(&from, &out->transform);
    if (!status && out->mean_file)
        replace_mean(out);
    return status;
}

/* leat_param's tops, and that the layer's own lines name the same. */
static int read_tops(const reading *in)
{
    leat__net_param *out = in->out;
    int status =
        leat__net_tops_read(&out->list, &out->file, &out->transform,
                            find(in->own, "top"), find(in->layer, "top"));
    if (status || out->list.n == 0)
        return status;
    out->options.top = out->list.top;
    out->options.ntop = out->list.n;
    out->options.tops = NULL;
    out->ntops = out->list.nnames;
    for (int i = 0; i < out->ntops; i++)
        out->tops[i] = out->list.name[i];
    return LEAT_OK;
}

static int read_all(const reading *in)
{
    int status = start_transform(in->out);
    if (!status)
        status = read_layer(in);
    if (!status)
        status = read_transform(in);
    if (!status)
        status = read_tops(in);
    if (!status)
        status = read_source(in);
    if (!status)
        status = read_shuffle(in);
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
    int status = leat__options_copy(&asked, choice, sizeof(asked));
    if (status)
        return leat__error_context(status, "the data layer");
    status = start_options(out, &asked);
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
