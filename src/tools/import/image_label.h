/* image_label.h: what a list says an image is. */
#ifndef LEAT_TOOLS_IMPORT_IMAGE_LABEL_H
#define LEAT_TOOLS_IMPORT_IMAGE_LABEL_H

#include <stddef.h>
#include <stdint.h>

/* Labels of one image, at most: a record's room for them is part of its size.
 */
enum { IMAGE_LABELS_MOST = 1024 };

/* Caffe's class, or, where `count` is above 0, that many numbers. */
struct image_label {
    int32_t class;
    const float *value;
    size_t count;
};

#endif
