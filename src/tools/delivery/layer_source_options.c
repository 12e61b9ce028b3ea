#include "tools/delivery/layer_source_options.h"

#include "tools/cli/message.h"
#include "tools/cli/number.h"

#include <leat/ext/reader.h>
#include <leat/launcher.h>

#include <strings.h>

/* Appended to those given before. */
static int read_stage(const struct option_spec *spec, const char *text)
{
    struct layer_source_options *options = spec->out;
    int n = 0;
    while (options->stages[n])
        n++;
    if (n == LAYER_SOURCE_MOST_STAGES || !*text)
        return -1;
    options->stages[n] = text;
    return 0;
}

/* In the place of those given before. */
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

/* A number, or AUTO. */
static int read_prefetch(const struct option_spec *spec, const char *text)
{
    if (strcasecmp(text, "AUTO") != 0)
        return option_int(spec, text);
    *(int64_t *)spec->out = LEAT_PREFETCH_AUTO;
    return 0;
}

static struct option_spec *append(struct option_spec *out,
                                  const struct option_spec *table)
{
    while (table->name)
        *out++ = *table++;
    return out;
}

static struct option_spec *list_source(struct option_spec *out,
                                       struct layer_source_options *o)
{
    const struct option_spec table[] = {
        {"net", "FILE", "the data layer of this Caffe net file", option_text,
         &o->net, 0, 0},
        {"phase", "TRAIN|TEST", "its phase; without --net: TRAIN", option_text,
         &o->phase, 0, 0},
        {"layer", "NAME", "which of several data layers", option_text,
         &o->layer, 0, 0},
        {"stage", "NAME", "a stage of the net's state; may be given again",
         read_stage, o, 0, 0},
        {"level", "N", "the level of the net's state (0)", option_int,
         &o->level, INT32_MIN, INT32_MAX},
        {"source", "PATH", "with --net: an LMDB instead of the file's source",
         option_text, &o->source, 0, 0},
        {"reader", "TEXT", "or an LMDB's path, or a pipeline's text",
         option_text, &o->reader, 0, 0},
        {"batch", "N", "samples in a batch", option_int, &o->batch, 1,
         INT32_MAX},
        {0}};
    return append(out, table);
}

static struct option_spec *list_transform(struct option_spec *out,
                                          struct layer_source_options *o)
{
    const struct option_spec table[] = {
        {"crop", "SIDE", "with --reader: crop to a square", option_int,
         &o->crop, 0, INT32_MAX},
        {"mirror", NULL, "with --reader: mirror at random", NULL, &o->mirror, 0,
         0},
        {"scale", "X", "with --reader: multiply by", option_float, &o->scale, 0,
         0},
        {"mean-file", "FILE", "with --reader: subtract this mean image",
         option_text, &o->mean_file, 0, 0},
        {"mean-value", "MEAN,...",
         "with --reader: one number, or one for each channel", read_means, o, 0,
         0},
        {"color", NULL, "with --reader: decode images to 3 channels", NULL,
         &o->color, 0, 0},
        {"gray", NULL, "with --reader: decode images to 1 channel", NULL,
         &o->gray, 0, 0},
        {"top-type", "TYPE", "float32, float64, float16, bfloat16 or uint8",
         option_text, &o->top_type, 0, 0},
        {"layout", "NCHW|NHWC", "order of an image's axes", option_text,
         &o->layout, 0, 0},
        {"transform-on", "CPU|DEVICE", "where pixels become the top's (CPU)",
         option_text, &o->transform_on, 0, 0},
        {0}};
    return append(out, table);
}

static struct option_spec *list_work(struct option_spec *out,
                                     struct layer_source_options *o)
{
    const struct option_spec table[] = {
        {"rng", "LEAT|CAFFE", "where random choices come from", option_text,
         &o->rng, 0, 0},
        {"seed", "S", "of random choices; -1: drawn", option_int, &o->seed, -1,
         INT64_MAX},
        {"workers", "N", "threads; 0: as many as there are cores", option_int,
         &o->workers, 0, 1024},
        {"prefetch", "N", "batches made ahead (4); AUTO: as it takes",
         read_prefetch, &o->prefetch, LEAT_PREFETCH_AUTO, 1 << 20},
        {"rank", "R", "of several ranks, from 0", option_int, &o->rank, 0,
         INT32_MAX},
        {"world-size", "W", "how many ranks there are (1)", option_int,
         &o->world_size, 0, INT32_MAX},
        {"launcher", NULL, "rank and world size from torchrun, mpirun, srun",
         NULL, &o->launcher, 0, 0},
        {"on-error", "FAIL|ZERO|REPLACE", "what becomes of a bad record (FAIL)",
         option_text, &o->on_error, 0, 0},
        {"max-errors", "N",
         "with ZERO, REPLACE: bad records at most; -1: no limit", option_int,
         &o->max_errors, -1, INT64_MAX},
        {"bad-record-file", "FILE", "append a line for each bad record",
         option_text, &o->bad_record_file, 0, 0},
        {"max-image-bytes", "N", "memory that decoding an image may take",
         option_bytes, &o->max_image_bytes, 0, INT64_MAX},
        {0}};
    return append(out, table);
}

void layer_source_options_list(struct option_spec out[LAYER_SOURCE_OPTIONS],
                               struct layer_source_options *options)
{
    struct option_spec *end = list_source(out, options);
    end = list_transform(end, options);
    end = list_work(end, options);
    *end = (struct option_spec){0};
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
static const char *const policies[] = {"FAIL", "ZERO", "REPLACE", NULL};

static int has_transform(const struct layer_source_options *options)
{
    return options->crop || options->mirror || options->scale != 1 ||
           options->mean_file || options->nmeans || options->color ||
           options->gray;
}

int layer_source_options_are_given(const struct layer_source_options *options)
{
    return has_transform(options) || options->net || options->reader ||
           options->source || options->phase || options->layer ||
           options->stages[0] || options->level || options->batch ||
           options->top_type || options->layout || options->transform_on ||
           options->rng || options->seed >= 0 || options->workers ||
           options->prefetch || options->rank >= 0 || options->world_size ||
           options->launcher || options->on_error || options->max_errors >= 0 ||
           options->bad_record_file || options->device;
}

int layer_source_options_check(const struct layer_source_options *options,
                               const char *command)
{
    leat_dtype dtype;
    if (!options->net == !options->reader)
        return message_misuse(command, "%s: give either --net or --reader",
                              command);
    if (options->source && !options->net)
        return message_misuse(command, "%s: --source is for --net", command);
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
    if (options->on_error && !strcasecmp(options->on_error, "SKIP"))
        return message_misuse(command, "--on-error: SKIP is called REPLACE "
                                       "now; expected FAIL, ZERO or REPLACE");
    if (find_word(policies, options->on_error) < 0)
        return message_misuse(command,
                              "--on-error: expected FAIL, ZERO or REPLACE, "
                              "found '%s'",
                              options->on_error);
    if (options->top_type &&
        (leat_dtype_parse(&dtype, options->top_type) || dtype == LEAT_BYTES))
        return message_misuse(command, "--top-type: there is no type '%s'",
                              options->top_type);
    return OPTION_GO;
}

int layer_source_options_fill(const struct layer_source_options *options,
                              leat_data_layer_options *out)
{
    out->phase = (leat_phase)find_word(phases, options->phase);
    out->layer = options->layer;
    out->source = options->source;
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
    out->has_random_seed = 1;
    out->workers = (int)options->workers;
    out->prefetch = (int)options->prefetch;
    if (options->rank >= 0)
        out->rank = (int)options->rank;
    out->world_size = (int)options->world_size;
    out->on_error = (leat_on_error)find_word(policies, options->on_error);
    out->max_errors = options->max_errors;
    out->has_max_errors = 1;
    out->bad_record_file = options->bad_record_file;
    out->max_image_bytes = (size_t)options->max_image_bytes;
    out->device = options->device;
    return options->launcher ? leat_launcher_ranks(&out->rank, &out->world_size)
                             : LEAT_OK;
}

void layer_source_options_fill_transform(
    const struct layer_source_options *options, leat_transform_options *out)
{
    out->crop_size = (int)options->crop;
    out->mirror = options->mirror;
    out->scale = options->scale;
    out->has_scale = 1;
    out->mean_file = options->mean_file;
    out->mean_value = options->nmeans ? options->means : NULL;
    out->mean_values = options->nmeans;
    out->force_color = options->color;
    out->force_gray = options->gray;
}
