/* inputs.h: random files of records, in the working directory. */
#ifndef LEAT_TESTS_CHAINS_INPUTS_H
#define LEAT_TESTS_CHAINS_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

/* Every record is a line "ID,X,Y,Z", in whatever format its file has. */
typedef enum input_format {
    INPUT_TEXT,
    INPUT_TFRECORD,
    INPUT_RECORDIO,
    INPUT_FIXED,
    INPUT_FORMATS
} input_format;

enum { INPUTS = 3, INPUT_FILES = 3, INPUT_RECORDS = 12, INPUT_LINE = 40 };

typedef struct input {
    input_format format;
    const char *compression; /* the value of that argument */
    int nfiles;
    int n[INPUT_FILES]; /* records of each */
    /* Of each record: the format says that it is bad; its line has no
       columns. */
    bool is_bad[INPUT_FILES][INPUT_RECORDS];
    bool has_no_columns[INPUT_FILES][INPUT_RECORDS];
} input;

/* The ID of a record of input `i`. */
int input_id(int i, int file, int record);

/* Chooses and writes input `i`, as files iI-F.rec and a list iI.list. */
void input_make(input *made, int i);

/* Other records in its files, which are replaced: open readers keep theirs. */
void input_replace(input *made, int i);

/* Replaces one of its files by a copy with wrong, missing or more bytes. */
void input_damage(const input *made, int i);

/* The reader of these files, whose samples have one field, `line`. `files` is
   the first argument. */
void input_text(const input *made, const char *files, char *out, size_t size);

#endif
