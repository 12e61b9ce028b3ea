#include "pipeline/pipeline.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/reader_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The longest chain of readers; they are opened and freed recursively. */
#define DEPTH_MAX 64

/* `upstream | name:arguments`; several upstreams are in parentheses. */
static int make_text(leat_pipeline *pipeline, const char *arguments)
{
    size_t size = strlen(pipeline->type->name) + strlen(arguments) + 8;
    for (int i = 0; i < pipeline->nupstream; i++)
        size += strlen(pipeline->upstream[i]->text) + 8;
    char *text = leat__alloc(size);
    if (!text)
        return LEAT_ENOMEM;
    size_t used = 0;
    bool several = pipeline->nupstream > 1;
    for (int i = 0; i < pipeline->nupstream; i++)
        used += (size_t)snprintf(text + used, size - used,
                                 several ? "(%s) " : "%s ",
                                 pipeline->upstream[i]->text);
    if (pipeline->nupstream > 0)
        used += (size_t)snprintf(text + used, size - used, "| ");
    snprintf(text + used, size - used, "%s%s%s", pipeline->type->name,
             arguments[0] ? ":" : "", arguments);
    pipeline->text = text;
    pipeline->own = text + used;
    return LEAT_OK;
}

static int check_upstream(const leat_reader_type *type, int n)
{
    if (n >= type->min_upstream && n <= type->max_upstream)
        return LEAT_OK;
    if (type->max_upstream == 0)
        return leat_error(LEAT_EINVAL,
                          "\"%s\" reads storage: it cannot follow another "
                          "reader",
                          type->name);
    return leat_error(LEAT_EINVAL,
                      "\"%s\" reads %d to %d other readers, got "
                      "%d",
                      type->name, type->min_upstream, type->max_upstream, n);
}

static int fill(leat_pipeline *pipeline, const char *arguments,
                leat_pipeline *const upstream[], int n)
{
    int status = check_upstream(pipeline->type, n);
    if (status)
        return status;
    status = leat__args_parse(&pipeline->args, arguments);
    if (status)
        return status;
    status = leat__args_check(&pipeline->args, pipeline->type);
    if (status)
        return status;
    pipeline->upstream =
        leat__alloc_zero((size_t)n, sizeof(*pipeline->upstream));
    if (!pipeline->upstream)
        return LEAT_ENOMEM;
    for (int i = 0; i < n; i++) {
        pipeline->upstream[i] = upstream[i];
        leat_pipeline_ref(upstream[i]);
        if (pipeline->depth < upstream[i]->depth)
            pipeline->depth = upstream[i]->depth;
    }
    pipeline->nupstream = n;
    if (++pipeline->depth > DEPTH_MAX)
        return leat_error(LEAT_EINVAL, "more than %d readers in a chain",
                          DEPTH_MAX);
    return make_text(pipeline, arguments);
}

int leat_pipeline_create(leat_pipeline **out, const leat_reader_type *type,
                         const char *text, void *object,
                         void (*release)(void *object),
                         leat_pipeline *const upstream[], int n)
{
    int status = leat__reader_type_check(type);
    leat_pipeline *pipeline =
        status ? NULL : leat__alloc_zero(1, sizeof(*pipeline));
    if (!pipeline) {
        if (release)
            release(object);
        return status ? status : LEAT_ENOMEM;
    }
    atomic_init(&pipeline->references, 1);
    pipeline->type = type;
    pipeline->release = release;
    status = fill(pipeline, text ? text : "", upstream, n);
    pipeline->args.object = object;
    if (status) {
        leat_pipeline_unref(pipeline);
        return status;
    }
    *out = pipeline;
    return LEAT_OK;
}

void leat_pipeline_ref(leat_pipeline *pipeline)
{
    atomic_fetch_add_explicit(&pipeline->references, 1, memory_order_relaxed);
}

void leat_pipeline_unref(leat_pipeline *pipeline)
{
    if (!pipeline || atomic_fetch_sub(&pipeline->references, 1) > 1)
        return;
    for (int i = 0; i < pipeline->nupstream; i++)
        leat_pipeline_unref(pipeline->upstream[i]);
    if (pipeline->release)
        pipeline->release(pipeline->args.object);
    leat__args_finish(&pipeline->args);
    leat__free(pipeline->upstream);
    leat__free(pipeline->text);
    leat__free(pipeline->origin);
    leat__free(pipeline);
}

int leat__pipeline_set_origin(leat_pipeline *pipeline, const char *origin)
{
    size_t size = strlen(origin) + 1;
    char *copy = leat__alloc(size);
    if (!copy)
        return LEAT_ENOMEM;
    leat__free(pipeline->origin);
    pipeline->origin = memcpy(copy, origin, size);
    return LEAT_OK;
}

const char *leat_pipeline_text(const leat_pipeline *pipeline)
{
    return pipeline->text;
}

bool leat__pipeline_may_block(const leat_pipeline *pipeline)
{
    if (pipeline->type->may_block)
        return true;
    for (int i = 0; i < pipeline->nupstream; i++) {
        if (leat__pipeline_may_block(pipeline->upstream[i]))
            return true;
    }
    return false;
}

bool leat__pipeline_has_upstream(const leat_pipeline *pipeline)
{
    return pipeline->nupstream > 0;
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    return hash;
}

uint64_t leat__pipeline_hash(const leat_pipeline *pipeline)
{
    if (pipeline->nupstream == 0)
        return hash_text(0xcbf29ce484222325u, pipeline->type->name);
    uint64_t hash = 0;
    for (int i = 0; i < pipeline->nupstream; i++)
        hash = hash * 31 + leat__pipeline_hash(pipeline->upstream[i]);
    return hash_text(hash, pipeline->own);
}
