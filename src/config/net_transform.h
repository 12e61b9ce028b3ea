/* net_transform.h: what a net file says of a transform. */
#ifndef LEAT_CONFIG_NET_TRANSFORM_H
#define LEAT_CONFIG_NET_TRANSFORM_H

#include <leat/transform.h>

#include "config/prototxt.h"

#include <stdbool.h>

/* Where it says that; messages are NULL where they are missing. */
typedef struct leat__net_transform {
    leat__prototxt *file;
    const leat__prototxt_field *message; /* transform_param */
    const leat__prototxt_field *old;     /* data_param of an old file */
    bool is_v0;                          /* with the field names of V0 */
    leat__prototxt_location *mean_at;    /* set to that of mean_file; or NULL */
} leat__net_transform;

/* Reads what is said into options that have their other values. LEAT_EINVAL. */
int leat__net_transform_read(const leat__net_transform *from,
                             leat_transform_options *out);

/* A field of data_param, three of which had other names in V0; or NULL. */
const leat__prototxt_field *
leat__net_data_find(const leat__prototxt_field *data, bool is_v0,
                    const char *name);

#endif
