#include "tools/delivery/layer_source_options.h"
#include "base/error.h"
#include "tools/cli/number.h"
#include "tools/cli/output.h"
#include "tools/delivery/top_option.h"

#include <leat/launcher.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Appended to those given before. */
static int read_stage(const struct option_spec *spec, const char *text)
{
    struct layer_source_options *options = spec->out;
    int n = 0;
    while (options->stages[n])
        n++;
    if (!*text)
        return -1;
    if (n == LAYER_SOURCE_MOST_STAGES) {
        leat_error(LEAT_EINVAL, "--stage: expected at most %d stages",
                   LAYER_SOURCE_MOST_STAGES);
        return OPTION_ERROR_LINE;
    }
    options->stages[n] = text;
    return 0;
}

/* Likewise. */
static int read_top(const struct option_spec *spec, const char *text)
{
    struct layer_source_options *options = spec->out;
    int n = options->ntop;
    int status = LEAT_OK;
    if (n == LEAT_MAX_FIELDS)
        status = leat_error(LEAT_EINVAL, "--top: expected at most %d tops",
                            LEAT_MAX_FIELDS);
    else if (strlen(text) >= LAYER_SOURCE_TOP_BYTES)
        status = leat_error(LEAT_EINVAL,
                            "--top: expected a text of less than %d bytes",
                            LAYER_SOURCE_TOP_BYTES);
    else
        status = top_option_read(&options->top[n],
                                 strcpy(options->top_text[n], text));
    options->ntop += !status;
    return status ? OPTION_ERROR_LINE : 0;
}

/* Replaces those given before. */
static int read_means(const struct option_spec *spec, const char *text)
{
    struct layer_source_options *options = spec->out;
    int n = 0;
    for (;; text++) {
        char *end;
        float value;
        if (n == LAYER_SOURCE_MOST_MEANS ||
            number_read_float(text, &end, &value))
            return -1;
        options->means[n++] = value;
        text = end;
        if (*text != ',')
            break;
    }
    if (*text)
        return -1;
    options->nmeans = n;
    return 0;
}

/* The entry of a list with that name on the command line; -1: none has it. */
static int find(const leat_option list[], int n, const char *argument)
{
    for (int i = 0; i < n; i++)
        if (list[i].argument && !strcmp(list[i].argument, argument))
            return i;
    return -1;
}

/* Sets an option of the library's by its name on the command line. */
static int read_option(const struct option_spec *spec, const char *text)
{
    struct layer_source_options *options = spec->out;
    char name[64];
    int n;
    bool *given = options->layer_given;
    void *members = &options->layer;
    const leat_option *list = leat_data_layer_option_list(&n);
    int i = find(list, n, spec->name);
    if (i < 0) {
        list = leat_transform_option_list(&n);
        i = find(list, n, spec->name);
        given = options->transform_given;
        members = &options->transform;
    }
    given[i] = true;
    leat_option option = list[i];
    snprintf(name, sizeof(name), "--%s", spec->name);
    option.name = name; /* as the error line should call it */
    return leat_option_set(&option, members, text) ? OPTION_ERROR_LINE : 0;
}

/* Appends those entries of a list that are on the command line. */
static struct option_spec *append(struct option_spec *out,
                                  const leat_option list[], int n, bool given[],
                                  struct layer_source_options *options)
{
    for (int i = 0; i < n; i++) {
        const leat_option *option = &list[i];
        bool is_flag = option->type == LEAT_OPTION_BOOL;
        void *to = options;
        if (!option->argument)
            continue;
        if (is_flag)
            to = &given[i];
        *out++ = (struct option_spec){.name = option->argument,
                                      .value = option->value ? option->value
                                                             : option->words,
                                      .help = option->help,
                                      .read = is_flag ? NULL : read_option,
                                      .out = to};
    }
    return out;
}

void layer_source_options_list(struct option_spec out[LAYER_SOURCE_OPTIONS],
                               struct layer_source_options *options)
{
    const struct option_spec own[] = {
        {"net", "FILE", "the data layer of this Caffe net file", option_text,
         &options->net, 0, 0},
        {"reader", "TEXT", "or an LMDB's path, or a pipeline's text",
         option_text, &options->reader, 0, 0},
        {"stage", "NAME", "a stage of the net's state; may be given again",
         read_stage, options, 0, 0},
        {"launcher", NULL, "rank and world size from torchrun, mpirun, srun",
         NULL, &options->launcher, 0, 0},
        {"top", "NAME[=FIELD][,KEY=VALUE...]",
         "with --reader: a top, as a net file lists it; may be given "
         "again",
         read_top, options, 0, 0},
        {"mean-value", "MEAN,...",
         "with --reader: one number, or one for each channel", read_means,
         options, 0, 0}};
    int n;
    memcpy(out, own, sizeof(own));
    out += sizeof(own) / sizeof(own[0]);
    const leat_option *list = leat_data_layer_option_list(&n);
    out = append(out, list, n, options->layer_given, options);
    list = leat_transform_option_list(&n);
    out = append(out, list, n, options->transform_given, options);
    *out = (struct option_spec){0};
}

static bool is_given(const struct layer_source_options *options,
                     const char *argument)
{
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    return options->layer_given[find(list, n, argument)];
}

/* Of those, a mean file alone may replace a net file's. */
static bool has_transform(const struct layer_source_options *options)
{
    int n;
    const leat_option *list = leat_transform_option_list(&n);
    int mean = options->net ? find(list, n, "mean-file") : -1;
    for (int i = 0; i < n; i++)
        if (i != mean && options->transform_given[i])
            return true;
    return options->nmeans > 0;
}

/* Commands that read databases without a layer decode images, too. */
bool layer_source_options_are_given(const struct layer_source_options *options)
{
    bool given = has_transform(options) || options->net || options->reader ||
                 options->stages[0] || options->launcher || options->ntop ||
                 options->layer.device;
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    int decodes = find(list, n, "max-image-bytes");
    for (int i = 0; i < n; i++)
        given |= i != decodes && options->layer_given[i];
    return given;
}

void layer_source_options_check(const struct layer_source_options *options,
                                const char *command)
{
    const leat_data_layer_options *layer = &options->layer;
    if (!options->net == !options->reader)
        message_misuse(command, "%s: give either --net or --reader", command);
    if (layer->source && !options->net)
        message_misuse(command, "%s: --source is for --net", command);
    if (options->net && !is_given(options, "phase"))
        message_misuse(command, "%s: --net needs --phase", command);
    if (options->reader && !layer->batch_size && !layer->global_batch_size)
        message_misuse(command, "%s: --reader needs --batch", command);
    if (options->net && has_transform(options))
        message_misuse(command,
                       "%s: with --net, the file sets the transform; only its "
                       "mean can be replaced, by --mean-file",
                       command);
    if (options->net && options->ntop)
        message_misuse(command, "%s: with --net, the file lists the tops",
                       command);
    if (options->reader && (layer->layer || options->stages[0] || layer->level))
        message_misuse(
            command, "%s: --layer, --stage and --level are for --net", command);
    if (options->launcher &&
        (is_given(options, "rank") || is_given(options, "world-size")))
        message_misuse(command,
                       "%s: --launcher already sets --rank and --world-size",
                       command);
}

/* The flags of a list that were given. */
static void set_flags(const leat_option list[], int n, const bool given[],
                      void *members)
{
    for (int i = 0; i < n; i++)
        if (list[i].type == LEAT_OPTION_BOOL && given[i])
            (void)leat_option_set(&list[i], members, "true");
}

int layer_source_options_resolve(const struct layer_source_options *options,
                                 leat_data_layer_options *layer,
                                 leat_transform_options *transform)
{
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    *layer = options->layer;
    set_flags(list, n, options->layer_given, layer);
    layer->stages = options->stages;
    if (options->ntop > 0) {
        layer->top = options->top;
        layer->ntop = options->ntop;
    }
    *transform = options->transform;
    list = leat_transform_option_list(&n);
    set_flags(list, n, options->transform_given, transform);
    transform->mean_value = options->nmeans ? options->means : NULL;
    transform->mean_values = options->nmeans;
    if (options->net)
        layer->mean_file = transform->mean_file;
    return options->launcher
               ? leat_launcher_ranks(&layer->rank, &layer->world_size)
               : LEAT_OK;
}
