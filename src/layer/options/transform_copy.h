/* transform_copy.h: a transform's options with all that they point to. */
#ifndef LEAT_LAYER_OPTIONS_TRANSFORM_COPY_H
#define LEAT_LAYER_OPTIONS_TRANSFORM_COPY_H

#include <leat/transform.h>

typedef struct leat__transform_copy {
    leat_transform_options options; /* its pointers are the next two */
    char *mean_file;
    float *mean_value;
} leat__transform_copy;

/*
 * Into a zeroed copy; `given` NULL: the defaults. Errors: LEAT_EINVAL,
 * LEAT_ENOMEM; finish is due all the same.
 */
int leat__transform_copy_init(leat__transform_copy *copy,
                              const leat_transform_options *given);
void leat__transform_copy_finish(leat__transform_copy *copy);

#endif
