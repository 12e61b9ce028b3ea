/* layer_source.h: a data layer from the command line, for dump and bench. */
#ifndef LEAT_TOOLS_DELIVERY_LAYER_SOURCE_H
#define LEAT_TOOLS_DELIVERY_LAYER_SOURCE_H

#include "tools/delivery/layer_source_options.h"

#include <stdbool.h>
#include <sys/stat.h>

/* A layer with its tops. */
struct layer_source {
    leat_data_layer *layer;
    int ntop;
    leat_blob *top[LEAT_MAX_FIELDS]; /* the layer's */
    leat_device *device; /* NULL: the CPU reads; else a stream of it does */
    leat_stream stream;
    leat_blob *copy[LEAT_MAX_FIELDS]; /* of the tops, back from the device */
    bool makes_list;  /* of bad records, which is not there before setup */
    struct stat list; /* which file that is, after setup; zeroed: none */
};

/* Creates the layer; nothing is opened yet. Errors: those of the layer. */
int layer_source_create(struct layer_source *source,
                        const struct layer_source_options *options);

/* Sets the layer up; abandons it where the program ends before it is destroyed.
   Errors: those of the layer. */
int layer_source_setup(struct layer_source *source);

/* LEAT_EINVAL where an output at the path would take the place of the list of
   bad records, which setup has opened. */
int layer_source_check_output(const struct layer_source *source,
                              const char *path);

/* Its parts, for a layer of a group: the stream that reads the batches where
   that device has any, and the tops once it is set up. */
int layer_source_open_stream(struct layer_source *source, const char *name);
void layer_source_take_tops(struct layer_source *source);

int layer_source_forward(struct layer_source *source);

/* Waits until the batches of all forwards are where they should be. */
int layer_source_wait(struct layer_source *source);

/*
 * The tops of the last forward where the CPU reads them: themselves, or what
 * the device has, copied back. Borrowed until the next call. Errors:
 * LEAT_ENOMEM, LEAT_EDEVICE.
 */
int layer_source_fetch(struct layer_source *source,
                       leat_blob *out[LEAT_MAX_FIELDS]);

/* Bad records that forward met so far. */
int64_t layer_source_bad_records(const struct layer_source *source);

/* Frees it; takes zeroed memory too. Prints on stderr how many bad records
   could not be written to their list. */
void layer_source_destroy(struct layer_source *source);

/* Likewise, of a command of which nothing came: a list of bad records that
   setup made goes where it is empty. */
void layer_source_abandon(struct layer_source *source);

#endif
