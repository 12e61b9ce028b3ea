/* top_plan.h: which fields of the samples become which tops, and how. */
#ifndef LEAT_LAYER_TOPS_TOP_PLAN_H
#define LEAT_LAYER_TOPS_TOP_PLAN_H

#include "layer/tops/field_check.h"
#include "layer/tops/top_list.h"

typedef enum leat__top_kind {
    LEAT__TOP_IMAGE = 0, /* decoded and transformed */
    LEAT__TOP_NUMBERS,   /* as they are, or cast */
    LEAT__TOP_PADDED,    /* to a shape of its own */
    LEAT__TOP_LONGEST,   /* to the batch's longest */
    LEAT__TOP_LENGTHS,   /* of the one before */
    LEAT__TOP_VALUES,    /* the samples' rows end to end */
    LEAT__TOP_OFFSETS    /* of those */
} leat__top_kind;

typedef struct leat__planned_top {
    leat__top_kind kind;
    int field;
    leat_dtype dtype;    /* LEAT_BYTES: the field's own */
    bool may_lose;       /* a cast may lose values */
    bool is_usual;       /* one of Caffe's, which nobody listed */
    bool is_batch;       /* the samples are batches: they get no axis more */
    int image;           /* of IMAGE: its number in `image` */
    bool shares_choices; /* with another image */
    int of;              /* of LENGTHS and OFFSETS: the top that they are for */
    int level;           /* of OFFSETS: 0 is that of the samples */
    int levels;          /* of VALUES, between the samples and the rows */
    int level_field[LEAT__TOP_LEVELS_MAX]; /* their offsets, outermost first */
    int ndim;                              /* of PADDED and LONGEST */
    int64_t shape[LEAT_MAX_DIMS];          /* -1: the batch's longest */
    double pad_value;
    int nlengths;            /* axes of which there are lengths */
    int axis[LEAT_MAX_DIMS]; /* which ones */
    bool has_one_length;     /* without an axis for them */
    char name[LEAT__TOP_NAME_MAX];
} leat__planned_top;

typedef struct leat__planned_image {
    int top;
    int choices; /* the image whose choices it takes: its own number, mostly */
    int words;   /* where its words of Caffe's generator begin */
    int draws;   /* and how many an image of it takes */
} leat__planned_image;

/* Immutable once it is made; the specs are the reader's. */
typedef struct leat__top_plan {
    int n;
    leat__planned_top top[LEAT_MAX_FIELDS];
    int images;
    leat__planned_image image[LEAT_MAX_FIELDS];
    int draws;        /* words of Caffe's generator that a sample takes */
    bool is_variable; /* has VALUES or LONGEST */
    /* Without the fields of labels: leat__top_plan_is_label. */
    leat__field_check check;
} leat__top_plan;

/*
 * Caffe's tops: an image of the first field, each further field as a number of
 * `label_type`. `spec` NULL: nothing is promised of the fields.
 */
int leat__top_plan_usual(leat__top_plan *plan, int ntop, leat_dtype top_type,
                         leat_dtype label_type, const leat_field_spec *spec,
                         int nfields);

/*
 * The list's tops. `spec` NULL: only their names and kinds, with one level of
 * offsets for each RAGGED. Errors: LEAT_EINVAL naming the top, LEAT_ESTATE for
 * specs that are none.
 */
int leat__top_plan_list(leat__top_plan *plan, const leat__top_list *list,
                        leat_dtype top_type, const leat_field_spec *spec,
                        int nfields);

/* Gives each image its words of Caffe's generator, of which it takes so many.
 */
void leat__top_plan_set_draws(leat__top_plan *plan, const int draws[]);

/* Whether elements of type `from` become those of a top of type `to`. */
bool leat__planned_top_takes(const leat__planned_top *top, leat_dtype from,
                             leat_dtype to);

/* LEAT_EINVAL says why they do not. */
int leat__planned_top_refuse(const leat__planned_top *top, leat_dtype from);

/*
 * Whether the reader promises int32 scalars that become floats, as nearly every
 * label. The cast checks type and shape regardless.
 */
bool leat__top_plan_is_label(const leat__top_plan *plan, int i);

/* The type of the top's elements, made of a field of type `from`. */
static inline leat_dtype leat__planned_top_type(const leat__planned_top *top,
                                                leat_dtype from)
{
    return top->dtype == LEAT_BYTES ? from : top->dtype;
}

#endif
