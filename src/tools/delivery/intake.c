#include "tools/delivery/intake.h"

#include "tools/message.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>
#include <leat/launcher.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int intake_read_stage(const struct option_spec *spec, const char *text)
{
    struct intake_options *options = spec->out;
    int n = 0;
    while (options->stages[n])
        n++;
    if (n == INTAKE_MOST_STAGES || !*text)
        return -1;
    options->stages[n] = text;
    return 0;
}

int intake_read_means(const struct option_spec *spec, const char *text)
{
    struct intake_options *options = spec->out;
    int n = 0;
    for (;; text++) {
        char *end;
        float value = strtof(text, &end);
        if (end == text || !isfinite(value) || n == INTAKE_MOST_MEANS)
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

/* The place of a word in a list; 0, the default, for NULL; -1: not there. */
static int find_word(const char *const words[], const char *word)
{
    if (!word)
        return 0;
    for (int i = 0; words[i]; i++)
        if (!strcasecmp(words[i], word))
            return i;
    return -1;
}

static const char *const phases[] = {"TRAIN", "TEST", NULL};
static const char *const layouts[] = {"NCHW", "NHWC", NULL};
static const char *const places[] = {"CPU", "DEVICE", NULL};
static const char *const rngs[] = {"LEAT", "CAFFE", NULL};
static const char *const policies[] = {"FAIL", "ZERO", "SKIP", NULL};

static int has_transform(const struct intake_options *options)
{
    return options->crop || options->mirror || options->scale != 1 ||
           options->mean_file || options->nmeans || options->color ||
           options->gray;
}

int intake_is_given(const struct intake_options *options)
{
    return has_transform(options) || options->net || options->reader ||
           options->phase || options->layer || options->stages[0] ||
           options->level || options->batch || options->top_type ||
           options->layout || options->transform_on || options->rng ||
           options->seed >= 0 || options->workers || options->prefetch >= 0 ||
           options->rank >= 0 || options->world_size || options->launcher ||
           options->on_error || options->max_errors >= 0 ||
           options->bad_record_file || options->device;
}

int intake_check(const struct intake_options *options, const char *command)
{
    leat_dtype dtype;
    if (!options->net == !options->reader)
        return message_misuse(command, "%s: give either --net or --reader",
                              command);
    if (options->net && !options->phase)
        return message_misuse(command, "%s: --net needs --phase", command);
    if (options->reader && !options->batch)
        return message_misuse(command, "%s: --reader needs --batch", command);
    if (options->net && has_transform(options))
        return message_misuse(
            command, "%s: with --net, the file says what the transform is",
            command);
    if (options->reader &&
        (options->layer || options->stages[0] || options->level))
        return message_misuse(
            command, "%s: --layer, --stage and --level are for --net", command);
    if (options->launcher && (options->rank >= 0 || options->world_size))
        return message_misuse(
            command, "%s: --launcher tells what --rank and --world-size do",
            command);
    if (find_word(phases, options->phase) < 0)
        return message_misuse(command,
                              "--phase: expected TRAIN or TEST, "
                              "found '%s'",
                              options->phase);
    if (find_word(layouts, options->layout) < 0)
        return message_misuse(command,
                              "--layout: expected NCHW or NHWC, "
                              "found '%s'",
                              options->layout);
    if (find_word(places, options->transform_on) < 0)
        return message_misuse(command,
                              "--transform-on: expected CPU or DEVICE, "
                              "found '%s'",
                              options->transform_on);
    if (find_word(rngs, options->rng) < 0)
        return message_misuse(command,
                              "--rng: expected LEAT or CAFFE, "
                              "found '%s'",
                              options->rng);
    if (find_word(policies, options->on_error) < 0)
        return message_misuse(command,
                              "--on-error: expected FAIL, ZERO or SKIP, "
                              "found '%s'",
                              options->on_error);
    if (options->top_type && leat_dtype_parse(&dtype, options->top_type))
        return message_misuse(command, "--top-type: there is no type '%s'",
                              options->top_type);
    return OPTION_GO;
}

static int fill_options(leat_data_layer_options *out,
                        const struct intake_options *options)
{
    out->phase = (leat_phase)find_word(phases, options->phase);
    out->layer = options->layer;
    out->stages = options->stages;
    out->level = (int)options->level;
    out->batch_size = options->batch;
    if (options->top_type)
        leat_dtype_parse(&out->top_type, options->top_type);
    out->layout = (leat_layout)find_word(layouts, options->layout);
    out->transform_on =
        (leat_transform_on)find_word(places, options->transform_on);
    out->rng = (leat_rng)find_word(rngs, options->rng);
    out->random_seed = options->seed;
    out->workers = (int)options->workers;
    if (options->prefetch >= 0)
        out->prefetch =
            options->prefetch ? (int)options->prefetch : LEAT_PREFETCH_AUTO;
    if (options->rank >= 0)
        out->rank = (int)options->rank;
    if (options->world_size)
        out->world_size = (int)options->world_size;
    out->on_error = (leat_on_error)find_word(policies, options->on_error);
    out->max_errors = options->max_errors;
    out->bad_record_file = options->bad_record_file;
    out->device = options->device;
    return options->launcher ? leat_launcher_ranks(&out->rank, &out->world_size)
                             : LEAT_OK;
}

static void fill_transform(leat_transform_options *out,
                           const struct intake_options *options)
{
    out->crop_size = (int)options->crop;
    out->mirror = options->mirror;
    out->scale = options->scale;
    out->mean_file = options->mean_file;
    out->mean_value = options->nmeans ? options->means : NULL;
    out->mean_values = options->nmeans;
    out->force_color = options->color;
    out->force_gray = options->gray;
}

/* The stream that reads the batches, where a device has any. */
static int open_stream(struct intake *intake, const char *name)
{
    leat_device *device;
    int status = leat_device_find(&device, name);
    if (status || device->ops->unified)
        return status;
    status = device->ops->stream_create(device, &intake->stream);
    if (!status)
        intake->device = device;
    return status;
}

/* A net file that leaves the size open takes it; what it says wins. */
static int check_batch(const struct intake *intake,
                       const struct intake_options *options)
{
    const leat_data_layer_options *in_force =
        leat_data_layer_get_options(intake->layer);
    if (!options->batch || in_force->batch_size == options->batch)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "--batch %lld: %s says the size of a batch itself; leave "
                      "--batch out",
                      (long long)options->batch, options->net);
}

static int create_from_net(struct intake *intake,
                           const struct intake_options *options,
                           const leat_data_layer_options *layer_options)
{
    int status = leat_data_layer_create_from_net(
        &intake->layer, options->net, layer_options->phase, layer_options);
    return status ? status : check_batch(intake, options);
}

int intake_create(struct intake *intake, const struct intake_options *options)
{
    leat_data_layer_options layer_options = LEAT_DATA_LAYER_OPTIONS_INIT;
    int status = fill_options(&layer_options, options);
    if (!status && options->device)
        status = open_stream(intake, options->device);
    if (status)
        return status;
    if (options->net)
        return create_from_net(intake, options, &layer_options);

    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    fill_transform(&transform, options);
    layer_options.transform = &transform;
    leat_pipeline *pipeline;
    status = leat_pipeline_parse(&pipeline, options->reader);
    if (status)
        return status;
    status = leat_data_layer_create(&intake->layer, pipeline, &layer_options);
    leat_pipeline_unref(pipeline);
    return status;
}

int intake_setup(struct intake *intake)
{
    int ntop = leat_data_layer_top_count(intake->layer);
    if (ntop < 0)
        return ntop;
    if (ntop > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EUNSUPPORTED, "%d tops, more than %d", ntop,
                          LEAT_MAX_FIELDS);
    intake->ntop = ntop;
    for (int i = 0; i < intake->ntop; i++) {
        int status = leat_blob_create(&intake->top[i], intake->device);
        if (status)
            return status;
    }
    return leat_data_layer_setup(intake->layer, intake->top, intake->ntop);
}

int intake_forward(struct intake *intake)
{
    int status =
        leat_data_layer_forward(intake->layer, intake->top, intake->ntop,
                                intake->device ? intake->stream : LEAT_HOST);
    if (status == LEAT_END)
        return leat_error(LEAT_EDATA, "the data has ended");
    return status;
}

int intake_wait(struct intake *intake)
{
    leat_device *device = intake->device;
    return device ? device->ops->stream_synchronize(device, intake->stream)
                  : LEAT_OK;
}

/* Enqueues the copy of a top, out of the device's own memory. */
static int copy_back(struct intake *intake, int i)
{
    leat_device *device = intake->device;
    leat_blob *top = intake->top[i];
    int status = LEAT_OK;
    if (!intake->copy[i])
        status = leat_blob_create(&intake->copy[i], NULL);
    if (status)
        return status;
    leat_blob *copy = intake->copy[i];
    status = leat_blob_reshape(copy, leat_blob_dtype(top), leat_blob_ndim(top),
                               leat_blob_shape(top));
    size_t bytes = leat_blob_bytes(copy);
    if (status || bytes == 0)
        return status;
    const void *from = leat_blob_gpu_data(top);
    void *to = leat_blob_mutable_cpu_data(copy);
    if (!from || !to)
        return LEAT_ENOMEM;
    return device->ops->copy(device, to, from, bytes, LEAT_COPY_TO_HOST,
                             intake->stream);
}

int intake_fetch(struct intake *intake, leat_blob *out[LEAT_MAX_FIELDS])
{
    int status = LEAT_OK;
    for (int i = 0; !status && intake->device && i < intake->ntop; i++)
        status = copy_back(intake, i);
    int waited = intake_wait(intake);
    if (status || waited)
        return status ? status : waited;
    for (int i = 0; i < intake->ntop; i++)
        out[i] = intake->device ? intake->copy[i] : intake->top[i];
    return LEAT_OK;
}

int64_t intake_bad_records(const struct intake *intake)
{
    leat_stats stats = {.size = sizeof(stats)};
    (void)leat_data_layer_stats(intake->layer, &stats);
    return stats.bad_records;
}

void intake_destroy(struct intake *intake)
{
    leat_data_layer_destroy(intake->layer);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        leat_blob_destroy(intake->top[i]);
        leat_blob_destroy(intake->copy[i]);
    }
    if (intake->device)
        intake->device->ops->stream_destroy(intake->device, intake->stream);
    memset(intake, 0, sizeof(*intake));
}
