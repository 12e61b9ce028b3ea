/* idx_labels.h: the labels of IDX files, arrays of their own. */
#ifndef LEAT_READERS_IDX_LABELS_H
#define LEAT_READERS_IDX_LABELS_H

#include "readers/file_list.h"

#include <leat/ext/reader.h>

#include <stdint.h>

/* Zero: there are none. */
typedef struct leat__idx_labels {
    int32_t *value; /* of all files; NULL: none */
    int64_t *first; /* where those of file i begin; one more than files */
    int64_t most;   /* there is memory for */
    leat__file_list files; /* one for each of images */
    int compression;       /* a leat__compression */
    uint64_t versions;     /* of the files when they were read, a hash */
    uint64_t numbers;      /* likewise: devices and inodes */
} leat__idx_labels;

/*
 * Reads those of the argument `labels` whole, if it is given, from as many
 * files as there are of images. *revision is a hash of their times of
 * modification then, and of the labels. Errors, after which they are closed as
 * well: LEAT_EINVAL for another number of files, LEAT_EFORMAT, LEAT_ELIMIT,
 * LEAT_EIO, LEAT_ENOMEM.
 */
int leat__idx_labels_open(leat__idx_labels *labels, const leat_open *open,
                          int images, uint64_t *revision);

/*
 * LEAT_EIO if the files are others than those that were read: images that were
 * opened since may be of another data set. Called once they are open. Labels
 * that are not given pass.
 */
int leat__idx_labels_check(const leat__idx_labels *labels);

void leat__idx_labels_close(leat__idx_labels *labels);

#endif
