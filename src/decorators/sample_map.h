/*
 * sample_map.h: a decorator that works on each sample of its upstream reader by
 * itself.
 *
 * DESIGN. The work is done in materialize, on whatever threads call it, in
 * parallel: order, count, random access and marks are the upstream reader's.
 * What a thread needs for it, such as a decoder, is a state, which belongs to
 * one call of materialize at a time; `lock` protects the list of idle ones,
 * and is taken for a call, not for a sample.
 *
 * Work that depends on a sample's position has it noted in the sample
 * (leat_sample.at) by next and read_at. Where a map further upstream has noted
 * another position, and has still to work on the sample, it does so in next.
 */
#ifndef LEAT_DECORATORS_SAMPLE_MAP_H
#define LEAT_DECORATORS_SAMPLE_MAP_H

#include "decorators/decorator.h"
#include "decorators/field.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct leat__sample_map leat__sample_map;

/* The first member of a decorator's own state of a thread. */
typedef struct leat__map_state {
    struct leat__map_state *next; /* idle, too */
    int64_t bytes;                /* that it holds, after the work */
} leat__map_state;

/* What a map does; size and name of the table follow from it. */
typedef struct leat__map_kind {
    const char *name; /* of the decorator */
    /*
     * Works on a complete sample, of which field `first` is the upstream
     * reader's first. On failure its fields are as they were. Errors:
     * LEAT_EDATA concerns the sample; its line gets source and record.
     */
    int (*work)(leat__sample_map *map, leat__map_state *state,
                leat_sample *sample, int first);
    void (*finish)(leat__sample_map *map); /* frees its own; NULL: nothing */
    size_t state_size;                     /* 0: no states */
    int (*start_state)(leat__sample_map *map, leat__map_state *state);
    void (*finish_state)(leat__map_state *state);
} leat__map_kind;

/* The first member of such a decorator's own struct. */
struct leat__sample_map {
    leat__decorator decorator; /* first */
    /* Immutable once it is open. */
    leat_reader_ops ops;
    const leat__map_kind *kind;
    const leat_field_spec *given;          /* the upstream reader's fields; */
    int ngiven;                            /* 0: it has no samples */
    leat_field_spec spec[LEAT_MAX_FIELDS]; /* its own: those, until open */
    int nspec;                             /* changes them */
    char name[LEAT_MAX_FIELDS][LEAT__FIELD_NAME_MAX]; /* for its own specs */
    bool notes_positions;
    /* Of one caller at a time. */
    leat_position next;
    /* Guarded by lock. */
    pthread_mutex_t lock;
    leat__map_state *idle;
    atomic_int_fast64_t held; /* bytes of states; read without the lock */
};

/*
 * Allocates a zeroed map of `size` bytes over the upstream reader of `open`,
 * and takes that one's fields for its own. Freed by the reader's close; after a
 * failure of open by leat__sample_map_free. Errors: those of leat_reader_fields
 * but LEAT_END; LEAT_ENOMEM.
 */
int leat__sample_map_new(leat__sample_map **out, const leat_open *open,
                         const leat__map_kind *kind, size_t size);

/* Frees a map whose open failed; the upstream reader stays. Takes NULL. */
void leat__sample_map_free(leat__sample_map *map);

/* Ends open: the map, or frees it where `status` is a failure, whose line gets
 * the decorator's name. */
int leat__sample_map_opened(leat__sample_map *map, int status,
                            leat_reader **out);

/* Has the position of each sample noted. */
void leat__sample_map_note_positions(leat__sample_map *map);

/* The operation, for maps that do their work elsewhere as well. */
int leat__sample_map_materialize(leat_reader *reader, leat_sample *const out[],
                                 int n, int *got);

/*
 * Takes `bytes` of the sample's buffer for a field that is made; the sample is
 * then no longer stable. Views of other fields may move. NULL: LEAT_ENOMEM.
 */
void *leat__sample_map_take(leat_sample *sample, size_t bytes);

#endif
