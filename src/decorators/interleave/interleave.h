/* interleave.h: what the forms of interleave share. */
#ifndef LEAT_DECORATORS_INTERLEAVE_INTERLEAVE_H
#define LEAT_DECORATORS_INTERLEAVE_INTERLEAVE_H

#include "base/error.h"
#include "decorators/field_list.h"
#include "decorators/index_map.h"
#include "decorators/interleave/element_identities.h"
#include "decorators/interleave/source_names.h"
#include "decorators/interleave/turns.h"
#include "pipeline/opening.h"

#include <leat/decorators.h>

#include <pthread.h>
#include <stdbool.h>

/* A reader whose turn comes with the others'. */
typedef struct leat__interleave_slot {
    leat_reader *reader; /* NULL: none */
    int64_t element;     /* its number among the inputs */
    int64_t index;       /* of its next sample */
    /* Of a template: */
    const char *source; /* of its last sample, as its reader gave it */
    const char *kept;   /* the same, for longer than the reader lives */
    int status;         /* its opening failed; with a line */
    char *line;
} leat__interleave_slot;

/* Where the inputs of a template come from. */
typedef struct leat__interleave_template {
    leat_open open;       /* for those that are opened on the way */
    pthread_mutex_t lock; /* of the readers that are open, and of cancelled */
    bool is_cancelled;
    leat__opening opening;        /* of a reader that is in no slot yet */
    leat__interleave_slot *ahead; /* opened, in order, before their turn */
    int nahead, most_ahead;
    int64_t ahead_bytes; /* what all its readers may read ahead */
    int64_t next_name;   /* of the upstream reader's */
    bool has_ended;      /* there are no more names */
    char *name;          /* of the element that is opened */
    size_t name_size;
    leat_sample sample; /* of the name */
    leat__source_names sources;
    leat__element_identities identities;
    bool is_identified; /* they are of all elements */
    bool draws_names;   /* so those of one name may differ */
    bool reads_once;    /* of the first of its readers, */
    bool is_endless;    /* likewise */
    char *unsaved;      /* why no run resumes from its readers; NULL: it does */
} leat__interleave_template;

typedef struct leat__interleave {
    leat__index_map map; /* first; over streams next.epoch alone is used */
    leat__turns *turns;  /* by index; NULL over streams */
    leat__field_list fields;
    int64_t block;
    int cycle;
    /* Over streams: */
    leat__interleave_slot *slot; /* cycle */
    int turn;                    /* the slot that is read */
    int nopen;                   /* slots with a reader */
    int64_t in_block;            /* samples of this turn, so far */
    int64_t next_element;
    leat__interleave_template *template; /* NULL: the upstream readers */
} leat__interleave;

extern const leat_reader_ops leat__interleave_stream_ops;
extern const leat_reader_ops leat__interleave_template_ops;

int leat__interleave_fields(leat_reader *reader, const leat_field_spec **out,
                            int *n);
void leat__interleave_finish(leat__interleave *interleave);
void leat__interleave_close(leat_reader *reader);

/* Opens the first element, whose fields are those of all. */
int leat__template_begin(leat__interleave *interleave, const leat_open *open);
void leat__template_finish(leat__interleave *interleave);

/* What the names do not tell of the data: opens each element once, and leaves
 * the names where they are. An element that has other data when it is opened
 * to be read is refused from then on. */
int leat__template_revision(leat_reader *reader, leat_token *token);

/* Fills an empty slot with the next element. LEAT_END: there is none;
 * LEAT_EDATA: its name or its opening is bad, and the next call passes it by.
 */
int leat__template_take(leat__interleave *interleave,
                        leat__interleave_slot *slot);

/* Fills it with element `element` of an epoch, as a mark has it. */
int leat__template_take_again(leat__interleave *interleave,
                              leat__interleave_slot *slot, int64_t epoch,
                              int64_t element);

/* Completes samples so that they outlive their reader. */
int leat__template_complete(leat__interleave *interleave,
                            leat__interleave_slot *slot,
                            leat_sample *const out[], int n, int *got);

/* The same for what names a bad record. */
int leat__template_keep_source(leat__interleave *interleave,
                               leat__interleave_slot *slot,
                               leat_sample *sample);

/* Closes a slot's reader, if there is one. */
void leat__template_release(leat__interleave *interleave,
                            leat__interleave_slot *slot);

/* Has element `next` of an epoch taken next. */
int leat__template_seek(leat__interleave *interleave, int64_t epoch,
                        int64_t next);

#endif
