/* command_readers.c: `leat readers`, what a pipeline can be made of. */
#include "base/suggestion.h"
#include "tools/command.h"

#include <leat/ext/reader.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What a value of each kind is called, and the kind's name in JSON. */
static const struct {
    const char *value;
    const char *name;
} kinds[] = {
    [LEAT_ARGUMENT_TEXT] = {"TEXT", "text"},
    [LEAT_ARGUMENT_NUMBER] = {"N", "number"},
    [LEAT_ARGUMENT_BYTES] = {"BYTES", "bytes"},
    [LEAT_ARGUMENT_TIME] = {"TIME", "time"},
    [LEAT_ARGUMENT_WORD] = {"WORD", "word"},
    [LEAT_ARGUMENT_LIST] = {"(A,B,...)", "list"},
    [LEAT_ARGUMENT_PIPELINE] = {"(PIPELINE)", "pipeline"},
};

static const leat_argument *argument_at(const leat_reader_type *type, int i)
{
    const char *entries = (const char *)type->arguments;
    if (!entries)
        return NULL;
    const leat_argument *argument =
        (const void *)(entries + (size_t)i * type->argument_size);
    return argument->name ? argument : NULL;
}

/* "PATH", or "read_ahead=BYTES"; returns `out`. */
static const char *write_name(const leat_argument *argument, char *out,
                              size_t size)
{
    const char *value = argument->kind == LEAT_ARGUMENT_WORD
                            ? argument->words
                            : kinds[argument->kind].value;
    if (!argument->positional) {
        snprintf(out, size, "%s=%s", argument->name, value);
        return out;
    }
    snprintf(out, size, "%s%s", argument->name,
             argument->repeated ? ",..." : "");
    for (char *c = out; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return out;
}

static bool has_range(const leat_argument *argument)
{
    return argument->min || argument->max;
}

static json_t *argument_json(const leat_argument *argument)
{
    return json_pack(
        "{s:s, s:s, s:b, s:b, s:b, s:b, s:s*, s:o*, s:o*, s:s*, s:s*}", "name",
        argument->name, "kind", kinds[argument->kind].name, "positional",
        argument->positional, "required", argument->required, "repeated",
        argument->repeated, "keeps_samples", argument->keeps_samples, "default",
        argument->initial, "min",
        has_range(argument) ? json_integer(argument->min) : NULL, "max",
        has_range(argument) ? json_integer(argument->max) : NULL, "words",
        argument->words, "help", argument->help);
}

static json_t *reader_json(const leat_reader_type *type)
{
    const leat_argument *argument;
    json_t *arguments = json_array();
    for (int i = 0; (argument = argument_at(type, i)) != NULL; i++)
        json_array_append_new(arguments, argument_json(argument));
    return json_pack("{s:s, s:s*, s:i, s:i, s:b, s:b, s:o}", "name", type->name,
                     "help", type->help, "min_upstream", type->min_upstream,
                     "max_upstream", type->max_upstream, "may_block",
                     type->may_block, "passes_on", type->passes_on, "arguments",
                     arguments);
}

static int print_list(bool json)
{
    const leat_reader_type *type;
    json_t *readers = json_array();
    for (int i = 0; (type = leat_reader_type_at(i)) != NULL; i++) {
        if (json)
            json_array_append_new(readers, reader_json(type));
        else
            printf("%-16s  %s\n", type->name, type->help ? type->help : "");
    }
    if (json)
        return output_json(json_pack("{s:o}", "readers", readers));
    json_decref(readers);
    return 0;
}

/* How it is written: `upstream | name:FIRST,...`. */
static void print_usage(const leat_reader_type *type)
{
    const leat_argument *argument;
    char name[256];
    const char *before = ":";
    if (type->max_upstream > 1)
        printf("(PIPELINE) ... | ");
    else if (type->max_upstream == 1)
        printf("PIPELINE | ");
    printf("%s", type->name);
    for (int i = 0; (argument = argument_at(type, i)) != NULL; i++) {
        if (argument->positional)
            printf("%s%s", before, write_name(argument, name, sizeof(name)));
        else if (!argument->required)
            continue;
        else
            printf("%s%s=...", before, argument->name);
        before = ",";
    }
    printf("\n%s\n", type->help ? type->help : "");
}

static int print_reader(const leat_reader_type *type)
{
    const leat_argument *argument;
    char name[256];
    int width = 0;
    print_usage(type);
    for (int i = 0; (argument = argument_at(type, i)) != NULL; i++) {
        int length = (int)strlen(write_name(argument, name, sizeof(name)));
        width = length > width ? length : width;
    }
    printf("%s", width ? "\nArguments:\n" : "");
    for (int i = 0; (argument = argument_at(type, i)) != NULL; i++) {
        printf("  %-*s  %s", width, write_name(argument, name, sizeof(name)),
               argument->help ? argument->help : "");
        if (argument->initial)
            printf(" (%s)", argument->initial);
        printf("\n");
    }
    return 0;
}

static int print_one(const char *name, bool json)
{
    char nearest[128];
    const leat_reader_type *type;
    leat__suggestion suggestion = leat__suggestion_of(name);
    for (int i = 0; (type = leat_reader_type_at(i)) != NULL; i++) {
        if (!strcmp(type->name, name))
            return json ? output_json(reader_json(type)) : print_reader(type);
        leat__suggestion_consider(&suggestion, type->name);
    }
    return message_error(
        "there is no reader '%s'%s", name,
        leat__suggestion_write(&suggestion, "", nearest, sizeof(nearest)));
}

int command_readers(int argc, char **argv)
{
    bool json = false;
    const struct option_spec specs[] = {
        {"json", NULL, "print one JSON object", NULL, &json, 0, 0}, {0}};
    const struct usage usage = {
        .command = "readers",
        .arguments = "[options] [NAME]",
        .about = "Prints the readers of which a pipeline's text is made, or\n"
                 "the arguments of one of them.",
        .options = specs,
        .most_arguments = 1,
    };
    char **arguments = option_parse(&usage, argc, argv);
    return arguments[0] ? print_one(arguments[0], json) : print_list(json);
}
