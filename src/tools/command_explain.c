/* command_explain.c: `leat explain`, what each reader of a pipeline does. */
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/command.h"
#include "tools/database/database.h"

#include <leat/reader.h>
#include <leat/stats.h>
#include <leat/token.h>

#include <stddef.h>

/* A reader of the pipeline, opened with all that it reads. */
struct explained {
    const char *form;
    int64_t count; /* -1: unknown */
    const char *access;
    const char *resume;
    int64_t memory; /* its own, after opening */
};

struct explain {
    json_t *readers;
    bool json;
    bool is_titled;
};

static bool does_work(const leat_reader *reader)
{
    const leat_reader_ops *ops = reader->ops;
    return ops->size > offsetof(leat_reader_ops, materialize) &&
           ops->materialize;
}

static const char *form_of(const leat_pipeline *pipeline,
                           const leat_reader *reader)
{
    if (!leat_pipeline_upstream_at(pipeline, 0))
        return "source";
    if (does_work(reader))
        return "map";
    return leat_reader_is_random_access(reader) ? "index map" : "stream";
}

/* A reader that cannot, or whose data are damaged, has answered. */
static void require_answer(int status)
{
    if (status == LEAT_ENOMEM || status == LEAT_EIO)
        output_require(status);
}

/* How a resumed run finds a position. */
static const char *resume_of(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_save(reader, &token);
    leat_token_finish(&token);
    require_answer(status);
    if (status)
        return "none";
    if (leat_reader_can_seek(reader))
        return "index";
    return leat_reader_has_mark(reader) ? "mark" : "reading";
}

static void explain_reader(const leat_pipeline *pipeline, leat_reader *reader,
                           struct explained *out)
{
    leat_reader_stats stats[LEAT_MAX_READER_STATS];
    leat_reader_chain_stats(reader, stats);
    *out = (struct explained){
        .form = form_of(pipeline, reader),
        .access =
            leat_reader_is_random_access(reader) ? "any order" : "in order",
        .resume = resume_of(reader),
        .memory = stats[0].memory,
    };
    int status = leat_reader_count(reader, &out->count);
    require_answer(status);
    if (status)
        out->count = leat_reader_is_endless(reader) ? LEAT_ENDLESS : -1;
}

/* The reader's own part of the text, after that of what it reads. */
static const char *own_text(const leat_pipeline *pipeline)
{
    const char *text = leat_pipeline_text(pipeline);
    const leat_pipeline *upstream = leat_pipeline_upstream_at(pipeline, 0);
    if (!upstream)
        return text;
    if (!leat_pipeline_upstream_at(pipeline, 1))
        return text + strlen(leat_pipeline_text(upstream)) + strlen(" | ");
    for (int i = 0; (upstream = leat_pipeline_upstream_at(pipeline, i)); i++)
        text += strlen(leat_pipeline_text(upstream)) + strlen("() ");
    return text + strlen("| ");
}

static void print_line(struct explain *explain, const char *text, int indent,
                       const struct explained *one)
{
    char count[32] = "unknown";
    const char *const format = "%-9s  %12s  %-9s  %-7s  %8s  %*s%s\n";
    if (one->count == LEAT_ENDLESS)
        snprintf(count, sizeof(count), "endless");
    else if (one->count >= 0)
        snprintf(count, sizeof(count), "%lld", (long long)one->count);
    if (!explain->is_titled)
        printf(format, "FORM", "SAMPLES", "ACCESS", "RESUME", "MEMORY", 0, "",
               "READER");
    explain->is_titled = true;
    printf(format, one->form, count, one->access, one->resume,
           output_bytes(one->memory), indent, "", plain_text(text));
}

static void add_json(struct explain *explain, const char *text, int depth,
                     const struct explained *one)
{
    json_array_append_new(
        explain->readers,
        json_pack("{s:o, s:i, s:s, s:o, s:b, s:s, s:s, s:I}", "reader",
                  output_text(text), "depth", depth, "form", one->form, "count",
                  one->count < 0 || one->count == LEAT_ENDLESS
                      ? json_null()
                      : json_integer(one->count),
                  "endless", one->count == LEAT_ENDLESS, "access", one->access,
                  "resume", one->resume, "memory", (json_int_t)one->memory));
}

static void close_reader(void *reader)
{
    leat_reader_close(reader);
}

/* Each reader after those that it reads; those of several are indented. */
static void explain_chain(struct explain *explain,
                          const leat_pipeline *pipeline, int depth)
{
    struct explained one;
    leat_reader *reader;
    const leat_pipeline *upstream;
    bool joins = leat_pipeline_upstream_at(pipeline, 1);
    for (int i = 0; (upstream = leat_pipeline_upstream_at(pipeline, i)); i++)
        explain_chain(explain, upstream, depth + joins);
    output_require(leat_pipeline_open(pipeline, &reader));
    cleanup_add(close_reader, reader);
    explain_reader(pipeline, reader, &one);
    cleanup_remove(reader);
    leat_reader_close(reader);
    if (interrupt_check())
        output_exit(EXIT_FAILED);
    if (explain->json)
        add_json(explain, own_text(pipeline), depth, &one);
    else
        print_line(explain, own_text(pipeline), 2 * depth, &one);
}

int command_explain(int argc, char **argv)
{
    struct explain explain = {.json = false};
    const struct option_spec specs[] = {
        option_flag("json", "print one JSON object", &explain.json), {0}};
    const struct usage usage = {
        .command = "explain",
        .arguments = "[options] PIPELINE",
        .about =
            "Opens a pipeline and prints its readers, each after those that "
            "it\n"
            "reads: its form, how many samples an epoch has, whether they can\n"
            "be read in any order, how a resumed run finds its position, and\n"
            "the memory that it holds when it is opened. No sample is read\n"
            "unless a reader needs one to open.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 1,
    };
    char **arguments = option_parse(&usage, argc, argv);
    leat_pipeline *pipeline;
    interrupt_catch_opening();
    explain.readers = json_array();
    output_require(database_pipeline(&pipeline, arguments[0]));
    explain_chain(&explain, pipeline, 0);
    leat_pipeline_unref(pipeline);
    if (explain.json)
        return output_json(json_pack("{s:o}", "readers", explain.readers));
    json_decref(explain.readers);
    return 0;
}
