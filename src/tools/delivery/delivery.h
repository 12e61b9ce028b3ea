/* delivery.h: one of the two sides that `leat compare` holds against each
 * other. */
#ifndef LEAT_TOOLS_DELIVERY_DELIVERY_H
#define LEAT_TOOLS_DELIVERY_DELIVERY_H

#include "tools/delivery/layer_source.h"
#include "tools/delivery/npy_header.h"

/* A field's elements; the views live until the next step. */
struct delivery_array {
    const char *name;
    struct npy_header type; /* kind and bytes of an element */
    int ndim;
    int64_t dim[NPY_MOST_DIMS];
    size_t count;
    const void *data;
    int interleaved; /* channels lie side by side: an image */
};

/* A record, or why there is none: it is bad. */
struct delivery_record {
    int64_t number; /* of a database's record; else the row's */
    const void *key;
    size_t key_size;
    size_t key_cut; /* bytes that the key lacks */
    char bad[512];  /* empty: it is good */
    int arrays;
    struct delivery_array array[LEAT_MAX_FIELDS];
};

struct delivery;

/* Records of a database as a reader gives them, images decoded. */
int delivery_open_database(struct delivery **out, const char *path,
                           size_t max_image_bytes);

/* Rows of a directory of .npy files. */
int delivery_open_dump(struct delivery **out, const char *directory);

/* Samples that a data layer delivers, without end. */
int delivery_open_layer(struct delivery **out,
                        const struct layer_source_options *options);

/* How many records there are; -1: no end. */
int64_t delivery_count(const struct delivery *delivery);

/* The seed by which its layer chooses; 0: no layer, or nothing at random. */
uint64_t delivery_seed(const struct delivery *delivery);

/*
 * The next record, bad ones included; LEAT_END behind the last one. Other
 * errors are not about a record. *out is borrowed until the next call.
 */
int delivery_next(struct delivery *delivery,
                  const struct delivery_record **out);

/* Takes NULL. */
void delivery_close(struct delivery *delivery);

/* Element `i` of the array, in C order. */
long double delivery_value(const struct delivery_array *array, size_t i);

#endif
