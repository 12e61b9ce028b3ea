/* top_list.h: the tops that the options ask for, owned and checked. */
#ifndef LEAT_LAYER_TOPS_TOP_LIST_H
#define LEAT_LAYER_TOPS_TOP_LIST_H

#include "layer/options/transform_copy.h"

#include <leat/data_layer.h>

/* Bytes of a name, with ".lengths" or ".offsets.7" after it. */
#define LEAT__TOP_NAME_MAX 64

/* The most levels of offsets. */
#define LEAT__TOP_LEVELS_MAX 8

/* The last two members, and the pointers of the first, are the list's own. */
typedef struct leat__top_list {
    leat_top top[LEAT_MAX_FIELDS];
    int n;            /* 0: Caffe's tops */
    bool is_variable; /* a batch's size depends on all of its samples */
    leat__transform_copy *transform;     /* n of them, zeroed but for images */
    char (*name)[3][LEAT__TOP_NAME_MAX]; /* n of a top, field and choices_of */
} leat__top_list;

/*
 * Copies the options' list, which may be an older caller's, into a zeroed one.
 * Errors: LEAT_EINVAL naming the top, LEAT_ENOMEM; finish is due all the same.
 */
int leat__top_list_init(leat__top_list *list,
                        const leat_data_layer_options *options);
void leat__top_list_finish(leat__top_list *list);

/* Whether an axis of it is as long as the batch's longest sample. */
bool leat__top_is_longest(const leat_top *top);

/* The index of the top of that name; -1: there is none. */
int leat__top_list_find(const leat__top_list *list, const char *name);

/* The name of a top's lengths, or of a level of its offsets. */
void leat__top_name_lengths(char out[LEAT__TOP_NAME_MAX], const char *name);
void leat__top_name_offsets(char out[LEAT__TOP_NAME_MAX], const char *name,
                            int level);

#endif
