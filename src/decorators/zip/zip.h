/* zip.h: what the two forms of zip share. */
#ifndef LEAT_DECORATORS_ZIP_ZIP_H
#define LEAT_DECORATORS_ZIP_ZIP_H

#include "base/error.h"
#include "decorators/field_list.h"
#include "decorators/index_map.h"
#include "decorators/zip/zip_rows.h"

#include <leat/decorators.h>

#include <stdbool.h>

/* Over a stream: rows that were read, and are still to be returned. */
typedef struct leat__zip_held {
    leat__zip_rows *rows; /* NULL over random access */
    int at_once;          /* rows that are read next, at most */
    int at, n;            /* of rows, these */
    int status;           /* what follows them; LEAT_OK: more rows */
    char line[LEAT__ERROR_MAX];
    bool is_bad[LEAT__ZIP_ROWS]; /* of the rows that were read last */
    char bad_line[LEAT__ZIP_ROWS][LEAT__ERROR_MAX];
    leat_token begin; /* the inputs' marks where these rows began */
    int64_t given;    /* since then, how many rows were passed */
} leat__zip_held;

/* Over random access `held` is not used, over a stream `map.count` is not. */
typedef struct leat__zip {
    leat__index_map map; /* first; map.next is where next continues */
    leat_align align;
    leat__field_list fields;
    leat__zip_pool pool;
    leat__zip_held *held;
    /* Its samples are large, not stable, and a file's own: copying them would
       cost more than a call for each. Set once, by any thread. */
    atomic_bool appends[LEAT_MAX_FIELDS];
} leat__zip;

extern const leat_reader_ops leat__zip_stream_ops;

int leat__zip_fields(leat_reader *reader, const leat_field_spec **out, int *n);
int64_t leat__zip_memory(leat_reader *reader);
void leat__zip_close(leat_reader *reader);

/*
 * Adds the sample of input `i` to row `index` of the epoch. Errors:
 * LEAT_EFORMAT for another key, LEAT_ENOMEM.
 */
int leat__zip_add(leat__zip *zip, int i, int64_t index, leat_sample *row,
                  leat_sample *sample);

/*
 * The same for a row to which an input of its own has appended its fields:
 * `origin` is from before that. Errors: LEAT_EFORMAT.
 */
int leat__zip_appended(const leat__zip *zip, int i, int64_t index,
                       leat_sample *row, leat__zip_origin *origin);

/* LEAT_EFORMAT: input `shorter` ends before row `index`, `longer` does not. */
int leat__zip_unequal(const leat__zip *zip, int shorter, int longer,
                      int64_t index);

#endif
