/* cifar_batch.h: a batch of CIFAR-10, binary version, plain or gzipped. */
#ifndef LEAT_TOOLS_IMPORT_CIFAR_BATCH_H
#define LEAT_TOOLS_IMPORT_CIFAR_BATCH_H

#include <leat/status.h>

enum {
    CIFAR_BATCH_RECORDS = 10000,
    CIFAR_BATCH_CHANNELS = 3,
    CIFAR_BATCH_SIDE = 32,
    CIFAR_BATCH_IMAGE = 3 * 32 * 32,
    CIFAR_BATCH_LABELS = 10
};

struct cifar_batch;

/*
 * Opens a file of `records` records, 0: of any number but none. `path` is
 * borrowed until close. Errors: LEAT_EIO, LEAT_ENOMEM.
 */
int cifar_batch_open(struct cifar_batch **out, const char *path,
                     int64_t records);

/*
 * The next image, CIFAR_BATCH_IMAGE bytes in planes, and its label; borrowed
 * until the next call. LEAT_END after the last one.
 * Errors: LEAT_EFORMAT for a file that holds another number of records, a part
 * of one, or labels that CIFAR-10 does not have; LEAT_EIO, LEAT_ENOMEM.
 */
int cifar_batch_next(struct cifar_batch *batch, const unsigned char **image,
                     int *label);

/* Takes NULL. */
void cifar_batch_close(struct cifar_batch *batch);

#endif
