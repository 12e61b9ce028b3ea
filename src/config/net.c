#include <leat/config.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "config/net_param.h"

/* Larger than any net; weights in text are not what leat is for. */
#define NET_BYTES_MAX ((size_t)16 << 20)

struct leat_net {
    leat__net_param param;
    leat_pipeline *pipeline;
};

static int make_pipeline(leat_net *net)
{
    const leat__net_param *param = &net->param;
    int status = param->reader
                     ? leat_pipeline_parse(&net->pipeline, param->reader)
                     : leat_pipeline_lmdb(&net->pipeline, param->source, NULL);
    if (status < 0)
        return leat__error_context(status, "%s:%d:%d", param->file.name,
                                   param->source_at.line,
                                   param->source_at.column);
    return status;
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
    status = make_pipeline(net);
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
