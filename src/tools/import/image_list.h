/* image_list.h: a list of images and labels, as Caffe's convert_imageset has
 * it.
 *
 * A line is "NAME LABEL"; the last space splits it, so that a name may hold
 * spaces. Carriage returns, spaces and tabs at the end of a line are ignored. A
 * blank line is no image, but counts as a line.
 *
 * A list of several labels has "NAME LABEL LABEL ..." in each line, always the
 * same number of them, whole numbers or not.
 */
#ifndef LEAT_TOOLS_IMPORT_IMAGE_LIST_H
#define LEAT_TOOLS_IMPORT_IMAGE_LIST_H

#include <leat/status.h>

#include <stddef.h>
#include <stdint.h>

enum {
    IMAGE_NAME_MOST = 502, /* a key has 511 bytes, with eight digits and "_" */
    IMAGE_LABELS_MOST = 1024 /* a record's room for them is part of its size */
};

/* Caffe's class, or, where `count` is above 0, that many numbers. */
struct image_label {
    int32_t class;
    const float *value;
    size_t count;
};

struct image_list;

/*
 * Reads the list at `path`, "-": stdin, with `labels` numbers a line, or 0: a
 * class. Errors, with the line's number: LEAT_EFORMAT for one that is no name
 * and labels, or has one that a Datum cannot hold, LEAT_EIO, LEAT_ENOMEM; for a
 * list without images, too. LEAT_ECANCELLED: a signal while it waited.
 */
int image_list_open(struct image_list **out, const char *path, int labels);

/*
 * That no other file has taken the place of the list's at `path` since: images
 * that were looked at meanwhile may be those of the new one. Stdin and pipes
 * pass. Errors: LEAT_EFORMAT.
 */
int image_list_check(const struct image_list *list, const char *path);

/* Puts the lines into another order, always the same one for a seed. */
void image_list_shuffle(struct image_list *list, uint64_t seed);

int64_t image_list_lines(const struct image_list *list);
int64_t image_list_images(const struct image_list *list); /* not blank */

/*
 * The name and the label of the image in line `i`, counted from 0; borrowed.
 * NULL and no label for a blank line.
 */
const char *image_list_name(const struct image_list *list, int64_t i);
struct image_label image_list_label(const struct image_list *list, int64_t i);

/* Depends on every name, every label and their order. */
uint64_t image_list_digest(const struct image_list *list);

/* Adds bytes to a digest, which begins as this. */
static const uint64_t image_list_hash_start = UINT64_C(0xcbf29ce484222325);
uint64_t image_list_hash(uint64_t hash, const void *bytes, size_t size);

/* Takes NULL. */
void image_list_close(struct image_list *list);

#endif
