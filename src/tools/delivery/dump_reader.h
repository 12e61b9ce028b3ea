/* dump_reader.h: reads a directory of .npy files, as `leat dump` makes it. */
#ifndef LEAT_TOOLS_DELIVERY_DUMP_READER_H
#define LEAT_TOOLS_DELIVERY_DUMP_READER_H

#include "tools/delivery/npy_header.h"

#include <stdbool.h>

/* NAME.npy, or NAME.0000.npy and so on, one after the other. */
struct dump_array {
    char *name;
    struct dump_file {
        struct npy_header header;
        void *bytes; /* mapped */
        size_t size;
    } * file;
    int files;
    int64_t rows;
    int current;         /* the file of the next row */
    int64_t current_row; /* its row there */
};

struct dump_reader {
    struct dump_array *array; /* in the order of their names */
    int arrays;
    int64_t rows; /* of each array */
};

/* Errors: LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM. */
int dump_reader_open(struct dump_reader *out, const char *directory);
void dump_reader_close(struct dump_reader *reader);

/* Whether it is a directory of .npy files, and no database. */
bool dump_reader_is_dump(const char *path);

/*
 * The next row of the array, of which there are `rows`; its shape goes to
 * `header`. Borrowed until close.
 */
const void *dump_reader_row(struct dump_array *array,
                            struct npy_header *header);

#endif
