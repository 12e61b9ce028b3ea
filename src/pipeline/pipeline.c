#include "pipeline/pipeline.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/argument_table.h"

#include <stdio.h>
#include <string.h>

/* All readers of a pipeline: a text names each, and opening opens each. */
#define READERS_MAX ((int64_t)1 << 20)

static char *append(char *to, const char *text)
{
    size_t size = strlen(text);
    memcpy(to, text, size);
    return to + size;
}

/* `upstream | name:arguments`; several upstreams are in parentheses. */
static char *write_text(const leat_pipeline *pipeline, const char *arguments)
{
    size_t size = strlen(pipeline->type->name) + strlen(arguments) + 4;
    for (int i = 0; i < pipeline->nupstream; i++)
        size += strlen(pipeline->upstream[i]->text) + 3;
    char *text = leat__alloc(size);
    if (!text)
        return NULL;
    char *to = text;
    bool several = pipeline->nupstream > 1;
    for (int i = 0; i < pipeline->nupstream; i++) {
        to = append(to, several ? "(" : "");
        to = append(to, pipeline->upstream[i]->text);
        to = append(to, several ? ") " : " ");
    }
    to = append(to, pipeline->nupstream > 0 ? "| " : "");
    to = append(to, pipeline->type->name);
    to = append(to, arguments[0] ? ":" : "");
    to = append(to, arguments);
    *to = 0;
    return text;
}

static int make_text(leat_pipeline *pipeline)
{
    char *arguments = leat__args_write(&pipeline->args);
    if (!arguments)
        return LEAT_ENOMEM;
    pipeline->text = write_text(pipeline, arguments);
    leat__free(arguments);
    return pipeline->text ? LEAT_OK : LEAT_ENOMEM;
}

/* Whether the samples are those of the only upstream reader, in any epoch. */
static bool is_transparent(const leat_pipeline *pipeline)
{
    int passes_on = pipeline->type->passes_on;
    return pipeline->nupstream == 1 && passes_on != 0 &&
           !(passes_on == 2 && pipeline->upstream[0]->varies);
}

static uint64_t make_hash(const leat_pipeline *pipeline)
{
    const leat_reader_type *type = pipeline->type;
    const void *object = pipeline->args.object;
    char id[20];
    if (is_transparent(pipeline))
        return pipeline->upstream[0]->hash;
    uint64_t hash = pipeline->nupstream == 0 ? 0xcbf29ce484222325u : 0;
    for (int i = 0; i < pipeline->nupstream; i++)
        hash = hash * 31 + pipeline->upstream[i]->hash;
    hash = leat__hash_text(hash, type->name);
    hash = leat__args_hash(&pipeline->args, hash);
    if (!object || !type->object_id)
        return hash;
    snprintf(id, sizeof(id), "|%016llx",
             (unsigned long long)type->object_id(object));
    return leat__hash_text(hash, id);
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

static int check_size(const leat_pipeline *pipeline)
{
    if (pipeline->depth > LEAT__PIPELINE_DEPTH_MAX)
        return leat_error(LEAT_EINVAL, "more than %d readers in a chain",
                          LEAT__PIPELINE_DEPTH_MAX);
    if (pipeline->readers > READERS_MAX)
        return leat_error(LEAT_EINVAL, "more than %lld readers in a pipeline",
                          (long long)READERS_MAX);
    if (pipeline->routes == UINT64_MAX)
        return leat_error(
            LEAT_EINVAL,
            "the ways of a sample through \"%s\" and what it "
            "reads are more than 64 bits can tell apart: expected "
            "fewer readers of several others in each other",
            pipeline->type->name);
    return LEAT_OK;
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

/* What the reader adds to a deferred sample's route: its upstream reader, or
 * the depth in the chain of a shared one. */
static void multiply_routes(leat_pipeline *pipeline)
{
    uint64_t own = pipeline->type->opens_upstream
                       ? LEAT__PIPELINE_DEPTHS
                       : (uint64_t)pipeline->nupstream;
    if (own > 1 &&
        __builtin_mul_overflow(pipeline->routes, own, &pipeline->routes))
        pipeline->routes = UINT64_MAX;
}

/* Shares the upstream pipelines, and takes what follows from them. */
static int adopt_upstream(leat_pipeline *pipeline,
                          leat_pipeline *const upstream[], int n)
{
    pipeline->upstream =
        leat__alloc_zero((size_t)n, sizeof(*pipeline->upstream));
    if (!pipeline->upstream)
        return LEAT_ENOMEM;
    pipeline->routes = 1;
    for (int i = 0; i < n; i++) {
        pipeline->upstream[i] = upstream[i];
        leat_pipeline_ref(upstream[i]);
        pipeline->depth = max(pipeline->depth, upstream[i]->depth);
        pipeline->readers += upstream[i]->readers;
        pipeline->ahead += upstream[i]->ahead;
        if (upstream[i]->routes > pipeline->routes)
            pipeline->routes = upstream[i]->routes;
        pipeline->may_block |= upstream[i]->may_block;
        pipeline->draws_seed |= upstream[i]->draws_seed;
        pipeline->draws_names |= upstream[i]->draws_names;
        pipeline->varies |= upstream[i]->varies;
    }
    pipeline->nupstream = n;
    multiply_routes(pipeline);
    return LEAT_OK;
}

/* The same for the reader's own type, and the pipelines in its arguments. */
static void adopt_arguments(leat_pipeline *pipeline)
{
    const leat_reader_type *type = pipeline->type;
    const leat_args *args = &pipeline->args;
    const leat_argument *seed = leat__argument_find(type, "seed");
    bool draws = seed && !seed->initial && !leat__args_value(args, seed);
    bool draws_upstream = pipeline->draws_seed || draws;
    for (int i = 0; i < args->n; i++) {
        bool is_template = args->value[i].depth > 0;
        pipeline->depth = max(pipeline->depth, args->value[i].depth);
        pipeline->ahead += args->value[i].ahead > 0;
        pipeline->may_block |= args->value[i].may_block;
        pipeline->draws_seed |= args->value[i].draws_seed;
        pipeline->draws_names |=
            args->value[i].draws_names || (is_template && draws_upstream);
        pipeline->varies |= args->value[i].varies;
    }
    pipeline->depth++;
    pipeline->readers++;
    pipeline->ahead += type->reads_ahead;
    pipeline->may_block |= type->may_block;
    pipeline->keeps_order = pipeline->nupstream == 0 || type->keeps_order;
    for (int i = 0; i < pipeline->nupstream; i++)
        pipeline->keeps_order &= pipeline->upstream[i]->keeps_order;
    pipeline->draws_seed |= draws;
    pipeline->varies = type->passes_on != 2 && (pipeline->varies || seed);
}

static int fill(leat_pipeline *pipeline, leat_pipeline *const upstream[], int n)
{
    int status = check_upstream(pipeline->type, n);
    if (!status)
        status = leat__args_check(&pipeline->args);
    if (!status)
        status = adopt_upstream(pipeline, upstream, n);
    if (status)
        return status;
    adopt_arguments(pipeline);
    status = check_size(pipeline);
    if (!status)
        status = make_text(pipeline);
    if (!status)
        pipeline->hash = make_hash(pipeline);
    return status;
}

int leat__pipeline_make(leat_pipeline **out, leat_args args,
                        leat__pipeline_object object,
                        leat_pipeline *const upstream[], int n)
{
    leat_pipeline *pipeline = leat__alloc_zero(1, sizeof(*pipeline));
    if (!pipeline) {
        leat__args_finish(&args);
        if (object.release)
            object.release(object.object);
        return LEAT_ENOMEM;
    }
    atomic_init(&pipeline->references, 1);
    pipeline->type = args.type;
    pipeline->args = args;
    pipeline->args.object = object.object;
    pipeline->release = object.release;
    int status = fill(pipeline, upstream, n);
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
    char *copy = leat__strdup(origin);
    if (!copy)
        return LEAT_ENOMEM;
    leat__free(pipeline->origin);
    pipeline->origin = copy;
    return LEAT_OK;
}

const char *leat_pipeline_text(const leat_pipeline *pipeline)
{
    return pipeline->text;
}

const leat_pipeline *leat_pipeline_upstream_at(const leat_pipeline *pipeline,
                                               int i)
{
    return i >= 0 && i < pipeline->nupstream ? pipeline->upstream[i] : NULL;
}

bool leat__pipeline_may_block(const leat_pipeline *pipeline)
{
    return pipeline->may_block;
}

bool leat__pipeline_draws_seed(const leat_pipeline *pipeline)
{
    return pipeline->draws_seed;
}

bool leat__pipeline_keeps_order(const leat_pipeline *pipeline)
{
    return pipeline->keeps_order;
}

size_t leat__pipeline_stack(const leat_pipeline *pipeline)
{
    enum { FEW = 8, OF_SEVERAL = 32 << 10, OF_EACH = 4 << 10 };
    size_t bytes = LEAT__STACK_MIN;
    if (pipeline->depth > 1)
        bytes += OF_SEVERAL;
    if (pipeline->depth > FEW)
        bytes += (size_t)(pipeline->depth - FEW) * OF_EACH;
    return bytes;
}

uint64_t leat__pipeline_hash(const leat_pipeline *pipeline)
{
    return pipeline->hash;
}
