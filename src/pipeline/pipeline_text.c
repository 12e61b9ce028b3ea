/* Parses pipeline texts, and builds the pipeline of the LMDB reader. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "pipeline/arguments.h"
#include "pipeline/registry.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 64

/* Room for the LMDB reader's options after its path. */
#define OPTIONS_SIZE 128

/* Letters of a pipeline's text in errors; the reason follows. */
#define TEXT_SHOWN 200

static size_t segment_length(const char *text)
{
    size_t i = 0;
    while (text[i] && text[i] != '|')
        i += text[i] == '\\' && text[i + 1] ? 2 : 1;
    return i;
}

/* Whether the letter at `i` is escaped: an odd number of backslashes precede
 * it. */
static bool is_escaped(const char *text, size_t i)
{
    size_t backslashes = 0;
    while (backslashes < i && text[i - 1 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

/* The segment without surrounding blanks; an escaped last blank is kept. */
static const char *trim(const char *text, size_t *size)
{
    while (*size > 0 && *text == ' ') {
        text++;
        (*size)--;
    }
    while (*size > 0 && text[*size - 1] == ' ' && !is_escaped(text, *size - 1))
        (*size)--;
    return text;
}

/* Appends the reader that the segment names to *pipeline, which may be NULL. */
static int append(leat_pipeline **pipeline, const char *text, size_t size)
{
    const char *colon = memchr(text, ':', size);
    size_t name_size = colon ? (size_t)(colon - text) : size;
    char name[NAME_SIZE];
    if (name_size == 0 || name_size >= sizeof(name))
        return leat_error(LEAT_EINVAL,
                          "expected the name of a reader, such as lmdb:PATH");
    memcpy(name, text, name_size);
    name[name_size] = 0;
    const leat_reader_type *type;
    int status = leat__registry_find(&type, name);
    if (status)
        return status;
    size_t skip = colon ? name_size + 1 : name_size;
    char *arguments = leat__alloc(size - skip + 1);
    if (!arguments)
        return LEAT_ENOMEM;
    memcpy(arguments, text + skip, size - skip);
    arguments[size - skip] = 0;
    leat_pipeline *next;
    status = leat_pipeline_create(&next, type, arguments, NULL, NULL, pipeline,
                                  *pipeline ? 1 : 0);
    leat__free(arguments);
    if (status)
        return status;
    leat_pipeline_unref(*pipeline);
    *pipeline = next;
    return LEAT_OK;
}

int leat_pipeline_parse(leat_pipeline **out, const char *text)
{
    if (!text)
        return leat_error(LEAT_EINVAL, "the pipeline text is NULL");
    leat_pipeline *pipeline = NULL;
    const char *rest = text;
    for (;;) {
        size_t whole = segment_length(rest);
        size_t size = whole;
        const char *segment = trim(rest, &size);
        int status = append(&pipeline, segment, size);
        if (status) {
            leat_pipeline_unref(pipeline);
            return leat__error_context(
                status, "pipeline \"%.*s\", character %zu", TEXT_SHOWN, text,
                (size_t)(segment - text) + 1);
        }
        if (!rest[whole])
            break;
        rest += whole + 1;
    }
    *out = pipeline;
    return LEAT_OK;
}

int leat_lmdb_options_init(leat_lmdb_options *options)
{
    const leat_lmdb_options defaults = LEAT_LMDB_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

/* Fields beyond the caller's size take their defaults. */
static int copy_options(leat_lmdb_options *out,
                        const leat_lmdb_options *options)
{
    const leat_lmdb_options defaults = LEAT_LMDB_OPTIONS_INIT;
    *out = defaults;
    if (!options)
        return LEAT_OK;
    if (options->size == 0)
        return leat_error(LEAT_EINVAL,
                          "the LMDB reader's options were not initialised with "
                          "LEAT_LMDB_OPTIONS_INIT");
    memcpy(out, options,
           options->size < sizeof(*out) ? options->size : sizeof(*out));
    if (out->read_ahead < -1 || out->keep_behind < -1 ||
        (out->drop_behind != 0 && out->drop_behind != 1))
        return leat_error(LEAT_EINVAL,
                          "read_ahead %lld, drop_behind %d, keep_behind %lld: "
                          "expected bytes, 0 or -1, 0 or 1, bytes, 0 or -1",
                          (long long)out->read_ahead, out->drop_behind,
                          (long long)out->keep_behind);
    return LEAT_OK;
}

/* Writes the reader's arguments, without those that have their defaults. */
static int write_arguments(char **out, const char *path,
                           const leat_lmdb_options *options)
{
    char *escaped = leat__args_escape(path);
    size_t length = escaped ? strlen(escaped) : 0;
    size_t size = length + OPTIONS_SIZE;
    char *text = escaped ? leat__alloc(size) : NULL;
    if (text) {
        int used = snprintf(text, size, "%s", escaped);
        char *end = text + used;
        if (options->read_ahead)
            end += sprintf(end, ",read_ahead=%lld",
                           (long long)options->read_ahead);
        if (options->drop_behind)
            end += sprintf(end, ",drop_behind=1");
        if (options->keep_behind)
            sprintf(end, ",keep_behind=%lld", (long long)options->keep_behind);
    }
    leat__free(escaped);
    *out = text;
    return text ? LEAT_OK : LEAT_ENOMEM;
}

int leat_pipeline_lmdb(leat_pipeline **out, const char *path,
                       const leat_lmdb_options *options)
{
    leat_lmdb_options values;
    char *arguments;
    if (!path || !path[0])
        return leat_error(LEAT_EINVAL,
                          "an LMDB needs the path of its directory");
    const leat_reader_type *type;
    int status = leat__registry_find(&type, "lmdb");
    if (status)
        return status;
    status = copy_options(&values, options);
    if (!status)
        status = write_arguments(&arguments, path, &values);
    if (status)
        return status;
    status = leat_pipeline_create(out, type, arguments, NULL, NULL, NULL, 0);
    leat__free(arguments);
    return status;
}
