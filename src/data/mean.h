/* mean.h: a mean image in a BlobProto file. */
#ifndef LEAT_DATA_MEAN_H
#define LEAT_DATA_MEAN_H

#include <leat/status.h>

typedef struct leat__mean {
    int channels;
    int height;
    int width;
    double *values; /* channels x height x width; owned */
} leat__mean;

/*
 * Reads a mean file: a BlobProto with legacy num/channels/height/width or a
 * new-style shape of 4 axes; double_data wins over data. A pipe is read only as
 * far as the beginning of the BlobProto justifies. Errors: LEAT_EIO,
 * LEAT_EFORMAT naming the file and what is wrong, LEAT_ENOMEM.
 */
int leat__mean_load(leat__mean *out, const char *path);
/* The same from `size` bytes; `name` stands for the file in errors. */
int leat__mean_parse(leat__mean *out, const char *name, const void *bytes,
                     size_t size);
void leat__mean_finish(leat__mean *mean);

#endif
