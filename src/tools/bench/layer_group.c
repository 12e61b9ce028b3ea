#include "tools/bench/layer_group.h"

#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

#include <string.h>

bool layer_group_is_list(const char *device)
{
    return device && strchr(device, ',') != NULL;
}

/* "cuda:0,cuda:1" into names. */
static void parse_names(struct layer_group *group, const char *list)
{
    while (*list) {
        size_t size = strcspn(list, ",");
        if (group->n == LAYER_GROUP_MOST)
            message_fail("more than %d devices", LAYER_GROUP_MOST);
        if (size == 0 || size >= LAYER_GROUP_NAME)
            message_fail("\"%s\" is not a list of devices", list);
        memcpy(group->name[group->n++], list, size);
        list += size;
        if (*list == ',' && !*++list)
            message_fail("the list of devices ends with a comma");
    }
}

/* The group has the pipeline and options of a layer that is not set up. */
static void create_group(struct layer_group *group,
                         const struct layer_source_options *options)
{
    struct layer_source_options on_cpu = *options;
    struct layer_source source = {0};
    const char *names[LAYER_GROUP_MOST];
    on_cpu.layer.device = NULL;
    for (int i = 0; i < group->n; i++)
        names[i] = group->name[i];
    output_require(layer_source_create(&source, &on_cpu));
    output_require(leat_data_layer_group_create(
        &group->group, leat_data_layer_pipeline(source.layer),
        leat_data_layer_get_options(source.layer), names, group->n));
    layer_source_destroy(&source);
}

static void cancel_group(void *group)
{
    leat_data_layer_group_cancel(group);
}

static void close_group(void *object)
{
    struct layer_group *group = object;
    interrupt_unwatch(group->group);
    leat_data_layer_group_destroy(group->group);
    for (int i = 0; i < group->n; i++) {
        if (group->group)
            group->member[i].layer = NULL; /* the group's */
        layer_source_destroy(&group->member[i]);
    }
}

static void set_up_group(struct layer_group *group)
{
    interrupt_watch(cancel_group, group->group);
    cleanup_add(close_group, group);
    for (int i = 0; i < group->n; i++) {
        struct layer_source *member = &group->member[i];
        member->layer = leat_data_layer_group_member(group->group, i);
        output_require(layer_source_open_stream(member, group->name[i]));
    }
    output_require(
        interrupt_explain(leat_data_layer_group_setup(group->group, NULL, 0)));
}

void layer_group_open(struct layer_group *group,
                      const struct layer_source_options *options)
{
    if (!layer_group_is_list(options->layer.device)) {
        group->n = 1;
        output_require(layer_source_create(&group->member[0], options));
        output_require(layer_source_setup(&group->member[0]));
        return;
    }
    parse_names(group, options->layer.device);
    create_group(group, options);
    set_up_group(group);
    for (int i = 0; i < group->n; i++)
        layer_source_take_tops(&group->member[i]);
}

void layer_group_close(struct layer_group *group)
{
    cleanup_remove(group);
    close_group(group);
}
