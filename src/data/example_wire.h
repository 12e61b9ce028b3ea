/* example_wire.h: tf.train.Example and SequenceExample, read without copying.
 */
#ifndef LEAT_DATA_EXAMPLE_WIRE_H
#define LEAT_DATA_EXAMPLE_WIRE_H

#include "data/wire.h"

#include <stddef.h>

/* Field numbers of a message's maps (proto/example.proto). */
enum {
    LEAT__EXAMPLE_FEATURES = 1, /* an Example's, and a SequenceExample's context
                                 */
    LEAT__EXAMPLE_LISTS = 2     /* a SequenceExample's feature_lists */
};

/* What a Feature holds: the field number in its oneof. */
typedef enum leat__feature_kind {
    LEAT__FEATURE_NONE = 0, /* nothing: as good as missing */
    LEAT__FEATURE_BYTES = 1,
    LEAT__FEATURE_FLOATS = 2,
    LEAT__FEATURE_INTS = 3
} leat__feature_kind;

/* "bytes", "float", "int64", or "no kind". */
const char *leat__feature_kind_name(leat__feature_kind kind);

/* An entry that is looked for: its map, and its key, which is not empty. */
typedef struct leat__feature_key {
    uint32_t map;
    const char *name;
    size_t size;
} leat__feature_key;

/* Where an entry of a map is in its message; size 0: there is none. Offsets
 * hold when the message moves. */
typedef struct leat__feature_entry {
    size_t at;
    size_t size;
} leat__feature_entry;

/*
 * Finds the entries of `n` keys in the message: of several with one key the
 * last. Entries of other keys are passed by unread, and so are maps without a
 * key. Errors: LEAT_EDATA with the byte offset in the message.
 */
int leat__example_find(const void *message, size_t size,
                       const leat__feature_key keys[], int n,
                       leat__feature_entry out[]);

/* The entries of all maps, in the order of the message. */
typedef struct leat__example_walk {
    leat__wire message;
    leat__wire map;
    uint32_t number; /* of the map */
} leat__example_walk;

void leat__example_walk_begin(leat__example_walk *walk, const void *message,
                              size_t size);

/* The next one; its key is a view, and may be empty. LEAT_OK, LEAT_END, or
 * LEAT_EDATA with the byte offset. */
int leat__example_walk_next(leat__example_walk *walk, leat__feature_key *key,
                            leat__feature_entry *entry);

/*
 * Writes the names of the first few entries of a map for an error, as in
 * "a", "b", ...; an empty text where there are none. What is malformed ends
 * them.
 */
void leat__example_names(char *out, size_t out_size, const void *message,
                         size_t size, uint32_t map);

/* The Features of an entry: of a FeatureList its steps; of a Feature the pieces
 * whose values together are the feature's, of which there is one. */
typedef struct leat__feature_iterator {
    leat__wire entry;
    leat__wire list;
    bool is_list;
} leat__feature_iterator;

void leat__feature_begin(leat__feature_iterator *iterator, const void *message,
                         const leat__feature_entry *entry, uint32_t map);

/* The next one. LEAT_OK, LEAT_END, or LEAT_EDATA with the byte offset. */
int leat__feature_next(leat__feature_iterator *iterator, leat__wire *feature);

/* The values of a feature, counted and, where `out` is not NULL, written. */
typedef struct leat__feature_values {
    leat__feature_kind kind;
    size_t count; /* values */
    size_t bytes; /* of those of kind bytes, in all */
    /* Where all of them lie: packed floats, or the only value of kind bytes.
     * NULL: in several pieces, in another form, or nowhere. */
    const unsigned char *view;
    /* At most `room` bytes of floats, int64s or concatenated bytes; memory of
     * floats and int64s is aligned to them. */
    void *out;
    size_t room;
    int64_t *ends; /* of kind bytes: where each value ends in `out`; or NULL */
    size_t max_ends;
} leat__feature_values;

/*
 * Adds the values of a Feature to `values`, which is zeroed at first but for
 * `kind`, if it is known, `out`, `room`, `ends` and `max_ends`. Another kind
 * than before replaces them. int64s are checked when they are written. Errors:
 * LEAT_EDATA with the byte offset.
 */
int leat__feature_add(leat__feature_values *values, leat__wire feature);

#endif
