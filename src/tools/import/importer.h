/*
 * importer.h: what every `leat import` does with its records: writes them to a
 * database that appears when it is complete, goes on where a run before was
 * stopped, shows how far it is, says what came of it.
 */
#ifndef LEAT_TOOLS_IMPORT_IMPORTER_H
#define LEAT_TOOLS_IMPORT_IMPORTER_H

#include "tools/import/recipe.h"
#include "tools/import/record_source.h"
#include "tools/option.h"

struct importer_options {
    int append;
    int force;
    int restart;
    int json;
};

/* The options that every import has, for its table. */
#define IMPORTER_OPTIONS(o)                                                    \
    {"append",                                                                 \
     NULL,                                                                     \
     "go on behind the records of a database that is there",                   \
     NULL,                                                                     \
     &(o)->append,                                                             \
     0,                                                                        \
     0},                                                                       \
        {"force", NULL, "replace a database that is there", NULL, &(o)->force, \
         0,       0},                                                          \
        {"restart",                                                            \
         NULL,                                                                 \
         "begin anew where an unfinished import stands",                       \
         NULL,                                                                 \
         &(o)->restart,                                                        \
         0,                                                                    \
         0},                                                                   \
    {                                                                          \
        "json", NULL, "print one JSON object", NULL, &(o)->json, 0, 0          \
    }

/* OPTION_GO, or EXIT_MISUSED after a message. `command`: "import mnist". */
int importer_check(const struct importer_options *options, const char *command);

/*
 * Makes the database at `path` of the source's records. The recipe names all
 * that decides what these are. Returns the tool's exit status, having printed
 * the result on stdout or the error on stderr.
 */
int importer_run(const struct importer_options *options,
                 struct record_source *source, const struct recipe *recipe,
                 const char *path);

#endif
