/* A data layer: a hidden group of one, or one member of many. */
#include "base/error.h"
#include "base/thread.h"
#include "layer/layer_state.h"

int leat_data_layer_create(leat_data_layer **out, const leat_pipeline *pipeline,
                           const leat_data_layer_options *options)
{
    if (!pipeline || !options)
        return leat_error(LEAT_EINVAL,
                          "a data layer needs a pipeline and options");
    leat_data_layer_group *group;
    int status = leat__group_create(&group, pipeline, options, NULL, 1, 1);
    if (status == LEAT_OK)
        *out = &group->member[0];
    return status;
}

void leat_data_layer_destroy(leat_data_layer *self)
{
    if (!self)
        return;
    if (self->group->is_alone)
        leat_data_layer_group_destroy(self->group);
    else
        leat_data_layer_group_cancel(self->group);
}

void leat_data_layer_cancel(leat_data_layer *self)
{
    leat_data_layer_group_cancel(self->group);
}

int leat__data_layer_check_alone(const leat_data_layer *self,
                                 const char *function)
{
    if (self->group->is_alone)
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s is of a group of %d: expected "
                      "leat_data_layer_group_%s",
                      self->name, self->group->n, function);
}

int leat_data_layer_setup(leat_data_layer *self, leat_blob *const top[],
                          int ntop)
{
    int status = leat__data_layer_check_alone(self, "setup");
    return status ? status
                  : leat_data_layer_group_setup(self->group, top, ntop);
}

leat_blob *leat_data_layer_top(const leat_data_layer *self, int i)
{
    int n = self->top[0] ? self->group->ntop : 0;
    if (i >= 0 && i < n)
        return self->top[i];
    (void)leat_error(LEAT_EINVAL,
                     "%s: there is no top %d of the layer's own, but %d; a "
                     "setup without blobs makes them",
                     self->name, i, n);
    return NULL;
}

const leat_pipeline *leat_data_layer_pipeline(const leat_data_layer *self)
{
    return self->group->pipeline;
}

const leat_data_layer_options *
leat_data_layer_get_options(const leat_data_layer *self)
{
    return &self->values;
}

uint64_t leat_data_layer_seed(const leat_data_layer *self)
{
    return self->group->seed;
}

static int count_fields(const leat_pipeline *pipeline)
{
    leat_reader *reader;
    int status = leat_pipeline_open(pipeline, &reader);
    if (status)
        return status;
    const leat_field_spec *fields;
    int n;
    status = leat_reader_fields(reader, &fields, &n);
    leat_reader_close(reader);
    return status ? status : n;
}

int leat_data_layer_top_count(const leat_data_layer *self)
{
    const leat_data_layer_group *group = self->group;
    int status = leat__group_check_process(group);
    if (status)
        return status;
    if (group->ntop > 0)
        return group->ntop;
    if (group->options.ntop > 0)
        return group->options.ntop;
    int cancel = leat__thread_hold_cancel();
    status = count_fields(group->pipeline);
    leat__thread_release_cancel(cancel);
    return status;
}

const char *leat_data_layer_top_name(const leat_data_layer *self, int i)
{
    static const char *const usual[] = {"data", "label"};
    const leat_data_layer_group *group = self->group;
    if (i < 0 || i >= LEAT_MAX_FIELDS || (group->ntop > 0 && i >= group->ntop))
        return NULL;
    if (i < group->options.ntop)
        return group->options.top[i];
    if (group->ntop > 0)
        return group->top_name[i];
    return i < 2 ? usual[i] : NULL;
}
