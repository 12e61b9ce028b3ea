/*
 * recipe.h: what a database is made of, as text: files, their state, options.
 *
 * An unfinished database is gone on with only by the same recipe.
 */
#ifndef LEAT_TOOLS_IMPORT_RECIPE_H
#define LEAT_TOOLS_IMPORT_RECIPE_H

#include <leat/status.h>

/* Zeroed: an empty one. Lines, each ended by a line break. */
struct recipe {
    char *text;
    size_t length;
};

/* Adds a line; line breaks in it become '?'. Errors: LEAT_ENOMEM. */
int recipe_add(struct recipe *recipe, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Adds a line for a file: its absolute path, size and time of change. What is
 * no regular file, such as a pipe, is never the same twice.
 * Errors: LEAT_EFORMAT for a directory, LEAT_EIO, LEAT_ENOMEM.
 */
int recipe_add_file(struct recipe *recipe, const char *path);

void recipe_finish(struct recipe *recipe);

#endif
