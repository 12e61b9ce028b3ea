/* record_file.h: files of records of one size, plain or gzipped: the IDX files
 * of MNIST and the batches of CIFAR-10, binary version.
 */
#ifndef LEAT_TOOLS_IMPORT_RECORD_FILE_H
#define LEAT_TOOLS_IMPORT_RECORD_FILE_H

#include "tools/import/gzip_input.h"

/* A batch's record is a byte of label and an image in planes. */
enum {
    CIFAR10_COUNT = 10000,
    CIFAR10_CHANNELS = 3,
    CIFAR10_SIDE = 32,
    CIFAR10_IMAGE = 3 * 32 * 32,
    CIFAR10_LABELS = 10
};

enum record_format { IDX_IMAGES, IDX_LABELS, CIFAR10_BATCH };

/* Owned by the caller; zeroed: none is open. */
struct record_file {
    const char *path;
    int64_t count; /* of records; 0 in a batch: any number but none */
    int rows;      /* of an image of IDX */
    int columns;

    enum record_format format;
    struct gzip_input input;
    int64_t next;
    size_t size; /* bytes of a record */
    unsigned char *record;
};

/*
 * Opens a file and reads its header, if it has one; `path` is borrowed until
 * close, `count` is that of a batch. Errors: LEAT_EIO; LEAT_EFORMAT for another
 * header; LEAT_ECANCELLED for a signal while a pipe has nothing; LEAT_ENOMEM.
 * Close it in any case.
 */
int record_file_open(struct record_file *file, const char *path,
                     enum record_format format, int64_t count);

/*
 * The next record; borrowed until the next call. LEAT_END after the last one.
 * Errors: LEAT_EFORMAT for a file that is shorter or longer than it should be,
 * has labels that CIFAR-10 does not have, or damaged gzip data, and at the end
 * for one that was written meanwhile; as of open.
 */
int record_file_next(struct record_file *file, const unsigned char **record);

void record_file_close(struct record_file *file);

#endif
