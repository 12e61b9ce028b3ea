#include "tools/command.h"

#include <stddef.h>

const struct kind *command_list(void)
{
    static const struct kind commands[] = {
        {"synth", command_synth, "make a database of drawn digits or of noise"},
        {"import", command_import, "make a database from other files"},
        {"info", command_info, "say what is in a database"},
        {"show", command_show, "draw a contact sheet of records"},
        {"verify", command_verify, "find every bad record of a database"},
        {"compare", command_compare, "say whether two databases are the same"},
        {"cat", command_cat, "print samples as text"},
        {"mean", command_mean, "compute the mean image of a database"},
        {"dump", command_dump,
         "write what a data layer delivers to .npy files"},
        {"bench", command_bench, "measure a data layer, and what is possible"},
        {"completion", command_completion,
         "print what completes leat's command line in a shell"},
        {NULL, NULL, NULL},
    };
    return commands;
}
