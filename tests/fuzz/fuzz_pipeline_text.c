/* fuzz_pipeline_text.c: any text as a pipeline; what is one parses again to the
 * same, and any text as a path comes back from the pipeline's text. */
#include "pipeline/arguments.h"
#include "pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_nothing(const leat_open *open, leat_reader **out)
{
    (void)open;
    (void)out;
    return leat_error(LEAT_EUNSUPPORTED, "it is only a name");
}

static const char *const keys[] = {"seed", "a b", "", NULL};

/* Takes anything, before and behind it, so that long chains can be built. */
static const leat_reader_type any_type = {
    .size = sizeof(leat_reader_type),
    .name = "any",
    .keys = keys,
    .max_args = 4,
    .max_upstream = 1,
    .open = open_nothing,
};

static void register_once(void)
{
    static int registered;
    if (!registered && leat_reader_register(&any_type))
        abort();
    registered = 1;
}

static void parse(const char *text)
{
    leat_pipeline *pipeline;
    leat_pipeline *again;
    if (leat_pipeline_parse(&pipeline, text))
        return;
    const char *canonical = leat_pipeline_text(pipeline);
    if (leat_pipeline_parse(&again, canonical) ||
        strcmp(leat_pipeline_text(again), canonical) != 0 ||
        leat__pipeline_hash(again) != leat__pipeline_hash(pipeline))
        abort();
    leat_pipeline_unref(again);
    leat_pipeline_unref(pipeline);
}

static void escape(const char *path)
{
    leat_args args;
    leat_pipeline *pipeline;
    if (leat_pipeline_lmdb(&pipeline, path, NULL))
        return;
    const char *text = leat_pipeline_text(pipeline);
    if (leat__args_parse(&args, text + strlen("lmdb:")) || args.n != 1 ||
        args.nkeys != 0 || strcmp(args.at[0], path) != 0)
        abort();
    leat__args_finish(&args);
    parse(text);
    leat_pipeline_unref(pipeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    register_once();
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    parse(text);
    escape(text);
    free(text);
    return 0;
}
