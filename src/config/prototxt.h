/* prototxt.h: protobuf's text format, read into a tree without a schema. */
#ifndef LEAT_CONFIG_PROTOTXT_H
#define LEAT_CONFIG_PROTOTXT_H

#include "config/prototxt_location.h"

#include <stdbool.h>

/* Messages within messages that are still read; protobuf's own limit. */
#define LEAT__PROTOTXT_DEPTH 100

typedef enum leat__prototxt_type {
    LEAT__PROTOTXT_INTEGER,
    LEAT__PROTOTXT_FLOAT,
    LEAT__PROTOTXT_IDENTIFIER,
    LEAT__PROTOTXT_STRING,
    LEAT__PROTOTXT_MESSAGE,
    LEAT__PROTOTXT_NOTHING /* the empty list, [] */
} leat__prototxt_type;

/*
 * A field and one value of it: a list gives a field for each of its elements.
 * The function that reads a token decides its type of number, as the schema
 * would.
 */
typedef struct leat__prototxt_field leat__prototxt_field;
struct leat__prototxt_field {
    const char *name;
    leat__prototxt_location at; /* of the name */
    leat__prototxt_location
        value_at; /* of the value, its minus sign included */
    leat__prototxt_type type;
    bool has_colon;
    bool is_listed;   /* stands in [ ] */
    bool is_negative; /* a minus sign stands before the token */
    const char *text; /* the token; of a string its bytes. Ends in a NUL */
    size_t text_size;
    leat__prototxt_field *first; /* the first field of a message */
    leat__prototxt_field *next;  /* in the same message */
};

/* A file's tree and all memory that it takes. */
typedef struct leat__prototxt {
    const char *name; /* of the file, for errors */
    leat__prototxt_field root;
    struct leat__prototxt_block *blocks;
} leat__prototxt;

/*
 * Reads `size` bytes of text. `name` is borrowed until finish, the text during
 * the call alone. On failure nothing is left to finish.
 * Errors: LEAT_EINVAL as NAME:LINE:COLUMN; LEAT_ENOMEM.
 */
int leat__prototxt_parse(leat__prototxt *out, const char *name,
                         const char *text, size_t size);
void leat__prototxt_finish(leat__prototxt *file);

/* Memory that lives until finish, zeroed and aligned for any type. */
void *leat__prototxt_alloc(leat__prototxt *file, size_t bytes);

/* LEAT_EINVAL with NAME:LINE:COLUMN before the line. */
int leat__prototxt_error(const leat__prototxt *file, leat__prototxt_location at,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A value as text for errors, such as `"abc"`, `-5`, `{`. */
#define LEAT__PROTOTXT_SHOWN_MAX 304
const char *leat__prototxt_show(char out[LEAT__PROTOTXT_SHOWN_MAX],
                                const leat__prototxt_field *value);

/*
 * The first field of that name in a message, or the next one of a field's own
 * name; NULL when there is none. Empty lists are passed over.
 */
const leat__prototxt_field *
leat__prototxt_find(const leat__prototxt_field *message, const char *name);
const leat__prototxt_field *
leat__prototxt_find_next(const leat__prototxt_field *previous);

/* A name and number of an enum; a list of them ends with a NULL name. */
typedef struct leat__prototxt_enum {
    const char *name;
    int number;
} leat__prototxt_enum;

/*
 * The value as the type of its field, accepted or refused as by C++ protobuf.
 * Errors: LEAT_EINVAL naming the location; LEAT_ENOMEM (double, float).
 */
int leat__prototxt_double(const leat__prototxt *file,
                          const leat__prototxt_field *value, double *out);
int leat__prototxt_float(const leat__prototxt *file,
                         const leat__prototxt_field *value, float *out);
int leat__prototxt_int32(const leat__prototxt *file,
                         const leat__prototxt_field *value, int32_t *out);
int leat__prototxt_uint32(const leat__prototxt *file,
                          const leat__prototxt_field *value, uint32_t *out);
int leat__prototxt_int64(const leat__prototxt *file,
                         const leat__prototxt_field *value, int64_t *out);
int leat__prototxt_uint64(const leat__prototxt *file,
                          const leat__prototxt_field *value, uint64_t *out);
int leat__prototxt_bool(const leat__prototxt *file,
                        const leat__prototxt_field *value, bool *out);
/* Borrowed until finish; may have NULs within its text_size bytes. */
int leat__prototxt_string(const leat__prototxt *file,
                          const leat__prototxt_field *value, const char **out);
int leat__prototxt_enum_value(const leat__prototxt *file,
                              const leat__prototxt_field *value,
                              const leat__prototxt_enum values[], int *out);

#endif
