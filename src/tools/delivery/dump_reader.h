/* dump_reader.h: the rows of a directory of .npy files, as `leat dump` makes.
 */
#ifndef LEAT_TOOLS_DELIVERY_DUMP_READER_H
#define LEAT_TOOLS_DELIVERY_DUMP_READER_H

#include "tools/delivery/npy_header.h"

/* NAME.npy, or NAME.0000.npy and so on. */
struct dump_array {
    char *name;
    struct dump_file {
        char *path;
        struct npy_header header;
        void *bytes; /* mapped */
        size_t size;
        int64_t row; /* the first one's number in the array */
    } * file;
    int files;
    int64_t rows;
};

struct dump_reader {
    struct dump_array *array; /* in the order of their names */
    int arrays;
    int64_t rows; /* that each of them has */
};

/* Errors: LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM. */
int dump_reader_open(struct dump_reader *out, const char *directory);
void dump_reader_close(struct dump_reader *reader);

/* Whether it is a directory of .npy files, and no database. */
int dump_reader_is_dump(const char *path);

/* A row: its shape is that of `header` without the first axis. */
struct dump_row {
    const struct npy_header *header;
    const void *data;
};
struct dump_row dump_reader_row(const struct dump_array *array, int64_t row);

#endif
