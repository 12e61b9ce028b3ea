/*
 * importer.h: the part that every `leat import` and `leat synth` share: writes
 * records to a database that appears when it is complete, resumes a stopped
 * run, shows the progress, reports the result.
 */
#ifndef LEAT_TOOLS_IMPORT_IMPORTER_H
#define LEAT_TOOLS_IMPORT_IMPORTER_H

#include "tools/cli/option.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A record on its way into a database; borrowed until the next call. */
struct record {
    int64_t number;    /* its position in the source, from 0 */
    const char *name;  /* NULL: its key is the number, else NUMBER_name */
    const void *value; /* a Datum in wire format */
    size_t size;
};

/*
 * The first member of a command's own struct, and a source of records. A source
 * always gives the same records, so that a rerun resumes at a record's number.
 * One thread calls it; a source may have threads of its own that work ahead.
 */
struct importer {
    const char *unit; /* of its input: "images" */
    int64_t count;    /* numbers run from 0 to below it; -1: unknown */
    int digits;       /* of a number in a key */
    bool is_fresh;    /* a stopped run leaves nothing, and is not resumed */

    /*
     * The next record; numbers ascend, and those of records that are left out
     * are missing. LEAT_END after the last one, once its files proved sound to
     * their ends. Errors: any, with its line; none is read on after.
     */
    int (*next)(struct importer *importer, struct record *out);

    /*
     * The next `next` gives the first record whose number is not below this
     * one. Called once at most, before the first next. Errors: as of next.
     * NULL: the records before it are made again.
     */
    int (*seek)(struct importer *importer, int64_t number);

    /*
     * Reports further facts of a finished database with `records`: on stderr,
     * and with --json in `object` (else NULL). Returns the tool's exit status.
     * NULL: nothing.
     */
    int (*report)(struct importer *importer, int64_t records, json_t *object);

    bool force; /* options that all imports have */
    bool restart;
    bool json;
    bool is_once;     /* an input, such as a pipe, is never the same twice */
    bool is_in_place; /* the target is an input: the last lines of the
                         arguments are as in staging_options */
    char *arguments;  /* lines that decide the records: importer_add */
};

/* option_parse, with the options that all imports have. */
char **importer_parse(struct importer *importer, struct usage *usage, int argc,
                      char **argv);

/*
 * Adds a line to the arguments, without which a run is not resumed; line breaks
 * in it become '?'. Errors: LEAT_ENOMEM.
 */
int importer_add(struct importer *importer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Adds a line for an input that is never the same twice, so that no other run
 * resumes this one. Errors: LEAT_ENOMEM.
 */
int importer_add_once(struct importer *importer, const char *name);

/*
 * Adds a line for a file: its absolute path, size and time of change. What is
 * no regular file, such as a pipe, is added as read once.
 * Errors: LEAT_EFORMAT for a directory, LEAT_EIO, LEAT_ENOMEM.
 */
int importer_add_file(struct importer *importer, const char *path);

/*
 * Makes Caffe's key of a number, or of a number and a name of 502 bytes at
 * most. Errors: LEAT_EINVAL for a number of more digits.
 */
enum { IMPORTER_KEY = 512 };
int importer_key(char out[IMPORTER_KEY], int digits, int64_t number,
                 const char *name);

/*
 * Before the input is read: ends the tool where no database can be made at
 * `path`.
 */
void importer_check(const struct importer *importer, const char *path);

/*
 * Makes the database at `path`. Until then there is nothing to clean up. Frees
 * the arguments. Returns the tool's exit status, having printed the result on
 * stdout or the error on stderr.
 */
int importer_run(struct importer *importer, const char *path);

#endif
