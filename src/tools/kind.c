#include "tools/kind.h"

#include "tools/message.h"
#include "tools/option.h"
#include "tools/suggestion.h"

#include <stdio.h>
#include <string.h>

static int print_help(const struct kinds *kinds)
{
    printf("Usage: leat %s %s\n\n%s\n\nKinds:\n", kinds->command,
           kinds->arguments, kinds->about);
    for (const struct kind *kind = kinds->kind; kind->name; kind++)
        printf("  %-8s  %s\n", kind->name, kind->summary);
    printf("\nleat %s KIND --help tells more.\n", kinds->command);
    return 0;
}

const char *kind_suggest(const struct kind *list, const char *word, char *out,
                         int size)
{
    struct suggestion suggestion = suggestion_of(word);
    for (; list->name; list++)
        suggestion_consider(&suggestion, list->name);
    return suggestion_write(&suggestion, "", out, size);
}

/* The kinds, and then the options of each. */
static int describe(const struct kinds *kinds,
                    const struct usage_visitor *visitor)
{
    visitor->kinds(kinds, visitor->context);
    for (const struct kind *kind = kinds->kind; kind->name; kind++)
        kind->run(0, NULL);
    return 0;
}

int kind_run(const struct kinds *kinds, int argc, char **argv)
{
    if (option_visitor())
        return describe(kinds, option_visitor());
    if (argc < 2)
        return message_misuse(kinds->command, "%s: of which kind?",
                              kinds->command);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return print_help(kinds);
    if (!strcmp(argv[1], "-V"))
        return message_version();
    for (const struct kind *kind = kinds->kind; kind->name; kind++)
        if (!strcmp(argv[1], kind->name))
            return kind->run(argc - 1, argv + 1);
    char nearest[64];
    return message_misuse(
        kinds->command, "%s: there is no kind '%s'%s", kinds->command, argv[1],
        kind_suggest(kinds->kind, argv[1], nearest, sizeof(nearest)));
}
