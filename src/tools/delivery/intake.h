/* intake.h: a data layer from the command line, for dump and bench. */
#ifndef LEAT_TOOLS_DELIVERY_INTAKE_H
#define LEAT_TOOLS_DELIVERY_INTAKE_H

#include "tools/delivery/intake_options.h"

/* A layer with its tops. */
struct intake {
    leat_data_layer *layer;
    int ntop;
    leat_blob *top[LEAT_MAX_FIELDS];
    leat_device *device; /* NULL: the CPU reads; else a stream of it does */
    leat_stream stream;
    leat_blob *copy[LEAT_MAX_FIELDS]; /* of the tops, back from the device */
};

/* Creates the layer; nothing is opened yet. Errors: those of the layer. */
int intake_create(struct intake *intake, const struct intake_options *options);

/* Makes the tops and sets the layer up. Errors: those of the layer. */
int intake_setup(struct intake *intake);

int intake_forward(struct intake *intake);

/* Waits until the batches of all forwards are where they should be. */
int intake_wait(struct intake *intake);

/*
 * The tops of the last forward where the CPU reads them: themselves, or what
 * the device has, copied back. Borrowed until the next call. Errors:
 * LEAT_ENOMEM, LEAT_EDEVICE.
 */
int intake_fetch(struct intake *intake, leat_blob *out[LEAT_MAX_FIELDS]);

/* Bad records that forward met so far. */
int64_t intake_bad_records(const struct intake *intake);

/* Frees what there is of it; zeroed memory is nothing. */
void intake_destroy(struct intake *intake);

#endif
