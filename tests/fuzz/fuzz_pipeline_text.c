/*
 * fuzz_pipeline_text.c: any text as a pipeline. What is one parses from its own
 * text to the same text and hash; its inner pipelines take any element; and any
 * text as a path comes back from the pipeline's text, also in parentheses.
 */
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_nothing(const leat_open *open, leat_reader **out)
{
    (void)open;
    (void)out;
    return leat_error(LEAT_EUNSUPPORTED, "it is only a name");
}

static const leat_argument arguments[] = {
    {.name = "first", .positional = 1},
    {.name = "more", .positional = 1, .repeated = 1},
    {.name = "seed", .kind = LEAT_ARGUMENT_NUMBER},
    {.name = "b", .kind = LEAT_ARGUMENT_BYTES, .keeps_samples = 1},
    {.name = "t", .kind = LEAT_ARGUMENT_TIME, .initial = "1s"},
    {.name = "w", .kind = LEAT_ARGUMENT_WORD, .words = "A|B"},
    {.name = "l", .kind = LEAT_ARGUMENT_LIST},
    {.name = "p", .kind = LEAT_ARGUMENT_PIPELINE},
    {0},
};

/* Takes anything, before and after it, so that long chains can be built. */
static const leat_reader_type any_type = {
    .size = sizeof(leat_reader_type),
    .name = "any",
    .arguments = arguments,
    .argument_size = sizeof(leat_argument),
    .max_upstream = LEAT_MAX_UPSTREAM,
    .open = open_nothing,
};

static void register_once(void)
{
    static int registered;
    if (!registered && leat_reader_register(&any_type))
        abort();
    registered = 1;
}

static void check_inner(const leat_pipeline *pipeline, const char *element)
{
    leat_pipeline *inner;
    for (int i = 0; i < pipeline->nupstream; i++)
        check_inner(pipeline->upstream[i], element);
    if (leat_args_has(&pipeline->args, "p") &&
        !leat_args_pipeline(&pipeline->args, "p", element, &inner))
        leat_pipeline_unref(inner);
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
    check_inner(again, text);
    leat_pipeline_unref(again);
    leat_pipeline_unref(pipeline);
}

/* The text of `(lmdb:path) (lmdb:path) | any` gives the path back twice. */
static void escape(const char *path)
{
    leat_pipeline *lmdb;
    leat_pipeline *both;
    leat_pipeline *again;
    if (leat_pipeline_lmdb(&lmdb, path, NULL))
        return;
    leat_pipeline *const two[] = {lmdb, lmdb};
    if (leat_pipeline_create(&both, &any_type, "", NULL, NULL, two, 2) ||
        leat_pipeline_parse(&again, leat_pipeline_text(both)) ||
        again->nupstream != 2)
        abort();
    for (int i = 0; i < 2; i++) {
        if (strcmp(leat_args_at(&again->upstream[i]->args, 0), path) != 0)
            abort();
    }
    leat_pipeline_unref(again);
    leat_pipeline_unref(both);
    leat_pipeline_unref(lmdb);
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
