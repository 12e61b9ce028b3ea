/*
 * staged_file.h: a file that is written beside its target until it is complete.
 *
 * It is new and has a random name, TARGET.leat-XXXXXX: no link is followed, no
 * pipe or device opened, and several processes may write the same target at
 * once. Publishing renames it in one step.
 */
#ifndef LEAT_TOOLS_CLI_STAGED_FILE_H
#define LEAT_TOOLS_CLI_STAGED_FILE_H

#include <leat/status.h>

#include <stdio.h>
#include <sys/types.h>

/* A zeroed one is no file. */
struct staged_file {
    int directory; /* in which relative paths begin; borrowed */
    char *path;
    const char *name; /* the target's path, in the same memory */
    FILE *stream;     /* to be written and read; NULL: closed */
    dev_t device;     /* which file it is, also once it is published */
    ino_t number;
};

/* Whether the target's name leaves room for those letters: LEAT_EIO. */
int staged_file_check(const char *target);

/* Creates it. Errors: LEAT_EIO, naming the target; LEAT_ENOMEM. */
int staged_file_create(struct staged_file *out, const char *target);

/* The same for `name` in an open directory, which stays the one in which it is
 * published, whatever its path leads to by then. Errors name `target`. */
int staged_file_create_in(struct staged_file *out, int directory,
                          const char *name, const char *target);

/* Closes the stream. Errors: LEAT_EIO where something was not written. */
int staged_file_close(struct staged_file *file, const char *target);

/* Gives a closed one the target's name. Errors: LEAT_EIO; it then stays. */
int staged_file_publish(struct staged_file *file, const char *target);

/* The same, but replaces nothing. Errors: LEAT_EINVAL where the target is
 * there; LEAT_EIO; it then stays. */
int staged_file_publish_new(struct staged_file *file, const char *target);

/* The target gets the place and the name of a closed one, and its own name back
 * where that is free. 0, or -1: errno. */
int staged_file_set_aside(const struct staged_file *file);
int staged_file_restore(const struct staged_file *file);

/* Removes an unpublished file. Takes a zeroed one. */
void staged_file_discard(struct staged_file *file);

/*
 * Letters of the target's name, where `name` is one that a staged file may
 * have; 0: it is none.
 */
size_t staged_file_target(const char *name);

#endif
