/* A data layer: a hidden group of one, or one member of many; its resume. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/blob.h"
#include "data/token.h"
#include "layer/layer_state.h"
#include "pipeline/pipeline.h"

#include <string.h>

int leat_data_layer_create(leat_data_layer **out, const leat_pipeline *pipeline,
                           const leat_data_layer_options *options)
{
    if (!pipeline || !options)
        return leat_error(LEAT_EINVAL,
                          "a data layer needs a pipeline and options");
    leat_data_layer_group *group;
    int status = leat__group_create(&group, pipeline, options, NULL, 1, true);
    if (!status)
        *out = &group->member[0];
    return status;
}

void leat_data_layer_destroy(leat_data_layer *layer)
{
    if (!layer)
        return;
    if (layer->group->is_alone)
        leat_data_layer_group_destroy(layer->group);
    else
        leat_data_layer_group_cancel(layer->group);
}

void leat_data_layer_cancel(leat_data_layer *layer)
{
    leat_data_layer_group_cancel(layer->group);
}

int leat__data_layer_stick(leat_data_layer *layer, int status, const char *line)
{
    leat__prefetcher *prefetcher = layer->group->prefetcher;
    if (prefetcher)
        leat__prefetcher_end(prefetcher, status, line);
    layer->sticky = status;
    memcpy(layer->sticky_line, line, sizeof(layer->sticky_line));
    return leat_error(status, "%s", line);
}

int leat__data_layer_check_alone(const leat_data_layer *layer,
                                 const char *function)
{
    if (layer->group->is_alone)
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s is of a group of %d: expected "
                      "leat_data_layer_group_%s",
                      layer->name, layer->group->n, function);
}

int leat_data_layer_setup(leat_data_layer *layer, leat_blob *const top[],
                          int ntop)
{
    int status = leat__data_layer_check_alone(layer, "setup");
    return status ? status
                  : leat_data_layer_group_setup(layer->group, top, ntop);
}

leat_blob *leat_data_layer_top(const leat_data_layer *layer, int i)
{
    int n = layer->top[0] ? layer->group->ntop : 0;
    if (i >= 0 && i < n)
        return layer->top[i];
    (void)leat_error(LEAT_EINVAL,
                     "%s: there is no top %d of the layer's own, but %d; a "
                     "setup without blobs makes them",
                     layer->name, i, n);
    return NULL;
}

const leat_pipeline *leat_data_layer_pipeline(const leat_data_layer *layer)
{
    return layer->group->pipeline;
}

const leat_data_layer_options *
leat_data_layer_get_options(const leat_data_layer *layer)
{
    return &layer->values;
}

uint64_t leat_data_layer_seed(const leat_data_layer *layer)
{
    return layer->group->seed;
}

/* One for each field; of a list what its fields make of it. */
static int count_tops(const leat_data_layer_group *group)
{
    leat_reader *reader;
    if (group->options.list.n > 0 && !group->options.list.is_variable)
        return group->plan.n;
    const leat_open_options options = leat__group_open_options(group);
    int status = leat_pipeline_open_with(group->pipeline, &options, &reader);
    if (status)
        return status;
    const leat_field_spec *fields;
    int n;
    status = leat_reader_fields(reader, &fields, &n);
    leat__top_plan *plan = NULL;
    if (!status && group->options.list.n > 0) {
        plan = leat__alloc(sizeof(*plan));
        status = plan ? leat__top_plan_list(plan, &group->options.list,
                                            group->options.values.top_type,
                                            fields, n)
                      : LEAT_ENOMEM;
        n = status ? 0 : plan->n;
    }
    leat__free(plan);
    leat_reader_close(reader);
    return status ? status : n;
}

int leat_data_layer_top_count(const leat_data_layer *layer)
{
    const leat_data_layer_group *group = layer->group;
    int status = leat__group_check_process(group);
    if (status)
        return status;
    if (group->ntop > 0)
        return group->ntop;
    if (group->options.ntop > 0)
        return group->options.ntop;
    int cancel = leat__cancel_disable();
    status = count_tops(group);
    leat__cancel_restore(cancel);
    return status;
}

/* A reader without an end may not know its count: LEAT_ENDLESS then too. */
static int count_of(leat_reader *reader, int64_t *out)
{
    int status = leat_reader_count(reader, out);
    if (status != LEAT_EUNSUPPORTED || !leat_reader_is_endless(reader))
        return status;
    *out = LEAT_ENDLESS;
    return LEAT_OK;
}

static int count_samples(const leat_data_layer_group *group, int64_t *out)
{
    leat_reader *reader;
    if (group->reader)
        return count_of(leat__data_reader_reader(group->reader), out);
    const leat_open_options options = leat__group_open_options(group);
    int status = leat_pipeline_open_with(group->pipeline, &options, &reader);
    if (status)
        return status;
    status = count_of(reader, out);
    leat_reader_close(reader);
    return status;
}

int leat_data_layer_count(const leat_data_layer *layer, int64_t *n)
{
    int status = leat__group_check_process(layer->group);
    if (status)
        return status;
    int cancel = leat__cancel_disable();
    status = count_samples(layer->group, n);
    leat__cancel_restore(cancel);
    return status;
}

int leat_data_layer_slots(const leat_data_layer *layer)
{
    int status = leat__group_check_process(layer->group);
    if (status)
        return status;
    if (!layer->group->prefetcher)
        return leat_error(LEAT_ESTATE, "%s: no slots %s", layer->name,
                          layer->group->ntop > 0 ? "after a restore that failed"
                                                 : "before setup");
    return leat__prefetcher_slots(layer->group->prefetcher, layer->number);
}

const char *leat_data_layer_top_name(const leat_data_layer *layer, int i)
{
    static const char *const usual[] = {"data", "label"};
    const leat_data_layer_group *group = layer->group;
    if (i < 0 || i >= LEAT_MAX_FIELDS || (group->ntop > 0 && i >= group->ntop))
        return NULL;
    if (i < group->options.ntop)
        return group->options.top[i];
    if (group->ntop > 0 || group->options.list.n > 0)
        return i < group->plan.n ? group->plan.top[i].name : NULL;
    return i < 2 ? usual[i] : NULL;
}

#define TOKEN_VERSION 1

/* 44 bytes, which with the checksum make 64 letters; then the data set's. */
typedef struct resume_point {
    uint8_t version;
    uint8_t rng;
    uint16_t world_size; /* that shared the sequence; 1: all take everything */
    uint32_t position_low;
    uint32_t position_high;
    uint32_t epoch_low;
    uint32_t epoch_high;
    uint32_t index_low;
    uint32_t index_high;
    uint32_t seed_low;
    uint32_t seed_high;
    uint32_t pipeline_low;
    uint32_t pipeline_high;
} resume_point;

_Static_assert(sizeof(resume_point) == 44, "the token's layout is a format");

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static void split(uint64_t value, uint32_t *low, uint32_t *high)
{
    *low = (uint32_t)value;
    *high = (uint32_t)(value >> 32);
}

static int check_resume(const leat_data_layer_group *group)
{
    return group->cannot_resume
               ? leat_error(LEAT_EUNSUPPORTED, "%s: %s", group->options.name,
                            group->cannot_resume_line)
               : LEAT_OK;
}

int leat_data_layer_group_save(leat_data_layer_group *group, leat_token *token)
{
    leat__position at;
    const leat_token *mark;
    int status = leat__group_check_process(group);
    if (status)
        return status;
    if (group->ntop == 0)
        return leat_error(LEAT_ESTATE, "%s: save before setup",
                          group->options.name);
    status = check_resume(group);
    if (!status)
        status = leat__group_position(group, &at, &mark);
    if (status)
        return status;
    if (group->reads_to_resume)
        leat__log(LEAT_LOG_INFO,
                  "%s: %s cannot seek: a resume reads the samples before it, "
                  "and drops them",
                  group->options.name, leat_pipeline_text(group->pipeline));
    group->reads_to_resume = false;
    resume_point point = {
        .version = TOKEN_VERSION,
        .rng = (uint8_t)group->options.values.rng,
        .world_size = (uint16_t)group->step,
    };
    split((uint64_t)at.position, &point.position_low, &point.position_high);
    split((uint64_t)at.epoch, &point.epoch_low, &point.epoch_high);
    split((uint64_t)at.index, &point.index_low, &point.index_high);
    split(group->seed, &point.seed_low, &point.seed_high);
    split(leat__pipeline_hash(group->pipeline), &point.pipeline_low,
          &point.pipeline_high);
    leat_token saved;
    leat_token_init(&saved);
    status = leat_token_put(&saved, &point, sizeof(point));
    if (!status)
        status =
            leat_token_put(&saved, group->identity.bytes, group->identity.size);
    if (!status)
        status = leat_token_put(&saved, mark->bytes, mark->size);
    if (status) {
        leat_token_finish(&saved);
        return status;
    }
    leat_token_finish(token);
    *token = saved;
    return LEAT_OK;
}

static int check_point(const leat_data_layer_group *group,
                       const resume_point *point)
{
    const leat_data_layer_options *values = &group->options.values;
    if (point->version != TOKEN_VERSION)
        return leat_error(LEAT_EINVAL,
                          "the resume token has version %d, this leat reads %d",
                          point->version, TOKEN_VERSION);
    if (join(point->pipeline_low, point->pipeline_high) !=
        leat__pipeline_hash(group->pipeline))
        return leat_error(LEAT_EINVAL,
                          "the resume token is another pipeline's than %s: "
                          "other readers, or another argument of a decorator, "
                          "such as its seed",
                          leat_pipeline_text(group->pipeline));
    if (point->rng != (uint8_t)values->rng)
        return leat_error(
            LEAT_EINVAL, "the resume token is of another rng than the layer's");
    if (values->rng == LEAT_RNG_CAFFE && point->world_size != group->step)
        return leat_error(LEAT_EINVAL,
                          "rng CAFFE is bound to its world size: saved with "
                          "%d, here %d",
                          point->world_size, group->step);
    uint64_t seed = join(point->seed_low, point->seed_high);
    if (values->random_seed >= 0 && seed != (uint64_t)values->random_seed)
        return leat_error(
            LEAT_EINVAL, "random_seed is %lld, but the resume token's is %llu",
            (long long)values->random_seed, (unsigned long long)seed);
    return LEAT_OK;
}

static int check_position(const leat__position *at)
{
    if (at->position < 0 || at->position > LEAT__POSITION_MAX ||
        at->epoch < 0 || at->epoch > at->position || at->index < 0 ||
        at->index > at->position)
        return leat_error(LEAT_EINVAL, "the resume token names no position");
    return LEAT_OK;
}

/* The rest of the token is the data set's, which must be this one's, and the
 * mark, where the reader has one; a cache that was made since needs none. */
static int check_identity(const leat_data_layer_group *group,
                          const leat_token *token)
{
    size_t left = token->size - token->cursor;
    size_t size = group->identity.size;
    bool may_have_mark = group->has_mark || group->can_seek;
    if ((left == size || (left > size && may_have_mark)) &&
        (size == 0 || memcmp(token->bytes + token->cursor,
                             group->identity.bytes, size) == 0))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "the resume token is of another data set than %s",
                      leat_pipeline_text(group->pipeline));
}

/* Lent tops of the layers' own would keep the batches' memory beside the new
 * one. */
static void let_go_of_tops(leat_data_layer_group *group)
{
    for (int i = 0; i < group->n; i++)
        for (int k = 0; k < group->ntop && group->member[i].top[k]; k++)
            leat__blob_let_go(group->member[i].top[k]);
}

__attribute__((noinline)) static int start_again(leat_data_layer_group *group,
                                                 leat_token *token)
{
    /* From here on a cancel is the restore's. Under the lock no reader's cancel
     * runs, which may cancel the layer again. */
    pthread_mutex_lock(&group->lock);
    atomic_store(&group->cancelled, false);
    pthread_mutex_unlock(&group->lock);
    for (int i = 0; i < group->n; i++)
        leat__data_layer_recall(&group->member[i]);
    leat__group_stop(group);
    let_go_of_tops(group);
    for (int i = 0; i < group->n; i++)
        group->member[i].sticky = LEAT_OK;
    leat__batch_shape shape;
    int status = leat__group_start(group, group->ntop, token, &shape);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        leat__group_stop(group);
        /* No record has a shape: what stays is no fault of one of them. */
        status = status == LEAT_EDATA ? LEAT_EFORMAT : status;
        for (int i = 0; i < group->n; i++)
            (void)leat__data_layer_stick(&group->member[i], status, line);
        return status;
    }
    return LEAT_OK;
}

static int restore(leat_data_layer_group *group, leat_token *token)
{
    int status = leat__group_check_process(group);
    if (!status)
        status = leat__group_check_caller(group);
    if (!status)
        status = leat__thread_check_stack(
            group->options.name, leat__pipeline_stack(group->pipeline));
    if (status)
        return status;
    if (group->ntop == 0)
        return leat_error(LEAT_ESTATE, "%s: restore before setup",
                          group->options.name);
    status = check_resume(group);
    if (status)
        return status;
    resume_point point = {0};
    if (!token)
        return leat_error(LEAT_EINVAL, "%s: there is no resume token",
                          group->options.name);
    token->cursor = 0;
    status = leat_token_get(token, &point, sizeof(point));
    if (!status)
        status = check_point(group, &point);
    if (!status)
        status = check_identity(group, token);
    const leat__position at = {
        .position = (int64_t)join(point.position_low, point.position_high),
        .epoch = (int64_t)join(point.epoch_low, point.epoch_high),
        .index = (int64_t)join(point.index_low, point.index_high),
    };
    if (!status)
        status = check_position(&at);
    if (status)
        return leat__error_context(status, "%s", group->options.name);
    size_t identity = token->cursor + group->identity.size;
    group->start_mark.size = 0;
    status = leat_token_put(&group->start_mark, token->bytes + identity,
                            token->size - identity);
    if (status)
        return status;
    group->start = at;
    group->seed = join(point.seed_low, point.seed_high);
    return start_again(group, token);
}

int leat_data_layer_group_restore(leat_data_layer_group *group,
                                  leat_token *token)
{
    int cancel = leat__cancel_disable();
    int status = restore(group, token);
    leat__cancel_restore(cancel);
    return status;
}

int leat_data_layer_save(leat_data_layer *layer, leat_token *token)
{
    int status = leat__data_layer_check_alone(layer, "save");
    return status ? status : leat_data_layer_group_save(layer->group, token);
}

int leat_data_layer_restore(leat_data_layer *layer, leat_token *token)
{
    int status = leat__data_layer_check_alone(layer, "restore");
    return status ? status : leat_data_layer_group_restore(layer->group, token);
}
