/* image_record.h: image files as Caffe's convert_imageset stores them. */
#ifndef LEAT_TOOLS_IMPORT_IMAGE_RECORD_H
#define LEAT_TOOLS_IMPORT_IMAGE_RECORD_H

#include "tools/database/worker_pool.h"
#include "tools/import/image_list.h"

#include <stdbool.h>
#include <stdint.h>

/* What an encoded image is encoded as. */
enum image_encoding {
    IMAGE_RAW = 0, /* it is not: planes of pixels */
    IMAGE_BY_NAME, /* as its file's name ends */
    IMAGE_JPEG,
    IMAGE_PNG
};

/* How images are stored. */
struct image_record_options {
    const char *root; /* in front of names; NULL: nothing */
    int size[2];      /* height and width; 0: as they are */
    bool gray;
    enum image_encoding encoding;
    size_t max_image_bytes; /* that decoding may take; 0: the default */
};

struct image_record_maker;

/* For one thread; `options` are borrowed until it is destroyed. */
int image_record_maker_create(struct image_record_maker **out,
                              const struct image_record_options *options);

/*
 * Reads the file `name` and makes the record of its image; borrowed until the
 * maker's next. A file keeps its
 * bytes if they can be used: neither resized nor made gray, and of the encoding
 * that its name gives. Errors: LEAT_EDATA for an image that cannot be read,
 * with the file's path and the reason; what ends an import has another status:
 * LEAT_ENOMEM, LEAT_EIO.
 */
int image_record_make(struct image_record_maker *maker, const char *name,
                      const struct image_label *label, struct pool_record *out);

/*
 * Gives the size of the file `name` and its time of change, in seconds and
 * nanoseconds; all -1 for one that cannot be read, or is no regular file.
 * Errors: LEAT_ENOMEM, LEAT_EIO.
 */
int image_record_identify(struct image_record_maker *maker, const char *name,
                          int64_t out[3]);

/* Takes NULL. */
void image_record_maker_destroy(struct image_record_maker *maker);

#endif
