/* records.h: what the data sets of a soak hold, and how it is stored. */
#ifndef LEAT_TESTS_RECORDS_H
#define LEAT_TESTS_RECORDS_H

#include "reference.h"

#include <stddef.h>

#define SIDE_MAX 24
#define CHANNELS_MAX 4
#define PIXELS_MAX (CHANNELS_MAX * SIDE_MAX * SIDE_MAX)

/* How images are stored, and what decoding is told to make of them. */
typedef enum storage { STORED_RAW, STORED_FLOATS, STORED_PNG } storage;
typedef enum force { FORCE_NONE, FORCE_COLOR, FORCE_GRAY } force;

typedef struct records_options {
    int64_t count;
    storage storage;
    force force;
    int varies; /* sides differ from record to record */
    int bad_in; /* about one record in so many is bad; 0: none */
} records_options;

/* Random records; records_free frees them. */
record *records_make(const records_options *options);
void records_free(record *records, int64_t count);

/* The elements of a record as the transform sees it. */
size_t record_elements(const record *record);

/* What a Datum of any record takes at most. */
#define DATUM_MAX (4096 + 2 * PIXELS_MAX * sizeof(float))

/* Writes the record as a Datum, a bad one so that it cannot be read. */
size_t record_encode(const record *record, unsigned char *to);

#endif
