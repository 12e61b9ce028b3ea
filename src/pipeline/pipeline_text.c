/* Pipelines from texts and from code, and that of the LMDB reader. */
#include "pipeline/pipeline_text.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "pipeline/argument_table.h"
#include "pipeline/pipeline.h"
#include "pipeline/pipeline_parser.h"
#include "pipeline/reader_table.h"
#include "pipeline/registry.h"

#include <stdio.h>
#include <string.h>

/* Room for the LMDB reader's options after its path. */
#define OPTIONS_SIZE 128

/* Letters of a text in errors; the reason follows. */
#define TEXT_SHOWN 200

/* The text in one line, without its end where it is long. */
static const char *show(char out[TEXT_SHOWN + 1], const char *text)
{
    snprintf(out, TEXT_SHOWN + 1, "%s", text);
    for (char *c = out; *c; c++) {
        if (leat__is_blank(*c))
            *c = ' ';
    }
    return out;
}

int leat__pipeline_parse(leat_pipeline **out, const char *text,
                         const char **fault)
{
    leat__pipeline_lexer lexer = {.text = text, .at = text};
    int status = leat__pipeline_parser_pipeline(&lexer, out);
    *fault = lexer.fault;
    return status;
}

int leat_pipeline_parse(leat_pipeline **out, const char *text)
{
    char shown[TEXT_SHOWN + 1];
    const char *fault;
    if (!text)
        return leat_error(LEAT_EINVAL, "the pipeline text is NULL");
    int status = leat__pipeline_parse(out, text, &fault);
    if (!status || !fault)
        return status;
    int line = 1;
    const char *begin = text;
    for (const char *c = text; c < fault; c++) {
        if (*c != '\n')
            continue;
        line++;
        begin = c + 1;
    }
    return leat__error_context(status, "pipeline \"%s\", %d:%d",
                               show(shown, text), line,
                               (int)(fault - begin) + 1);
}

int leat_pipeline_create(leat_pipeline **out, const leat_reader_type *type,
                         const char *text, void *object,
                         void (*release)(void *object),
                         leat_pipeline *const upstream[], int n)
{
    leat_args args;
    leat__pipeline_lexer lexer = {.text = text ? text : "",
                                  .is_arguments = true};
    lexer.at = lexer.text;
    int status = leat__reader_type_check(type);
    if (!status)
        status = leat__pipeline_parser_arguments(&lexer, type, &args);
    if (status) {
        if (release)
            release(object);
        return status;
    }
    return leat__pipeline_make(
        out, args, (leat__pipeline_object){object, release}, upstream, n);
}

int leat_args_pipeline(const leat_args *args, const char *name,
                       const char *element, leat_pipeline **out)
{
    char shown[TEXT_SHOWN + 1];
    const leat_argument *argument = leat__argument_find(args->type, name);
    const leat__value *value =
        argument && argument->kind == LEAT_ARGUMENT_PIPELINE
            ? leat__args_value(args, argument)
            : NULL;
    if (!value || (element && !element[0]))
        return leat_error(LEAT_EINVAL, "%s: %s: %s", args->type->name, name,
                          value ? "an element is empty"
                                : "there is no such pipeline");
    leat__pipeline_lexer lexer = {.text = value->text,
                                  .at = value->text,
                                  .braces = LEAT__BRACES_ARE_ELEMENT,
                                  .element = element};
    int status = leat__pipeline_parser_pipeline(&lexer, out);
    if (!status)
        return LEAT_OK;
    return leat__error_context(status, "%s: %s: (%s)%s%s", args->type->name,
                               name, show(shown, value->text),
                               element ? " of " : "", element ? element : "");
}

int leat_lmdb_options_init(leat_lmdb_options *options)
{
    const leat_lmdb_options defaults = LEAT_LMDB_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static int copy_options(leat_lmdb_options *out,
                        const leat_lmdb_options *options)
{
    const leat_lmdb_options defaults = LEAT_LMDB_OPTIONS_INIT;
    *out = defaults;
    int status = leat__options_copy(out, options, sizeof(*out));
    if (status)
        return leat__error_context(status, "lmdb");
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
    size_t length = leat_args_escape(path, NULL, 0);
    char *text = leat__alloc(length + OPTIONS_SIZE);
    if (!text)
        return LEAT_ENOMEM;
    leat_args_escape(path, text, length);
    char *end = text + length - 1;
    if (options->read_ahead)
        end += sprintf(end, ",read_ahead=%lld", (long long)options->read_ahead);
    if (options->drop_behind)
        end += sprintf(end, ",drop_behind=1");
    if (options->keep_behind)
        sprintf(end, ",keep_behind=%lld", (long long)options->keep_behind);
    *out = text;
    return LEAT_OK;
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
