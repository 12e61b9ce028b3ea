/*
 * importer.h: what every `leat import` does with its records: writes them to a
 * database that appears when it is complete, goes on where a run before was
 * stopped, shows how far it is, says what came of it.
 */
#ifndef LEAT_TOOLS_IMPORT_IMPORTER_H
#define LEAT_TOOLS_IMPORT_IMPORTER_H

#include "tools/cli/option.h"
#include "tools/import/import_arguments.h"
#include "tools/import/record_source.h"

struct importer_options {
    int force;
    int restart;
    int json;
};

/* Entries of their table, its end included. */
enum { IMPORTER_OPTIONS = 4 };

/* Fills the table that an import shares with the others: usage.shared. */
void importer_list_options(struct option_spec out[IMPORTER_OPTIONS],
                           struct importer_options *options);

/* What imports had once: usage.removed. */
extern const struct option_removed importer_removed;

/*
 * Makes the database at `path` of the source's records. The arguments name all
 * that decides what these are. Returns the tool's exit status, having printed
 * the result on stdout or the error on stderr.
 */
int importer_run(const struct importer_options *options,
                 struct record_source *source,
                 const struct import_arguments *arguments, const char *path);

#endif
