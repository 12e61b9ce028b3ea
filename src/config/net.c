#include "config/net.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "config/lexer.h"
#include "config/net_param.h"
#include "data/mean.h"
#include "pipeline/pipeline.h"
#include "pipeline/pipeline_text.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Larger than any net without weights. */
#define NET_BYTES_MAX ((size_t)16 << 20)

struct leat_net {
    leat__net_param param;
    leat_pipeline *pipeline;
};

static int place_error(const leat_net *net, leat__prototxt_location at,
                       int status)
{
    return leat__error_context(status, "%s:%d:%d", net->param.file.name,
                               at.line, at.column);
}

/* Errors of opening the pipeline begin with the location of its source. */
static int set_origin(const leat_net *net)
{
    char origin[LEAT__ERROR_MAX];
    snprintf(origin, sizeof(origin), "%s:%d:%d", net->param.file.name,
             net->param.source_at.line, net->param.source_at.column);
    int status = leat__pipeline_set_origin(net->pipeline, origin);
    if (status)
        leat_pipeline_unref(net->pipeline);
    return status;
}

/* An error in the reader's text has its own location in the file, not that of
 * the string. */
static int parse_reader(leat_net *net, const char *text, size_t size,
                        leat__prototxt_location *at)
{
    const char *reader = net->param.reader;
    const char *fault;
    int status = leat__pipeline_parse(&net->pipeline, reader, &fault);
    if (status && fault)
        *at = leat__lexer_locate(text, size, *at, (size_t)(fault - reader));
    return status;
}

/* The pipeline, with its samples in another order in each epoch. */
static int shuffle(leat_net *net)
{
    leat_pipeline *source = net->pipeline;
    int status = leat_pipeline_shuffle(&net->pipeline, source, NULL);
    leat_pipeline_unref(source);
    return status;
}

static int make_pipeline(leat_net *net, const char *text, size_t size)
{
    const leat__net_param *param = &net->param;
    leat__prototxt_location at = param->source_at;
    int status = param->reader
                     ? parse_reader(net, text, size, &at)
                     : leat_pipeline_lmdb(&net->pipeline, param->source, NULL);
    if (!status && param->shuffle)
        status = shuffle(net);
    if (!param->source_at.line) /* the caller's source, not the file's */
        return status;
    return status ? place_error(net, at, status) : set_origin(net);
}

/* Loading it again leaves the same line. */
static bool is_of_mean(const leat_net *net, const char *line)
{
    leat__mean mean;
    char again[LEAT__ERROR_MAX];
    if (net->param.mean_at.line == 0)
        return false;
    if (leat__mean_load(&mean, net->param.transform.mean_file) == LEAT_OK) {
        leat__mean_finish(&mean);
        return false;
    }
    leat__error_save(again);
    return strcmp(line, again) == 0;
}

int leat__net_blame(const leat_net *net, int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    if (is_of_mean(net, line))
        return place_error(net, net->param.mean_at, status);
    return leat_error(status, "%s: %s", net->param.file.name, line);
}

int leat_net_parse(leat_net **out, const char *name, const char *text,
                   size_t size, leat_phase phase,
                   const leat_data_layer_options *choice)
{
    leat_net *net = leat__alloc_zero(1, sizeof(*net));
    if (!net)
        return LEAT_ENOMEM;
    int status =
        leat__net_param_parse(&net->param, name, text, size, phase, choice);
    if (status)
        goto fail_net;
    status = make_pipeline(net, text, size);
    if (status)
        goto fail_param;
    *out = net;
    return LEAT_OK;
fail_param:
    leat__net_param_finish(&net->param);
fail_net:
    leat__free(net);
    return status;
}

int leat_net_open(leat_net **out, const char *prototxt, leat_phase phase,
                  const leat_data_layer_options *choice)
{
    char *text;
    size_t size;
    int status = leat__file_read(&text, &size, prototxt, NET_BYTES_MAX);
    if (status)
        return status;
    status = leat_net_parse(out, prototxt, text, size, phase, choice);
    leat__free(text);
    return status;
}

const leat_data_layer_options *leat_net_options(const leat_net *net)
{
    return &net->param.options;
}

leat_pipeline *leat_net_pipeline(const leat_net *net)
{
    return net->pipeline;
}

int leat_net_top_count(const leat_net *net)
{
    return net->param.ntops;
}

const char *leat_net_top_name(const leat_net *net, int i)
{
    return i >= 0 && i < net->param.ntops ? net->param.tops[i] : NULL;
}

void leat_net_close(leat_net *net)
{
    if (!net)
        return;
    leat_pipeline_unref(net->pipeline);
    leat__net_param_finish(&net->param);
    leat__free(net);
}
