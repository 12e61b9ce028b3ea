/* bad_record_file.h: bad_record_file, with a line for each bad record. */
#ifndef LEAT_LAYER_ON_ERROR_BAD_RECORD_FILE_H
#define LEAT_LAYER_ON_ERROR_BAD_RECORD_FILE_H

#include "layer/on_error/bad_list.h"
#include "layer/on_error/record_set.h"

#include <stdatomic.h>
#include <stdbool.h>

/* One caller at a time; other layers and processes may append as well. */
typedef struct leat__bad_record_file {
    const char *name;             /* the layer's, borrowed */
    const char *path;             /* borrowed; NULL: no file */
    const atomic_bool *cancelled; /* no wait then; borrowed, NULL: never */
    int file;                     /* -1: not open */
    bool is_made;                 /* it was not there before */
    bool is_held;   /* another had the lock for longer than is waited for */
    bool is_locked; /* by this one, while a line is added */
    bool is_torn;   /* the part read so far ends within a line */
    int64_t read;   /* bytes of it whose lines are in `listed` */
    char *buffer;   /* to read them */
    leat__record_set listed;
} leat__bad_record_file;

/* Opens nothing. */
void leat__bad_record_file_init(leat__bad_record_file *file, const char *name,
                                const char *path);
void leat__bad_record_file_finish(leat__bad_record_file *file);

/*
 * Opens the file, if one is asked for and is not open, and reads which records
 * it lists. Errors: LEAT_EIO; LEAT_EINVAL unless it is a regular file, and
 * empty or a list; LEAT_ENOMEM.
 */
int leat__bad_record_file_open(leat__bad_record_file *file);

/*
 * Closes a file that is not used after all, and removes it if open made it and
 * it has no line.
 */
void leat__bad_record_file_discard(leat__bad_record_file *file);

/*
 * Appends a line, by one write, unless the file already has one for the record.
 * Others that append wait meanwhile, up to 5 seconds. A file that was removed
 * is opened again first. Errors: those of that, LEAT_EIO, LEAT_ENOMEM;
 * LEAT_ELIMIT if it lists as many as a set has.
 */
int leat__bad_record_file_add(leat__bad_record_file *file,
                              const leat__bad *bad);

#endif
