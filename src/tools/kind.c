#include "tools/kind.h"

#include "tools/message.h"

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

int kind_run(const struct kinds *kinds, int argc, char **argv)
{
    if (argc < 2)
        return message_misuse(kinds->command, "%s: of which kind?",
                              kinds->command);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return print_help(kinds);
    for (const struct kind *kind = kinds->kind; kind->name; kind++) {
        if (strcmp(argv[1], kind->name) != 0)
            continue;
        return kind->run(argc - 1, argv + 1);
    }
    return message_misuse(kinds->command, "%s: there is no kind '%s'",
                          kinds->command, argv[1]);
}
