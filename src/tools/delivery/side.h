/* side.h: one of the two sides of `leat compare`: records in order. */
#ifndef LEAT_TOOLS_DELIVERY_SIDE_H
#define LEAT_TOOLS_DELIVERY_SIDE_H

#include "tools/delivery/image_reader.h"
#include "tools/delivery/layer_source.h"
#include "tools/delivery/npy_header.h"

#include <stdbool.h>

/* A record, borrowed until the next, or the reason why it is bad. */
struct side_record {
    int64_t number; /* of a database's record; else the row's */
    const void *key;
    size_t key_size;
    size_t key_cut; /* bytes that the key lacks */
    char bad[512];  /* "": it is good */
    int arrays;
    struct side_array {
        const char *name;
        struct npy_header header; /* without an offset */
        const void *data;
    } array[LEAT_MAX_FIELDS];
};

/* NAME.npy, or NAME.0000.npy and so on, one after the other. */
struct dump_array {
    char *name;
    struct dump_file {
        char *path;
        struct npy_header header;
        void *bytes; /* mapped, while its rows are taken */
        size_t size;
    } * file;
    int files;
    int64_t rows;
    int current;         /* the file of the next row */
    int64_t current_row; /* its row there */
};

struct side {
    int (*next)(struct side *side); /* LEAT_EDATA: the record is bad */
    int64_t count;                  /* of records; -1: no end */
    int64_t step;                   /* records so far */
    struct side_record record;

    struct image_reader database;
    struct dump_array dump[LEAT_MAX_FIELDS]; /* in the order of their names */
    int dumps;
    struct layer_source source;  /* its layer delivers the records */
    int64_t row, rows;           /* of its batch: the next one, and all */
    char bad[512];               /* why the batch is bad; "": it is good */
    char *name[LEAT_MAX_FIELDS]; /* of its tops, as their files are called */
};

/* Errors that are not about a record end the program. */
void side_open_database(struct side *out, const char *path,
                        size_t max_image_bytes);
void side_open_dump(struct side *out, const char *directory);
void side_open_layer(struct side *out,
                     const struct layer_source_options *options);
void side_close(struct side *side);

/* Whether it is a directory of .npy files, and no database. */
bool side_is_dump(const char *path);

/* Reads the next record into `record`, bad ones included; false: that was all.
 */
bool side_next(struct side *side);

#endif
