/* shuffle, the samples of each epoch in a random order. */
#include "decorators/shuffle/shuffle.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/options.h"
#include "decorators/decorators.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* The number that the word stands for. */
#define FILES (-1)

static int check_arguments(const leat_args *args)
{
    const char *text = leat_args_get(args, "buffer");
    int64_t buffer = leat_args_number(args, "buffer");
    bool is_files = text && leat__ascii_is_same(text, "files");
    if (text && buffer < 1 && !is_files)
        return leat_error(LEAT_EINVAL,
                          "shuffle: a buffer of %lld: expected 1 or more "
                          "samples, or files",
                          (long long)buffer);
    if (text && leat_args_has(args, "block"))
        return leat_error(LEAT_EINVAL,
                          "shuffle: %s, and blocks of %lld: expected one of "
                          "them",
                          is_files ? "files" : "a buffer",
                          (long long)leat_args_number(args, "block"));
    return LEAT_OK;
}

static int shuffle_open(const leat_open *open, leat_reader **out)
{
    const leat_args *args = open->args;
    int64_t buffer = leat_args_number(args, "buffer");
    leat__shuffle_options options = {
        .seed = leat_open_seed(open),
        .each_epoch = leat_args_number(args, "each_epoch"),
        .size = buffer,
    };
    int status = check_arguments(args);
    if (status)
        return status;
    if (buffer == FILES)
        return leat__shuffle_files_open(open, &options, out);
    if (buffer > 0)
        return leat__shuffle_buffer_open(open, &options, out);
    options.size = leat_args_number(args, "block");
    return leat__shuffle_map_open(open, &options, out);
}

static const leat_argument shuffle_arguments[] = {
    {.name = "buffer",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .min = FILES,
     .max = INT32_MAX,
     .words = "files",
     .help = "samples of a buffer to draw from, over any reader; files: those "
             "of a reader of several, each in its order; without it all "
             "samples are permuted, over random access"},
    {.name = "block",
     .kind = LEAT_ARGUMENT_NUMBER,
     .min = 1,
     .max = INT64_MAX,
     .help = "blocks of this many samples are permuted, and each in itself"},
    {.name = "seed",
     .kind = LEAT_ARGUMENT_NUMBER,
     .max = INT64_MAX,
     .help = "of the order; else that of the layer"},
    {.name = "each_epoch",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "1",
     .max = 1,
     .help = "0: the same order in each epoch"},
    {0},
};

const leat_reader_type leat__shuffle_type = {
    .size = sizeof(leat_reader_type),
    .name = "shuffle",
    .help = "a random order",
    .arguments = shuffle_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .own_access = 1,
    .open = shuffle_open,
};

int leat_shuffle_options_init(leat_shuffle_options *options)
{
    const leat_shuffle_options defaults = LEAT_SHUFFLE_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

/* ",name=value", or as the first argument without the comma. */
static void put_number(char *text, size_t size, const char *name, int64_t value)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s%s%lld", used > 0 ? "," : "", name,
             *name ? "=" : "", (long long)value);
}

int leat_pipeline_shuffle(leat_pipeline **out, leat_pipeline *upstream,
                          const leat_shuffle_options *options)
{
    leat_shuffle_options values = LEAT_SHUFFLE_OPTIONS_INIT;
    char text[128] = "";
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    if (values.files)
        snprintf(text, sizeof(text), "files");
    else if (values.buffer != 0)
        put_number(text, sizeof(text), "", values.buffer);
    if (values.block != 0)
        put_number(text, sizeof(text), "block", values.block);
    if (values.has_seed)
        put_number(text, sizeof(text), "seed", values.seed);
    if (values.same_each_epoch)
        put_number(text, sizeof(text), "each_epoch", 0);
    return leat_pipeline_create(out, &leat__shuffle_type, text, NULL, NULL,
                                &upstream, 1);
}
