/* images.h: LMDBs of small images, and what reading them must give. */
#ifndef LEAT_TESTS_IMAGES_H
#define LEAT_TESTS_IMAGES_H

#include "lmdb_fixture.h"

#include <leat.h>

/* Record i: an image of 1 x 4 x 5, all bytes i, label i, key "%08d". */
void images_record(int number, fixture_record *out);

/* A database of `n` records in a new directory, which it returns. */
const char *images_write(char directory[FIXTURE_PATH], fixture_maker *make,
                         int n);

/* The path of a file in a directory, until the next call. */
const char *images_in(const char *directory, const char *name);

/* A reader of the database at `path`; aborts the test where there is none. */
leat_reader *images_open(const char *path);

/* A reader of a new database in a new directory, and both gone again. */
leat_reader *images_begin(char directory[FIXTURE_PATH], fixture_maker *make,
                          int n);
void images_end(leat_reader *reader, const char *directory);

/* Makes `n` buffers, and pointers to them as readers take them. */
void images_boxes_init(leat_sample buffer[], leat_sample *out[], int n);
void images_boxes_finish(leat_sample buffer[], int n);

/* What opening it comes to. */
int images_status(const char *path);

int32_t images_label(const leat_sample *sample);

/* The sample is the image of that number. */
void images_assert(const leat_sample *sample, int64_t record);

/* Reads on to the end; whatever comes are the images from 0 on. Their number.
 */
int64_t images_count(leat_reader *reader);

#endif
