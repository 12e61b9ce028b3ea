/* net_top.h: the tops that leat_param describes. */
#ifndef LEAT_CONFIG_NET_TOP_H
#define LEAT_CONFIG_NET_TOP_H

#include <leat/data_layer.h>

#include "config/net_schema.h"
#include "config/prototxt.h"

typedef struct leat__net_tops {
    leat_top top[LEAT_MAX_FIELDS];
    leat_transform_options transform[LEAT_MAX_FIELDS];
    int n;
    const char *name[LEAT_MAX_FIELDS]; /* of all that they make */
    int nnames;
} leat__net_tops;

/*
 * Reads `top { }` of leat_param, `first` and its like, into zeroed tops; NULL:
 * there are none. Images without a transform of their own have the layer's,
 * `transform`. `line` is the layer's first `top`, or NULL: its lines must name
 * the same, lengths and offsets included. Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__net_tops_read(leat__net_tops *out, leat__prototxt *file,
                        const leat_transform_options *transform,
                        const leat__prototxt_field *first,
                        const leat__prototxt_field *line);

#endif
