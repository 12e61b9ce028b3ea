/* Groups of data layers, and the parts that their members share. */
#include "base/cancel.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "layer/layer_state.h"
#include "pipeline/pipeline.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int set_seed(leat_data_layer_group *group, const leat_pipeline *pipeline)
{
    const leat_data_layer_options *options = &group->options.values;
    if (options->random_seed >= 0) {
        group->seed = (uint64_t)options->random_seed;
        return LEAT_OK;
    }
    if (group->plan.draws == 0 && !leat__pipeline_draws_seed(pipeline))
        return LEAT_OK;
    if (group->step > 1)
        return leat_error(LEAT_EINVAL,
                          "%s: with %d ranks %s need a random_seed, the same "
                          "for all",
                          options->name, options->world_size,
                          group->plan.draws > 0
                              ? "random crops and mirrors"
                              : "readers that choose at random");
    int status = leat__random_seed(&group->seed);
    /* Kept below 2^53, so that JSON and random_seed carry it whole. */
    group->seed >>= 11;
    if (!status)
        leat__log(LEAT_LOG_INFO, "%s: random_seed drawn: %llu", options->name,
                  (unsigned long long)group->seed);
    return status;
}

/* "data[1]", or the layer's own name where it is by itself. */
static char *name_member(const leat_data_layer_group *group, int i)
{
    const char *name = group->options.name;
    if (group->is_alone)
        return leat__strdup(name);
    size_t size = strlen(name) + sizeof("[99]");
    char *out = leat__alloc(size);
    if (out)
        snprintf(out, size, "%s[%d]", name, i);
    return out;
}

static int init_member(leat_data_layer_group *group, int i, const char *device)
{
    leat_data_layer *layer = &group->member[i];
    if (!device)
        return leat_error(LEAT_EINVAL, "%s: device %d has no name",
                          group->options.name, i);
    int status = leat_device_find(&group->device[i], device);
    if (status)
        return status;
    layer->name = name_member(group, i);
    if (!layer->name)
        return LEAT_ENOMEM;
    layer->group = group;
    layer->number = i;
    layer->device = group->device[i];
    layer->values = group->options.values;
    layer->values.name = layer->name;
    if (!group->is_alone)
        layer->values.device = layer->device->name;
    leat__bad_record_log_init(&layer->bad_records, &layer->values);
    layer->bad_records.file.cancelled = &group->cancelled;
    return LEAT_OK;
}

static int init_members(leat_data_layer_group *group,
                        const char *const devices[], int n)
{
    group->member = leat__alloc_zero((size_t)n, sizeof(*group->member));
    group->device = leat__alloc_zero((size_t)n, sizeof(leat_device *));
    if (!group->member || !group->device)
        return LEAT_ENOMEM;
    int unified = 0;
    for (; group->n < n; group->n++) {
        int i = group->n;
        int status = init_member(group, i, devices[i]);
        if (status)
            return status;
        unified += group->device[i]->ops->unified;
    }
    if (group->options.values.transform_on == LEAT_TRANSFORM_ON_DEVICE &&
        unified > 0 && unified < n)
        return leat_error(LEAT_EINVAL,
                          "%s: transform_on is DEVICE, but %d of the %d "
                          "devices compute in host memory: expected all or "
                          "none",
                          group->options.name, unified, n);
    return LEAT_OK;
}

static void free_tops(leat_data_layer *layer)
{
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        leat_blob *top = layer->top[i];
        /* Before: a child that is forked meanwhile would free it once more. */
        layer->top[i] = NULL;
        leat_blob_destroy(top);
    }
}

/* What create and setup made, and nobody changes. */
static void free_names(leat_data_layer_group *group)
{
    for (int i = 0; i < group->n; i++) {
        leat__free(group->member[i].name);
        free_tops(&group->member[i]);
    }
    leat__free(group->device);
}

static void free_members(leat_data_layer_group *group)
{
    free_names(group);
    leat__free(group->member);
}

static int create(leat_data_layer_group **out, const leat_pipeline *pipeline,
                  const leat_data_layer_options *options,
                  const char *const devices[], int n, bool is_alone)
{
    int status = leat__fork_watch();
    if (status)
        return status;
    leat_data_layer_group *group = leat__alloc_zero(1, sizeof(*group));
    if (!group)
        return LEAT_ENOMEM;
    group->is_alone = is_alone;
    group->generation = leat__fork_generation();
    leat_token_init(&group->identity);
    group->opening.lock = &group->lock;
    group->opening.cancelled = &group->cancelled;
    status = leat__mutex_init(&group->lock);
    if (status)
        goto fail_self;
    status = leat__layer_options_init(&group->options, options);
    if (status)
        goto fail_lock;
    const leat_data_layer_options *values = &group->options.values;
    group->step = leat__layer_options_step(values);
    status = init_members(group, is_alone ? &values->device : devices, n);
    if (status)
        goto fail_members;
    status = leat__image_set_init(&group->images, &group->plan,
                                  &group->options.list, values);
    if (!status)
        status = set_seed(group, pipeline);
    if (status)
        goto fail_images;
    /* The count is atomic; all else of a pipeline never changes. */
    group->pipeline = (leat_pipeline *)(uintptr_t)pipeline;
    leat_pipeline_ref(group->pipeline);
    group->may_help = leat__group_may_help(group);
    group->cores = leat__thread_cores();
    /* Beside other callers one does not know whom else workers work for. */
    group->member[0].mode.is_possible =
        group->may_help && group->cores == 1 && n == 1;
    *out = group;
    return LEAT_OK;

fail_images:
    leat__image_set_finish(&group->images);
fail_members:
    free_members(group);
    leat__layer_options_finish(&group->options);
fail_lock:
    pthread_mutex_destroy(&group->lock);
fail_self:
    leat__free(group);
    return status;
}

int leat__group_create(leat_data_layer_group **out,
                       const leat_pipeline *pipeline,
                       const leat_data_layer_options *options,
                       const char *const devices[], int n, bool is_alone)
{
    int cancel = leat__cancel_disable();
    int status = leat__thread_check_stack(
        "a data layer",
        pipeline ? leat__pipeline_stack(pipeline) : LEAT__STACK_MIN);
    if (!status)
        status = create(out, pipeline, options, devices, n, is_alone);
    leat__cancel_restore(cancel);
    return status;
}

int leat_data_layer_group_create(leat_data_layer_group **out,
                                 const leat_pipeline *pipeline,
                                 const leat_data_layer_options *options,
                                 const char *const devices[], int n)
{
    if (!pipeline || !options || !devices)
        return leat_error(LEAT_EINVAL,
                          "a group needs a pipeline, options and devices");
    if (n < 1 || n > LEAT_GROUP_MAX)
        return leat_error(LEAT_EINVAL, "a group has 1 to %d members, not %d",
                          LEAT_GROUP_MAX, n);
    return leat__group_create(out, pipeline, options, devices, n, false);
}

int leat__group_check_process(const leat_data_layer_group *group)
{
    if (group->generation == leat__fork_generation())
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: this data layer was created in another process; "
                      "create it after fork()",
                      group->options.name);
}

int leat__group_check_caller(const leat_data_layer_group *group)
{
    if (leat__thread_owner() != group && !group->is_starting)
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: called from inside a callback of its own reader, "
                      "where only cancel may be",
                      group->options.name);
}

int leat_data_layer_group_size(const leat_data_layer_group *group)
{
    return group->n;
}

leat_data_layer *
leat_data_layer_group_member(const leat_data_layer_group *group, int i)
{
    return i >= 0 && i < group->n ? &group->member[i] : NULL;
}

int leat__data_layer_check_top(const leat_data_layer *layer,
                               leat_blob *const top[], int k)
{
    if (!top[k])
        return leat_error(LEAT_EINVAL, "%s: top %d is NULL", layer->name, k);
    for (int j = 0; j < k; j++)
        if (top[j] == top[k])
            return leat_error(LEAT_EINVAL,
                              "%s: tops %d and %d are the same blob",
                              layer->name, j, k);
    leat_device *device = leat_blob_device(top[k]);
    if (device != layer->device)
        return leat_error(LEAT_EINVAL, "%s: top %d is on %s, the layer on %s",
                          layer->name, k, device->name, layer->device->name);
    return LEAT_OK;
}

/* Top `k` of member `i`, in the list of all. */
static int check_top(const leat_data_layer_group *group, leat_blob *const top[],
                     int ntop, int i, int k)
{
    const leat_data_layer *member = &group->member[i];
    const leat_blob *one = top[i * ntop + k];
    for (int j = 0; j < i * ntop && one; j++)
        if (top[j] == one)
            return leat_error(LEAT_EINVAL,
                              "%s: top %d is top %d of member %d too",
                              member->name, k, j % ntop, j / ntop);
    return leat__data_layer_check_top(member, top + (ptrdiff_t)i * ntop, k);
}

static int check_tops(const leat_data_layer_group *group,
                      leat_blob *const top[], int ntop)
{
    const char *name = group->options.name;
    if (!top)
        return leat_error(LEAT_EINVAL, "%s: `top` is NULL, with %d tops", name,
                          ntop);
    if (ntop < 1 || ntop > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "%s: expected 1 to %d tops, got %d",
                          name, LEAT_MAX_FIELDS, ntop);
    if (group->ntop > 0 && ntop != group->ntop)
        return leat_error(LEAT_EINVAL, "%s: set up with %d tops, got %d", name,
                          group->ntop, ntop);
    for (int i = 0; i < group->n; i++) {
        for (int k = 0; k < ntop; k++) {
            int status = check_top(group, top, ntop, i, k);
            if (status)
                return status;
        }
    }
    return LEAT_OK;
}

static int reshape_top(const leat_data_layer_group *group, leat_blob *blob,
                       const leat__batch_shape *shape, int i)
{
    const leat__extent *first = &group->first[i];
    return leat_blob_reshape(blob, shape->top[i].dtype, first->ndim,
                             first->shape);
}

/* Blobs of the members' own, for a caller that brings none. */
static int make_tops(leat_data_layer_group *group,
                     const leat__batch_shape *shape)
{
    int status = LEAT_OK;
    for (int i = 0; i < group->n * shape->ntop && !status; i++) {
        leat_data_layer *member = &group->member[i / shape->ntop];
        leat_blob **top = &member->top[i % shape->ntop];
        status = leat_blob_create(top, member->device);
        if (!status)
            status = reshape_top(group, *top, shape, i % shape->ntop);
    }
    return status;
}

/* Without `top` the layer makes its own. */
/* Its frame is large: it must not be part of the one that checks the stack. */
__attribute__((noinline)) static int set_up(leat_data_layer_group *group,
                                            leat_blob *const top[], int ntop)
{
    leat__batch_shape shape;
    int status = LEAT_OK;
    for (int i = 0; i < group->n && !status; i++)
        status = leat__bad_record_log_open(&group->member[i].bad_records);
    if (!status)
        status = leat__group_start(group, ntop, NULL, &shape);
    if (!status && !top)
        status = make_tops(group, &shape);
    for (int i = 0; i < group->n * ntop && !status; i++)
        status = reshape_top(group, top[i], &shape, i % ntop);
    if (!status)
        group->ntop = shape.ntop;
    for (int i = 0; i < group->n && status; i++)
        leat__bad_record_log_close(&group->member[i].bad_records);
    return status;
}

static int set_up_once(leat_data_layer_group *group, leat_blob *const top[],
                       int ntop)
{
    int status = leat__group_check_process(group);
    if (!status)
        status = leat__group_check_caller(group);
    if (!status)
        status = leat__thread_check_stack(
            group->options.name, leat__pipeline_stack(group->pipeline));
    if (!status)
        status = !top && ntop == 0 ? LEAT_OK : check_tops(group, top, ntop);
    if (status)
        return status;
    if (group->ntop > 0)
        return leat_error(LEAT_ESTATE, "%s: setup was called before",
                          group->options.name);
    status = set_up(group, top, ntop);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        leat__group_stop(group);
        /* The next setup may find other data. */
        group->identity.size = 0;
        for (int i = 0; i < group->n; i++)
            free_tops(&group->member[i]);
        return leat_error(status, "%s", line);
    }
    return LEAT_OK;
}

int leat_data_layer_group_setup(leat_data_layer_group *group,
                                leat_blob *const top[], int ntop)
{
    int cancel = leat__cancel_disable();
    int status = set_up_once(group, top, ntop);
    leat__cancel_restore(cancel);
    return status;
}

/* Of the first `total` batches, how many are member `i`'s. */
static int64_t share(const leat_data_layer_group *group, int64_t total, int i)
{
    return (total - i + group->n - 1) / group->n;
}

/* The member that has taken least, of those that come first among equals. */
static const leat_data_layer *find_last(const leat_data_layer_group *group)
{
    const leat_data_layer *last = &group->member[0];
    for (int i = 1; i < group->n; i++)
        if (group->member[i].taken < last->taken)
            last = &group->member[i];
    return last;
}

int leat__group_position(const leat_data_layer_group *group,
                         leat__position *out, const leat_token **mark)
{
    int64_t total = 0;
    for (int i = 0; i < group->n; i++)
        total += group->member[i].taken;
    for (int i = 0; i < group->n; i++) {
        if (group->member[i].taken == share(group, total, i))
            continue;
        const leat_data_layer *last = find_last(group);
        return leat_error(LEAT_ESTATE,
                          "%s: save while members stand apart: %s is behind, "
                          "with %lld of the %lld batches taken",
                          group->options.name, last->name,
                          (long long)last->taken, (long long)total);
    }
    *out = group->start;
    *mark = &group->start_mark;
    if (total > 0) {
        const leat_data_layer *latest = &group->member[(total - 1) % group->n];
        *out = latest->after;
        *mark = &latest->mark;
    }
    return LEAT_OK;
}

void leat_data_layer_group_cancel(leat_data_layer_group *group)
{
    if (leat__group_check_process(group) || leat__group_is_stopping(group))
        return;
    if (atomic_exchange(&group->cancelled, true))
        return;
    int cancel = leat__cancel_disable();
    pthread_mutex_lock(&group->lock);
    /* A restore may have cleared it before the lock was taken. */
    atomic_store(&group->cancelled, true);
    if (group->prefetcher)
        leat__prefetcher_cancel(group->prefetcher);
    else if (group->reader)
        leat__data_reader_cancel(group->reader);
    else
        leat__opening_cancel(&group->opening);
    pthread_mutex_unlock(&group->lock);
    leat__cancel_restore(cancel);
}

/*
 * In a forked child. Memory that the parent's threads or callers may have been
 * changing at the fork is left as it is, where leak checkers see that it was
 * not forgotten. A file's number may be another file's by now.
 */
static void abandon(leat_data_layer_group *group)
{
    static _Atomic(leat_data_layer_group *) abandoned;
    free_names(group);
    leat__layer_options_finish(&group->options);
    group->next_abandoned = atomic_load(&abandoned);
    while (!atomic_compare_exchange_weak(&abandoned, &group->next_abandoned,
                                         group))
        ;
}

void leat_data_layer_group_destroy(leat_data_layer_group *group)
{
    if (!group)
        return;
    if (group->generation != leat__fork_generation()) {
        abandon(group);
        return;
    }
    if (leat__group_check_caller(group)) {
        leat__log(LEAT_LOG_ERROR, "%s; it is not destroyed", leat_last_error());
        return;
    }
    int cancel = leat__cancel_disable();
    leat__group_stop(group);
    for (int i = 0; i < group->n; i++) {
        leat__bad_record_log_finish(&group->member[i].bad_records);
        leat_token_finish(&group->member[i].mark);
    }
    free_members(group);
    leat_token_finish(&group->identity);
    leat_token_finish(&group->start_mark);
    leat_pipeline_unref(group->pipeline);
    leat__image_set_finish(&group->images);
    leat__layer_options_finish(&group->options);
    pthread_mutex_destroy(&group->lock);
    leat__free(group);
    leat__cancel_restore(cancel);
}
