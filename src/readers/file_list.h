/*
 * file_list.h: the files that a reader's arguments name: paths, patterns and
 * lists, in an order that depends on nothing else.
 */
#ifndef LEAT_READERS_FILE_LIST_H
#define LEAT_READERS_FILE_LIST_H

#include "readers/listed_file.h"

#include <leat/ext/reader.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The help of an argument that is added by leat__file_list_add. */
#define LEAT__FILE_LIST_HELP                                                   \
    "paths; with * ? [ patterns, each sorted by bytes, unless a file has "     \
    "that name; @LIST: the paths in a file, a line each, - for standard "      \
    "input"

/* A folder in which a pattern was looked for. */
typedef struct leat__listed_folder {
    struct leat__listed_folder *next;
    dev_t device;
    ino_t inode;
    char path[];
} leat__listed_folder;

/* A pattern, and the files of the list that it gave. */
typedef struct leat__listed_pattern {
    struct leat__listed_pattern *next;
    leat__listed_folder *folder;
    int first;
    int n;
    char text[];
} leat__listed_pattern;

/* Zero is an empty one. */
typedef struct leat__file_list {
    int n;
    int capacity;
    char **path; /* the list's own, as each text is */
    leat__listed_pattern *pattern;
    leat__listed_file *file;
    int64_t bytes; /* that all these take */
    int64_t most;  /* that they may take; 0: no limit */
} leat__file_list;

/*
 * Adds the files that one text names, after those that are there:
 *  - @LIST: the paths in the file LIST, a line each, as they are, so that - is
 *    standard input, but @x is the file ./@x; empty lines do not count;
 *    relative ones to the working directory;
 *  - a text with * ? or [, of which no file has the name: the files that match
 *    by their bytes, and sorted by them, in every locale; one that is called -
 *    or begins with @ has ./ before it, so that it is a path to whoever reads
 *    it;
 *  - any other: itself, whether it exists or not.
 * Errors: LEAT_EIO for a pattern without a match, a folder or a list that
 * cannot be read; LEAT_EFORMAT for a list that is empty or no text;
 * LEAT_EINVAL for ** in a pattern; LEAT_ELIMIT for more than list->most bytes,
 * those of a LIST as it is read among them; LEAT_ECANCELLED soon after this
 * thread's opening is, as for the functions below; LEAT_ENOMEM.
 */
int leat__file_list_add(leat__file_list *list, const char *text);

/*
 * LEAT_EIO if another folder has taken the place of one that a pattern listed,
 * and the pattern gives other files now, or another file that of a LIST: those
 * that were opened since may be neither. Called once they are open.
 */
int leat__file_list_check(const leat__file_list *list);

/* The same of the first `most` folders, and of no LIST. */
int leat__file_list_check_folders(const leat__file_list *list, int64_t most);

/* Those in the `size` bytes of a list `name`. */
int leat__file_list_parse(leat__file_list *list, const char *name,
                          const char *bytes, size_t size);

/* Adds the times of modification that the regular files of a list have now to
 * `*hash`, of several. */
int leat__file_list_modified(uint64_t *hash, const leat__file_list *list);

/* Those of all positional arguments, within max_memory. The list is empty after
 * an error. */
int leat__file_list_open(leat__file_list *list, const leat_open *open);
void leat__file_list_close(leat__file_list *list);

#endif
