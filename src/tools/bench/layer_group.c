#include "tools/bench/layer_group.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <string.h>

bool layer_group_is_list(const char *device)
{
    return device && strchr(device, ',') != NULL;
}

/* "cuda:0,cuda:1" into names. */
static int parse_names(struct layer_group *group, const char *list)
{
    while (*list) {
        size_t size = strcspn(list, ",");
        if (group->n == LAYER_GROUP_MOST)
            return leat_error(LEAT_EINVAL, "more than %d devices",
                              LAYER_GROUP_MOST);
        if (size == 0 || size >= LAYER_GROUP_NAME)
            return leat_error(LEAT_EINVAL, "\"%s\" is not a list of devices",
                              list);
        memcpy(group->name[group->n++], list, size);
        list += size;
        if (*list == ',' && !*++list)
            return leat_error(LEAT_EINVAL,
                              "the list of devices ends with a comma");
    }
    return LEAT_OK;
}

/* The group has the pipeline and options of a layer that is not set up. */
static int create_group(struct layer_group *group,
                        const struct layer_source_options *options, int *ntop)
{
    struct layer_source_options on_cpu = *options;
    struct layer_source source = {0};
    const char *names[LAYER_GROUP_MOST];
    on_cpu.layer.device = NULL;
    for (int i = 0; i < group->n; i++)
        names[i] = group->name[i];
    int status = layer_source_create(&source, &on_cpu);
    if (!status) {
        *ntop = leat_data_layer_top_count(source.layer);
        status = *ntop < 0 ? *ntop : LEAT_OK;
    }
    if (!status && *ntop > LEAT_MAX_FIELDS)
        status = leat_error(LEAT_EUNSUPPORTED, "%d tops, more than %d", *ntop,
                            LEAT_MAX_FIELDS);
    if (!status)
        status = leat_data_layer_group_create(
            &group->group, leat_data_layer_pipeline(source.layer),
            leat_data_layer_get_options(source.layer), names, group->n);
    layer_source_destroy(&source);
    return status;
}

/* The member's tops, and the stream that reads them where the CPU does not. */
static int open_member(struct layer_group *group, int i, int ntop)
{
    struct layer_source *member = &group->member[i];
    leat_device *device;
    int status = leat_device_find(&device, group->name[i]);
    member->layer = leat_data_layer_group_member(group->group, i);
    member->ntop = ntop;
    if (!status && !device->ops->unified) {
        status = device->ops->stream_create(device, &member->stream);
        member->device = status ? NULL : device;
    }
    for (int k = 0; !status && k < ntop; k++)
        status = leat_blob_create(&member->top[k], device);
    return status;
}

static int open_group(struct layer_group *group,
                      const struct layer_source_options *options)
{
    leat_blob *tops[LAYER_GROUP_MOST * LEAT_MAX_FIELDS];
    int ntop;
    int status = parse_names(group, options->layer.device);
    if (!status)
        status = create_group(group, options, &ntop);
    for (int i = 0; !status && i < group->n; i++) {
        status = open_member(group, i, ntop);
        memcpy(tops + i * ntop, group->member[i].top,
               (size_t)ntop * sizeof(tops[0]));
    }
    return status ? status
                  : leat_data_layer_group_setup(group->group, tops, ntop);
}

int layer_group_open(struct layer_group *group,
                     const struct layer_source_options *options)
{
    if (layer_group_is_list(options->layer.device))
        return open_group(group, options);
    group->n = 1;
    int status = layer_source_create(&group->member[0], options);
    return status ? status : layer_source_setup(&group->member[0]);
}

int layer_group_wait(struct layer_group *group)
{
    int status = LEAT_OK;
    for (int i = 0; i < group->n; i++) {
        int own = layer_source_wait(&group->member[i]);
        status = status ? status : own;
    }
    return status;
}

void layer_group_close(struct layer_group *group)
{
    leat_data_layer_group_destroy(group->group);
    for (int i = 0; i < group->n; i++) {
        if (group->group)
            group->member[i].layer = NULL; /* the group's */
        layer_source_destroy(&group->member[i]);
    }
}
