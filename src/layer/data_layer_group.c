/* Groups of data layers, and what all their members share. */
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "data/transformer.h"
#include "layer/layer_state.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int set_seed(leat_data_layer_group *self)
{
    const leat_data_layer_options *options = &self->options.values;
    if (options->random_seed >= 0) {
        self->seed = (uint64_t)options->random_seed;
        return LEAT_OK;
    }
    if (leat__transformer_words_per_image(self->transformer) == 0)
        return LEAT_OK;
    if (self->step > 1)
        return leat_error(LEAT_EINVAL,
                          "%s: with %d ranks random crops and mirrors need a "
                          "random_seed, the same for all",
                          options->name, options->world_size);
    int status = leat__random_seed(&self->seed);
    /* Kept below 2^53, so that JSON and random_seed carry it whole. */
    self->seed >>= 11;
    if (status == LEAT_OK)
        leat__log(LEAT_LOG_INFO, "%s: random_seed drawn: %llu", options->name,
                  (unsigned long long)self->seed);
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
    leat_data_layer *self = &group->member[i];
    if (!device)
        return leat_error(LEAT_EINVAL, "%s: device %d has no name",
                          group->options.name, i);
    int status = leat_device_find(&group->device[i], device);
    if (status)
        return status;
    self->name = name_member(group, i);
    if (!self->name)
        return LEAT_ENOMEM;
    self->group = group;
    self->number = i;
    self->device = group->device[i];
    self->values = group->options.values;
    self->values.name = self->name;
    if (!group->is_alone)
        self->values.device = self->device->name;
    leat__bad_record_log_init(&self->bad_records, &self->values);
    return LEAT_OK;
}

static int init_members(leat_data_layer_group *self,
                        const char *const devices[], int n)
{
    self->member = leat__alloc_zero((size_t)n, sizeof(*self->member));
    self->device = leat__alloc_zero((size_t)n, sizeof(leat_device *));
    if (!self->member || !self->device)
        return LEAT_ENOMEM;
    int unified = 0;
    for (; self->n < n; self->n++) {
        int i = self->n;
        int status = init_member(self, i, devices[i]);
        if (status)
            return status;
        unified += self->device[i]->ops->unified;
    }
    if (self->options.values.transform_on == LEAT_TRANSFORM_ON_DEVICE &&
        unified > 0 && unified < n)
        return leat_error(LEAT_EINVAL,
                          "%s: transform_on is DEVICE, but %d of the %d "
                          "devices compute in host memory: expected all or "
                          "none",
                          self->options.name, unified, n);
    return LEAT_OK;
}

static void free_tops(leat_data_layer *self)
{
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        leat_blob_destroy(self->top[i]);
        self->top[i] = NULL;
    }
}

/* What create and setup made, and nobody changes. */
static void free_names(leat_data_layer_group *self)
{
    for (int i = 0; i < self->n; i++) {
        leat__free(self->member[i].name);
        free_tops(&self->member[i]);
    }
    leat__free(self->device);
}

static void free_members(leat_data_layer_group *self)
{
    free_names(self);
    leat__free(self->member);
}

static int create(leat_data_layer_group **out, const leat_pipeline *pipeline,
                  const leat_data_layer_options *options,
                  const char *const devices[], int n, bool is_alone)
{
    int status = leat__fork_watch();
    if (status)
        return status;
    leat_data_layer_group *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->is_alone = is_alone;
    self->generation = leat__fork_generation();
    leat_token_init(&self->identity);
    status = leat__mutex_init(&self->lock);
    if (status)
        goto fail_self;
    status = leat__layer_options_init(&self->options, options);
    if (status)
        goto fail_lock;
    const leat_data_layer_options *values = &self->options.values;
    self->step = leat__layer_options_step(values);
    status = init_members(self, is_alone ? &values->device : devices, n);
    if (status)
        goto fail_members;
    status = leat_transformer_create(&self->transformer, values->transform,
                                     values->phase, values->top_type,
                                     values->layout);
    if (status)
        goto fail_members;
    leat_transformer_set_max_image_bytes(self->transformer,
                                         values->max_image_bytes);
    status = set_seed(self);
    if (status)
        goto fail_transformer;
    /* The count is atomic; all else of a pipeline never changes. */
    self->pipeline = (leat_pipeline *)(uintptr_t)pipeline;
    leat_pipeline_ref(self->pipeline);
    self->may_help = leat__group_may_help(self);
    self->cores = leat__thread_cores();
    /* Beside other callers one does not know whom else workers work for. */
    self->member[0].mode.is_possible =
        self->may_help && self->cores == 1 && n == 1;
    *out = self;
    return LEAT_OK;

fail_transformer:
    leat_transformer_destroy(self->transformer);
fail_members:
    free_members(self);
    leat__layer_options_finish(&self->options);
fail_lock:
    pthread_mutex_destroy(&self->lock);
fail_self:
    leat__free(self);
    return status;
}

int leat__group_create(leat_data_layer_group **out,
                       const leat_pipeline *pipeline,
                       const leat_data_layer_options *options,
                       const char *const devices[], int n, bool is_alone)
{
    int cancel = leat__thread_disable_cancel();
    int status = leat__thread_check_stack("a data layer");
    if (status == LEAT_OK)
        status = create(out, pipeline, options, devices, n, is_alone);
    leat__thread_restore_cancel(cancel);
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

int leat__group_check_process(const leat_data_layer_group *self)
{
    if (self->generation == leat__fork_generation())
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: this data layer was created in another process; "
                      "create it after fork()",
                      self->options.name);
}

int leat__group_check_caller(const leat_data_layer_group *self)
{
    if (leat__thread_owner() != self && !self->is_starting)
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: called from inside a callback of its own reader, "
                      "where only cancel may be",
                      self->options.name);
}

int leat_data_layer_group_size(const leat_data_layer_group *self)
{
    return self->n;
}

leat_data_layer *leat_data_layer_group_member(const leat_data_layer_group *self,
                                              int i)
{
    return i >= 0 && i < self->n ? &self->member[i] : NULL;
}

/* Top `k` of member `i`, in the list of all. */
static int check_top(const leat_data_layer_group *self, leat_blob *const top[],
                     int ntop, int i, int k)
{
    const leat_data_layer *member = &self->member[i];
    leat_blob *one = top[i * ntop + k];
    if (!one)
        return leat_error(LEAT_EINVAL, "%s: top %d is NULL", member->name, k);
    for (int j = 0; j < i * ntop + k; j++) {
        if (top[j] != one)
            continue;
        if (j / ntop == i)
            return leat_error(LEAT_EINVAL,
                              "%s: tops %d and %d are the same blob",
                              member->name, j % ntop, k);
        return leat_error(LEAT_EINVAL, "%s: top %d is top %d of member %d too",
                          member->name, k, j % ntop, j / ntop);
    }
    leat_device *device = leat_blob_device(one);
    if (device != member->device)
        return leat_error(LEAT_EINVAL, "%s: top %d is on %s, the layer on %s",
                          member->name, k, device->name, member->device->name);
    return LEAT_OK;
}

static int check_tops(const leat_data_layer_group *self, leat_blob *const top[],
                      int ntop)
{
    const char *name = self->options.name;
    if (!top || ntop < 1 || ntop > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "%s: expected 1 to %d tops, got %d",
                          name, LEAT_MAX_FIELDS, ntop);
    if (self->ntop > 0 && ntop != self->ntop)
        return leat_error(LEAT_EINVAL, "%s: set up with %d tops, got %d", name,
                          self->ntop, ntop);
    for (int i = 0; i < self->n; i++) {
        for (int k = 0; k < ntop; k++) {
            int status = check_top(self, top, ntop, i, k);
            if (status)
                return status;
        }
    }
    return LEAT_OK;
}

static int reshape_top(leat_blob *blob, const leat__top *top, int64_t n)
{
    int64_t shape[LEAT_MAX_DIMS];
    if (top->ndim >= LEAT_MAX_DIMS)
        return leat_error(LEAT_EINVAL, "a field has too many dimensions");
    shape[0] = n;
    memcpy(shape + 1, top->shape, (size_t)top->ndim * sizeof(shape[0]));
    return leat_blob_reshape(blob, top->dtype, top->ndim + 1, shape);
}

/* Blobs of the members' own, for a caller that brings none. */
static int make_tops(leat_data_layer_group *self,
                     const leat__batch_shape *shape)
{
    int status = LEAT_OK;
    for (int i = 0; i < self->n * shape->ntop && status == LEAT_OK; i++) {
        leat_data_layer *member = &self->member[i / shape->ntop];
        leat_blob **top = &member->top[i % shape->ntop];
        status = leat_blob_create(top, member->device);
        if (status == LEAT_OK)
            status = reshape_top(*top, &shape->top[i % shape->ntop],
                                 self->options.values.batch_size);
    }
    return status;
}

/* Without `top` the layer makes its own. */
static int set_up(leat_data_layer_group *self, leat_blob *const top[], int ntop)
{
    leat__batch_shape shape;
    int status = LEAT_OK;
    for (int i = 0; i < self->n && status == LEAT_OK; i++)
        status = leat__bad_record_log_open(&self->member[i].bad_records);
    if (status == LEAT_OK)
        status = leat__group_start(self, ntop, NULL, &shape);
    if (status == LEAT_OK && !top)
        status = make_tops(self, &shape);
    for (int i = 0; i < self->n * ntop && status == LEAT_OK; i++)
        status = reshape_top(top[i], &shape.top[i % ntop],
                             self->options.values.batch_size);
    if (status == LEAT_OK)
        self->ntop = shape.ntop;
    return status;
}

static int set_up_once(leat_data_layer_group *self, leat_blob *const top[],
                       int ntop)
{
    int status = leat__group_check_process(self);
    if (status == LEAT_OK)
        status = leat__group_check_caller(self);
    if (status == LEAT_OK)
        status = leat__thread_check_stack(self->options.name);
    if (status == LEAT_OK)
        status = !top && ntop == 0 ? LEAT_OK : check_tops(self, top, ntop);
    if (status)
        return status;
    if (self->ntop > 0)
        return leat_error(LEAT_ESTATE, "%s: setup was called before",
                          self->options.name);
    status = set_up(self, top, ntop);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        leat__group_stop(self);
        for (int i = 0; i < self->n; i++)
            free_tops(&self->member[i]);
        return leat_error(status, "%s", line);
    }
    return LEAT_OK;
}

int leat_data_layer_group_setup(leat_data_layer_group *self,
                                leat_blob *const top[], int ntop)
{
    int cancel = leat__thread_disable_cancel();
    int status = set_up_once(self, top, ntop);
    leat__thread_restore_cancel(cancel);
    return status;
}

/* Of the first `total` batches, how many are member `i`'s. */
static int64_t share(const leat_data_layer_group *self, int64_t total, int i)
{
    return (total - i + self->n - 1) / self->n;
}

/* The member that has taken least, of those that come first among equals. */
static const leat_data_layer *find_last(const leat_data_layer_group *self)
{
    const leat_data_layer *last = &self->member[0];
    for (int i = 1; i < self->n; i++)
        if (self->member[i].taken < last->taken)
            last = &self->member[i];
    return last;
}

int leat__group_position(const leat_data_layer_group *self, leat__position *out)
{
    int64_t total = 0;
    for (int i = 0; i < self->n; i++)
        total += self->member[i].taken;
    for (int i = 0; i < self->n; i++) {
        if (self->member[i].taken == share(self, total, i))
            continue;
        const leat_data_layer *last = find_last(self);
        return leat_error(LEAT_ESTATE,
                          "%s: save while members stand apart: %s is behind, "
                          "with %lld of the %lld batches taken",
                          self->options.name, last->name,
                          (long long)last->taken, (long long)total);
    }
    *out = total > 0 ? self->member[(total - 1) % self->n].after : self->start;
    return LEAT_OK;
}

void leat_data_layer_group_cancel(leat_data_layer_group *self)
{
    if (leat__group_check_process(self))
        return;
    if (atomic_exchange(&self->cancelled, 1))
        return;
    int cancel = leat__thread_disable_cancel();
    pthread_mutex_lock(&self->lock);
    /* A restore may have cleared it before the lock was taken. */
    atomic_store(&self->cancelled, 1);
    if (self->prefetcher)
        leat__prefetcher_cancel(self->prefetcher);
    else if (self->reader)
        leat__data_reader_cancel(self->reader);
    pthread_mutex_unlock(&self->lock);
    leat__thread_restore_cancel(cancel);
}

/*
 * In a forked child. Memory that the parent's threads or callers may have been
 * changing at the fork is left as it is, where leak checkers see that it was
 * not forgotten. A file's number may be another file's by now.
 */
static void abandon(leat_data_layer_group *self)
{
    static _Atomic(leat_data_layer_group *) abandoned;
    free_names(self);
    leat__layer_options_finish(&self->options);
    self->next_abandoned = atomic_load(&abandoned);
    while (
        !atomic_compare_exchange_weak(&abandoned, &self->next_abandoned, self))
        ;
}

void leat_data_layer_group_destroy(leat_data_layer_group *self)
{
    if (!self)
        return;
    if (self->generation != leat__fork_generation()) {
        abandon(self);
        return;
    }
    if (leat__group_check_caller(self)) {
        leat__log(LEAT_LOG_ERROR, "%s; it is not destroyed", leat_last_error());
        return;
    }
    int cancel = leat__thread_disable_cancel();
    leat__group_stop(self);
    for (int i = 0; i < self->n; i++)
        leat__bad_record_log_finish(&self->member[i].bad_records);
    free_members(self);
    leat_token_finish(&self->identity);
    leat_pipeline_unref(self->pipeline);
    leat_transformer_destroy(self->transformer);
    leat__layer_options_finish(&self->options);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
    leat__thread_restore_cancel(cancel);
}
