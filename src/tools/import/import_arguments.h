/*
 * import_arguments.h: what a database is made of, as text: files, their state,
 * options.
 *
 * Only the same arguments resume an unfinished database.
 */
#ifndef LEAT_TOOLS_IMPORT_IMPORT_ARGUMENTS_H
#define LEAT_TOOLS_IMPORT_IMPORT_ARGUMENTS_H

#include <leat/status.h>

/* Empty when zeroed. Lines, each ended by a line break. */
struct import_arguments {
    char *text;
    size_t length;
};

/* Adds a line; line breaks in it become '?'. Errors: LEAT_ENOMEM. */
int import_arguments_add(struct import_arguments *arguments, const char *format,
                         ...) __attribute__((format(printf, 2, 3)));

/*
 * Adds a line for a file: its absolute path, size and time of change. What is
 * no regular file, such as a pipe, is never the same twice.
 * Errors: LEAT_EFORMAT for a directory, LEAT_EIO, LEAT_ENOMEM.
 */
int import_arguments_add_file(struct import_arguments *arguments,
                              const char *path);

void import_arguments_finish(struct import_arguments *arguments);

#endif
