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
                        const struct layer_source_options *options)
{
    struct layer_source_options on_cpu = *options;
    struct layer_source source = {0};
    const char *names[LAYER_GROUP_MOST];
    on_cpu.layer.device = NULL;
    for (int i = 0; i < group->n; i++)
        names[i] = group->name[i];
    int status = layer_source_create(&source, &on_cpu);
    if (!status)
        status = leat_data_layer_group_create(
            &group->group, leat_data_layer_pipeline(source.layer),
            leat_data_layer_get_options(source.layer), names, group->n);
    layer_source_destroy(&source);
    return status;
}

static int open_group(struct layer_group *group,
                      const struct layer_source_options *options)
{
    int status = parse_names(group, options->layer.device);
    if (!status)
        status = create_group(group, options);
    for (int i = 0; !status && i < group->n; i++) {
        group->member[i].layer = leat_data_layer_group_member(group->group, i);
        status = layer_source_open_stream(&group->member[i], group->name[i]);
    }
    if (!status)
        status = leat_data_layer_group_setup(group->group, NULL, 0);
    for (int i = 0; !status && i < group->n; i++)
        layer_source_take_tops(&group->member[i]);
    return status;
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
